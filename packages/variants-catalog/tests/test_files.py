"""The files of the catalogue, read by the engine."""

import itertools
import re

import pytest
from packaging.version import Version

import variants_catalog
from pep_variants.formats import toml
from pep_variants.model.property import ABI_DEPENDENCY, Property
from pep_variants.providers.registry import KNOWN
from variants_catalog.catalogs import DirectoryCatalog, read_catalog, write_catalog
from variants_catalog.entries import target

CATALOG = DirectoryCatalog(variants_catalog.projects())
NAMES = list(CATALOG.names())
every_project = pytest.mark.parametrize("name", NAMES)

VERSIONS = [
    Version(text)
    for text in (
        *(f"{major}.{minor}" for major in range(31) for minor in range(61)),
        *(f"0.0.{micro}" for micro in range(40)),
        *("0.9.1", "10.13.2.6", "1.14.1.post1", "1.14.3", "1.51.2"),
    )
]
"""Versions that projects have or may have."""


def known_properties():
    """Values that the built-in providers know, by namespace and feature."""
    return {known.namespace: known.factory().known() for known in KNOWN}


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
def test_properties_are_known(name):
    """A value that no provider knows would never fit."""
    entry = CATALOG.project(name)
    known = known_properties()
    for variant in entry.variants:
        for text in variant.properties:
            item = Property.parse(re.sub(r"\{\w+\}", "2.11", text))
            if item.namespace == ABI_DEPENDENCY:
                continue
            features = entry.static.get(item.namespace) or known[item.namespace]
            assert item.value in features[item.feature], text


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


@every_project
def test_no_file_is_two_variants(name):
    """Tables of one label, or of one place, are for other versions or other local versions."""
    variants = CATALOG.project(name).variants
    for one, other in itertools.combinations(variants, 2):
        same_place = one.place is not None and one.place == other.place
        if one.label != other.label and not (same_place and one.local == other.local):
            continue
        both = [version for version in VERSIONS if one.admits(version) and other.admits(version)]
        assert not both, (one.label, both[:3])


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
