"""The projects that most tests install: one with variants for CUDA, and what it depends on."""

from __future__ import annotations

from typing import Any

from .index import Index
from .wheels import NVIDIA, Release, Wheel, metadata

DRIVER = "NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION"
GPU = "NV_VARIANT_PROVIDER_FORCE_SM_ARCH"
CUDA_12_8 = {DRIVER: "12.8", GPU: "9.0"}


def cuda(*versions: str) -> dict[str, Any]:
    """Metadata with the null variant and one for each CUDA version."""
    variants: dict[str, Any] = {"null": {}}
    for version in versions:
        label = f"cu{version.replace('.', '')}"
        variants[label] = {"nvidia": {"cuda_version_lower_bound": [version]}}
    return metadata(variants, namespaces=["nvidia"], providers={"nvidia": NVIDIA})


def app(version: str = "1.0", **options: Any) -> Release:
    """Return a project with variants for CUDA, and dependencies that depend on the variant."""
    requires = (
        "always",
        "for-gpu; 'nvidia' in variant_namespaces",
        "for-cpu; 'nvidia' not in variant_namespaces",
        "for-cu128; variant_label == 'cu128' and python_version >= '3'",
        "for-128; 'nvidia::cuda_version_lower_bound :: 12.8' in variant_properties",
        "never; 'nvidia :: sm_arch' in variant_features",
    )
    return Release("app", version, cuda("12.6", "12.8", "13.0"), requires, **options)


def app_index(*, metadata_file: bool = False, plain: bool = False, **options: Any) -> Index:
    """Return an index with `app` and everything it may depend on; *plain*: a non-variant wheel."""
    index = Index(**options)
    index.add_release(app(), metadata_file=metadata_file)
    if plain:
        index.add_wheel(Wheel("app", "1.0", requires=("always",)), metadata_file=metadata_file)
    for name in ("always", "for-gpu", "for-cpu", "for-cu128", "for-128", "never"):
        index.add_wheel(Wheel(name, "1.0"), metadata_file=metadata_file)
    return index


def gpu_index(**options: Any) -> Index:
    """Return an index with two releases whose variants depend on different libraries."""
    requires = (
        "cudalib==12.8; variant_label == 'cu128'",
        "cudalib==12.6; variant_label == 'cu126'",
        "always",
    )
    index = Index(**options)
    for version in ("1.0", "2.0"):
        index.add_release(Release("gpu", version, cuda("12.6", "12.8"), requires))
    for version in ("12.6", "12.8"):
        index.add_wheel(Wheel("cudalib", version))
    index.add_wheel(Wheel("always", "1.0"))
    index.add_wheel(Wheel("app", "1.0", requires=("gpu",)))
    return index


STATIC = {"static-properties": {"f": ["a", "b", "c"]}, "feature-order": ["f"]}
"""A provider whose values need no detection."""


def built_against(
    name: str, *releases: str, requires: tuple[str, ...] = (), **options: Any
) -> Release:
    """Return a project with variants built against releases of torch, labelled t28 for 2.8."""
    variants = {
        f"t{release.replace('.', '')}": {"abi_dependency": {"torch": [release]}}
        for release in releases
    }
    described = metadata({"null": {}, **variants}, namespaces=["n"], providers={"n": STATIC})
    return Release(name, "1.0", described, requires, **options)


def by_value_index() -> Index:
    """Return an index with a variant for three architectures, each with a dependency of its own."""
    arches = ("80_real", "90_real", "100_real")
    many = {**cuda(), "variants": {"null": {}, "many": {"nvidia": {"sm_arch": [*arches]}}}}
    name = "for-{}; 'nvidia :: sm_arch :: {}' in variant_properties"
    requires = tuple(name.format(arch[:-6], arch) for arch in arches)
    index = Index()
    index.add_release(Release("app", "1.0", many, requires))
    for number in (8, 9, 10):
        index.add_wheel(Wheel(f"for-{number}", "1.0"))
    index.add_wheel(Wheel("other", "1.0", requires=("app",)))
    return index


ON_GPU = "always-1.0 app-1.0-cu128 for-128-1.0 for-cu128-1.0 for-gpu-1.0"
ON_CPU = "always-1.0 app-1.0-null for-cpu-1.0"
"""What pip says it installs of `app_index` on a machine with `CUDA_12_8`, and on one without."""
