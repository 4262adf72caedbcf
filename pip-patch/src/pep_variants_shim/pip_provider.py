"""pip's provider, extended by the resolver extension with what depends on variants.

`VariantProvider` adds requirements of variants that are built against another project
(``abi_dependency``), and coherence. Its methods replace those of pip's own provider when the first
variant wheels are found: until then pip's resolver calls pip's provider only.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any

from pip._internal.resolution.resolvelib.base import Requirement
from pip._vendor.packaging.utils import canonicalize_name

from pep_variants.errors import VariantError
from pep_variants.formats.reader import read_metadata
from pep_variants.model.label import VARIANT_FILE
from pep_variants.model.metadata import Metadata
from pep_variants.model.platform import Platform
from resolvelib_variants import AbiRequirement, VariantOrdering, VariantProvider

from .candidate_info import source_of
from .guard import Original, fault, iterated, switch

_METHODS = (
    "find_matches",
    "get_dependencies",
    "get_preference",
    "is_satisfied_by",
    "narrow_requirement_selection",
)


def extend(provider: Any, ordering: VariantOrdering[Any]) -> None:
    """Replace the methods of pip's *provider* by those of a `VariantProvider` over it."""
    original: Any = _Original(provider)
    extended: Any = VariantProvider(
        original,
        PipFiles(),
        platform=lambda _: Platform(),  # *ordering* has it
        ordering=ordering,
    )

    def is_satisfied_by(*args: Any, **kwargs: Any) -> bool:
        # The resolver passes arguments by name. pip's factory passes them by position, for
        # candidates that it may offer, none of which is pinned.
        asked = extended if kwargs else original
        return asked.is_satisfied_by(*args, **kwargs)  # type: ignore[no-any-return]

    ours = {name: getattr(extended, name) for name in vars(original) if name != "identify"}
    ours["is_satisfied_by"] = is_satisfied_by
    dependencies = ours["get_dependencies"]
    ours["get_dependencies"] = lambda *args, **kwargs: _iterated(dependencies(*args, **kwargs))
    for name, method in ours.items():
        setattr(provider, name, _guarded(getattr(original, name), method))


class PipAbiRequirement(Requirement):  # type: ignore[misc] # pip is not there for mypy
    """An `AbiRequirement` as a requirement of pip's resolver."""

    def __init__(self, requirement: AbiRequirement[str]) -> None:
        self._requirement = requirement

    def __str__(self) -> str:
        return str(self._requirement)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({str(self)!r})"

    @property
    def refusal(self) -> bool:
        """Whether it only rejects a provisional candidate."""
        return self._requirement.refusal

    @property
    def project_name(self) -> Any:
        """The normalized project name."""
        return canonicalize_name(self._requirement.name)

    @property
    def name(self) -> str:
        """The identifier of the required project."""
        return self._requirement.identifier

    def format_for_error(self) -> str:
        """Return it as text."""
        return str(self._requirement)

    def get_candidate_lookup(self) -> Any:
        """Return that it brings no candidates."""
        return None, None

    def is_satisfied_by(self, candidate: Any) -> bool:
        """Return whether *candidate* is of one of the allowed releases."""
        return self._requirement.allows(candidate.version)


class PipFiles:
    """The files of pip's candidates, for `VariantProvider`."""

    def version(self, candidate: Any) -> Hashable:
        """Return the version."""
        return candidate.version  # type: ignore[no-any-return]

    def filename(self, candidate: Any) -> str | None:
        """Return the filename at the end of the link, None without a link."""
        link = candidate.source_link
        return None if link is None else str(link.filename)

    def source(self, candidate: Any) -> str:
        """Return the page or directory that lists the link."""
        return source_of(candidate.source_link)

    def metadata(self, project: str, candidate: Any) -> Metadata:
        """Not called: the candidates are ordered already."""
        raise NotImplementedError

    def has_variants(self, identifier: str) -> bool:
        """Not called either."""
        raise NotImplementedError

    def project(self, identifier: str) -> str:
        """Return the normalized project name."""
        return str(canonicalize_name(identifier.partition("[")[0]))

    def dependencies(
        self,
        candidate: Any,  # noqa: ARG002
        reduce: Callable[[str], str | None],  # noqa: ARG002
    ) -> Iterable[Any] | None:
        """Return None: pip reads metadata whose markers are reduced already."""
        return None

    def abi_requirement(self, condition: AbiRequirement[str]) -> Any:
        """Return the requirement for pip's resolver."""
        return PipAbiRequirement(condition)


class PipInstalled:
    """The installed distributions that pip's provider knows: none with ``--ignore-installed``."""

    def __init__(
        self,
        provider: Callable[[], Any],
        described: Callable[[Mapping[str, Any]], Iterable[tuple[str, Metadata]]],
    ) -> None:
        """Set up.

        Args:
            provider: returns pip's provider, once there is one.
            described: gives project and metadata of those distributions, given by name, that are
                a variant as the catalogue describes it.
        """
        self._provider = provider
        self._described = described

    def version(self, project: str) -> object | None:
        """Return the installed version of a project, None if pip would upgrade it."""
        provider = self._provider()
        found = self._distributions().get(project)
        strategy = provider._upgrade_strategy
        wanted = strategy == "only-if-needed" and project in provider._user_requested
        return None if found is None or wanted or strategy == "eager" else found.version

    def variants(self) -> Iterator[tuple[str, Metadata]]:
        """Yield project and metadata of every installed variant.

        It has a valid ``variant.json``, or the catalogue describes it.
        """
        yield from self._described(self._distributions())
        for project, found in self._distributions().items():
            try:
                yield project, read_metadata(found.read_text(VARIANT_FILE), VARIANT_FILE)
            except (FileNotFoundError, VariantError):
                continue

    def _distributions(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._provider()._factory._installed_dists
        return found


class _Original:
    """The methods of pip's provider before they are replaced."""

    def __init__(self, provider: Any) -> None:
        for name in ("identify", *_METHODS):
            method = getattr(provider, name, None)  # pip 25.1 added the last one
            if method is not None:
                setattr(self, name, Original(method, (), {}))


def _iterated(dependencies: Iterable[Any]) -> Iterable[Any]:
    """Return *dependencies*, guarded if they are an iterator, as of provisional candidates."""
    return iterated(dependencies) if isinstance(dependencies, Iterator) else dependencies


def _guarded(theirs: Original, method: Callable[..., Any]) -> Callable[..., Any]:
    """Return *method*, which itself calls pip's method *theirs*, guarded.

    As `guard.guarded` does, with half of the calls: pip asks a thousand times whether a candidate
    satisfies a requirement.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        if not switch.on:
            return theirs.function(*args, **kwargs)
        try:
            return method(*args, **kwargs)
        except Exception as error:
            if error is theirs.error:
                theirs.error = None  # break the cycle of error, traceback and frame
                raise
            fault(error)
            return theirs.function(*args, **kwargs)

    return call
