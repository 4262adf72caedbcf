"""`variants validate` for documents, wheels, directories and pages of live indexes.

`test_planted_faults` has a directory with most of the findings; here are their places, and what
takes more than one look.
"""

import json
import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pep_variants._wheelfile.record import digest_of
from support.gpu_libraries import library
from support.loopback import served_folder
from variants_cli._checks.document import check_document
from variants_cli._checks.finding import KINDS

V3 = {"x86_64": {"level": ["v3"]}}
V4 = {"x86_64": {"level": ["v4"]}}
DOCUMENT = "demo-1.0-variants.json"
LABELLED = "demo-1.0-py3-none-any-v3.whl"
SCHEMAS = "https://variants-schema.wheelnext.dev/"
GOOD = {
    "$schema": f"{SCHEMAS}peps/825/v0.1.1.json",
    "default-priorities": {"namespace": ["x86_64"]},
    "variants": {"v3": V3},
}


def codes(result):
    return sorted({finding["code"] for finding in result.json["findings"]})


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


ACME = {"default-priorities": {"namespace": ["acme"]}, "$schema": f"{SCHEMAS}v0.2.0.json"}
SIZES = {"variants": {"a": {"acme": {"size": ["1"]}}, "b": {"acme": {"size": ["3", "4"]}}}}


def provider(**keys):
    return {**ACME, **SIZES, "providers": {"acme": keys}}


def of(properties):
    return {"variants": {"a": properties}}


@pytest.mark.parametrize(
    ("change", "severity", "code", "place"),
    [
        ({"$schema": f"{SCHEMAS}v7.0.0.json"}, "error", "unsupported-schema", "$schema"),
        ({"$schema": "https://example.org"}, "warning", "schema-unknown", "$schema"),
        ({"$schema": None}, "warning", "schema-missing", "$schema"),
        (of({"nvidia": {"f": ["1"]}}), "error", "invalid-metadata", "variants.a.nvidia"),
        ({"providers": {}}, "warning", "unknown-key", "providers"),
        ({"default-priorities": {"namespace": ["x86_64"], "feature": {}}}, "warning",
         "unknown-key", "default-priorities.feature"),
        ({"variants": {"a": V3, "b": V3}}, "warning", "same-properties", "variants.b"),
        (of({"x86_64": {"level": ["v3", "v2"]}}), "warning", "values-unsorted",
         "variants.a.x86_64.level"),
        (of({"x86_64": {"level": ["v3", "v3"]}}), "warning", "values-unsorted",
         "variants.a.x86_64.level"),
        (of({"x86_64": {"level": ["x"]}}), "warning", "unknown-value", "variants.a.x86_64.level"),
        (of({"x86_64": {"levle": ["v3"]}}), "warning", "unknown-value",
         "variants.a.x86_64.levle"),
        (of({**V3, "abi_dependency": {"torch": ["2.9", "2.9.0.1"]}}), "error",
         "abi-dependency-value", "variants.a.abi_dependency.torch"),
        (of({**V3, "abi_dependency": {"torch__x": ["2.9"]}}), "error", "abi-dependency-name",
         "variants.a.abi_dependency.torch__x"),
        ({"default-priorities": {"namespace": ["x86_64", "abi_dependency"]}}, "error",
         "abi-dependency-listed", "default-priorities.namespace"),
        ({"variants": {"null": {}}, "default-priorities": {"namespace": []}}, "error",
         "namespaces-missing", "default-priorities.namespace"),
        ({**ACME, **SIZES}, "error", "provider-missing", "providers"),
        (provider(requires=["acme >< 2"]), "error", "invalid-requirement",
         "providers.acme.requires"),
        (provider(requires=["acme"], **{"enable-if": "os_name == 'posix'"}), "warning",
         "unknown-key", "providers.acme.enable-if"),
        ({**provider(requires=["acme"], **{"enable-if": "platform == 'Linux'"}),
          "$schema": f"{SCHEMAS}v0.0.3.json"}, "error", "invalid-marker",
         "providers.acme.enable-if"),
        (provider(**{"static-properties": {"size": ["1", "2"]}}), "error", "never-compatible",
         "variants.b.acme.size"),
    ],
)  # fmt: skip
def test_one_thing_wrong(document, change, severity, code, place):
    tree = {key: value for key, value in {**GOOD, **change}.items() if value is not None}
    assert document(tree) == [(severity, code, place)]


@pytest.mark.parametrize("version", ["", "v0.0.2.json", "v0.0.3.json", "peps/825/v0.1.0.json"])
def test_keys_of_old_generations_are_known(document, version):
    priorities = {"namespace": ["x86_64"], "feature": {}, "property": {}}
    tree = {**GOOD, "$schema": SCHEMAS + version, "default-priorities": priorities}
    if "0.1.0" not in version:
        tree["providers"] = {"x86_64": {"requires": ["acme"], "optional": False}}
    assert document(tree) == []


@pytest.mark.parametrize("text", ["[" * 100_000, '"\\ud800"', " " * (33 * 1024 * 1024)])
def test_no_metadata_at_all(document, text):
    assert document(text) == [("error", "invalid-metadata", "")]


def test_duplicate_keys(document):
    text = json.dumps(GOOD).replace('"v3": {', '"v3": {}, "v3": {')
    assert document(text) == [("error", "duplicate-key", "")]


@pytest.mark.parametrize(
    "name", ["Demo.Pkg-1.0-variants.json", "demo-pkg-1.0-variants.json", "-variants.json"]
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


@pytest.mark.parametrize(
    ("name", "tree", "code", "place"),
    [
        (LABELLED, {"variants": {"v3": V3, "null": {}}}, "label-mismatch", None),
        (LABELLED, {"variants": {"v3": []}}, "invalid-metadata",
         "demo-1.0.dist-info/variant.json: variants.v3"),
        ("demo-1.0-py3-none-any-X.whl", {}, "invalid-filename", ""),
    ],
)  # fmt: skip
def test_name_and_contents_of_a_wheel(build_wheel, variants, name, tree, code, place):
    wheel = build_wheel(name, variant={**GOOD, **tree})
    result = variants("validate", wheel, "--json")
    assert (result.code, codes(result)) == (1, [code])
    (finding,) = result.json["findings"]
    assert finding["file"] == str(wheel)
    assert place in (None, finding["place"])
    assert ("'null', 'v3'" in finding["message"]) == (code == "label-mismatch")


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("x,y\n", "record-invalid", "line 1 has 2 columns instead of 3"),
        ("", "record-incomplete", "does not list demo-1.0.dist-info/variant.json"),
        ("gone.py,,\n{line}\n", "record-incomplete",
         "lists gone.py, which the wheel does not contain"),
        ("{path},{other},10\n", "record-mismatch",
         f"says {digest_of(b'other')} and size '10' of variant.json, which is sha256="),
        ("{path},,\n", "record-mismatch", "says no hash and size '' of variant.json"),
        ("{path},{digest},7\n", "record-mismatch", "and size '7' of variant.json"),
    ],
)  # fmt: skip
def test_record(build_wheel, variants, line, code, message):
    def edited(text):
        """Put *line* in the place of the one of variant.json, which is the last but one."""
        *before, old, own = text.splitlines(keepends=True)
        path, digest, _ = old.split(",")
        fields = {"path": path, "digest": digest, "other": digest_of(b"other")}
        new = line.format(line=old.strip(), **fields)
        return new if code == "record-invalid" else "".join((*before, new, own))

    wheel = build_wheel(LABELLED, variant=GOOD, record=edited)
    result = variants("validate", wheel, "--json")
    assert (result.code, codes(result)) == (1, [code])
    assert message in result.json["findings"][0]["message"]


@pytest.fixture
def dist(batch, variants):
    """A directory with two variants, of which one has two wheels."""
    batch("dist", None, "null", "v3")
    folder = batch("dist", "null", "v3", tag="win_amd64")
    assert variants("index", folder).code == 0
    return folder


def test_several_files_and_missing_ones(dist, variants):
    shutil.rmtree(dist / "simple")
    assert variants("validate", dist) == (0, "6 files checked: 0 errors, 0 warnings\n", "")
    result = variants("validate", dist, dist / LABELLED)
    assert result == (0, "7 files checked: 0 errors, 0 warnings\n", "")
    assert variants("validate", dist / "missing.whl").code == 2
    assert variants("validate").code == 2
    (dist / LABELLED).write_bytes(b"PK")
    result = variants("validate", dist / LABELLED)
    assert result.code == 1
    assert result.out.startswith(f"{dist / LABELLED}: error: not a usable zip archive")
    assert result.out.splitlines()[0].endswith("[invalid-wheel]")


def test_wheels_and_document_that_contradict_each_other(dist, build_wheel, variant_json, variants):
    shutil.rmtree(dist / "simple")
    tree = variant_json("v3", {"x86_64": {"level": ["v2"]}})
    wheel = build_wheel("demo-1.0-py3-none-win_arm64-v3.whl", folder=dist, variant=tree)
    result = variants("validate", dist, "--json")
    assert result.code == 1
    first, second = result.json["findings"]
    assert (first["code"], second["code"]) == ("inconsistent-wheels", "index-mismatch")
    assert (first["file"], first["place"]) == (str(wheel), "variants.v3")
    assert LABELLED in first["message"]
    assert wheel.name in first["message"]
    assert second["file"] == str(dist / DOCUMENT)
    wheel.unlink()
    tree = json.loads((dist / DOCUMENT).read_text())
    tree["default-priorities"]["namespace"] = ["nvidia", "x86_64"]
    (dist / DOCUMENT).write_text(json.dumps(tree))
    result = variants("validate", dist, "--json")
    assert codes(result) == ["index-mismatch"]
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
    [((None,), False), (("null",), False), (("v3", None), False), (("v3", "v4"), True)],
)
def test_no_fallback(labels, warned, batch, variants):
    """Nothing is left for machines that fit no variant."""
    dist = batch("dist", *labels)
    assert variants("index", dist).code == 0
    for place in (dist, (dist / "simple" / "demo" / "index.html").as_uri()):
        result = variants("validate", place, "--json")
        assert (result.code, codes(result)) == (0, ["no-fallback"] * warned)
        for finding in result.json["findings"]:
            assert finding["place"] == "demo 1.0"
            assert "variants make --label null" in finding["remedy"]


@pytest.mark.parametrize(
    ("code", "nvidia", "amd", "expected"),
    [
        ({"cuda": ["75", "80"]}, ["75_real", "80_real"], [], []),
        ({"cuda": ["80"]}, ["70_real", "80_real"], [], [
            ("warning", "gpu-code-missing", "'nvidia :: sm_arch :: 70_real' admits GPUs without "
             "code in the wheel: 7.0, 7.2, 7.5"),
        ]),
        ({"cuda": ["75"], "ptx": ["80"]}, ["75_real", "80_virtual", "90_virtual"], [], [
            ("note", "gpu-code-unnamed", "no property admits GPUs that have code in the wheel: "
             "10.0, 10.3, 11.0, 12.0, 12.1"),
        ]),
        ({"hip": ["gfx90a", "gfx1100"]}, [], ["gfx90a", "gfx942"], [
            ("warning", "gpu-code-missing", "'amd :: gfx_arch :: gfx942' admits GPUs without code "
             "in the wheel: gfx942"),
            ("note", "gpu-code-unnamed", "no property admits GPUs that have code in the wheel: "
             "gfx1100"),
        ]),
        # A wheel for GPUs of another vendor.
        ({"hip": ["gfx90a"]}, ["80_real"], [], [
            ("warning", "gpu-code-missing", "'nvidia :: sm_arch :: 80_real' admits GPUs without "
             "code in the wheel: 8.0, 8.6, 8.7, 8.9"),
        ]),
        # Kernels that are made at run time.
        ({}, ["70_real"], ["gfx942"], []),
    ],
)  # fmt: skip
def test_gpu_code_beside_properties(
    build_wheel, variant_json, variants, code, nvidia, amd, expected
):
    properties = {"nvidia": {"sm_arch": nvidia}, "amd": {"gfx_arch": amd}}
    properties = {name: found for name, found in properties.items() if any(found.values())}
    tree = variant_json("gpu", properties, namespaces=("nvidia", "amd"))
    files = {"demo/lib.so": library(**code)}
    wheel = build_wheel("demo-1.0-py3-none-any-gpu.whl", variant=tree, files=files)
    result = variants("validate", wheel, "--json")
    assert result.code == 0
    keys = ("severity", "code", "message")
    assert [tuple(each[key] for key in keys) for each in result.json["findings"]] == expected
    assert {each["place"] for each in result.json["findings"]} <= {"variant.json: variants.gpu"}
    assert result.json["warnings"] == sum(each[0] == "warning" for each in expected)
    if expected:
        assert f": {expected[-1][0]}: {expected[-1][2]} [" in variants("validate", wheel).out


@pytest.mark.parametrize(("cpu", "expected"), [("x86_64", []), ("aarch64", ["gpu-code-missing"])])
def test_gpu_code_by_platform(build_wheel, variant_json, variants, cpu, expected):
    """Code for an RTX 50 alone does not run on a DGX Spark, whose CPU is an Arm."""
    tree = variant_json("gpu", {"nvidia": {"sm_arch": ["120_real"]}}, namespaces=("nvidia",))
    files = {"demo/lib.so": library(cuda=["120a"])}
    name = f"demo-1.0-py3-none-manylinux_2_28_{cpu}-gpu.whl"
    wheel = build_wheel(name, variant=tree, files=files)
    assert codes(variants("validate", wheel, "--json")) == expected


def test_every_code_is_documented():
    page = (Path(__file__).parents[3] / "docs/reference/findings.md").read_text("utf-8")
    rows = {
        code: line.split("|")[2].strip()
        for line in page.partition("## variants catalog check")[0].splitlines()
        for code in re.findall(r"`([a-z-]+)`", line.split("|")[1] if line.startswith("|") else "")
    }
    assert {code: kind.severity for code, kind in KINDS.items()}.items() <= rows.items()


# A project page on a live index: what is wrong with it is found over HTTP, too.


@pytest.fixture
def url(dist, monkeypatch):
    """The page of the project, served as static files."""
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    with served_folder(dist) as url:
        yield f"{url}simple/demo/"


def test_good_page(url, variants):
    # The page, the metadata, and one wheel of each of two labels; or all four.
    assert variants("validate", url).out == "4 files checked: 0 errors, 0 warnings\n"
    result = variants("validate", url, "--every-wheel")
    assert result.out == "6 files checked: 0 errors, 0 warnings\n"


def listed(dist):
    """Return the metadata that the page lists."""
    (path,) = dist.glob(f"simple/demo/metadata/*/{DOCUMENT}")
    return path


def test_no_page(url, variants):
    result = variants("validate", url.replace("demo", "other"))
    assert result.code == 1
    assert "not found (HTTP status 404)" in result.err


@pytest.mark.parametrize(
    ("change", "code"),
    [(lambda path: path.write_bytes(b"{} "), "page-mismatch"), (Path.unlink, "page-file-missing")],
)
def test_metadata_that_is_not_what_is_listed(dist, url, variants, change, code):
    change(listed(dist))
    result = variants("validate", url.replace("://", "://user:hunter2@"), "--json")
    assert codes(result) == ["index-metadata-missing", code]
    assert result.json["findings"][0]["file"].endswith(DOCUMENT)
    assert "hunter2" not in result.out + result.err


def test_wheels_that_say_something_else(dist, url, build_wheel, variant_json, variants):
    build_wheel(LABELLED, folder=dist, variant=variant_json("v3", V4))
    result = variants("validate", url, "--json")
    # The server gives no parts: the whole wheel was downloaded, and has another hash.
    assert codes(result) == ["page-mismatch"]
    page = dist / "simple" / "demo" / "index.html"
    page.write_text(page.read_text().replace("#sha256=", "#"))
    result = variants("validate", url, "--json")
    assert codes(result) == ["hash-missing", "index-mismatch"]


def test_labels_and_entries(dist, url, variants):
    page = dist / "simple" / "demo" / "index.html"
    more = "".join(
        f'<a href="{name}#sha256={"0" * 64}">{name}</a>'
        for name in (
            "demo-1.0-py3-none-any-UPPER.whl",
            "demo-1.0-py3-none-any.whl",
            "demo-2.0-py3-none-any-null.whl",
        )
    )
    page.write_text(page.read_text().replace("</body>", f"{more}</body>"))
    listed(dist).write_text(json.dumps({**GOOD, "variants": {"null": {}, "v4": V4}}))
    page.write_text(re.sub(r"(variants\.json)#sha256=\w+", r"\1", page.read_text()))
    result = variants("validate", url, "--json")
    assert codes(result) == [
        "hash-missing",
        "index-metadata-missing",
        "invalid-filename",
        "label-not-indexed",
        "label-without-wheel",
        "listed-twice",
        "page-file-missing",
    ]
