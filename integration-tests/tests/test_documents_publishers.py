"""The how-to pages for publishers and for asking: their console blocks are run and compared."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

import variants_catalog
from support.documents import Page, Reader
from support.environments import PIPS, ROOT
from support.index import Index, served
from support.published_builds import field_of, standing_in
from support.servers import free_port
from support.wheels import NVIDIA, Release, Wheel, metadata
from variants_catalog.catalogs import DirectoryCatalog

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        sys.platform != "linux" or shutil.which("curl") is None,
        reason="the pages use curl on Linux",
    ),
]
NUMPY = Wheel("numpy", "2.4.6", tag="cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64")
CUPY = ("cupy-cuda12x", "cupy-rocm-5-0", "cupy-cpu")
INDEX = "https://index.example/simple/"
H100 = {
    "NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION": "12.8",
    "NV_VARIANT_PROVIDER_FORCE_SM_ARCH": "9.0",
}


def page(name: str) -> Page:
    return Page(ROOT / name)


def put(folder: Path, *wheels: Wheel) -> None:
    for wheel in wheels:
        (folder / wheel.filename).write_bytes(wheel.build())


def test_make_wheels(reader: Reader) -> None:
    reader.use_variants()
    reader.activate(reader.environments.plain("3.12", PIPS[-1]))
    requires = ("nvidia-cublas-cu12==12.6.4.1",)
    put(reader.work, *(Wheel(name, "14.0", requires=requires) for name in CUPY))
    index = Index()
    index.add_wheel(NUMPY)
    with served(index):
        reader.environ["PIP_INDEX_URL"] = index.url
        reader.follow(page("docs/how-to/make-wheels.md"))


def test_index_directory(reader: Reader) -> None:
    reader.use_variants()
    reader.use_python()
    plain = reader.home / "plain"
    plain.mkdir()
    put(plain, NUMPY)
    label = "--label x86_64_v3 --property 'x86_64 :: level :: v3'"
    for options in (label, "--label null --namespace x86_64"):
        reader.type_in(f"variants make {plain / NUMPY.filename} -o dist {options}")
    reader.follow(page("docs/how-to/index-directory.md"), replaced={"8000": str(free_port())})


def app_index() -> Index:
    """Return an index with a project that has variants, and one that requires it."""
    labels = {"12.6": "cu126", "12.8": "cu128", "13.0": "cu130"}
    variants = {
        label: {"nvidia": {"cuda_version_lower_bound": [version]}}
        for version, label in labels.items()
    }
    found = metadata({"null": {}, **variants}, namespaces=["nvidia"], providers={"nvidia": NVIDIA})
    index = Index()
    index.add_wheel(Wheel("app", "1.0"))
    requires = ("always", "for-gpu; 'nvidia' in variant_namespaces")
    index.add_release(Release("app", "2.0", found, requires=requires))
    for name in ("always", "for-gpu"):
        index.add_wheel(Wheel(name, "1.0"))
    return index


def test_other_machines(reader: Reader) -> None:
    reader.use_variants()
    reader.environ |= H100
    index = app_index()
    (reader.work / "app-2.0-variants.json").write_bytes(index.files["app"]["app-2.0-variants.json"])
    with served(index):
        reader.follow(page("docs/how-to/other-machines.md"), replaced={INDEX: index.url})


def test_catalogue(reader: Reader) -> None:
    reader.use_variants()
    reader.environ |= H100
    catalog = DirectoryCatalog(variants_catalog.projects())
    entries = [entry for name in ("torch", "cupy", "jax") if (entry := catalog.project(name))]
    versions = {"torch": ("2.9.0", "2.13.0"), "cupy": ("13.6.0", "14.2.0"), "jax": ("0.10.2",)}
    with standing_in(field_of(entries, versions)) as field:
        reader.environ["VARIANTS_CATALOG_MIRROR"] = " ".join(field.mirrors)
        reader.follow(
            page("docs/how-to/catalogue.md"), replaced={"https://pypi.org/simple/": field.index.url}
        )


def test_readme(reader: Reader) -> None:
    reader.use_variants()
    torch = DirectoryCatalog(variants_catalog.projects()).project("torch")
    assert torch is not None
    with standing_in(field_of([torch], {"torch": ("2.10.0", "2.14.0")})) as field:
        reader.environ["VARIANTS_CATALOG_MIRROR"] = " ".join(field.mirrors)
        reader.environ["PIP_INDEX_URL"] = field.index.url
        reader.follow(Page(ROOT / "packages/variants-cli/README.md"))
