"""The provider packages that have a built-in implementation.

Metadata names plugin packages. For those in the table below a built-in implementation answers in
this process; their code is never fetched. A row applies only if the requirement admits the version
whose behaviour the implementation reproduces, and if the endpoint is one of the package. Anything
else is a third-party plugin, which runs only if the user allows it.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..model.metadata import ProviderInfo
    from .base import Provider
    from .vendor import Vendor


class KnownProvider(NamedTuple):
    """One provider package that has a built-in implementation.

    Attributes:
        package: its normalized name.
        namespace: the namespace that it is usually given.
        stands_for: the version whose behaviour it reproduces.
        plugin_apis: endpoints that mean this plugin, the usual one first.
        implementation: ``module:class`` here; the module also has a `Vendor`.
        required: device or driver without which an accelerator supports nothing; empty for CPUs.
    """

    package: str
    namespace: str
    stands_for: str
    plugin_apis: tuple[str, ...]
    implementation: str
    required: str = ""

    @property
    def factory(self) -> Callable[..., Provider]:
        """The class of the implementation, imported on first use."""
        factory: Callable[..., Provider] = self._attribute(self.implementation.partition(":")[2])
        return factory

    @property
    def vendor(self) -> Vendor:
        """What is known besides its detection."""
        vendor: Vendor = self._attribute("VENDOR")
        return vendor

    def _attribute(self, name: str) -> Any:  # noqa: ANN401 - a class or an object
        module = import_module(f".{self.implementation.partition(':')[0]}", __package__)
        return getattr(module, name)


# The version is the newest one whose values ours are known to equal. For the packages of which
# no release is public it is the version that uv 0.13.8 stands in for.
KNOWN = (
    KnownProvider(
        "nvidia-variant-provider",
        "nvidia",
        "0.0.2",
        ("nvidia_variant_provider.plugin:NvidiaVariantPlugin", "nvidia_variant_provider"),
        "nvidia:NvidiaProvider",
        "NVIDIA GPU or driver",
    ),
    KnownProvider(
        "amd-variant-provider",
        "amd",
        "0.0.2",
        ("amd_variant_provider.plugin:AMDVariantPlugin", "amd_variant_provider"),
        "amd:AmdProvider",
        "AMD GPU",
    ),
    KnownProvider(
        "intel-variant-provider",
        "intel",
        "0.0.3",
        ("intel_variant_provider.plugin:IntelVariantPlugin", "intel_variant_provider"),
        "intel:IntelProvider",
        "Intel GPU",
    ),
    KnownProvider(
        "ascend-variant-provider",
        "ascend",
        "0.0.2",
        ("ascend_variant_provider.plugin:AscendVariantPlugin", "ascend_variant_provider"),
        "ascend:AscendProvider",
        "Ascend NPU",
    ),
    KnownProvider(  # the same plugin as it was named before; published metadata still names it
        "huawei-ascend-variant-provider",
        "ascend",
        "0.0.2",
        (
            "huawei_ascend_variant_provider.plugin:AscendVariantPlugin",
            "huawei_ascend_variant_provider",
        ),
        "ascend:AscendProvider",
        "Ascend NPU",
    ),
    KnownProvider(
        "tpu-variant-provider",
        "tpu",
        "0.1.0",
        ("tpu_variant_provider.plugin:TpuVariantPlugin", "tpu_variant_provider"),
        "tpu:TpuProvider",
        "TPU",
    ),
    KnownProvider(
        "provider-variant-x86-64",
        "x86_64",
        "0.0.3",
        ("provider_variant_x86_64.plugin:X8664Plugin", "provider_variant_x86_64"),
        "x86_64:X8664Provider",
    ),
    KnownProvider(
        "x86-64-variant-provider",
        "x86_64",
        "0.2.1",
        ("x86_64_variant_provider",),
        "x86_64:X8664Provider",
    ),
    KnownProvider(
        "provider-variant-aarch64",
        "aarch64",
        "0.0.3",
        ("provider_variant_aarch64.plugin:AArch64Plugin", "provider_variant_aarch64"),
        "aarch64:AArch64Provider",
    ),
    KnownProvider(
        "aarch64-variant-provider",
        "aarch64",
        "0.2.0",
        ("aarch64_variant_provider",),
        "aarch64:AArch64Provider",
    ),
)

_BY_PACKAGE = {known.package: known for known in KNOWN}

BUILTIN_NAMESPACES: Mapping[str, KnownProvider] = {
    known.namespace: known for known in reversed(KNOWN)
}
"""The provider of each namespace that we have one for: the first of its rows in the table. For
metadata that leaves the choice of providers to the installer (PEP 825, formats 0.1.x)."""


ACCELERATORS: Mapping[str, str] = {
    known.namespace: known.required for known in KNOWN if known.required
}
"""Namespaces of accelerators, with the device or driver without which they support nothing."""


def find_vendor(namespace: str) -> Vendor | None:
    """Return what is known of the vendor of *namespace*, None without a built-in provider."""
    known = BUILTIN_NAMESPACES.get(namespace)
    return None if known is None else known.vendor


def find_known(
    namespace: str, provider: ProviderInfo, environment: Callable[[], Mapping[str, str]]
) -> KnownProvider | None:
    """Return what stands in for *provider* of *namespace*, None if nothing does.

    Args:
        namespace: the namespace that the metadata gives the provider.
        provider: what the metadata says of it.
        environment: gives the PEP 508 marker environment, if a requirement has a marker;
            requirements that do not apply in it are dropped.

    Packages are matched by ``requires`` and ``plugin-api`` (providers draft): metadata may give the
    plugin any namespace. Exactly one package of the table may remain, with a specifier that
    contains the version we stand in for and without URL or extras. The endpoint (by default the
    first requirement's name as a module) has to be one of that package. One requirement that
    cannot be read makes the whole provider unknown.

    A ``builtin`` provider (format 0.2.0) is known by the name of its namespace.
    """
    if provider.builtin is not None:
        return BUILTIN_NAMESPACES.get(namespace) if provider.builtin == namespace else None
    requirements = _plain(provider.requires) or _any(provider.requires, environment)
    packages = {wanted.name for wanted in requirements if wanted.name in _BY_PACKAGE}
    if len(packages) != 1:
        return None
    known = _BY_PACKAGE[packages.pop()]
    endpoint = provider.plugin_api or requirements[0].name.replace("-", "_")
    if endpoint not in known.plugin_apis:
        return None
    for wanted in requirements:
        if wanted.name == known.package and not wanted.admits(known.stands_for):
            return None
    return known


class _Wanted(NamedTuple):
    """A requirement: its normalized name, and whether it admits a version."""

    name: str
    admits: Callable[[str], bool]


def _any(
    requires: Iterable[str], environment: Callable[[], Mapping[str, str]]
) -> Sequence[_Wanted]:
    """Return those of *requires* that apply in *environment*; none if one cannot be read."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    def wanted(requirement: Requirement) -> _Wanted:
        def admits(version: str) -> bool:
            if requirement.url or requirement.extras:
                return False
            return requirement.specifier.contains(version, prereleases=True)

        return _Wanted(str(canonicalize_name(requirement.name)), admits)

    try:
        return [
            wanted(requirement)
            for requirement in map(Requirement, requires)
            if requirement.marker is None or requirement.marker.evaluate(dict(environment()))
        ]
    except (ValueError, LookupError, RecursionError):  # what packaging raises
        return []


_VERSION = r"[0-9]{1,9}(?:\.[0-9]{1,9})*"
_CLAUSE = rf"(<=|>=|==|!=|<|>)[ \t]*({_VERSION})[ \t]*"
_PLAIN = (
    r"[ \t]*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)[ \t]*"
    rf"((?:{_CLAUSE})?(?:,[ \t]*{_CLAUSE})*)"
)
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq,
    "!=": operator.ne, ">=": operator.ge, ">": operator.gt,
}  # fmt: skip


def _plain(requires: Iterable[str]) -> Sequence[_Wanted]:
    """Return *requires* if all are names and comparisons with final releases, else none.

    Most are; loading `packaging` for them takes 60 million instructions (15 ms).
    """
    found = []
    for text in requires:
        match = re.fullmatch(_PLAIN, text)
        if match is None or match[2].startswith(","):
            return ()
        name = re.sub("[-_.]+", "-", match[1]).lower()
        found.append(_Wanted(name, partial(_all_hold, re.findall(_CLAUSE, match[2]))))
    return found


def _all_hold(clauses: Iterable[tuple[str, str]], version: str) -> bool:
    return all(_COMPARE[sign](_release(version), _release(than)) for sign, than in clauses)


def _release(version: str) -> Sequence[int]:
    """Return the numbers of a final release, without zeros at its end, which do not count."""
    numbers = [int(number) for number in version.split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return numbers
