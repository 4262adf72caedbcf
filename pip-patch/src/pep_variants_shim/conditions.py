"""Conditions between pip's candidates: what is built against what, what agrees with what.

The resolver extension's provider does it. Its methods are put before those of pip's own provider
when the first variants turn up: until then pip's resolver asks pip's provider and no one else.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any

from pip._internal.resolution.resolvelib.base import Requirement
from pip._vendor.packaging.utils import canonicalize_name

from pep_variants.errors import VariantError
from pep_variants.label import VARIANT_FILE
from pep_variants.metadata import Metadata
from pep_variants.platform import Platform
from pep_variants.reader import read_metadata
from resolvelib_variants.abi import AbiRequirement
from resolvelib_variants.arranger import Arranger
from resolvelib_variants.provider import VariantProvider

from .session import source_of

_METHODS = (
    "find_matches",
    "get_dependencies",
    "get_preference",
    "is_satisfied_by",
    "narrow_requirement_selection",
)


class Condition(Requirement):  # type: ignore[misc] # pip is not there for mypy
    """An `AbiRequirement` as a requirement of pip's."""

    def __init__(self, condition: AbiRequirement[str]) -> None:
        """Express *condition*."""
        self._condition = condition

    def __str__(self) -> str:
        return str(self._condition)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({str(self)!r})"

    @property
    def project_name(self) -> Any:
        """The normalized project name."""
        return canonicalize_name(self._condition.name)

    @property
    def name(self) -> str:
        """The identifier that it is on."""
        return self._condition.identifier

    def format_for_error(self) -> str:
        """Return it in words."""
        return str(self._condition)

    def get_candidate_lookup(self) -> Any:
        """Nothing to be looked up."""
        return None, None

    def is_satisfied_by(self, candidate: Any) -> bool:
        """Return whether *candidate* is of one of the releases."""
        return self._condition.allows(candidate.version)


class PipFiles:
    """What the resolver extension has to know of pip's candidates, arranged as they are."""

    def version(self, candidate: Any) -> Hashable:
        """Return the version."""
        return candidate.version  # type: ignore[no-any-return]

    def filename(self, candidate: Any) -> str | None:
        """Return the filename that the link of the candidate ends in, if it has one."""
        link = candidate.source_link
        return None if link is None else str(link.filename)

    def source(self, candidate: Any) -> str:
        """Return the page or directory that the link is from."""
        return source_of(candidate.source_link)

    def metadata(self, project: str, candidate: Any) -> Metadata:
        """Not asked: nothing is arranged here."""
        raise NotImplementedError

    def has_variants(self, identifier: str) -> bool:
        """Not asked either."""
        raise NotImplementedError

    def project(self, identifier: str) -> str:
        """Return the normalized project name."""
        return str(canonicalize_name(identifier.partition("[")[0]))

    def dependencies(
        self,
        candidate: Any,  # noqa: ARG002
        reduce: Callable[[str], str | None],  # noqa: ARG002
    ) -> Iterable[Any] | None:
        """Leave it to pip, which gets to see reduced metadata."""
        return None

    def abi_requirement(self, condition: AbiRequirement[str]) -> Any:
        """Return a requirement of pip's."""
        return Condition(condition)


class PipInstalled:
    """`Installed` as pip's provider sees it: nothing with ``--ignore-installed``."""

    def __init__(self, provider: Callable[[], Any]) -> None:
        """Set up; *provider* gives pip's provider, when it comes to that."""
        self._provider = provider

    def version(self, project: str) -> object | None:
        """Return the version of an installed project, None if pip would upgrade it."""
        provider = self._provider()
        found = self._distributions().get(project)
        strategy = provider._upgrade_strategy
        wanted = strategy == "only-if-needed" and project in provider._user_requested
        return None if found is None or wanted or strategy == "eager" else found.version

    def variants(self) -> Iterator[tuple[str, Metadata]]:
        """Yield project and ``variant.json`` of every installed variant that has a good one."""
        for project, found in self._distributions().items():
            try:
                yield project, read_metadata(found.read_text(VARIANT_FILE), VARIANT_FILE)
            except (FileNotFoundError, VariantError):
                continue

    def _distributions(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._provider()._factory._installed_dists
        return found


class _Original:
    """The methods of pip's provider as they were, without those that are put before them."""

    def __init__(self, provider: Any) -> None:
        for name in ("identify", *_METHODS):
            method = getattr(provider, name, None)  # the last came with pip 25.1
            if method is not None:
                setattr(self, name, method)


def follow(provider: Any, arranger: Arranger[Any]) -> None:
    """Have the resolver extension look over the shoulder of pip's *provider*."""
    original: Any = _Original(provider)
    extended: Any = VariantProvider(
        original,
        PipFiles(),
        platform=lambda _: Platform(),  # the arranger knows
        arranger=arranger,
    )

    def is_satisfied_by(*args: Any, **kwargs: Any) -> bool:
        # The resolver passes arguments by name. Without names it is pip's factory that asks, of
        # candidates that it may offer, none of which is pinned.
        asked = extended if kwargs else original
        return asked.is_satisfied_by(*args, **kwargs)  # type: ignore[no-any-return]

    for name in vars(original):
        if name != "identify":
            setattr(provider, name, getattr(extended, name))
    provider.is_satisfied_by = is_satisfied_by
