"""The provider packages that have a built-in implementation.

Metadata names plugin packages. For those in the table below a built-in implementation answers in
this process; their code is never fetched. A row applies only if the requirement admits the version
whose behaviour the implementation reproduces, and if the endpoint is one of the package. Anything
else is a third-party plugin, which runs only if the user allows it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .._model.platform import Support
from ..errors import ProviderError, shortened
from .base import DriverProvider, recorded

if TYPE_CHECKING:
    from packaging.requirements import Requirement

    from .._model.metadata import ProviderInfo
    from .base import Attempt, Provider, Vendor

_logger = logging.getLogger(__name__)


class KnownProvider(NamedTuple):
    """One provider package that has a built-in implementation.

    Attributes:
        package: its normalized name.
        namespace: the namespace that it is usually given.
        stands_for: the version whose behaviour it reproduces.
        plugin: its plugin class, with the submodule that has it unless that is ``plugin``, e.g.
            ``detection:Plugin``; empty for one whose module is the plugin.
        required: device or driver without which an accelerator supports nothing; empty for CPUs.
    """

    package: str
    namespace: str
    stands_for: str
    plugin: str = ""
    required: str = ""

    @property
    def plugin_apis(self) -> tuple[str, ...]:
        """Endpoints that mean this plugin, the usual one first."""
        module = self.package.replace("-", "_")
        plugin = self.plugin if ":" in self.plugin else f"plugin:{self.plugin}"
        return (f"{module}.{plugin}", module) if self.plugin else (module,)

    @property
    def resolved(self) -> tuple[str, ...]:
        """The package and version that it stands for, as a plugin would be resolved."""
        return (f"{self.package}=={self.stands_for}",)

    @property
    def factory(self) -> Callable[..., Provider]:
        """The class of the implementation, imported on first use."""
        return self.vendor.provider

    @property
    def vendor(self) -> Vendor:
        """Facts besides its detection; its module has the name of the namespace."""
        vendor: Vendor = import_module(f".{self.namespace}", __package__).VENDOR
        return vendor


# The version is the newest one whose values ours are known to equal. For the packages of which
# no release is public it is the version that uv 0.13.8 stands in for.
KNOWN = (
    KnownProvider(
        "nvidia-variant-provider", "nvidia", "0.0.2", "NvidiaVariantPlugin", "NVIDIA driver"
    ),
    KnownProvider("amd-variant-provider", "amd", "0.0.2", "AMDVariantPlugin", "AMD GPU"),
    # AMD's own; it orders GPUs as the kernel does
    KnownProvider("rocm-bootstrap", "amd", "0.3.0", "variant_provider:AMDVariantPlugin", "AMD GPU"),
    KnownProvider("intel-variant-provider", "intel", "0.0.3", "IntelVariantPlugin", "Intel GPU"),
    KnownProvider(
        "ascend-variant-provider", "ascend", "0.0.2", "AscendVariantPlugin", "Ascend NPU"
    ),
    # the same plugin as it was named before; published metadata still names it
    KnownProvider(
        "huawei-ascend-variant-provider", "ascend", "0.0.2", "AscendVariantPlugin", "Ascend NPU"
    ),
    KnownProvider("tpu-variant-provider", "tpu", "0.1.0", "TpuVariantPlugin", "TPU"),
    KnownProvider("provider-variant-x86-64", "x86_64", "0.0.3", "X8664Plugin"),
    KnownProvider("x86-64-variant-provider", "x86_64", "0.2.1"),
    KnownProvider("provider-variant-aarch64", "aarch64", "0.0.3", "AArch64Plugin"),
    KnownProvider("aarch64-variant-provider", "aarch64", "0.2.0"),
)

_BY_PACKAGE = {row.package: row for row in KNOWN}

BUILTIN_NAMESPACES: Mapping[str, KnownProvider] = {row.namespace: row for row in reversed(KNOWN)}
"""The provider of each namespace that we have one for: the first of its rows in the table. For
metadata that leaves the choice of providers to the installer (PEP 825, formats 0.1.x)."""


ACCELERATORS: Mapping[str, str] = {row.namespace: row.required for row in KNOWN if row.required}
"""Namespaces of accelerators, with the device or driver without which they support nothing."""


def find_vendor(namespace: str) -> Vendor | None:
    """Return the vendor of *namespace*, None without a built-in provider."""
    provider = BUILTIN_NAMESPACES.get(namespace)
    return None if provider is None else provider.vendor


def find_known(
    namespace: str, provider: ProviderInfo, environment: Callable[[], Mapping[str, str]]
) -> KnownProvider | None:
    """Return the stand-in for *provider* of *namespace*, None without one.

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
    from packaging.utils import canonicalize_name

    try:
        applying = applicable(provider.requires, environment)
    except ValueError:
        return None
    requirements = [(canonicalize_name(requirement.name), requirement) for requirement in applying]
    packages = {name for name, _ in requirements if name in _BY_PACKAGE}
    if len(packages) != 1:
        return None
    stand_in = _BY_PACKAGE[packages.pop()]
    endpoint = provider.plugin_api or requirements[0][0].replace("-", "_")
    if endpoint not in stand_in.plugin_apis:
        return None
    for name, wanted in requirements:
        if name == stand_in.package and (
            wanted.url
            or wanted.extras
            or not wanted.specifier.contains(stand_in.stands_for, prereleases=True)
        ):
            return None
    return stand_in


def applicable(
    requires: Iterable[str], environment: Callable[[], Mapping[str, str]]
) -> list[Requirement]:
    """Return those of *requires* that apply in a marker environment.

    Raises:
        ValueError: one cannot be read or evaluated; it has its text.
    """
    from packaging.requirements import Requirement

    requirements = []
    for text in requires:
        try:
            requirement = Requirement(text)
            marker = requirement.marker
            if marker is None or marker.evaluate(dict(environment())):
                requirements.append(requirement)
        except (ValueError, LookupError, RecursionError):  # what packaging raises
            raise ValueError(text) from None
    return requirements


def ask_known(known: KnownProvider, implementation: Provider | None = None) -> Support:
    """Return the answer of a built-in provider.

    Args:
        known: the provider.
        implementation: to ask, a new one for this machine by default.
    """
    resolved, plugin_api = known.resolved, known.plugin_apis[0]
    implementation = implementation or known.factory()
    try:
        features = implementation.supported()
        return Support(features, resolved, plugin_api, facts=implementation.facts())
    except ProviderError as error:
        return Support({}, resolved, plugin_api, str(error))
    except Exception as error:  # a bug here disables variants, and must not fail the install
        _logger.debug("provider of %s failed", known.namespace, exc_info=True)
        notice = f"detection failed: {shortened(str(error))}"
        return Support({}, resolved, plugin_api, notice)


class Examined(NamedTuple):
    """Answer of one built-in provider, and its attempts.

    Attributes:
        support: its answer.
        attempts: libraries, tools and files, in order.
        warnings: what users are warned of.
        remedies: commands by warning.
    """

    support: Support
    attempts: tuple[Attempt, ...]
    warnings: tuple[str, ...]
    remedies: Mapping[str, str] = {}


def examine_host(
    environ: Mapping[str, str] | None = None, root: Path = Path("/")
) -> dict[str, Examined]:
    """Ask every built-in provider about this machine; return the answers by namespace.

    Args:
        environ: environment variables, those of the process by default.
        root: of the file system in which drivers are looked for.
    """
    examined = {}
    for namespace, known in sorted(BUILTIN_NAMESPACES.items()):
        factory: Any = known.factory
        looks_at_files = isinstance(factory, type) and issubclass(factory, DriverProvider)
        with recorded() as trail:
            support = ask_known(known, factory(environ, root) if looks_at_files else factory())
        examined[namespace] = Examined(
            support, tuple(trail.attempts), tuple(trail.warnings), trail.remedies
        )
    return examined
