"""pip's provider, extended by the resolver extension with what depends on variants.

`VariantProvider` adds requirements of variants that are built against another project
(``abi_dependency``), and coherence. Its methods replace those of pip's own provider when the first
variant wheels are found: until then pip's resolver calls pip's provider only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from pep_variants.machines import Platform
from pep_variants.metadata import Metadata
from resolvelib_variants.ordering import VariantOrdering
from resolvelib_variants.provider import VariantProvider

from ._distributions import metadata_of, upgrades
from ._guard import Original, fault, iterated, switch
from ._release_metadata import InfoFiles

_METHODS = (
    "find_matches",
    "get_dependencies",
    "get_preference",
    "is_satisfied_by",
    "narrow_requirement_selection",
)


def extend(provider: Any, ordering: VariantOrdering[Any], files: InfoFiles) -> None:
    """Replace the methods of pip's *provider* by those of a `VariantProvider` over it."""
    original: Any = _Original(provider)
    extended: Any = VariantProvider(
        original,
        files,
        platform=lambda _: Platform(),  # *ordering* has it
        ordering=ordering,
    )

    def is_satisfied_by(requirement: Any, candidate: Any) -> bool:
        return bool(extended.is_satisfied_by(requirement, candidate))

    ours = {name: getattr(extended, name) for name in vars(original) if name != "identify"}
    ours["is_satisfied_by"] = is_satisfied_by
    dependencies = ours["get_dependencies"]
    ours["get_dependencies"] = lambda *args, **kwargs: _iterated(dependencies(*args, **kwargs))
    for name, method in ours.items():
        setattr(provider, name, _guarded(getattr(original, name), method))
    provider.is_satisfied_by.of_pip = original.is_satisfied_by


class PipInstalled:
    """The installed distributions that pip's provider knows: none with ``--ignore-installed``.

    Attributes:
        staying: projects that pip does not upgrade though it would, as is known from a resolution
            before.
    """

    def __init__(
        self,
        provider: Callable[[], Any],
        described: Callable[[Mapping[str, Any]], Iterable[tuple[str, Metadata]]],
        family: Callable[[str], Collection[str]] | None = None,
    ) -> None:
        """Set up.

        Args:
            provider: returns pip's provider, once there is one.
            described: gives project and metadata of those distributions, given by name, that are
                a variant as the catalogue describes it.
            family: returns what moves along with a project; None if nothing does.
        """
        self._provider = provider
        self._described = described
        self._family = family
        self.staying: Collection[str] = ()

    def version(self, project: str) -> object | None:
        """Return the installed version of a project, None if pip would upgrade it."""
        return None if upgrades(self._provider(), project) else self.present(project)

    def present(self, project: str) -> object | None:
        """Return the installed version of a project, which stays unless pip comes to it."""
        found = self._distributions().get(project)
        return None if found is None else found.version

    def variants(self) -> Iterator[tuple[str, Metadata]]:
        """Yield project and metadata of every installed variant that pip would not upgrade.

        It has a valid ``variant.json``, or the catalogue describes it.
        """
        dists = {
            name: found
            for name, found in self._distributions().items()
            if name in self.staying or (self.version(name) and not self._moves(name))
        }
        yield from self._described(dists)
        for project, found in dists.items():
            metadata = metadata_of(found)
            if metadata is not None:
                yield project, metadata

    def _moves(self, project: str) -> bool:
        return self._family is not None and bool(self._family(project))

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
