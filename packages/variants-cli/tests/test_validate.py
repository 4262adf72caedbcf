"""`variants validate` for documents, wheels and directories; test_planted_faults has them all."""

import json
import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pep_variants.wheelfile.record import digest_of
from variants_cli.checks.document import check_document
from variants_cli.checks.finding import KINDS

V3 = {"x86_64": {"level": ["v3"]}}
LABELLED = "example_pkg-1.0-py3-none-any-x86_64_v3.whl"
DOCUMENT = "example_pkg-1.0-variants.json"
SCHEMAS = "https://variants-schema.wheelnext.dev/"
GOOD = {
    "$schema": f"{SCHEMAS}peps/825/v0.1.1.json",
    "default-priorities": {"namespace": ["x86_64"]},
    "variants": {"x86_64_v3": V3},
}


def codes(result):
    return [finding["code"] for finding in result.json["findings"]]


@pytest.fixture
def document(tmp_path, variants):
    """Write a tree, or text, as index-level metadata and validate it."""

    def check(content, name=DOCUMENT):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        result = variants("validate", path, "--json")
        assert result.err == ""
        findings = result.json["findings"]
        errors = [item for item in findings if item["severity"] == "error"]
        assert result.code == (1 if errors else 0)
        assert result.json["errors"] == len(errors)
        assert result.json["warnings"] == len(findings) - len(errors)
        assert all(item["file"] == str(path) for item in findings)
        assert all(item["message"] and item["remedy"] for item in findings)
        return [(item["severity"], item["code"], item["place"]) for item in findings]

    return check


def of(properties):
    return {"variants": {"a": properties}}


def levels(*values):
    return of({"x86_64": {"level": list(values)}})


PLACE = "variants.a.x86_64.level"
WRONG = [
    ({"$schema": f"{SCHEMAS}v7.0.0.json"}, ("error", "unsupported-schema", "$schema")),
    ({"$schema": f"{SCHEMAS}v0.99.0.json"}, ("warning", "schema-unknown", "$schema")),
    ({"$schema": "https://example.org"}, ("warning", "schema-unknown", "$schema")),
    ({"$schema": None}, ("warning", "schema-missing", "$schema")),
    ({"$schema": 5}, ("error", "invalid-metadata", "$schema")),
    ({"variants": []}, ("error", "invalid-metadata", "variants")),
    (of({"x86_64": {"level": "v3"}}), ("error", "invalid-metadata", PLACE)),
    (of({"nvidia": {"sm_arch": ["90_real"]}}), ("error", "invalid-metadata", "variants.a.nvidia")),
    ({"variants": {"X": V3}}, ("error", "invalid-metadata", "variants")),
    (
        {"default-priorities": {"namespace": ["x86_64", "x86_64"]}},
        ("error", "invalid-metadata", "default-priorities.namespace"),
    ),
    ({"providers": {}}, ("warning", "unknown-key", "providers")),
    (
        {"default-priorities": {"namespace": ["x86_64"], "feature": {}}},
        ("warning", "unknown-key", "default-priorities.feature"),
    ),
    ({"variants": {"a": V3, "b": V3}}, ("warning", "same-properties", "variants.b")),
    (levels("v3", "v2"), ("warning", "values-unsorted", PLACE)),
    (levels("v3", "v3"), ("warning", "values-unsorted", PLACE)),
    (levels("x86_64_v3"), ("warning", "unknown-value", PLACE)),
    (of({"x86_64": {"levle": ["v3"]}}), ("warning", "unknown-value", "variants.a.x86_64.levle")),
    (
        of({**V3, "abi_dependency": {"torch": ["2.9", "2.9.0.1"]}}),
        ("error", "abi-dependency-value", "variants.a.abi_dependency.torch"),
    ),
    (
        of({**V3, "abi_dependency": {"torch__x": ["2.9"]}}),
        ("error", "abi-dependency-name", "variants.a.abi_dependency.torch__x"),
    ),
    (
        {"default-priorities": {"namespace": ["x86_64", "abi_dependency"]}},
        ("error", "abi-dependency-listed", "default-priorities.namespace"),
    ),
    (
        {"variants": {"null": {}}, "default-priorities": {"namespace": []}},
        ("error", "namespaces-missing", "default-priorities.namespace"),
    ),
]


@pytest.mark.parametrize(("change", "finding"), WRONG)
def test_one_thing_wrong(document, change, finding):
    tree = {**GOOD, **change}
    assert document({key: value for key, value in tree.items() if value is not None}) == [finding]


@pytest.mark.parametrize(
    ("schema", "provider", "finding"),
    [
        ("v0.2.0", None, ("error", "provider-missing", "providers")),
        (
            "v0.2.0",
            {"requires": ["acme >< 2"]},
            ("error", "invalid-requirement", "providers.acme.requires"),
        ),
        (
            "v0.2.0",
            {"requires": ["acme"], "builtin": "acme"},
            ("error", "invalid-metadata", "providers.acme"),
        ),
        (
            "v0.2.0",
            {"requires": ["acme"], "enable-if": "os_name == 'posix'"},
            ("warning", "unknown-key", "providers.acme.enable-if"),
        ),
        (
            "v0.0.3",
            {"requires": ["acme"], "enable-if": "platform == 'Linux'"},
            ("error", "invalid-marker", "providers.acme.enable-if"),
        ),
        (
            "v0.2.0",
            {"static-properties": {"size": ["1", "2"]}},
            ("error", "never-compatible", "variants.b.acme.size"),
        ),
    ],
)
def test_providers(variant_json, document, schema, provider, finding):
    providers = {"acme": provider} if provider else {}
    tree = variant_json("a", namespaces=["acme"], providers=providers)
    tree["$schema"] = f"{SCHEMAS}{schema}.json"
    tree["variants"] = {"a": {"acme": {"size": ["1"]}}, "b": {"acme": {"size": ["3", "4"]}}}
    assert document(tree) == [finding]


@pytest.mark.parametrize("version", ["", "v0.0.2.json", "v0.0.3.json", "peps/825/v0.1.0.json"])
def test_keys_of_old_generations_are_known(document, version):
    priorities = {"namespace": ["x86_64"], "feature": {}, "property": {}}
    tree = {**GOOD, "$schema": SCHEMAS + version, "default-priorities": priorities}
    if "0.1.0" not in version:
        tree["providers"] = {"x86_64": {"requires": ["acme"], "optional": False}}
    assert document(tree) == []


@pytest.mark.parametrize(
    "text", ["", "[]", "{", "[" * 100_000, '"\\ud800"', "NaN", " " * (33 * 1024 * 1024)]
)
def test_no_metadata_at_all(document, text):
    assert document(text) == [("error", "invalid-metadata", "")]


def test_duplicate_keys(document):
    text = json.dumps(GOOD).replace('"x86_64_v3":', '"x86_64_v3": {}, "x86_64_v3":')
    assert document(text) == [("error", "duplicate-key", "")]


@pytest.mark.parametrize(
    "name", ["Example.Pkg-1.0-variants.json", "example-pkg-1.0-variants.json", "-variants.json"]
)
def test_names_that_installers_do_not_find(document, name):
    assert document(GOOD, name) == [("error", "index-filename", "")]
    assert document(GOOD, "variant.json") == []


def test_strange_names_are_shown_on_one_line(document, tmp_path, variants):
    document('{"variants": {"a\\nb\\u001b[31m": {}}}')
    result = variants("validate", tmp_path / DOCUMENT)
    assert len(result.out.splitlines()) == 3
    assert "\x1b" not in result.out


def test_pyproject(tmp_path, variants):
    path = tmp_path / "pyproject.toml"
    for text, found in (
        ("[variant.default-priorities]\nnamespace = ['x86_64']\n", []),
        ("[variant.default-priorities]\nnamespace = ['X']\n", ["invalid-metadata"]),
        ("[project]\n", ["namespaces-missing"]),
    ):
        path.write_text(text)
        assert codes(variants("validate", path, "--json")) == found


PATH = "example_pkg-1.0.dist-info/variant.json"


@pytest.mark.parametrize(
    ("name", "tree", "found", "place"),
    [
        (LABELLED, None, "metadata-missing", ""),
        (LABELLED.replace("-x86_64_v3", ""), {}, "label-missing", None),
        (LABELLED, {"variants": {"x86_64_v4": V3}}, "label-mismatch", None),
        (LABELLED, {"variants": {"x86_64_v3": V3, "null": {}}}, "label-mismatch", None),
        (LABELLED, {"variants": {"x86_64_v3": []}}, "invalid-metadata",
         f"{PATH}: variants.x86_64_v3"),
        ("example_pkg-1.0-py3-none-any-X.whl", {}, "invalid-filename", ""),
    ],
)  # fmt: skip
def test_name_and_contents_of_a_wheel(build_wheel, variants, name, tree, found, place):
    wheel = build_wheel(name, variant=None if tree is None else {**GOOD, **tree})
    result = variants("validate", wheel, "--json")
    assert (result.code, codes(result)) == (1, [found])
    (finding,) = result.json["findings"]
    assert finding["file"] == str(wheel)
    assert place in (None, finding["place"])
    if len((tree or {}).get("variants", ())) > 1:
        assert "'null', 'x86_64_v3'" in finding["message"]


def edited(line):
    """Return an edit of RECORD: the line of variant.json becomes *line*."""

    def edit(text):
        lines = text.splitlines(keepends=True)
        return "".join(line.format(old) if "variant.json" in old else old for old in lines)

    return edit


def other_size(text):
    return edited(f"{PATH},{text.partition(PATH)[2].split(',')[1]},7\n")(text)


@pytest.mark.parametrize(
    ("edit", "found", "message"),
    [
        (lambda text: None, "record-missing", "the wheel has no RECORD"),
        (lambda text: "x,y\n", "record-invalid", "line 1 has 2 columns instead of 3"),
        (edited(""), "record-incomplete", f"does not list {PATH}"),
        (lambda text: f"gone.py,,\n{text}", "record-incomplete",
         "lists gone.py, which the wheel does not contain"),
        (edited(f"{PATH},{digest_of(b'other')},10\n"), "record-mismatch",
         f"says {digest_of(b'other')} and size '10' of variant.json, which is sha256="),
        (edited(f"{PATH},,\n"), "record-mismatch", "says no hash and size '' of variant.json"),
        (other_size, "record-mismatch", "and size '7' of variant.json"),
    ],
)  # fmt: skip
def test_record(build_wheel, variants, edit, found, message):
    wheel = build_wheel(LABELLED, variant=GOOD, record=edit)
    result = variants("validate", wheel, "--json")
    assert (result.code, codes(result)) == (1, [found])
    assert message in result.json["findings"][0]["message"]


def test_broken_wheel(tmp_path, variants):
    wheel = tmp_path / LABELLED
    wheel.write_bytes(b"PK")
    result = variants("validate", wheel)
    assert result.code == 1
    assert result.out.splitlines()[0].startswith(f"{wheel}: error: not a usable zip archive")
    assert result.out.splitlines()[0].endswith("[invalid-wheel]")


@pytest.fixture
def dist(tmp_path, build_wheel, variant_json, variants):
    """A directory with two variants and its metadata, but no pages."""
    folder = tmp_path / "dist"
    build_wheel("example_pkg-1.0-py3-none-any.whl", folder=folder)
    build_wheel(LABELLED, folder=folder, variant=GOOD)
    null = variant_json("null")
    build_wheel("example_pkg-1.0-py3-none-any-null.whl", folder=folder, variant=null)
    assert variants("index", folder).code == 0
    shutil.rmtree(folder / "simple")
    return folder


def test_several_files_and_missing_ones(dist, variants):
    assert variants("validate", dist) == (0, "4 files checked: 0 errors, 0 warnings\n", "")
    result = variants("validate", dist, dist / LABELLED)
    assert result == (0, "5 files checked: 0 errors, 0 warnings\n", "")
    assert variants("validate", dist / "missing.whl").code == 2
    assert variants("validate").code == 2
    (dist / DOCUMENT).unlink()
    result = variants("validate", dist, "--json")
    assert (result.code, codes(result)) == (0, ["index-metadata-missing"])
    assert DOCUMENT in result.json["findings"][0]["message"]


def test_wheel_that_the_index_does_not_know(dist, build_wheel, variant_json, variants):
    tree = variant_json("x86_64_v4", {"x86_64": {"level": ["v4"]}})
    for tag in ("linux_x86_64", "win_amd64"):
        build_wheel(f"example_pkg-1.0-py3-none-{tag}-x86_64_v4.whl", folder=dist, variant=tree)
    result = variants("validate", dist, "--json")
    assert (result.code, codes(result)) == (1, ["label-not-indexed"])
    assert "x86_64_v4" in result.json["findings"][0]["message"]


def test_wheels_that_contradict_each_other(dist, build_wheel, variant_json, variants):
    other = "example_pkg-1.0-py3-none-win_amd64-x86_64_v3.whl"
    tree = variant_json("x86_64_v3", {"x86_64": {"level": ["v2"]}})
    wheel = build_wheel(other, folder=dist, variant=tree)
    result = variants("validate", dist, "--json")
    assert (result.code, codes(result)) == (1, ["inconsistent-wheels", "index-mismatch"])
    first, second = result.json["findings"]
    assert (first["file"], first["place"]) == (str(wheel), "variants.x86_64_v3")
    assert LABELLED in first["message"]
    assert other in first["message"]
    assert second["file"] == str(dist / DOCUMENT)


def test_index_of_another_order_of_namespaces(dist, variants):
    tree = json.loads((dist / DOCUMENT).read_text())
    tree["default-priorities"]["namespace"] = ["nvidia", "x86_64"]
    (dist / DOCUMENT).write_text(json.dumps(tree))
    result = variants("validate", dist, "--json")
    assert set(codes(result)) == {"index-mismatch"}
    assert result.json["findings"][0]["place"] == "default-priorities.namespace"


def test_index_of_another_generation_agrees(tmp_path, build_wheel, variant_json, variants):
    providers = {"x86_64": {"requires": ["acme"], "enable-if": "os_name == 'posix'"}}
    tree = variant_json("a", V3, providers=providers, **{"$schema": f"{SCHEMAS}v0.0.3.json"})
    build_wheel("p-1-py3-none-any-a.whl", variant=tree)
    build_wheel("p-1-py3-none-any.whl")
    assert variants("index", tmp_path).code == 0
    written = json.loads((tmp_path / "p-1-variants.json").read_text())
    assert written["$schema"].endswith("v0.2.0.json")
    assert variants("validate", tmp_path, "--json").json["findings"] == []


words = st.sampled_from(
    "$schema default-priorities namespace feature property providers variants static-properties "
    "requires plugin-api builtin feature-order enable-if optional x86_64 level v3 null a A "
    "x86_64_v3 os_name=='posix' ><".split()
)
schemas = st.sampled_from(
    [SCHEMAS, *(f"{SCHEMAS}{name}" for name in ("v0.0.2", "v0.0.3", "peps/825/v0.1.1", "v0.2.0"))]
)
leaves = words | st.lists(words, max_size=3) | st.none() | st.booleans() | st.integers()
tables = st.recursive(leaves, lambda inner: st.dictionaries(words, inner, max_size=3), max_leaves=8)
namespaces = st.lists(st.sampled_from(["x86_64", "a"]), max_size=2, unique=True)


@settings(deadline=None)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "$schema": schemas | leaves,
            "default-priorities": st.fixed_dictionaries({"namespace": namespaces}) | tables,
            "providers": st.dictionaries(words, tables, max_size=2) | leaves,
            "static-properties": tables,
            "variants": st.dictionaries(words, tables, max_size=3),
        },
    )
)
def test_any_json_gets_findings_not_exceptions(tree):
    metadata, findings = check_document(json.dumps(tree).encode(), "x.json")
    assert metadata is not None or [item for item in findings if item.severity == "error"]


@pytest.mark.parametrize(
    ("labels", "warned"),
    [
        ((None,), False),
        (("null",), False),
        (("x86_64_v3", None), False),
        (("x86_64_v3", "x86_64_v4"), True),
    ],
)
def test_no_fallback(labels, warned, tmp_path, build_wheel, variant_json, variants):
    """P11: nothing is left for machines that fit no variant."""
    for label in labels:
        level = {} if label in (None, "null") else {"x86_64": {"level": [label[-2:]]}}
        variant = variant_json(label, level) if label else None
        build_wheel(f"p-1-py3-none-any{f'-{label}' if label else ''}.whl", variant=variant)
    assert variants("index", tmp_path).code == 0
    for place in (tmp_path, (tmp_path / "simple" / "p" / "index.html").as_uri()):
        result = variants("validate", place, "--json")
        assert (result.code, codes(result)) == (0, ["no-fallback"] * warned)
        for finding in result.json["findings"]:
            assert finding["place"] == "p 1"
            assert "variants make --label null" in finding["remedy"]


def test_every_code_is_documented():
    page = (Path(__file__).parents[3] / "docs/reference/findings.md").read_text("utf-8")
    rows = {
        code: line.split("|")[2].strip()
        for line in page.partition("## variants catalog check")[0].splitlines()
        for code in re.findall(r"`([a-z-]+)`", line.split("|")[1] if line.startswith("|") else "")
    }
    assert {code: kind.severity for code, kind in KINDS.items()}.items() <= rows.items()
