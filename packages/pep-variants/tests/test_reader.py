import copy
import json

import pytest

from pep_variants import limits
from pep_variants.errors import MetadataError
from pep_variants.formats.reader import metadata_from_tree, read_metadata, read_pyproject
from pep_variants.model.generation import (
    GENERATIONS,
    V0_0_1,
    V0_0_2,
    V0_0_3,
    V0_1_1,
    V0_2_0,
)
from pep_variants.model.metadata import ProviderInfo

NO_SCHEMA = None
UNVERSIONED = "https://example.org/variants.json"
MINOR = "https://variants-schema.wheelnext.dev/v0.9.0.json"
PROMOTED = "https://packaging.python.org/schemas/variant-metadata-v1.2.0.schema.json"
ANY = [*(known for known in GENERATIONS.values() if known.schema), PROMOTED]


def tree(schema, variants=None, namespaces=("ns",), providers=None, **rest):
    """A metadata file with the keys that every test needs; *rest* has underscores for dashes."""
    built = {
        "default-priorities": {"namespace": list(namespaces)},
        "variants": {"x": {"ns": {"f": ["v"]}}} if variants is None else variants,
    }
    if schema is not None:
        built["$schema"] = schema if isinstance(schema, str) else schema.schema
    if providers is not None:
        built["providers"] = providers
    built.update({key.replace("_", "-"): value for key, value in rest.items()})
    return built


def read(*args, **keys):
    return metadata_from_tree(tree(*args, **keys), "x.json")


def provider(schema, raw, **keys):
    return read(schema, providers={"ns": raw}, **keys).providers["ns"]


def shape(features):
    """Features with their order, which comparing mappings does not look at."""
    return None if features is None else list(features.items())


# What all generations have in common.


@pytest.mark.parametrize("schema", ANY)
def test_empty_namespaces_of_a_variant_are_dropped(schema):
    variants = {"x": {"ns": {}, "other": {"f": ["v"]}, "unlisted": {}}, "null": {"ns": {}}}
    found = read(schema, variants, ("ns", "other"))
    assert found.variants == {"x": {"other": {"f": ("v",)}}, "null": {}}


def test_bytes_text_and_trees_are_the_same():
    text = json.dumps(tree(V0_2_0, {"ü": 1}), ensure_ascii=False)
    for data in (text, text.encode(), json.loads(text)):
        with pytest.raises(MetadataError, match="'ü' is not a valid variant label"):
            (metadata_from_tree if isinstance(data, dict) else read_metadata)(data, "")
    text = json.dumps(tree(V0_2_0))
    assert read_metadata(text, "") == read_metadata(text.encode(), "") == read(V0_2_0)
    assert read_metadata(b"\xef\xbb\xbf" + text.encode(), "") == read(V0_2_0)


def test_trees_are_left_as_they_are():
    given_tree = tree(V0_2_0, {"x": {"ns": {"f": ["b", "a"], "g": []}}})
    before = copy.deepcopy(given_tree)
    with pytest.raises(MetadataError):
        metadata_from_tree(given_tree, "")
    assert given_tree == before


def test_what_is_equal_is_checked_wherever_it_stands():
    # Variants that list the same are read once: these do not list the same.
    for wrong in ("ab", {"a": 1, "b": 2}, ["a", "b", 1], ["a", "B"], None, [["a"], "b"]):
        for first, second in (("x", "y"), ("y", "x")):
            variants = {"x": {"ns": {"f": ["a", "b"]}}, "y": {"ns": {"f": wrong}}}
            with pytest.raises(MetadataError) as raised:
                read(V0_2_0, {first: variants[first], second: variants[second]})
            assert raised.value.path == "variants.y.ns.f"


@pytest.mark.parametrize(
    ("key", "item"), [("feature", "ns :: F"), ("feature", 5), ("property", "ns :: f :: ")]
)
def test_broken_priorities_as_texts(key, item):
    with pytest.raises(MetadataError) as raised:
        read(V0_0_1, default_priorities={"namespace": ["ns"], key: [item]})
    assert raised.value.path.startswith(f"default-priorities.{key}")


# Providers.


@pytest.mark.parametrize("schema", [V0_0_1, V0_0_2, V0_0_3, NO_SCHEMA, UNVERSIONED])
def test_provider(schema):
    assert provider(
        schema,
        {
            "requires": ["acme-provider>=1; python_version >= '3.8'", "more"],
            "plugin-api": "acme.plugin : Acme.Plugin",
            "enable-if": "platform_system == 'Linux'",
            "optional": True,
        },
    ) == ProviderInfo(
        requires=("acme-provider>=1; python_version >= '3.8'", "more"),
        plugin_api="acme.plugin:Acme.Plugin",
        enable_if="platform_system == 'Linux'",
        optional=True,
    )
    assert provider(schema, {}) == ProviderInfo()
    nothing = {"plugin-api": None, "enable-if": None}
    assert provider(schema, nothing) == ProviderInfo()
    assert provider(schema, {"enable-if": ""}) == ProviderInfo()


@pytest.mark.parametrize("order", [None, ["f"], ["f", "g", "h"], ["f", "g", "g"]])
def test_feature_order_must_name_all_features(order):
    raw = {"static-properties": {"f": ["1"], "g": ["1"]}}
    if order is not None:
        raw["feature-order"] = order
    with pytest.raises(MetadataError) as raised:
        provider(V0_2_0, raw)
    assert raised.value.path == "providers.ns.feature-order"


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ({}, "providers.ns"),
        ({"requires": ["p"], "builtin": "b"}, "providers.ns"),
        ({"static-properties": {}}, "providers.ns.static-properties"),
        ({"build-requires": ["p"]}, "providers.ns.build-requires"),
        ({"builtin": "b", "plugin-api": "m"}, "providers.ns.plugin-api"),
        ({"requires": ["p"], "feature-order": ["f"]}, "providers.ns.feature-order"),
        ({"builtin": ""}, "providers.ns.builtin"),
        ({"static-properties": {"f": ["1"]}, "plugin-api": "m"}, "providers.ns.plugin-api"),
        ({"builtin": None}, "providers.ns.builtin"),
    ],
)
def test_contradictory_provider(raw, path):
    with pytest.raises(MetadataError) as raised:
        provider(V0_2_0, raw)
    assert raised.value.path == path


# pyproject.toml

PYPROJECT = """
[project]
name = "x"

[variant.default-priorities]
namespace = ["a", "b", "c"]

[variant.providers.a]
requires = ["p>=1"]
plugin-api = "m:C"

[variant.providers.b]
build-requires = ["q"]
plugin-api = "q"

[variant.providers.c]
static-properties.g = ["2", "1"]
static-properties.f = ["3"]
feature-order = ["g", "f"]
"""


def test_pyproject():
    found = read_pyproject(PYPROJECT, "pyproject.toml")
    assert found.namespaces == ("a", "b", "c")
    assert found.providers == {
        "a": ProviderInfo(requires=("p>=1",), plugin_api="m:C"),
        "b": ProviderInfo(build_requires=("q",), plugin_api="q"),
        "c": ProviderInfo(static={"g": ("2", "1"), "f": ("3",)}),
    }
    assert shape(found.providers["c"].static) == [("g", ("2", "1")), ("f", ("3",))]
    assert found.variants == {}
    assert read_pyproject(PYPROJECT.encode(), "pyproject.toml") == found


def test_pyproject_of_a_generation_with_exclusive_keys():
    head = f'[variant]\n"$schema" = "{V0_2_0.schema}"\n'
    found = read_pyproject(head + "providers.a.build-requires = ['p']\n", "")
    assert found.providers["a"].build_requires == ("p",)
    with pytest.raises(MetadataError, match="found requires, build-requires"):
        read_pyproject(head + "providers.a = {build-requires = ['p'], requires = ['p']}\n", "")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("variant = 1", "variant"),
        ("[variant.variants.x]\na = {f = ['1']}", "variant.variants.x.a"),
        ("[variant.default-priorities]\nnamespace = 'a'", "variant.default-priorities.namespace"),
        ("[variant.providers.a]\noptional = 2020-01-01", "variant.providers.a.optional"),
    ],
)
def test_broken_pyproject(text, path):
    with pytest.raises(MetadataError) as raised:
        read_pyproject(text, "/src/pyproject.toml")
    assert raised.value.path == path
    assert str(raised.value).startswith(f"/src/pyproject.toml: {path}: ")


@pytest.mark.parametrize("data", ["[", "a = ", b"\xff\xfe", "x = [" + "[" * 100_000])
def test_no_toml(data):
    with pytest.raises(MetadataError, match=r"^p: not valid TOML: "):
        read_pyproject(data, "p")


# What is wrong with files: file, place and value are named.


def broken(change, schema=V0_2_0):
    built = tree(schema, providers={"ns": {"requires": ["p"]}})
    change(built)
    return built


def put(*path):
    """Return a function that puts the last of *path* at the place that the others name."""
    *keys, last, value = path

    def change(built):
        place = built
        for key in keys:
            place = place.setdefault(key, {})
        place[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "path", "quoted"),
    [
        (put("$schema", 5), "$schema", "5"),
        (
            put("default-priorities", "namespace", ["ns", "a", "ns"]),
            "default-priorities.namespace",
            "'ns' is listed twice",
        ),
        (put("variants", "x", {}), "variants.x", "no properties"),
        (put("variants", "x", "ns", []), "variants.x.ns", "[]"),
        (put("variants", "x", "ns", "f", []), "variants.x.ns.f", "at least one value"),
        (put("variants", "x", "ns", "f", ["v", ["w"]]), "variants.x.ns.f", "['w']"),
        (put("variants", "x", "NS", {"f": ["v"]}), "variants.x", "'NS'"),
        (
            put("variants", "x", "other", {"f": ["v"]}),
            "variants.x.other",
            "not listed in default-priorities.namespace",
        ),
        (put("providers", "ns", "requires", [" "]), "providers.ns.requires", "[' ']"),
        (put("providers", "ns", "requires", ["p\x1b"]), "providers.ns.requires", r"['p\x1b']"),
        (put("providers", "ns", "plugin-api", "a:b:c"), "providers.ns.plugin-api", "'a:b:c'"),
        (put("providers", "ns", "optional", "yes"), "providers.ns.optional", "'yes'"),
    ],
)
def test_broken_metadata(change, path, quoted):
    with pytest.raises(MetadataError) as raised:
        read_metadata(json.dumps(broken(change)), "/dir/x.json")
    assert raised.value.path == path
    assert quoted in raised.value.problem
    assert str(raised.value).startswith(f"/dir/x.json: {path}: ")


@pytest.mark.parametrize(
    ("schema", "change", "path", "quoted"),
    [
        (V0_0_2, put("default-priorities", "feature", []), "default-priorities.feature", "[]"),
        (
            V0_0_1,
            put("default-priorities", "feature", {"ns": ["f", "f"]}),
            "default-priorities.feature.ns",
            "'f' is listed twice",
        ),
        (
            V0_0_2,
            put("providers", "ns", "plugin-use", "never"),
            "providers.ns.plugin-use",
            "'never'",
        ),
        (V0_0_3, put("providers", "ns", "install-time", "no"), "providers.ns.install-time", "'no'"),
        (V0_0_3, put("static-properties", []), "static-properties", "[]"),
        (V0_0_3, put("providers", "ns", "install-time", 0), "providers.ns.install-time", "0"),
    ],
)
def test_broken_keys_of_one_generation(schema, change, path, quoted):
    with pytest.raises(MetadataError) as raised:
        metadata_from_tree(broken(change, schema), "x")
    assert raised.value.path == path
    assert quoted in raised.value.problem


@pytest.mark.parametrize(
    "data",
    [
        "{",
        "<!DOCTYPE html>",
        b"\xff\xfe\xfd",
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"x": ' + "9" * 10_000 + "}",
    ],
)
def test_no_json(data):
    with pytest.raises(MetadataError) as raised:
        read_metadata(data, "https://u:secret@host/x.json")
    text = str(raised.value)
    assert text.startswith("https://****@host/x.json: ")
    assert len(text) < 300


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32-be"])
def test_json_is_utf_8(encoding):
    text = json.dumps(tree(V0_1_1))
    assert read_metadata(text.encode("utf-8-sig"), "x.json") == read_metadata(text, "x.json")
    with pytest.raises(MetadataError, match=r"not (UTF-8|valid JSON)"):
        read_metadata(text.encode(encoding), "x.json")


def test_deep_trees():
    nested = {}
    for _ in range(100_000):
        nested = {"x": nested}
    with pytest.raises(MetadataError, match="nested too deeply"):
        metadata_from_tree(nested, "x")


def test_huge_files_are_not_read():
    with pytest.raises(MetadataError, match="larger than 8 MiB"):
        read_metadata(b" " * (limits.DOCUMENT_BYTES + 1), "x")


def test_messages_are_one_printable_line_of_bounded_length():
    hostile = "\x1b[31m\n\u202e" * 10_000
    for change in (
        put("variants", hostile, {}),
        put("variants", "x" * 10_000, 5),
        put("variants", "x", hostile, {}),
        put("variants", "x" * 10_000, {"n" * 10_000: {"f" * 10_000: 5}}),
        put("variants", "x", "ns", "f", [hostile]),
        put("providers", hostile, {}),
        put("providers", "ns", "plugin-api", hostile),
        put("$schema", hostile + "/v9.0.0.json"),
        put("default-priorities", "namespace", [hostile]),
    ):
        with pytest.raises(MetadataError) as raised:
            metadata_from_tree(broken(change), "x")
        assert str(raised.value).isprintable()
        assert len(str(raised.value)) < 700


@pytest.mark.parametrize("value", [object(), {"f": ["1", object()]}, {"f": {"1": "x"}}, {"f": 1}])
def test_what_no_json_has_in_a_variant(value):
    variants = {"a": {"x": {"f": ["1"]}}, "b": {"x": value}}
    with pytest.raises(MetadataError, match=r"variants\.b\.x"):
        metadata_from_tree({"default-priorities": {"namespace": ["x"]}, "variants": variants}, "x")


def test_texts_of_another_type_are_read_as_texts():
    class Text(str):
        """As TOML libraries that keep the layout have them."""

    variants = {
        label: {"x": {"f": [Text(value)]}} for label, value in (("a", "1"), ("b", "2"), ("c", "1"))
    }
    found = metadata_from_tree(
        {"default-priorities": {"namespace": ["x"]}, "variants": variants}, "x"
    )
    assert [found.variants[label]["x"]["f"] for label in "abc"] == [("1",), ("2",), ("1",)]
