import json

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
    for name in ("VARIANTS_PREFER", "VARIANTS_EXCLUDE", "VARIANTS_PLATFORM", "VARIANTS_ENABLE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def metadata(tmp_path, variant_json):
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


@pytest.fixture
def platform(tmp_path):
    path = tmp_path / "platform.toml"
    path.write_text(PLATFORM)
    return path


def test_json(metadata, platform, variants):
    result = variants("rank", metadata, "--platform", platform, "--json")
    assert (result.code, result.err) == (0, "")
    assert result.json == {
        "selected": "driver3",
        "ranked": [
            {
                "label": "driver3",
                "properties": {"gpu": {"driver": ["3"]}},
                "supported": {"gpu": {"driver": ["3"]}},
            },
            {
                "label": "driver2",
                "properties": {"gpu": {"arch": ["a", "c"], "driver": ["2"]}},
                "supported": {"gpu": {"driver": ["2"], "arch": ["a"]}},
            },
            {"label": "null", "properties": {}, "supported": {}},
        ],
        "rejected": [
            {
                "label": "acme",
                "reasons": [
                    {"namespace": "acme", "feature": "chip", "wanted": ["x"], "supported": []},
                    {
                        "namespace": "gpu",
                        "feature": "arch",
                        "wanted": ["c"],
                        "supported": ["b", "a"],
                    },
                ],
            },
            {
                "label": "driver4",
                "reasons": [
                    {
                        "namespace": "gpu",
                        "feature": "driver",
                        "wanted": ["4"],
                        "supported": ["3", "2", "1"],
                    }
                ],
            },
        ],
    }


def test_table(metadata, platform, variants):
    result = variants("rank", metadata, "--platform", platform)
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
    assert result.err.startswith("note: ")
    assert "'acme'" in result.err
    assert "does not list this namespace" in result.err
    assert len(result.err.splitlines()) == 1


def test_preferences(tmp_path, metadata, platform, variants, monkeypatch):
    def selected(*options):
        return variants("rank", metadata, "--json", *options).json["selected"]

    assert selected("--platform", platform) == "driver3"
    assert selected("--variant-platform", platform, "--variant-prefer", "gpu::arch") == "driver2"
    assert selected("--platform", platform, "--variant-exclude", "gpu::driver::3") == "driver2"
    excluded = ["--variant-exclude", "gpu :: arch", "--variant-exclude", "gpu::driver::3"]
    assert selected("--platform", platform, *excluded) == "null"
    monkeypatch.setenv("VARIANTS_PLATFORM", str(platform))
    assert selected() == "driver3"
    (tmp_path / "variants.toml").write_text("exclude = ['gpu :: driver :: 3']\n")
    assert selected() == "driver2"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "not valid JSON"),
        ('{"variants": []}', "variants: expected an object"),
        (" " * (9 * 1024 * 1024), "larger than 8 MiB"),
    ],
)
def test_broken_metadata(tmp_path, variants, content, problem):
    path = tmp_path / "x.json"
    path.write_text(content)
    result = variants("rank", path, "--json")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"error: {path}: ")
    assert problem in result.err
    assert len(result.err.splitlines()) == 1


def test_broken_platform_and_options(tmp_path, metadata, variants):
    broken = tmp_path / "broken.toml"
    broken.write_text("[[provider]]\n")
    result = variants("rank", metadata, "--platform", broken)
    assert result.code == 1
    assert str(broken) in result.err
    result = variants("rank", metadata, "--platform", tmp_path / "missing.toml")
    assert result.code == 1
    assert "missing.toml" in result.err
    result = variants("rank", metadata, "--variant-prefer", "UPPER")
    assert result.code == 1
    assert "--variant-prefer: 'UPPER'" in result.err


def test_no_variants(tmp_path, variants):
    path = tmp_path / "x.json"
    path.write_text("{}")
    result = variants("rank", path)
    assert result == (0, "", f"note: {path} lists no variants\n")
