"""The catalogue: entries, and what they make of published files."""

from __future__ import annotations

import json
import re

import pytest
from packaging.version import Version

from pep_variants._choose.preferences import Preferences
from pep_variants._formats import toml
from pep_variants._model.filename import parse_filename
from pep_variants._places import Place, Role
from pep_variants._settings.loader import load_preferences
from pep_variants.errors import CatalogError
from pep_variants.limits import CATALOG_BYTES
from support.catalog_places import entry, variant
from variants_catalog._catalogs import (
    DirectoryCatalog,
    no_variants,
    open_catalog,
    preferred_catalog,
    read_catalog,
    write_catalog,
)
from variants_catalog._entry_reader import read_entry
from variants_catalog._installed_builds import installed_metadata
from variants_catalog._recognition import installed_build
from variants_catalog.entries import CatalogProject, Measured, basis

WHL = "https://example.org/whl"
TORCH = entry(
    "torch",
    [
        variant(
            "cuda12.8", f'index = "{WHL}/cu128/"\nlocal = "cu128"\nversions = ">=2.7"', cuda="12.0"
        ),
        variant("cuda12.6", f'index = "{WHL}/cu126"\nlocal = "cu126"', cuda="12.0", order=2),
        variant("null", f'index = "{WHL}/cpu"\nlocal = ["cpu", ""]'),
    ],
    coherent=["torchvision"],
)

HEAD = """
catalog-version = "1"
[project]
name = "app"
documentation = "https://example.org/app"
default-priorities.namespace = ["nvidia"]
"""
VARIANT = HEAD + '[[variant]]\nlabel = "a"\nproperties = ["nvidia :: sm_arch :: 70_real"]\n'
INDEX = VARIANT + 'index = "https://e.org"\n'


def app(variant: str) -> CatalogProject:
    return read_entry(VARIANT + variant, "app.toml")


def measured(file="app-1.0-py3-none-any.whl", sha256="0" * 64, date="2026-11-29"):
    row = f'{{ file = "{file}", sha256 = "{sha256}", date = "{date}" }}'
    return f"{INDEX}measured = [{row}]\n"


def broken(**fault):
    keys = {"gpu": "7.*", "versions": "<2", "source": "https://e.org/1", **fault}
    row = ", ".join(f'{key} = "{value}"' for key, value in keys.items())
    return f"{INDEX}broken = [{{ {row} }}]\n"


FILES = [
    ("cu128", "torch-2.9.0+cu128-cp312-cp312-win_amd64.whl", "cp312-cp312-win_amd64-cuda12.8"),
    ("cu128", "torch-2.9.0+cu128-1-cp312-cp312-any.whl", "1-cp312-cp312-any-cuda12.8"),
    ("cu128", "torch-2.9.0-cp312-cp312-win_amd64.whl", None),
    ("cu128", "torch-2.9.0+cu126-cp312-cp312-win_amd64.whl", None),
    ("cu128", "torch-2.6.0+cu128-cp312-cp312-win_amd64.whl", None),
    ("cu128", "torchvision-2.9.0+cu128-cp312-cp312-any.whl", None),
    ("cu128", "torch-2.9.0+cu128.tar.gz", None),
    ("cu128", "torch-x+cu128-cp312-cp312-any.whl", None),
    ("cu128", "torch-2.9.0+cu128-cp312-cp312-any-cu128.whl", None),
    ("cpu", "torch-2.9.0-cp312-none-any.whl", "cp312-none-any-null"),
    ("elsewhere", "torch-2.9.0+cpu-cp312-cp312-any.whl", None),
]


class TestFiles:
    @pytest.mark.parametrize(("place", "filename", "expected"), FILES)
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

    @pytest.mark.parametrize(
        ("variant", "filename", "named", "requires", "others"),
        [
            (  # an extra of the project itself
                'requires = ["{name}[cuda]=={version}"]',
                "app-1.5-py3-none-any.whl",
                "app-1.5-py3-none-any-a.whl",
                ("app[cuda]==1.5",),
                ["app-1.5.tar.gz", "app-1.5-py3-none-any-b.whl"],
            ),
            (  # its own files
                'local = ""\nversions = ">=2"',
                "app-2.0-py3-none-any.whl",
                "app-2.0-py3-none-any-a.whl",
                (),
                ["app-1.0-py3-none-any.whl", "app-2.0+cpu-py3-none-any.whl", "app-2.whl"],
            ),
            (  # another name
                'requires = ["app-cu12=={version}", "more"]',
                "app_cu12-1.5-cp312-cp312-any.whl",
                "app-1.5-cp312-cp312-any-a.whl",
                ("app-cu12==1.5", "more"),
                ["other-1.5-py3-none-any.whl", "app-1.5-py3-none-any.whl"],
            ),
        ],
    )
    def test_without_a_place(self, variant, filename, named, requires, others):
        project = app(variant)
        origin = "app-cu12" if "cu12" in variant else ""
        assert (project.places, project.targets) == ((), (origin,) if origin else ())
        assert project.uses_own_files is not bool(origin)
        (item,) = [*project.own_files(filename), *project.renamed_files(filename)]
        assert (item.filename, item.published, item.origin) == (named, filename, origin)
        assert (item.requires, item.is_rewritten) == (requires, bool(requires))
        for name in others:
            assert not [*project.own_files(name), *project.renamed_files(name)]

    def test_a_null_variant_without_a_place(self):
        null = read_entry(HEAD + '[[variant]]\nlabel = "null"\n', "")
        assert not null.uses_own_files
        assert not list(null.own_files("app-2.0-py3-none-any.whl"))

    @pytest.mark.parametrize(
        ("given", "added"),
        [
            (
                ["x>=1 ; python_version > '3' and extra == \"Cuda\""],
                ["x>=1 ; python_version > '3'"],
            ),
            (["x; extra == 'cuda' or extra == 'all'"], ["x"]),
            (["x; extra == 'other'", "y", "z; 'cuda' == extra"], ["z"]),
            (["app[more]; extra == 'cuda'", "x; extra == 'more'"], ["x"]),
            (["app[cuda]; extra == 'cuda'"], []),
            (["x; extra = 'cuda'", "y y; extra == 'cuda'"], []),
        ],
    )
    def test_dependencies_of_an_extra(self, given, added):
        project = app('requires = ["{name}[cuda]=={version}", "last>=1"]')
        (item,) = project.own_files("app-1.5-py3-none-any.whl")
        head = "Metadata-Version: 2.1\nName: app\nVersion: 1.5\n"
        lines = "".join(f"Requires-Dist: {text}\n" for text in given)
        more = "".join(f"Requires-Dist: {text}\n" for text in ["last>=1", *added])
        metadata = f"{head}{lines}\ntext\n".encode()
        assert (
            installed_metadata(metadata, project, item) == f"{head}{lines}{more}\ntext\n".encode()
        )

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


BAD = {
    "": [("nonsense", "not valid TOML")],
    "catalog-version": [('catalog-version = "2"\n', "'2' is not supported")],
    "project.name": [(VARIANT.replace('"app"', '"a b"'), "not a valid project name")],
    "project.documentations": [
        (VARIANT.replace("documentation", "documentations"), "unknown key"),
    ],
    "project.documentation": [
        (INDEX.replace("https:", "ftp:", 1), "not a URL of http"),
        (INDEX.replace("https://", "https://me:secret@", 1), "without credentials"),
    ],
    "project.placeholder": [
        (
            INDEX.replace("documentation", 'placeholder = "new"\ndocumentation'),
            "'new' is not a version specifier",
        ),
    ],
    "project.checked": [
        (
            INDEX.replace("documentation", 'checked = "today"\ndocumentation'),
            "'today' is not a day",
        ),
    ],
    "project.static-properties.priority": [
        (
            HEAD + 'static-properties.priority.order = ["1"]\n' + INDEX.removeprefix(HEAD),
            "is not listed",
        ),
    ],
    "variant": [(HEAD, "there are none")],
    "variant 1": [(INDEX + 'links = "https://e.org"\n', "index and links")],
    "variant 1.versions": [(INDEX + 'versions = "new"\n', "'new'")],
    "variant 1.index": [(VARIANT + 'index = "file:///etc"\n', "'file:///etc'")],
    "variant 1.local": [
        (INDEX + 'local = "CU"\n', "'CU'"),
        (INDEX + 'local = "{x}a{x}"\n', "placeholder twice"),
        (INDEX + 'local = "a{x}.1.{y}"\n', "a letter has to separate"),
        (VARIANT + 'requires = ["b=={version}"]\nlocal = "x"\n', "only for files"),
    ],
    "variant 1.platforms": [
        (INDEX + 'platforms = ["linux"]\n', "'linux' is not a valid entry"),
    ],
    "variant 1.measured": [
        (INDEX + 'measured = ["app-1.0-py3-none-any.whl"]\n', "expected tables"),
        (
            HEAD + '[[variant]]\nlabel = "null"\nmeasured = [{ file = "x" }]\n',
            "there are no properties",
        ),
    ],
    "variant 1.measured.file": [
        (measured("app-1.0.tar.gz"), "app-1.0.tar.gz"),
        (measured("folder/app-1.0-py3-none-any.whl"), "folder/app"),
        (INDEX + 'measured = [{ date = "2026-11-29" }]\n', "is missing"),
    ],
    "variant 1.measured.sha256": [
        (measured(sha256="0" * 63), "is not a valid SHA-256"),
        (measured(sha256="A" * 64), "is not a valid SHA-256"),
    ],
    "variant 1.measured.date": [
        (measured(date="yesterday"), "'yesterday' is not a day"),
        (measured().replace('"2026-11-29"', "2026-11-29"), "expected a string"),
    ],
    "variant 1.measured.size": [(measured().replace(" }", ", size = 1 }"), "unknown key")],
    "variant 1.broken": [
        (INDEX + 'broken = ["12.*"]\n', "expected tables"),
    ],
    "variant 1.broken.fault": [(broken(fault="no GPU"), "unknown key")],
    "variant 1.broken.gpu": [
        (broken(gpu="12"), "'12' is not a valid GPU"),
        (broken(gpu="*"), "is not a valid GPU"),
        (broken(gpu="gfx*"), "is not a valid GPU"),
        (INDEX + 'broken = [{ source = "https://e.org" }]\n', "is not a valid GPU"),
    ],
    "variant 1.broken.versions": [(broken(versions="new"), "'new' is not a version specifier")],
    "variant 1.broken.source": [
        (broken(source="an issue"), "not a URL of http"),
        (INDEX + 'broken = [{ gpu = "12.*" }]\n', "is missing"),
    ],
    "variant 1.requires": [
        (
            VARIANT + "requires = [\"b=={version}; python_version > '3'\"]\n",
            "has a marker: write platforms",
        ),
        (VARIANT + "requires = []\n", "is empty"),
        (VARIANT + 'requires = ["b>={version}"]\n', "does not pin one version"),
        (VARIANT + 'requires = ["b=={release}"]\n', "only {name} and {version}"),
        (VARIANT + 'requires = ["b @ https://e.org"]\n', "is a URL"),
        (VARIANT + 'requires = ["-r x"]\n', "is no requirement"),
        (VARIANT + 'requires = ["{name}=={version}"]\n', "is the project itself"),
    ],
    "variant 1.properties": [
        (INDEX.replace("70_real", "7 0"), "'7 0'"),
        (
            INDEX.replace('70_real"]', '70_real", "nvidia :: sm_arch :: 70_real"]'),
            "is listed twice",
        ),
        (INDEX.replace("70_real", "{x}"), "{x}"),
        (INDEX.replace('"nvidia ::', '"amd ::'), "'amd'"),
        (INDEX.replace('"a"', '"null"'), "has none"),
        (HEAD + '[[variant]]\nlabel = "b"\nindex = "https://e.org"\n', "'b' needs some"),
    ],
    "variant 1.for-each": [
        (INDEX + "for-each = { gpu = [] }\n", "is not a name with values"),
        (INDEX + 'for-each = { GPU = ["a"] }\n', "is not a name with values"),
        (INDEX + 'for-each = { version = ["a"] }\n', "one name of your own"),
        (INDEX + 'for-each = { a = ["1"], b = ["2"] }\n', "one name of your own"),
    ],
    "variant 1.for-each.gpu": [
        (INDEX + 'for-each = { gpu = "a" }\n', "expected a list"),
        (INDEX + 'for-each = { gpu = ["a", "a"] }\n', "'a' is listed twice"),
        (INDEX + 'for-each = { gpu = ["A-1"] }\n', "'A-1' is not a valid"),
    ],
    "variant 1.label": [
        (INDEX.replace('"a"', '"A"'), "'A'"),
        (INDEX.replace('"a"', '"{x}"'), "{x}"),
    ],
}


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [(text, place, problem) for place, bad in BAD.items() for text, problem in bad],
)
def test_bad_entries(text, place, problem):
    with pytest.raises(CatalogError) as caught:
        read_entry(text, "app.toml")
    assert caught.value.path == place
    assert problem in caught.value.problem
    assert str(caught.value).startswith("app.toml")
    assert "secret" not in str(caught.value)


def test_wheels_that_were_read():
    """The one of the version is named, else the last; a list without any rests on a page."""
    first = Measured("app-1.0+cu128-cp312-cp312-win_amd64.whl", "0" * 64, "2026-11-28")
    last = Measured("app-2.0+cu128-cp312-cp312-win_amd64.whl", "1" * 64, "2026-11-29")
    text = "".join(
        f'{{ file = "{each.file}", sha256 = "{each.sha256}", date = "{each.date}" }},'
        for each in (last, first)
    )
    found = read_entry(f"{INDEX}measured = [{text}]\n", "app.toml")
    assert found.variants[0].measured == (last, first)
    (file,) = found.files("https://e.org", first.file)
    assert file.measured == (last, first)
    assert basis(file.measured) == f"read from {last.file} on 2026-11-29"
    assert basis(file.measured, Version("1.0")) == f"read from {first.file} on 2026-11-28"
    assert basis(()) == "as the publisher's page says, not measured"


@pytest.mark.parametrize(
    ("listed", "gpu", "kept"),
    [
        (["90_real", "120_virtual"], "12.*", ["120_virtual_broken", "90_real"]),
        (["120_real"], "12.*", ["120_real_broken"]),
        (["120_real"], "12.0", ["121_real"]),  # newer ones of the generation have no fault
        (["120_real"], "12.1", ["122_real"]),
        (["80_real", "89_real", "90_real"], "8.6", ["87_real", "89_real", "90_real"]),
        (["80_real"], "8.9", ["80_real_broken"]),
        (["gfx90a", "gfx942"], "gfx942", ["gfx90a", "gfx942_broken"]),
        (["gfx942"], "gfx942", ["gfx942_broken"]),
        (["75_real"], "12.*", ["75_real"]),
        (["75_real"], "gfx942", ["75_real"]),
    ],
)
def test_known_faults(listed, gpu, kept):
    """A build never becomes one for all GPUs, and of other versions nothing changes."""
    feature = "amd :: gfx_arch" if listed[0].startswith("gfx") else "nvidia :: sm_arch"
    namespace, _, name = feature.partition(" :: ")
    texts = ", ".join(f'"{feature} :: {value}"' for value in listed)
    text = re.sub(r"(?m)^properties = .*$", f"properties = [{texts}]", broken(gpu=gpu))
    found = read_entry(text.replace('["nvidia"]', '["nvidia", "amd"]'), "app.toml")
    (hit,) = found.files("https://e.org", "app-1.0-py3-none-any.whl")
    (other,) = found.files("https://e.org", "app-2.0-py3-none-any.whl")
    assert hit.properties[namespace][name] == tuple(kept)
    assert other.properties[namespace][name] == tuple(sorted(listed))
    assert bool(hit.faults) is (sorted(listed) != kept)
    assert not other.faults


DEVICES = (
    HEAD.replace("nvidia", "amd")
    + """[[variant]]
label = "rocm10.0_{gfx}"
for-each = { gfx = ["gfx1100", "gfx1151"] }
index = "https://e.org"
local = "rocm10.0.0"
requires = ["{name}[device-{gfx}]=={version}", "sdk-{gfx}; sys_platform == 'linux'"]
properties = ["amd :: gfx_arch :: {gfx}"]
[[variant]]
label = "rocm10.0_{gfx}"
for-each = { gfx = ["gfx1201"] }
index = "https://e.org"
local = "rocm10.0.0"
requires = ["device-{gfx}"]
properties = ["amd :: gfx_arch :: {gfx}"]
[[variant]]
label = "other"
index = "https://e.org"
local = "rocm10.0.0"
properties = ["amd :: gfx_arch :: gfx900"]
"""
)


def test_an_extra_of_an_index_for_each_gpu():
    """A file is one variant for each value, with the dependencies of that value's extra."""
    project = read_entry(DEVICES, "app.toml")
    assert project.targets == ()
    assert not project.uses_own_files
    found = list(project.files("https://e.org", "app-1.0+rocm10.0.0-py3-none-any.whl"))
    assert [item.filename for item in found] == [
        f"app-1.0-py3-none-any-rocm10.0_gfx{number}.whl" for number in (1100, 1151, 1201)
    ]
    assert found[1].properties == {"amd": {"gfx_arch": ("gfx1151",)}}
    sdk = "sdk-gfx1151; sys_platform == 'linux'"
    assert found[1].requires == ("app[device-gfx1151]==1.0+rocm10.0.0", sdk)
    asked = [f"device-{number}==1; extra == 'device-gfx{number}'" for number in (1100, 1151)]
    given = "\n".join(f"Requires-Dist: {text}" for text in asked)
    text = f"Metadata-Version: 2.1\nName: app\nVersion: 1.0+rocm10.0.0\n{given}\n\n"
    metadata = installed_metadata(text.encode(), project, found[1]).decode()
    fields = [line.partition(": ")[2] for line in metadata.splitlines() if "Requires" in line]
    assert fields[:2] == asked
    assert sorted(fields[2:]) == ["device-1151==1", sdk]
    # Installed by plain pip or uv: what is beside it tells.
    beside = {"device-1151": Version("1"), "sdk-gfx1151": Version("1")}
    installed = installed_build(project, Version("1.0+rocm10.0.0"), (), asked, beside)
    assert installed is not None
    assert installed.label == "rocm10.0_gfx1151"
    beside = {"device-1100": Version("2")}
    assert installed_build(project, Version("1.0+rocm10.0.0"), (), asked, beside) is None


def test_a_label_with_other_properties_on_other_platforms():
    table = """[[variant]]
label = "a"
index = "https://e.org"
properties = ["nvidia :: sm_arch :: {}_real"]
platforms = ["manylinux_2_28_{}"]
"""
    text = HEAD + table.format("75", "x86_64") + table.format("80", "aarch64")
    found = read_entry(text, "app.toml")

    def archs(tag):
        files = found.files("https://e.org", f"app-1.0-cp312-cp312-{tag}.whl")
        return [(each.kinds, each.properties["nvidia"]["sm_arch"]) for each in files]

    assert archs("manylinux_2_17_x86_64") == [({"linux_x86_64"}, ("75_real",))]
    assert archs("linux_aarch64") == [({"linux_aarch64"}, ("80_real",))]
    assert [each for _, each in archs("any")] == [("75_real",), ("80_real",)]
    assert archs("win_amd64") == []


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

    def test_a_bundle(self, tmp_path):
        (tmp_path / "torch.json").write_text(json.dumps(toml.read_toml(TORCH)))
        found = DirectoryCatalog(tmp_path, "shipped: ")
        assert found.names() == ["torch"]
        assert found.project("torch") == read_entry(TORCH, "shipped: torch.toml")
        assert found.project("numpy") is None
        assert open_catalog(tmp_path).names() == []

    def test_several(self):
        trees = {
            "torch": toml.read_toml(TORCH),
            "app": toml.read_toml(VARIANT + 'requires = ["b=={version}"]'),
        }
        found = read_catalog(write_catalog(trees).encode(), "https://example.org/catalog.json")
        assert found.names() == ["app", "torch"]
        assert found.project("torch") == read_entry(TORCH, "")
        assert found.project("app").targets == ("b",)
        assert found.project("numpy") is None

    @pytest.mark.parametrize(
        ("data", "problem"),
        [
            ("{", "not valid JSON"),
            ("<html>log in</html>", "not valid TOML"),
            ("{}", "catalog-version"),
            ('{"catalog-version": "1", "projects": []}', "expected an object"),
            ('{"catalog-version": "1", "projects": {"app": 1}}', "expected a table"),
            (write_catalog({"app": toml.read_toml(TORCH)}), "entry of 'torch'"),
        ],
    )
    def test_broken(self, data, problem):
        with pytest.raises(CatalogError, match=problem):
            read_catalog(data.encode(), "x").project("app")


class TestPreferred:
    def test_a_path(self, tmp_path):
        path = tmp_path / "torch.toml"
        path.write_text(TORCH)
        for place in (tmp_path, path):
            found = preferred_catalog(Preferences(catalog=str(place)), bytes)
            assert found.names() == ["torch"]
            assert found.project("torch") == read_entry(TORCH, "")
            assert found.project("numpy") is None
        with pytest.raises(CatalogError, match="cannot be read"):
            preferred_catalog(Preferences(catalog=str(tmp_path / "x.toml")), bytes)
        mirrored = Preferences(
            catalog=str(path), catalog_mirrors={"https://example.org": "https://mirror.example"}
        )
        places = preferred_catalog(mirrored, bytes).project("torch").places
        assert places[0] == "https://mirror.example/whl/cu128"
        forced = preferred_catalog(Preferences(catalog=str(path), forced={"torch": ""}), bytes)
        assert (forced.names(), forced.project("torch")) == ([], None)
        for none in (Preferences(), Preferences(use_variants=False, catalog="missing.toml")):
            assert preferred_catalog(none, bytes) is None

    @pytest.mark.parametrize("name", ["defualt", "defaul", "Default"])
    def test_a_mistyped_name(self, tmp_path, name):
        """The message names the option, variable or file that has it."""
        (tmp_path / "v.toml").write_text(f"catalog = '{name}'")
        place = Place(tmp_path / "v.toml", Role.USER)
        for options, environ, places, origin in (
            ({"variant-catalog": name}, {}, (), "--variant-catalog"),
            ({}, {"VARIANTS_CATALOG": name}, (), "VARIANTS_CATALOG"),
            ({}, {}, (place,), str(place.path)),
        ):
            found = load_preferences(options, environ, warn=pytest.fail, candidates=places)
            with pytest.raises(CatalogError) as caught:
                preferred_catalog(found, bytes)
            meant = f"{origin}={name!r}: no such catalogue; did you mean 'default'?"
            assert str(caught.value) == meant

    def test_a_url(self):
        url = "https://example.org/torch.toml"
        texts = {url: TORCH.encode()}
        assert preferred_catalog(Preferences(catalog=url), texts.pop).project("torch")
        assert texts == {}

    def test_the_shipped_one(self):
        preferences = Preferences(catalog="default")
        found = preferred_catalog(preferences, bytes)
        assert "torch" in found.names()
        assert found.project("torch").name == "torch"
        assert found.project("six") is None
        other = read_catalog(TORCH.encode(), "x")
        assert preferred_catalog(preferences, bytes, other).project("torch").source == "x"


PYTORCH = "https://download.pytorch.org/whl/variant/torch/"
PAGE = "https://index.example/simple/torch/"


@pytest.mark.parametrize(
    ("project", "places", "options", "said"),
    [
        ("six", (), {}, "six 1.0 has no variants, and none are known elsewhere"),
        (
            "torch",
            (PAGE,),
            {},
            f"torch 1.0 has no variants on {PAGE}; the catalogue describes builds of it: add "
            "--variant-catalog default",
        ),
        (
            "torch",
            (PYTORCH,),
            {"older": "0.9", "asked_catalog": True},
            f"torch 1.0 has no variants on {PYTORCH}; torch==0.9 there has some",
        ),
        (
            "six",
            (PAGE,),
            {"other_platforms": True},
            f"six 1.0 has variants on {PAGE}, but no wheel of them is for the target, "
            "and none are known elsewhere",
        ),
    ],
)
def test_no_variants(project, places, options, said):
    assert no_variants(project, "1.0", places, **options) == said


@pytest.mark.parametrize(
    "data",
    [b'{"a": "' + b"x" * CATALOG_BYTES + b'"}', b'{"a": [' + b"0," * (CATALOG_BYTES // 4) + b"0]}"],
    ids=["bytes", "values"],
)
def test_a_file_with_more_than_is_read(data):
    with pytest.raises(CatalogError, match=f"larger than {CATALOG_BYTES} bytes"):
        read_catalog(data, "catalog.json")
