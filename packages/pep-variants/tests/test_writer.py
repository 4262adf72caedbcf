import json

import pytest

from pep_variants._formats.reader import metadata_from_tree, read_metadata
from pep_variants._formats.writer import metadata_to_tree, with_marker, write_metadata
from pep_variants._model.generation import V0_0_1, V0_0_2, V0_0_3, V0_1_0, V0_1_1, V0_2_0
from pep_variants._model.metadata import Metadata, ProviderInfo
from pep_variants.errors import MetadataError

VARIANTS = {"x": {"b": {"g": ("2", "1"), "f": ("3",)}, "a": {"f": ("1",)}}, "null": {}}
PROVIDERS = {
    "b": ProviderInfo(requires=("q", "p>=1"), plugin_api="m:C", optional=True),
    "a": ProviderInfo(static={"g": ("2", "1"), "f": ("1",)}),
}


def test_what_is_written():
    found = Metadata(("b", "a"), VARIANTS, PROVIDERS)
    assert write_metadata(found) == write_metadata(found, V0_2_0)
    older = json.loads(write_metadata(found, V0_1_1))
    assert older.pop("$schema").endswith("/peps/825/v0.1.1.json")
    newer = json.loads(write_metadata(found))
    assert older == {key: newer[key] for key in ("default-priorities", "variants")}
    again = read_metadata(write_metadata(found), "x")
    assert (again.namespaces, again.providers) == (("b", "a"), PROVIDERS)
    assert list(again.providers["a"].static) == ["g", "f"]
    assert newer == {
        "$schema": "https://variants-schema.wheelnext.dev/v0.2.0.json",
        "default-priorities": {"namespace": ["b", "a"]},
        "providers": {
            "a": {"static-properties": {"f": ["1"], "g": ["2", "1"]}, "feature-order": ["g", "f"]},
            "b": {"requires": ["q", "p>=1"], "plugin-api": "m:C", "optional": True},
        },
        "variants": {"null": {}, "x": {"a": {"f": ["1"]}, "b": {"f": ["3"], "g": ["1", "2"]}}},
    }


@pytest.mark.parametrize("generation", [V0_0_1, V0_0_2, V0_0_3, V0_1_0])
def test_old_generations_are_not_written(generation):
    version = ".".join(map(str, generation.version))
    with pytest.raises(MetadataError, match=f"x.json: .schema: format {version} is not written"):
        write_metadata(Metadata(("a",), source="x.json"), generation)


@pytest.mark.parametrize(
    ("provider", "path"),
    [
        (None, "providers.a"),
        (ProviderInfo(), "providers.a"),
        (ProviderInfo(plugin_api="m"), "providers.a"),
        (ProviderInfo(build_requires=("p",)), "providers.a"),
        (ProviderInfo(static={}), "providers.a"),  # and no variant uses it
        (ProviderInfo(static={"f": ()}), "providers.a"),
        (ProviderInfo(static={"f": ("1",)}, enable_if="x == 'y'"), "providers.a.enable-if"),
        (ProviderInfo(builtin="a", enable_if="x == 'y'"), "providers.a.enable-if"),
    ],
)
def test_what_0_2_0_cannot_say(provider, path):
    found = Metadata(("a",), providers={} if provider is None else {"a": provider}, source="x.json")
    with pytest.raises(MetadataError) as raised:
        write_metadata(found, V0_2_0)
    assert raised.value.path == path
    write_metadata(found, V0_1_1)


def test_values_without_priorities_are_those_in_use():
    found = Metadata(
        ("priority",),
        {
            "x": {"priority": {"order": ("10",), "b": ("v9",)}},
            "y": {"priority": {"order": ("9", "1")}},
        },
        {"priority": ProviderInfo(static={})},
    )
    provider = metadata_to_tree(found, V0_2_0)["providers"]["priority"]
    assert provider == {
        "static-properties": {"b": ["v9"], "order": ["1", "9", "10"]},
        "feature-order": ["b", "order"],
    }


def test_features_without_values_are_left_out():
    provider = ProviderInfo(static={"g": ("1",), "f": ()})
    tree = metadata_to_tree(Metadata(("a",), providers={"a": provider}), V0_2_0)
    assert tree["providers"]["a"] == {"static-properties": {"g": ["1"]}}
    metadata_from_tree(tree, "x")


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        (
            "p>=1 ; os_name == 'nt' or os_name == 'posix'",
            "p>=1; (os_name == 'nt' or os_name == 'posix') and (os_name != 'a' or os_name != 'b')",
        ),
        ("p[x] @ https://h/a;b.whl", "p[x] @ https://h/a;b.whl ; os_name != 'a' or os_name != 'b'"),
        (
            "p @ https://h/a;b.whl ; os_name == 'n@t'",
            "p @ https://h/a;b.whl ; (os_name == 'n@t') and (os_name != 'a' or os_name != 'b')",
        ),
        ("p; os_name == 'a@b'", "p; (os_name == 'a@b') and (os_name != 'a' or os_name != 'b')"),
    ],
)
def test_enable_if_becomes_a_marker(requirement, expected):
    assert with_marker(requirement, "os_name != 'a' or os_name != 'b'") == expected
    assert with_marker(requirement, None) == requirement


def test_enable_if_is_written():
    provider = ProviderInfo(requires=("p", "q; os_name == 'nt'"), enable_if="os_name != 'java'")
    tree = metadata_to_tree(Metadata(("a",), providers={"a": provider}))
    assert tree["providers"]["a"]["requires"] == [
        "p; os_name != 'java'",
        "q; (os_name == 'nt') and (os_name != 'java')",
    ]
