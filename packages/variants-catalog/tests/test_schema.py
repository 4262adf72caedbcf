"""The JSON schema of entries, which agrees with the reader."""

from __future__ import annotations

import copy

import jsonschema
import pytest

import variants_catalog
from pep_variants.errors import CatalogError
from pep_variants.formats import toml
from variants_catalog.entry_reader import entry_from_tree

VALIDATOR = jsonschema.Draft202012Validator(variants_catalog.schema())
ENTRY = {
    "catalog-version": "1",
    "project": {
        "name": "app",
        "documentation": "https://example.org/app",
        "default-priorities": {"namespace": ["nvidia"]},
    },
    "variant": [
        {
            "label": "cuda",
            "index": "https://example.org/cuda",
            "properties": ["nvidia :: sm_arch :: 70_real"],
        }
    ],
}


def test_the_schema_is_one():
    VALIDATOR.check_schema(variants_catalog.schema())


@pytest.mark.parametrize("path", sorted(variants_catalog.projects().glob("*.toml")), ids=str)
def test_shipped_entries(path):
    VALIDATOR.validate(toml.loads(path.read_text("utf-8")))


def changed(place: str, value: object) -> dict:
    """Return the entry with *value* at *place*; None removes it."""
    tree = copy.deepcopy(ENTRY)
    *above, key = place.split("/")
    item = tree
    for part in above:
        item = item[int(part)] if part.isdigit() else item[part]
    if value is None:
        del item[key]
    else:
        item[key] = value
    return tree


@pytest.mark.parametrize(
    ("place", "value", "is_valid"),
    [
        ("project/name", "App.x", True),
        ("variant/0/local", ["cu128", ""], True),
        ("variant/0/local", "cu.{torch}", True),
        ("variant/0/versions", ">=1,<2", True),
        ("project/static-properties", {"nvidia": {"order": ["1"]}}, True),
        ("catalog-version", "2", False),
        ("catalog-version", None, False),
        ("more", 1, False),
        ("project/name", "-app", False),
        ("project/name", None, False),
        ("project/documentation", None, False),
        ("project/documentation", "ftp://example.org", False),
        ("project/documentation", "https://me:secret@example.org", False),
        ("project/sources", "https://example.org", False),
        ("project/coherent", ["a b"], False),
        ("project/default-priorities", {"namespaces": []}, False),
        ("project/default-priorities", {"namespace": ["NVIDIA"]}, False),
        ("variant", [], False),
        ("variant/0/label", "A", False),
        ("variant/0/label", "null", False),
        ("variant/0/label", None, False),
        ("variant/0/index", None, True),
        ("variant/0/index", "file:///etc", False),
        ("variant/0/links", "https://example.org", False),
        ("variant/0/requires", ["a=={version}"], False),
        ("variant/0/local", "CU", False),
        ("variant/0/versions", 1, False),
        ("variant/0/properties", [], False),
        ("variant/0/properties", ["nvidia"], False),
        ("variant/0/properties", ["nvidia :: a :: b"] * 2, False),
    ],
)
def test_schema_and_reader_agree(place, value, is_valid):
    tree = changed(place, value)
    assert VALIDATOR.is_valid(tree) is is_valid
    try:
        entry_from_tree(tree, "app.toml")
    except CatalogError:
        assert not is_valid
    else:
        assert is_valid


def test_what_the_schema_says_of_redirects():
    tree = changed("variant/0/index", None)
    tree["variant"][0]["requires"] = ["app-cuda=={version}"]
    VALIDATOR.validate(tree)
    entry_from_tree(tree, "app.toml")
    tree["variant"][0]["requires"] = []
    assert not VALIDATOR.is_valid(tree)


def test_an_index_of_its_own_needs_no_variants():
    tree = changed("variant", [])
    tree["project"]["variants-index"] = "https://example.org/simple/"
    VALIDATOR.validate(tree)
    entry_from_tree(tree, "app.toml")
