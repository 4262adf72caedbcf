"""The files of the catalogue; `variants catalog check` finds what is wrong in one."""

import re

import pytest

import variants_catalog
from pep_variants.formats import toml
from variants_catalog.catalogs import DirectoryCatalog, read_catalog, write_catalog
from variants_catalog.entries import target

CATALOG = DirectoryCatalog(variants_catalog.projects())
NAMES = list(CATALOG.names())
every_project = pytest.mark.parametrize("name", NAMES)


def test_there_are_entries():
    assert len(NAMES) >= 25
    assert len(list(variants_catalog.projects().iterdir())) == len(NAMES)


@every_project
def test_entry(name):
    entry = CATALOG.project(name)
    assert entry.name == name
    assert entry.documentation.startswith("https://")
    assert entry.sources
    assert all(url.startswith("https://") for url in (*entry.sources, *entry.places))
    assert name not in entry.coherent


@every_project
def test_every_gpu_build_says_what_it_needs(name):
    """CUDA needs a driver; CUDA 13 has no code for GPUs before compute capability 7.5."""
    for variant in CATALOG.project(name).variants:
        bounds = [text for text in variant.properties if ":: cuda_version_lower_bound ::" in text]
        assert len(bounds) == variant.label.startswith("cuda"), variant.label
        if variant.label.startswith("cuda13"):
            codes = re.findall(r"sm_arch :: (\d+)_", " ".join(variant.properties))
            assert codes
            assert min(map(int, codes)) >= 75


def test_redirects_end():
    """No project that stands for another one is itself in the catalogue."""
    for name in NAMES:
        assert not set(CATALOG.project(name).targets) & set(NAMES)
        for variant in CATALOG.project(name).variants:
            assert variant.requires == () or target(variant)


def test_as_one_file():
    """The bundle that a server can offer has the same entries."""
    trees = {
        name: toml.loads((variants_catalog.projects() / f"{name}.toml").read_text("utf-8"))
        for name in NAMES
    }
    bundle = read_catalog(write_catalog(trees).encode(), "bundle.json")
    assert list(bundle.names()) == NAMES
    for name in NAMES:
        assert bundle.project(name) == CATALOG.project(name)
