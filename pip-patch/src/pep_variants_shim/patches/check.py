"""`pip check`, and the warning after an installation: variants and what they are built against.

pip compares what is installed with what it requires. A variant that is built against a release of
another package (``abi_dependency``) asks for that as well, as long as the package is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pep_variants.label import VARIANT_FILE

from ..hook import replace, require
from ..session import logger

if TYPE_CHECKING:
    from pep_variants.abi import AbiDependency


def patch_check(module: ModuleType) -> None:
    """Have conditions of variants checked like requirements."""
    require(module, "check_package_set", "package_set")

    @replace(module, "get_default_environment")
    def get_default_environment(original: Callable[[], Any]) -> Any:
        return _Environment(original())

    @replace(module, "make_distribution_for_install_requirement")
    def make_distribution_for_install_requirement(
        original: Callable[..., Any], install_req: Any, *args: Any, **kwargs: Any
    ) -> Any:
        return _Abstract(original(install_req, *args, **kwargs))


class _Wrapper:
    """Something of pip's, of which one method gives something else."""

    def __init__(self, wrapped: Any) -> None:
        self._wrapped = wrapped

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wrapped, name)


class _Environment(_Wrapper):
    """What is installed."""

    def iter_installed_distributions(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        yield from map(_Dist, self._wrapped.iter_installed_distributions(*args, **kwargs))


class _Abstract(_Wrapper):
    """What is about to be installed."""

    def get_metadata_distribution(self, *args: Any, **kwargs: Any) -> Any:
        return _Dist(self._wrapped.get_metadata_distribution(*args, **kwargs))


class _Dist(_Wrapper):
    """A distribution whose conditions are among its requirements."""

    def iter_dependencies(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        yield from self._wrapped.iter_dependencies(*args, **kwargs)
        try:
            text = self._wrapped.read_text(VARIANT_FILE)
        except (OSError, KeyError):  # no variant: nearly all of them
            return
        try:
            yield from _conditions(text)
        except Exception as error:  # pip must work, whatever is in that file
            logger.debug("%s of %s says nothing: %s", VARIANT_FILE, self._wrapped, error)


def _conditions(text: str) -> Iterator[Condition]:
    from pep_variants.abi import abi_dependencies
    from pep_variants.reader import read_metadata

    for label, properties in read_metadata(text, VARIANT_FILE).variants.items():
        for dependency in abi_dependencies(properties):
            if dependency.releases:
                yield Condition(label, dependency)


class Condition:
    """As much of a requirement as pip looks at here.

    Attributes:
        name: normalized project name.
        marker, specifier: itself: where the project is not installed, the marker does not hold.
    """

    def __init__(self, label: str, dependency: AbiDependency) -> None:
        """Express what the variant *label* is built against."""
        self.name = dependency.project
        self.marker = self.specifier = self
        self._dependency = dependency
        self._text = f"{dependency} (variant {label} is built against it)"

    def evaluate(self, *_: Any, **__: Any) -> bool:
        """Return False: without the project nothing is amiss."""
        return False

    def contains(self, version: object, *_: Any, **__: Any) -> bool:
        """Return whether the variant goes with *version* of the project."""
        return self._dependency.allows(version)

    def __iter__(self) -> Iterator[object]:
        """Yield no specifiers: pip 24.0 looks for old-fashioned ones."""
        return iter(())

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__
