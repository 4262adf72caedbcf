"""The catalogue: entries, and what they make of published files."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from pep_variants.choose.preferences import Preferences
from pep_variants.errors import CatalogError
from pep_variants.formats import toml
from pep_variants.model.filename import parse_filename
from variants_catalog.catalogs import (
    DirectoryCatalog,
    open_catalog,
    preferred_catalog,
    read_catalog,
    write_catalog,
)
from variants_catalog.entries import CatalogProject
from variants_catalog.entry_reader import read_entry
from variants_catalog.installed_builds import installed_metadata

TORCH = """
catalog-version = "1"
[project]
name = "torch"
documentation = "https://example.org/torch"
coherent = ["torchvision"]
[project.default-priorities]
namespace = ["nvidia", "priority"]
[project.static-properties]
priority.order = ["1", "2"]
[[variant]]
label = "cuda12.8"
index = "https://example.org/whl/cu128/"
local = "cu128"
versions = ">=2.7"
properties = [
    "nvidia :: cuda_version_lower_bound :: 12.0",
    "nvidia :: sm_arch :: 70_real",
    "nvidia :: sm_arch :: 90_real",
    "priority :: order :: 1",
]
[[variant]]
label = "cuda12.6"
index = "https://example.org/whl/cu126"
local = "cu126"
properties = [
    "nvidia :: cuda_version_lower_bound :: 12.0",
    "nvidia :: sm_arch :: 60_real",
    "nvidia :: sm_arch :: 90_real",
    "priority :: order :: 2",
]
[[variant]]
label = "null"
index = "https://example.org/whl/cpu"
local = ["cpu", ""]
"""

HEAD = """
catalog-version = "1"
[project]
name = "app"
documentation = "https://example.org/app"
default-priorities.namespace = ["nvidia"]
"""
VARIANT = HEAD + '[[variant]]\nlabel = "a"\nproperties = ["nvidia :: sm_arch :: 70_real"]\n'
INDEX = VARIANT + 'index = "https://e.org"\n'


def entry(variant: str = "") -> CatalogProject:
    return read_entry(VARIANT + variant, "app.toml")


class TestFiles:
    @pytest.mark.parametrize(
        ("place", "filename", "expected"),
        [
            (
                "cu128",
                "torch-2.9.0+cu128-cp312-cp312-win_amd64.whl",
                "cp312-cp312-win_amd64-cuda12.8",
            ),
            ("cu128", "torch-2.9.0+cu128-1-cp312-cp312-any.whl", "1-cp312-cp312-any-cuda12.8"),
            ("cu128", "torch-2.9.0-cp312-cp312-win_amd64.whl", None),
            ("cu128", "torch-2.9.0+cu126-cp312-cp312-win_amd64.whl", None),
            ("cu128", "torch-2.6.0+cu128-cp312-cp312-win_amd64.whl", None),
            ("cu128", "torch-2.9.0rc1+cu128-cp312-cp312-any.whl", "cp312-cp312-any-cuda12.8"),
            ("cu128", "torchvision-2.9.0+cu128-cp312-cp312-any.whl", None),
            ("cu128", "torch-2.9.0+cu128.tar.gz", None),
            ("cu128", "torch-x+cu128-cp312-cp312-any.whl", None),
            ("cu128", "torch-2.9.0+cu128-cp312-cp312-any-cu128.whl", None),
            ("cu126", "torch-1.0+cu126-cp312-cp312-any.whl", "cp312-cp312-any-cuda12.6"),
            ("cpu", "torch-2.9.0+cpu-cp312-cp312-any.whl", "cp312-cp312-any-null"),
            (
                "cpu",
                "torch-2.9.0-cp312-none-macosx_11_0_arm64.whl",
                "cp312-none-macosx_11_0_arm64-null",
            ),
            ("elsewhere", "torch-2.9.0+cpu-cp312-cp312-any.whl", None),
        ],
    )
    def test_labelled_names(self, place, filename, expected):
        found = list(read_entry(TORCH, "").files(f"https://example.org/whl/{place}", filename))
        if expected is None:
            assert found == []
            return
        (item,) = found
        version = filename.split("-")[1].partition("+")[0]
        assert item.filename == f"torch-{version}-{expected}.whl"
        assert item.published == filename
        assert item.version == Version(version)
        assert parse_filename(item.filename).label == item.label

    def test_places(self):
        torch = read_entry(TORCH, "")
        assert torch.places == tuple(
            f"https://example.org/whl/{name}" for name in ("cu128", "cu126", "cpu")
        )
        assert torch.page(torch.places[0]) == "https://example.org/whl/cu128/torch/"
        links = entry('links = "https://example.org/torch-2.9.html"')
        assert links.page(links.places[0]) == "https://example.org/torch-2.9.html"

    def test_placeholders(self):
        text = HEAD + (
            '[[variant]]\nlabel = "cu12.8_torch{torch}"\nindex = "https://example.org/"\n'
            'local = "cu.12.8.torch.{torch}"\n'
            'properties = ["nvidia :: sm_arch :: 90_real", "abi_dependency :: torch :: {torch}"]\n'
        )
        project = read_entry(text, "")
        (item,) = project.files(
            "https://example.org", "app-1.0+cu.12.8.torch.2.11-py3-none-any.whl"
        )
        assert item.filename == "app-1.0-py3-none-any-cu12.8_torch2.11.whl"
        assert item.properties["abi_dependency"] == {"torch": ("2.11",)}
        for name in ("app-1.0+cu.12.8.torch.x-py3-none-any.whl", "app-1.0+cu-py3-none-any.whl"):
            assert not list(project.files("https://example.org", name))

    def test_an_extra(self):
        project = entry('requires = ["{name}[cuda]=={version}"]')
        assert project.uses_own_files
        assert project.targets == ()
        (item,) = project.own_files("app-1.5-py3-none-any.whl")
        assert item.filename == "app-1.5-py3-none-any-a.whl"
        assert item.published == "app-1.5-py3-none-any.whl"
        assert item.requires == ("app[cuda]==1.5",)
        assert not list(project.own_files("app-1.5.tar.gz"))
        assert not list(project.own_files("app-1.5-py3-none-any-b.whl"))

    @pytest.mark.parametrize(
        ("given", "added"),
        [
            (["x; extra == 'cuda'"], ["x"]),
            (
                ["x>=1 ; python_version > '3' and extra == \"Cuda\""],
                ["x>=1 ; python_version > '3'"],
            ),
            (["x; extra == 'cuda' or extra == 'all'"], ["x"]),
            (["x; (extra == 'cuda' or extra == 'a') and os_name == 'nt'"], ["x; os_name == 'nt'"]),
            (["x; extra == 'other'", "y", "z; 'cuda' == extra"], ["z"]),
            (["app[more]; extra == 'cuda'", "x; extra == 'more'"], ["x"]),
            (["app[cuda]; extra == 'cuda'"], []),
            (["x; extra = 'cuda'", "y y; extra == 'cuda'"], []),
            ([], []),
        ],
    )
    def test_dependencies_of_an_extra(self, given, added):
        project = entry('requires = ["{name}[cuda]=={version}"]')
        (item,) = project.own_files("app-1.5-py3-none-any.whl")
        head = "Metadata-Version: 2.1\nName: app\nVersion: 1.5\n"
        lines = "".join(f"Requires-Dist: {text}\n" for text in given)
        more = "".join(f"Requires-Dist: {text}\n" for text in added)
        metadata = f"{head}{lines}\ntext\n".encode()
        assert (
            installed_metadata(metadata, project, item) == f"{head}{lines}{more}\ntext\n".encode()
        )

    def test_more_than_an_extra(self):
        project = entry('requires = ["{name}[cuda]=={version}", "more>=1"]')
        (item,) = project.own_files("app-1.5-py3-none-any.whl")
        metadata = b"Metadata-Version: 2.1\nName: app\nVersion: 1.5\n\ntext\n"
        assert b"1.5\nRequires-Dist: more>=1\n\ntext" in installed_metadata(metadata, project, item)

    def test_own_files(self):
        project = entry('local = ""\nversions = ">=2"')
        assert project.uses_own_files
        assert project.places == project.targets == ()
        (item,) = project.own_files("app-2.0-py3-none-any.whl")
        assert item.filename == "app-2.0-py3-none-any-a.whl"
        assert item.published == "app-2.0-py3-none-any.whl"
        assert item.requires == ()
        assert not item.is_rewritten
        for name in ("app-1.0-py3-none-any.whl", "app-2.0+cpu-py3-none-any.whl"):
            assert not list(project.own_files(name))
        null = read_entry(HEAD + '[[variant]]\nlabel = "null"\n', "")
        assert not null.uses_own_files
        assert not list(null.own_files("app-2.0-py3-none-any.whl"))

    def test_another_name(self):
        project = entry('requires = ["app-cu12=={version}", "more"]')
        assert project.targets == ("app-cu12",)
        assert not project.uses_own_files
        (item,) = project.renamed_files("app_cu12-1.5-cp312-cp312-win_amd64.whl")
        assert item.filename == "app-1.5-cp312-cp312-win_amd64-a.whl"
        assert item.published == "app_cu12-1.5-cp312-cp312-win_amd64.whl"
        assert item.origin == "app-cu12"
        assert item.requires == ("app-cu12==1.5", "more")
        assert not list(project.renamed_files("other-1.5-cp312-cp312-win_amd64.whl"))
        assert not list(project.own_files("app-1.5-py3-none-any.whl"))

    def test_mirrors(self):
        mirrors = {
            "https://example.org/whl": "http://mirror.example/a/",
            "https://example.org/whl/cu126": "http://mirror.example/b",
            "https://example.org/w": "http://wrong.example",
        }
        assert read_entry(TORCH, "").mirrored(mirrors).places == (
            "http://mirror.example/a/cu128",
            "http://mirror.example/b",
            "http://mirror.example/a/cpu",
        )

    @given(st.text(alphabet="app-1.5+cu_.whl\u0663", max_size=60), st.sampled_from(["+", "-", ""]))
    def test_any_filename(self, text, sign):
        for name in (text, f"app-1.0{sign}{text}-py3-none-any.whl"):
            for project in (entry('index = "https://e.org"'), entry('requires = ["b=={version}"]')):
                list(project.files("https://e.org", name))
                list(project.own_files(name))
                list(project.renamed_files(name))


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("nonsense", "", "not valid TOML"),
        ('catalog-version = "2"\n', "catalog-version", "'2' is not supported"),
        (VARIANT.replace('"app"', '"a b"'), "project.name", "not a valid project name"),
        (
            VARIANT.replace("documentation", "documentations"),
            "project.documentations",
            "unknown key",
        ),
        (INDEX.replace("https:", "ftp:", 1), "project.documentation", "not a URL of http"),
        (
            INDEX.replace("https://", "https://me:secret@", 1),
            "project.documentation",
            "without credentials",
        ),
        (HEAD, "variant", "there are none"),
        (INDEX + "versions = 1\n", "variant 1.versions", "expected a string"),
        (INDEX + 'versions = "new"\n', "variant 1.versions", "'new'"),
        (INDEX + 'links = "https://e.org"\n', "variant 1", "index and links"),
        (VARIANT + 'index = "file:///etc"\n', "variant 1.index", "'file:///etc'"),
        (INDEX + 'local = "CU"\n', "variant 1.local", "'CU'"),
        (INDEX + 'local = "{x}a{x}"\n', "variant 1.local", "placeholder twice"),
        (INDEX + 'local = "{x}{y}"\n', "variant 1.local", "a letter has to separate"),
        (INDEX + 'local = "a{x}.1.{y}"\n', "variant 1.local", "a letter has to separate"),
        (INDEX + 'platforms = ["linux"]\n', "variant 1.platforms", "'linux' is not a valid entry"),
        (
            INDEX.replace("documentation", 'placeholder = "new"\ndocumentation'),
            "project.placeholder",
            "'new' is not a version specifier",
        ),
        (
            INDEX.replace("documentation", 'before-version = "yes"\ndocumentation'),
            "project.before-version",
            "expected true or false, found 'yes'",
        ),
        (
            INDEX.replace("documentation", 'checked = "today"\ndocumentation'),
            "project.checked",
            "'today' is not a day",
        ),
        (
            VARIANT + "requires = [\"b=={version}; python_version > '3'\"]\n",
            "variant 1.requires",
            "has a marker: write platforms",
        ),
        (
            VARIANT + 'requires = ["b=={version}"]\nlocal = "x"\n',
            "variant 1.local",
            "only for files",
        ),
        (VARIANT + "requires = []\n", "variant 1.requires", "is empty"),
        (VARIANT + 'requires = ["b"]\n', "variant 1.requires", "does not pin one version"),
        (
            VARIANT + 'requires = ["b>={version}"]\n',
            "variant 1.requires",
            "does not pin one version",
        ),
        (
            VARIANT + 'requires = ["b=={release}"]\n',
            "variant 1.requires",
            "only {name} and {version}",
        ),
        (VARIANT + 'requires = ["b @ https://e.org"]\n', "variant 1.requires", "is a URL"),
        (VARIANT + 'requires = ["-r x"]\n', "variant 1.requires", "is no requirement"),
        (
            VARIANT + 'requires = ["{name}=={version}"]\n',
            "variant 1.requires",
            "is the project itself",
        ),
        (INDEX.replace("70_real", "7 0"), "variant 1.properties", "'7 0'"),
        (
            INDEX.replace('70_real"]', '70_real", "nvidia :: sm_arch :: 70_real"]'),
            "variant 1.properties",
            "is listed twice",
        ),
        (INDEX.replace("70_real", "{x}"), "variant 1.properties", "{x}"),
        (INDEX.replace('"nvidia ::', '"amd ::'), "variant 1.properties", "'amd'"),
        (INDEX.replace('"a"', '"null"'), "variant 1.properties", "has none"),
        (
            HEAD + '[[variant]]\nlabel = "b"\nindex = "https://e.org"\n',
            "variant 1.properties",
            "'b' needs some",
        ),
        (INDEX.replace('"a"', '"A"'), "variant 1.label", "'A'"),
        (INDEX.replace('"a"', '"{x}"'), "variant 1.label", "{x}"),
        (
            HEAD + 'static-properties.priority.order = ["1"]\n' + INDEX.removeprefix(HEAD),
            "project.static-properties.priority",
            "is not listed",
        ),
    ],
)
def test_bad_entries(text, place, problem):
    with pytest.raises(CatalogError) as caught:
        read_entry(text, "app.toml")
    assert caught.value.path == place
    assert problem in caught.value.problem
    assert str(caught.value).startswith("app.toml")
    assert "secret" not in str(caught.value)


class TestStores:
    def test_a_directory(self, tmp_path):
        (tmp_path / "torch.toml").write_text(TORCH)
        (tmp_path / "other.toml").write_text(TORCH)
        (tmp_path / "README.md").write_text("")
        found = open_catalog(tmp_path)
        assert isinstance(found, DirectoryCatalog)
        assert found.names() == ["other", "torch"]
        assert found.project("torch").name == "torch"
        assert found.project("numpy") is None
        with pytest.raises(CatalogError, match=r"is 'torch', but the file is named other\.toml"):
            found.project("other")

    def test_one_file(self, tmp_path):
        path = tmp_path / "anything.toml"
        path.write_text(TORCH)
        found = open_catalog(path)
        assert found.names() == ["torch"]
        assert found.project("torch").variants
        with pytest.raises(CatalogError, match="cannot be read"):
            open_catalog(tmp_path / "missing.toml")

    def test_several(self):
        trees = {
            "torch": toml.loads(TORCH),
            "app": toml.loads(VARIANT + 'requires = ["b=={version}"]'),
        }
        found = read_catalog(write_catalog(trees).encode(), "https://example.org/catalog.json")
        assert found.names() == ["app", "torch"]
        assert found.project("torch") == read_entry(TORCH, "")
        assert found.project("app").targets == ("b",)
        assert found.project("numpy") is None

    @pytest.mark.parametrize(
        ("tree", "problem"),
        [
            ({}, "catalog-version"),
            ({"catalog-version": "1", "projects": []}, "expected an object"),
            ({"catalog-version": "1", "projects": {"app": 1}}, "expected a table"),
            ({"catalog-version": "1", "projects": {"app": toml.loads(TORCH)}}, "entry of 'torch'"),
        ],
    )
    def test_broken(self, tree, problem):
        with pytest.raises(CatalogError, match=problem):
            read_catalog(json.dumps(tree).encode(), "x").project("app")

    def test_what_is_not_json(self):
        with pytest.raises(CatalogError, match="not valid JSON"):
            read_catalog(b"{", "x")
        with pytest.raises(CatalogError, match="not valid TOML"):
            read_catalog(b"<html>log in</html>", "x")


class TestPreferred:
    def test_none(self):
        assert preferred_catalog(Preferences(), bytes) is None
        off = Preferences(use_variants=False, catalog="missing.toml")
        assert preferred_catalog(off, bytes) is None

    def test_a_path(self, tmp_path):
        (tmp_path / "torch.toml").write_text(TORCH)
        for path in (tmp_path, tmp_path / "torch.toml"):
            found = preferred_catalog(Preferences(catalog=str(path)), bytes)
            assert found.names() == ["torch"]
            assert found.project("torch") == read_entry(TORCH, "")
            assert found.project("numpy") is None
        with pytest.raises(CatalogError, match="cannot be read"):
            preferred_catalog(Preferences(catalog=str(tmp_path / "x.toml")), bytes)

    def test_a_url(self):
        asked = []

        def fetch(url):
            asked.append(url)
            return TORCH.encode()

        url = "https://example.org/torch.toml"
        assert preferred_catalog(Preferences(catalog=url), fetch).project("torch")
        assert asked == [url]

    def test_mirrors(self, tmp_path):
        path = tmp_path / "torch.toml"
        path.write_text(TORCH)
        mirrors = {"https://example.org": "https://mirror.example"}
        preferences = Preferences(catalog=str(path), catalog_mirrors=mirrors)
        places = preferred_catalog(preferences, bytes).project("torch").places
        assert places[0] == "https://mirror.example/whl/cu128"

    def test_a_forced_non_variant_wheel(self, tmp_path):
        path = tmp_path / "torch.toml"
        path.write_text(TORCH)
        found = preferred_catalog(Preferences(catalog=str(path), forced={"torch": ""}), bytes)
        assert found.names() == []
        assert found.project("torch") is None

    def test_the_shipped_one(self):
        preferences = Preferences(catalog="default")
        assert "torch" in preferred_catalog(preferences, bytes).names()
        assert preferred_catalog(preferences, bytes).project("torch").name == "torch"
        assert preferred_catalog(preferences, bytes).project("six") is None
        other = read_catalog(TORCH.encode(), "x")
        assert preferred_catalog(preferences, bytes, other).project("torch").source == "x"
