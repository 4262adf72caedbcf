"""`variants catalog` without a network: entries, their faults, and the user's setting."""

import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from pep_variants import directories
from support.loopback import served_folder
from variants_catalog.entries import CatalogVariant
from variants_catalog.entry_checks import sample_versions

HEAD = """catalog-version = "1"
[project]
name = "app"
documentation = "https://example.org/app"
default-priorities.namespace = ["nvidia"]
"""
CUDA12 = """[[variant]]
label = "cuda12"
requires = ["app-cu12=={version}"]
properties = ["nvidia :: cuda_version_lower_bound :: 12.0"]
"""
INDEX = """[[variant]]
label = "cuda12.8"
index = "https://example.org/cu128"
local = "cu128"
properties = ["nvidia :: cuda_version_lower_bound :: 12.0"]
"""


@pytest.fixture(autouse=True)
def config(tmp_path, monkeypatch):
    """The user's settings, of this test alone."""
    config = tmp_path / "config"
    config.mkdir(mode=0o700)
    monkeypatch.setattr(directories, "user_config", lambda: config)
    monkeypatch.setattr(directories, "system_config", lambda: tmp_path / "none")
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith(("VARIANTS_", "PIP_")):
            monkeypatch.delenv(name)
    return config


@pytest.fixture
def entries(tmp_path):
    """Return the function that writes a catalogue and gives its directory."""
    folder = tmp_path / "entries"

    def entries(**texts):
        folder.mkdir(exist_ok=True)
        for name, text in texts.items():
            (folder / f"{name}.toml").write_text(text)
        return folder

    return entries


def test_list(variants):
    done = variants("catalog", "list")
    assert done.code == 0
    (line,) = (line for line in done.out.splitlines() if line.startswith("cupy "))
    assert line.split("  ")[-1] == "cuda13 cuda12 cuda11 rocm7.0"
    assert "cupy-cuda13x" in line
    tree = {entry["name"]: entry for entry in variants("catalog", "list", "--json").json}
    assert len(tree) >= 25
    assert tree["torch"]["coherent"][0] == "torchvision"
    assert {item["label"] for item in tree["jax"]["variants"]} == {"cuda12", "cuda13", "null"}
    lines = variants("catalog", "list").out.splitlines()
    assert any(line.startswith("jax ") and "extras of jax" in line for line in lines)
    assert any(line.startswith("xgboost ") and "xgboost-cpu, your own" in line for line in lines)


def test_show(variants):
    done = variants("catalog", "show", "Torch")
    assert done.code == 0
    assert "documentation: https://pytorch.org/get-started/locally/" in done.out
    assert "https://download.pytorch.org/whl/cpu (+cpu or no local version)" in done.out
    assert "nvidia :: sm_arch :: 50_real 60_real" in done.out
    assert "your own index" in variants("catalog", "show", "onnxruntime").out
    assert "your own index (no local version)" in variants("catalog", "show", "xgboost").out
    done = variants("catalog", "show", "tensorflow").out.splitlines()
    assert "source: https://pypi.org/simple/tensorflow/" in done
    assert "compared with these pages: 2026-11-25" in done
    assert any("[and-cuda]=={version} on manylinux_2_17_x86_64 " in line for line in done)
    (tree,) = (
        each for each in variants("catalog", "list", "--json").json if each["name"] == "faiss"
    )
    assert (tree["checked"], tree["placeholder"]) == ("2026-11-25", "==1.5.3")


def test_show_of_another_catalogue(variants, entries):
    folder = entries(app=HEAD + CUDA12)
    done = variants("catalog", "show", "app", "--variant-catalog", folder)
    assert "compared with these pages: not known when" in done.out
    assert done.out.splitlines()[-1].split() == [
        *("cuda12", "all", "app-cu12=={version}"),
        *("nvidia", "::", "cuda_version_lower_bound", "::", "12.0"),
    ]
    mirror = ("--variant-catalog-mirror", "https://example.org=https://mirror.example/all")
    (folder / "app.toml").write_text(HEAD + INDEX)
    done = variants("catalog", "show", "app", "--variant-catalog", folder, *mirror)
    assert "https://mirror.example/all/cu128 (+cu128)" in done.out


def test_unknown_project(variants):
    done = variants("catalog", "show", "nothing-here")
    assert done.code == 1
    assert "nothing-here: the catalogue has no such project" in done.err


def test_the_shipped_catalogue(variants):
    done = variants("catalog", "check")
    assert (done.code, done.out.split(" ", 1)[1]) == (
        0,
        "projects checked: 0 errors, 0 warnings\n",
    )


def codes(result):
    return [(item["severity"], item["code"], item["place"]) for item in result.json["findings"]]


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        # What the reader refuses.
        (HEAD + CUDA12.replace('["app', '"app').replace('"]\nprop', '"\nprop'), "invalid-catalog",
         "variant 1.requires"),
        (HEAD + CUDA12.replace("app-cu12=={version}", "app=={version}"), "invalid-catalog",
         "variant 1.requires"),
        (HEAD + INDEX.replace('"cuda12.8"', '"cuda12.8_{torch}"'), "invalid-catalog",
         "variant 1.label"),
        (HEAD + INDEX.replace("label", "name", 1), "invalid-catalog", "variant 1"),
        # What makes no sense.
        (HEAD + CUDA12.replace("12.0", "99.0"), "unknown-property", "variant 1.properties"),
        (HEAD.replace('"nvidia"', '"gpu"') + CUDA12.replace("nvidia", "gpu"), "unknown-namespace",
         "variant 1.properties"),
        (HEAD + CUDA12 + 'versions = ">=3,<2"\n', "no-version", "variant 1.versions"),
        (HEAD + CUDA12 + 'versions = "<2"\n' + CUDA12 + 'versions = ">=1.9"\n', "overlap",
         "variant 2"),
        (HEAD + CUDA12 + CUDA12, "overlap", "variant 2"),
        (HEAD + INDEX + INDEX.replace("cuda12.8", "cuda12"), "overlap", "variant 2"),
    ],
)  # fmt: skip
def test_faults(variants, entries, text, code, place):
    """The place and the way out are named."""
    path = entries(app=text) / "app.toml"
    done = variants("catalog", "check", path, "--json")
    assert done.code == 1
    found = codes(done)
    assert [item[:2] for item in found] == [("error", code)]
    assert found[0][2].startswith(place)
    (finding,) = done.json["findings"]
    assert finding["file"] == str(path)
    assert finding["remedy"]


def test_versions_that_meet(variants, entries):
    one, two = 'versions = "<2"\n', 'versions = ">=2,<3"\n'
    text = HEAD + CUDA12 + one + CUDA12 + two + CUDA12 + 'versions = "==3.*"\n'
    assert variants("catalog", "check", entries(app=text) / "app.toml").out == (
        "1 project checked: 0 errors, 0 warnings\n"
    )


_NUMBERS = st.sampled_from(["0", "0.9", "1", "1.0.1", "1.1", "1.1.post1", "2", "2.0.0.1", "10"])
_CLAUSES = st.builds(str.__add__, st.sampled_from([">=", ">", "<=", "<", "==", "!="]), _NUMBERS)
_SPECIFIERS = st.lists(
    _CLAUSES | _NUMBERS.filter(lambda text: "post" not in text).map("=={}.*".format), max_size=3
)
_GRID = [
    Version(f"{release}{suffix}")
    for release in ("0", "0.5", "0.9", "0.9.5", "1", "1.0.0.5", "1.0.1", "1.0.5", "1.1", "1.1.5",
                    "1.9", "2", "2.0.0.1", "2.0.0.5", "2.1", "9", "10", "11")
    for suffix in ("", ".post1", ".post2", "rc1")
]  # fmt: skip


@settings(deadline=None, max_examples=50)
@given(_SPECIFIERS, _SPECIFIERS)
def test_sample_versions(one, other):
    """What two specifiers admit together, they admit for one of the samples."""
    variants = [CatalogVariant("a", versions=SpecifierSet(",".join(each))) for each in (one, other)]
    both = [version for version in _GRID if all(item.admits(version) for item in variants)]
    sampled = [
        version
        for version in sample_versions(variants)
        if all(item.admits(version) for item in variants)
    ]
    assert sampled or not both


def test_not_toml(variants, entries):
    path = entries(app=HEAD + "[[variant]\n") / "app.toml"
    done = variants("catalog", "check", path)
    assert done.code == 1
    assert "not valid TOML" in done.out


def test_names(variants, entries):
    """A file that is not called as its project would not be found in a directory."""
    path = entries(App=HEAD + CUDA12) / "App.toml"
    assert codes(variants("catalog", "check", path, "--json")) == [
        ("error", "catalog-filename", "project.name")
    ]
    folder = entries(app=HEAD.replace('"nvidia"]', '"nvidia"]\ncoherent = ["other"]') + CUDA12,
                     more=HEAD.replace('"app"', '"more"') + CUDA12)  # fmt: skip
    (folder / "App.toml").unlink()
    assert codes(variants("catalog", "check", folder, "--json")) == [
        ("warning", "coherent-missing", "project.coherent")
    ]


def test_several_in_one_file(variants, tmp_path):
    project = {"name": "app", "documentation": "https://example.org"}
    null = {"label": "null", "index": "https://example.org/cpu"}
    tree = {"catalog-version": "1", "project": project, "variant": [null]}
    path = tmp_path / "all.json"
    path.write_text(json.dumps({"catalog-version": "1", "projects": {"app": tree, "other": tree}}))
    done = variants("catalog", "check", path, "--json")
    assert [(item["code"], item["place"]) for item in done.json["findings"]] == [
        ("invalid-catalog", "other")
    ]
    path.write_text(json.dumps({"catalog-version": "1", "projects": {"app": tree}}))
    assert variants("catalog", "check", path).out == "1 project checked: 0 errors, 0 warnings\n"


def test_bundle(variants, entries, tmp_path):
    """What a server offers: the same entries under one URL."""
    folder = entries(app=HEAD + CUDA12, more=HEAD.replace('"app"', '"more"') + INDEX)
    done = variants("catalog", "bundle", folder, "-o", tmp_path / "all.json")
    assert (done.code, done.err) == (0, f"{tmp_path / 'all.json'}: 2 projects\n")
    listed = [
        variants("catalog", "list", "--json", "--variant-catalog", place).json
        for place in (folder, tmp_path / "all.json")
    ]
    for tree in (entry for found in listed for entry in found):
        del tree["file"]
    assert listed[0] == listed[1]
    with served_folder(tmp_path) as url:
        done = variants("catalog", "enable", f"{url}all.json")
        assert done.code == 0
        assert variants("catalog", "list").out.split()[0] == "app"
        assert variants("catalog", "enable", f"{url}missing.json").code == 1
    (folder / "bad.toml").write_text("name = 1")
    assert variants("catalog", "bundle", folder, "-o", tmp_path / "all.json").code == 1
    (tmp_path / "empty").mkdir()
    done = variants("catalog", "bundle", tmp_path / "empty", "-o", tmp_path / "all.json")
    assert "has no entries" in done.err


def test_enable(variants, config, entries):
    path = config / "variants.toml"
    done = variants("catalog", "enable")
    assert done.code == 0
    assert str(path) in done.err
    assert path.read_text() == 'catalog = "default"\n'
    if os.name == "posix":
        assert path.stat().st_mode & 0o077 == 0
    folder = entries(app=HEAD + CUDA12)
    assert variants("catalog", "enable", "entries").code == 0
    assert path.read_text() == f"catalog = {json.dumps(str(folder))}\n"
    # It is what the other commands use from now on.
    assert variants("catalog", "list").out.split()[0] == "app"
    assert variants("catalog", "disable").code == 0
    assert path.read_text() == ""
    assert variants("catalog", "disable").code == 0


def test_the_rest_of_the_file_stays(variants, config):
    path = config / "variants.toml"
    text = '# mine\nprefer = ["nvidia"]  # fast\n\n[property_priorities.x86_64]\nlevel = ["v3"]\n'
    path.write_text(text)
    assert variants("catalog", "enable").code == 0
    first, _, rest = path.read_text().partition("[property")
    assert rest == text.partition("[property")[2]
    assert first.startswith('# mine\nprefer = ["nvidia"]  # fast\n')
    assert '\ncatalog = "default"\n' in first
    assert variants("catalog", "disable").code == 0
    assert path.read_text().split() == text.split()


@pytest.mark.skipif(os.name == "nt", reason="symbolic links need a privilege")
def test_a_link_stays(variants, config, tmp_path):
    path = config / "variants.toml"
    dotfile = tmp_path / "dotfile.toml"
    dotfile.write_text("")
    path.symlink_to(dotfile)
    assert variants("catalog", "enable").code == 0
    assert path.is_symlink()
    assert dotfile.read_text() == 'catalog = "default"\n'


def test_what_cannot_be_enabled(variants, config):
    done = variants("catalog", "enable", "missing.toml")
    assert done.code == 1
    assert "missing.toml: cannot be read" in done.err
    (config / "variants.toml").write_text("catalog = [")
    done = variants("catalog", "enable")
    assert done.code == 1
    assert "variants.toml" in done.err
    assert (config / "variants.toml").read_text() == "catalog = ["


def test_what_counts_more(variants, config, entries, monkeypatch):
    monkeypatch.setenv("VARIANTS_CATALOG", str(entries(app=HEAD + CUDA12)))
    done = variants("catalog", "enable")
    assert done.code == 0
    assert "counts more" in done.err
