import copy
import json

import pytest

from pep_variants import limits
from pep_variants._formats.reader import metadata_from_tree, read_metadata, read_pyproject
from pep_variants._model.generation import V0_0_1, V0_0_2, V0_0_3, V0_2_0
from pep_variants._model.metadata import ProviderInfo
from pep_variants.errors import MetadataError

UNVERSIONED = "https://example.org/variants.json"


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


# What all generations have in common.


def test_bytes_text_and_trees_are_the_same():
    built = tree(V0_2_0, {"x": {"ns": {"f": ["v"]}, "unlisted": {}}, "null": {"ns": {}}})
    expected = metadata_from_tree(built, "")
    assert expected.variants == {"x": {"ns": {"f": ("v",)}}, "null": {}}
    text = json.dumps(built)
    for data in (text, text.encode(), text.encode("utf-8-sig")):
        assert read_metadata(data, "") == expected
    for encoding in ("utf-16", "utf-32-be"):
        with pytest.raises(MetadataError, match=r"not (UTF-8|valid JSON)"):
            read_metadata(text.encode(encoding), "")


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


# Providers.


@pytest.mark.parametrize("schema", [V0_0_1, V0_0_2, V0_0_3, None, UNVERSIONED])
def test_provider(schema):
    def provider(raw):
        return read(schema, providers={"ns": raw}).providers["ns"]

    assert provider(
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
    for nothing in ({}, {"plugin-api": None, "enable-if": None}, {"enable-if": ""}):
        assert provider(nothing) == ProviderInfo()


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
    assert list(found.providers["c"].static) == ["g", "f"]
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


def put(*path):
    """Return a function that puts the last of *path* at the place that the others name."""
    *keys, last, value = path

    def change(built):
        place = built
        for key in keys:
            place = place.setdefault(key, {})
        place[last] = value

    return change


# What is wrong (conformance has the rules), and the place and words of the error.
@pytest.mark.parametrize(
    ("schema", "change", "path", "quoted"),
    [
        (V0_2_0, put("$schema", 5), "$schema", "5"),
        (
            V0_2_0,
            put("default-priorities", "namespace", ["ns", "a", "ns"]),
            "default-priorities.namespace",
            "'ns' is listed twice",
        ),
        (V0_2_0, put("variants", "x", {}), "variants.x", "no properties"),
        (V0_2_0, put("variants", "x", "ns", []), "variants.x.ns", "[]"),
        (V0_2_0, put("variants", "x", "ns", "f", []), "variants.x.ns.f", "at least one value"),
        (V0_2_0, put("variants", "x", "ns", "f", ["v", ["w"]]), "variants.x.ns.f", "['w']"),
        (V0_2_0, put("variants", "x", "NS", {"f": ["v"]}), "variants.x", "'NS'"),
        (V0_2_0, put("variants", "ü", 1), "variants", "'ü' is not a valid variant label"),
        (
            V0_2_0,
            put("variants", "x", "other", {"f": ["v"]}),
            "variants.x.other",
            "not listed in default-priorities.namespace",
        ),
        (V0_2_0, put("providers", "ns", "requires", [" "]), "providers.ns.requires", "[' ']"),
        (
            V0_2_0,
            put("providers", "ns", "requires", ["p\x1b"]),
            "providers.ns.requires",
            r"['p\x1b']",
        ),
        (V0_2_0, put("providers", "ns", "plugin-api", "a:b:c"), "providers.ns.plugin-api", "a:b:c"),
        (V0_2_0, put("providers", "ns", "optional", "yes"), "providers.ns.optional", "'yes'"),
        (V0_2_0, put("providers", "ns", "builtin", "b"), "providers.ns", "requires, builtin"),
        (V0_2_0, put("providers", "ns", {"builtin": None}), "providers.ns.builtin", "None"),
        (V0_2_0, put("providers", "ns", {"builtin": ""}), "providers.ns.builtin", "''"),
        (
            V0_2_0,
            put("providers", "ns", {"builtin": "b", "plugin-api": "m"}),
            "providers.ns.plugin-api",
            "",
        ),
        (
            V0_2_0,
            put("providers", "ns", {"static-properties": {}}),
            "providers.ns.static-properties",
            "",
        ),
        (V0_2_0, put("providers", "ns", "feature-order", ["f"]), "providers.ns.feature-order", ""),
        (
            V0_2_0,
            put(
                "providers", "ns", {"static-properties": {"f": ["1"]}, "feature-order": ["f", "h"]}
            ),
            "providers.ns.feature-order",
            "must list the features of static-properties (f), found ('f', 'h')",
        ),
        (
            V0_2_0,
            put(
                "providers", "ns", {"static-properties": {"f": ["1"]}, "feature-order": ["f", "f"]}
            ),
            "providers.ns.feature-order",
            "'f' is listed twice",
        ),
        (
            V0_0_1,
            put("default-priorities", "feature", {"ns": ["f", "f"]}),
            "default-priorities.feature.ns",
            "'f' is listed twice",
        ),
        (V0_0_1, put("default-priorities", "feature", [5]), "default-priorities.feature", "5"),
        (
            V0_0_1,
            put("default-priorities", "feature", ["ns :: F"]),
            "default-priorities.feature.ns",
            "'F'",
        ),
        (
            V0_0_1,
            put("default-priorities", "property", ["ns :: f :: "]),
            "default-priorities.property.ns.f",
            "''",
        ),
        (V0_0_2, put("default-priorities", "feature", []), "default-priorities.feature", "[]"),
        (V0_0_3, put("static-properties", []), "static-properties", "[]"),
        (V0_0_3, put("providers", "ns", "install-time", 0), "providers.ns.install-time", "0"),
    ],
)
def test_broken_metadata(schema, change, path, quoted):
    built = tree(schema, providers={"ns": {"requires": ["p"]}})
    change(built)
    with pytest.raises(MetadataError) as raised:
        read_metadata(json.dumps(built), "/dir/x.json")
    assert raised.value.path == path
    assert quoted in raised.value.problem
    assert str(raised.value).startswith(f"/dir/x.json: {path}: ")


def test_no_json():
    nested = {}
    for _ in range(100_000):
        nested = {"x": nested}
    with pytest.raises(MetadataError, match="nested too deeply"):
        metadata_from_tree(nested, "x")
    for data in (b"\xff\xfe\xfd", '{"a":' * 100_000, '{"x": ' + "9" * 10_000 + "}"):
        with pytest.raises(MetadataError, match=r"^https://\*\*\*\*@host/x.json: ") as raised:
            read_metadata(data, "https://u:secret@host/x.json")
        assert len(str(raised.value)) < 300
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
        built = tree(V0_2_0, providers={"ns": {"requires": ["p"]}})
        change(built)
        with pytest.raises(MetadataError) as raised:
            metadata_from_tree(built, "x")
        assert str(raised.value).isprintable()
        assert len(str(raised.value)) < 700


@pytest.mark.parametrize("value", [object(), {"f": ["1", object()]}, {"f": {"1": "x"}}, {"f": 1}])
def test_what_no_json_has_in_a_variant(value):
    with pytest.raises(MetadataError, match=r"variants\.b\.ns"):
        read(None, {"a": {"ns": {"f": ["1"]}}, "b": {"ns": value}})


def test_texts_of_another_type_are_read_as_texts():
    class Text(str):
        """As TOML libraries that keep the layout have them."""

    found = read(None, {label: {"ns": {"f": [Text(label[0])]}} for label in ("a", "b", "a2")})
    assert [variant["ns"]["f"] for variant in found.variants.values()] == [("a",), ("b",), ("a",)]
