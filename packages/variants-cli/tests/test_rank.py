import json
import os

import pytest

PLATFORM = """
[metadata]
created-by = "tests"
version = "0.1"

[[provider]]
resolved = []
namespace = "gpu"
[provider.properties]
driver = ["3", "2", "1"]
arch = ["b", "a"]
"""


@pytest.fixture(autouse=True)
def no_preferences(tmp_path, monkeypatch):
    """Keep variants.toml files and variables of the machine out of it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in [name for name in os.environ if name.startswith("VARIANTS_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def metadata(tmp_path, variant_json):
    """Index metadata, and beside it the platform file of a machine."""
    (tmp_path / "platform.toml").write_text(PLATFORM)
    tree = variant_json("null", namespaces=("gpu", "acme"))
    tree["variants"] = {
        "driver4": {"gpu": {"driver": ["4"]}},
        "driver3": {"gpu": {"driver": ["3"]}},
        "driver2": {"gpu": {"arch": ["a", "c"], "driver": ["2"]}},
        "acme": {"acme": {"chip": ["x"]}, "gpu": {"arch": ["c"], "driver": ["1"]}},
        "null": {},
    }
    path = tmp_path / "example_pkg-1.0-variants.json"
    path.write_text(json.dumps(tree))
    return path


def test_json(metadata, variants):
    result = variants("rank", metadata, "--platform", "platform.toml", "--json")
    assert (result.code, result.err) == (0, "")
    assert result.json["selected"] == "driver3"
    assert [entry["label"] for entry in result.json["ranked"]] == ["driver3", "driver2", "null"]
    assert result.json["ranked"][1] == {
        "label": "driver2",
        "properties": {"gpu": {"arch": ["a", "c"], "driver": ["2"]}},
        "supported": {"gpu": {"driver": ["2"], "arch": ["a"]}},
    }
    acme, driver4 = result.json["rejected"]
    assert (acme["label"], driver4["label"]) == ("acme", "driver4")
    assert acme["reasons"] == [
        {"namespace": "acme", "feature": "chip", "wanted": ["x"], "supported": []},
        {"namespace": "gpu", "feature": "arch", "wanted": ["c"], "supported": ["b", "a"]},
    ]


def test_table(metadata, variants):
    result = variants("rank", metadata, "--platform", "platform.toml")
    assert result.code == 0
    lines = result.out.splitlines()
    assert [line.split()[:2] for line in lines[:3]] == [
        ["driver3", "chosen"],
        ["driver2", "compatible"],
        ["null", "compatible"],
    ]
    assert lines[3].startswith("acme     rejected    needs acme :: chip x")
    assert lines[4].startswith("                     needs gpu :: arch c, ")
    assert lines[5].startswith("driver4  rejected    needs gpu :: driver 4, ")
    (note,) = result.err.splitlines()
    assert note.startswith("note: ")
    assert "'acme'" in note
    assert "does not list this namespace" in note
    metadata.write_text("{}")
    assert variants("rank", metadata) == (0, "", f"note: {metadata} lists no variants\n")


def test_preferences(metadata, variants, monkeypatch):
    def selected(*options):
        return variants("rank", metadata, "--json", *options).json["selected"]

    assert selected("--platform", "a100-zen3") == "null"  # a machine in place of a file
    here = ("--variant-platform", "platform.toml")
    assert selected(*here, "--variant-prefer", "gpu::arch") == "driver2"
    excluded = ("--variant-exclude", "gpu :: arch", "--variant-exclude", "gpu::driver::3")
    assert selected(*here, *excluded) == "null"
    monkeypatch.setenv("VARIANTS_PLATFORM", "platform.toml")
    assert selected() == "driver3"
    metadata.with_name("variants.toml").write_text("exclude = ['gpu :: driver :: 3']\n")
    assert selected() == "driver2"


@pytest.mark.parametrize(
    ("content", "options", "problem"),
    [
        ("{", (), "{path}: not valid JSON"),
        ('{"variants": []}', (), "{path}: variants: expected an object"),
        (" " * (9 * 1024 * 1024), (), "{path}: larger than 8 MiB"),
        ("{}", ("--platform", "missing.toml"), "missing.toml"),
        ("{}", ("--platform", "{path}"), "{path}"),
        ("{}", ("--platform", "a100"),
         "'a100' is neither a platform file nor a known machine: did you mean a100-zen3, "
         "a100-cascadelake or a100-altra? 'variants platforms' lists the machines"),
        ("{}", ("--variant-prefer", "UPPER"), "--variant-prefer: 'UPPER'"),
    ],
)  # fmt: skip
def test_broken_input(metadata, variants, content, options, problem):
    metadata.write_text(content)
    options = [text.format(path=metadata) for text in options]
    result = variants("rank", metadata, *options, "--json")
    assert (result.code, result.out) == (1, "")
    assert problem.format(path=metadata) in result.err
    assert len(result.err.splitlines()) == 1
