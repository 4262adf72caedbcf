"""`pip check`, and the warning after an installation: variants and what they are built against.

pip compares installed distributions with their requirements. A variant that is built against a
release of another project (``abi_dependency``) requires that too, if the project is installed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pep_variants import labels as wheel_labels

from .._distributions import read_file
from .._errors import logger
from .._guard import Original, guarded, is_ours, replace, switch
from .._session import current_session

if TYPE_CHECKING:
    from pep_variants.selection import AbiDependency


def patch_check(module: ModuleType) -> None:
    """Have the ABI dependencies of variants checked like requirements."""

    @replace(module, "check_package_set", shows=True)
    def check_package_set(original: Original, package_set: Any, *args: Any, **kwargs: Any) -> Any:
        session = current_session()
        if session is not None and session.replaced:
            package_set = _with_replaced(package_set, session.replaced)
        return original(package_set, *args, **kwargs)

    @replace(module, "check_install_conflicts", shows=True)
    def check_install_conflicts(original: Original, to_install: Any) -> Any:
        try:
            return original(to_install)
        except Exception as error:
            if not (switch.failed or is_ours(error)):
                raise
            switch.off_for_fault(error)  # everything is installed by now
            switch.tell()
            return {}, ({}, {})

    @replace(module, "get_default_environment", shows=True)
    def get_default_environment(original: Original) -> Any:
        return _Environment(original())

    @replace(module, "make_distribution_for_install_requirement", shows=True)
    def make_distribution_for_install_requirement(
        original: Original, install_req: Any, *args: Any, **kwargs: Any
    ) -> Any:
        return _Future(original(install_req, *args, **kwargs))


class _Wrapper:
    """An object of pip of which one method is replaced."""

    def __init__(self, wrapped: Any) -> None:
        self._wrapped = wrapped

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wrapped, name)


class _Environment(_Wrapper):
    """The environment."""

    def iter_installed_distributions(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        yield from map(_Dist, self._wrapped.iter_installed_distributions(*args, **kwargs))


class _Future(_Wrapper):
    """A distribution that is going to be installed."""

    def get_metadata_distribution(self, *args: Any, **kwargs: Any) -> Any:
        return _Dist(self._wrapped.get_metadata_distribution(*args, **kwargs))


class _Dist(_Wrapper):
    """A distribution whose ABI dependencies are among its requirements."""

    def iter_dependencies(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        yield from self._wrapped.iter_dependencies(*args, **kwargs)
        yield from _requirements(self._wrapped)


def _abi_requirements(_original: object, dist: Any) -> list[InstalledRequirement]:
    text = read_file(dist, wheel_labels.VARIANT_FILE)
    if text is None:
        return []
    from pep_variants import metadata as variant_metadata
    from pep_variants import selection as wheel_selection
    from pep_variants.errors import VariantError

    try:
        variants = variant_metadata.read_metadata(text, wheel_labels.VARIANT_FILE).variants
    except VariantError as error:  # pip must work with any content of the file
        logger.debug("%s of %s cannot be read: %s", wheel_labels.VARIANT_FILE, dist, error)
        return []
    return [
        InstalledRequirement(label, dependency)
        for label, properties in variants.items()
        for dependency in wheel_selection.abi_dependencies(properties)
        if dependency.releases
    ]


# pip sends people to its own tracker after any error here.
_requirements = guarded(lambda _dist: [], _abi_requirements, shows=True)


class InstalledRequirement:
    """The attributes of a requirement that pip uses here.

    Attributes:
        name: normalized project name.
        marker, specifier: itself. The marker is false, so the project need not be installed.
    """

    def __init__(self, label: str, dependency: AbiDependency) -> None:
        """Make the requirement of the variant *label*."""
        self.name = dependency.project
        self.marker = self.specifier = self
        self._dependency = dependency
        self._text = f"{dependency} (variant {label} is built against it)"

    def evaluate(self, *_: Any, **__: Any) -> bool:
        """Return False: the project need not be installed."""
        return False

    def contains(self, version: object, *_: Any, **__: Any) -> bool:
        """Return whether the variant works with *version* of the project, True after a fault."""
        allows = guarded(
            lambda _: True, lambda _, given: self._dependency.allows(given), shows=True
        )
        return bool(allows(version))

    def __iter__(self) -> Iterator[object]:
        """Yield no specifiers: pip 24.0 iterates over them to find legacy ones."""
        return iter(())

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__


def _with_replaced(packages: Mapping[str, Any], replaced: Mapping[str, str]) -> Mapping[str, Any]:
    """Return pip's *packages*, by name, with the projects that are left out."""
    added = {name: packages[target] for name, target in replaced.items() if target in packages}
    return {**added, **packages}
