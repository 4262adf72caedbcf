"""`variants catalog`: entries, their faults, the user's setting; the publishers' pages, live."""

import hashlib
import json
import os
from datetime import datetime, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from pep_variants import _directories as directories
from support.catalog_places import add, entry, page, place_url, variant
from support.gpu_libraries import library, wheel_of
from support.index import JSON, Answer, Index
from support.loopback import served_folder
from support.published_builds import Builds, Field, standing_in
from support.wheels import SourceDistribution, Wheel
from variants_catalog._entry_checks import sample_versions
from variants_catalog.entries import CatalogVariant

CUDA12 = variant("cuda12", 'requires = ["app-cu12=={version}"]', cuda="12.0")
INDEX = variant("cuda12.8", 'index = "https://example.org/cu128"\nlocal = "cu128"', cuda="12.0")
OWN = variant("cuda12.8", 'local = ""', cuda="12.0")
BROKEN = 'broken = [{ gpu = "12.*", versions = ">=2", source = "https://example.org/1" }]\n'
NO_FAULT = "1 project checked: 0 errors, 0 warnings\n"


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
    """Return the function that writes a catalogue of tables by name, and gives its directory."""
    folder = tmp_path / "entries"

    def entries(**tables):
        folder.mkdir(exist_ok=True)
        for name, text in tables.items():
            (folder / f"{name}.toml").write_text(entry(name, [text]))
        return folder

    return entries


def test_list(variants):
    lines = variants("catalog", "list").out.splitlines()
    (line,) = (line for line in lines if line.startswith("cupy "))
    assert line.split("  ")[-1] == "cuda13 cuda12 cuda11 rocm7.0"
    assert "cupy-cuda13x" in line
    assert any(line.startswith("jax ") and "extras of jax" in line for line in lines)
    assert any(line.startswith("xgboost ") and "xgboost-cpu, your own" in line for line in lines)
    tree = {entry["name"]: entry for entry in variants("catalog", "list", "--json").json}
    assert tree["torch"]["coherent"][0] == "torchvision"
    assert {item["label"] for item in tree["jax"]["variants"]} == {
        *("cuda12", "cuda13", "tpu", "null")
    }
    assert (tree["faiss"]["checked"], tree["faiss"]["placeholder"]) == ("2026-11-25", "==1.5.3")


def test_show(variants, entries):
    done = variants("catalog", "show", "Torch")
    assert "documentation: https://pytorch.org/get-started/locally/" in done.out
    assert "https://download.pytorch.org/whl/cpu (+cpu or no local version)" in done.out
    assert "nvidia :: sm_arch :: 50_real 60_real" in done.out
    assert "your own index (no local version)" in variants("catalog", "show", "xgboost").out
    assert "your own index" in variants("catalog", "show", "onnxruntime").out
    done = variants("catalog", "show", "tensorflow").out.splitlines()
    assert "source: https://pypi.org/simple/tensorflow/" in done
    assert "compared with these pages: 2026-11-25" in done
    assert any("[and-cuda]=={version} on manylinux_2_17_x86_64 " in line for line in done)
    folder = entries(app=CUDA12 + INDEX)
    mirror = ("--variant-catalog-mirror", "https://example.org=https://mirror.example/all")
    done = variants("catalog", "show", "app", "--variant-catalog", folder, *mirror)
    assert "compared with these pages: not known when" in done.out
    first, second = done.out.splitlines()[-2:]
    assert first.split()[:3] == ["cuda12", "all", "app-cu12=={version}"]
    assert "nvidia :: cuda_version_lower_bound :: 12.0; priority :: order :: 1" in first
    assert "https://mirror.example/all/cu128 (+cu128)" in second
    assert "as the publisher's page says, not measured  nvidia ::" in second
    row = f'{{ file = "app-1.0-py3-none-any.whl", sha256 = "{"0" * 64}", date = "2026-11-29" }}'
    entries(app=f"{INDEX}measured = [{row}]\n")
    done = variants("catalog", "show", "app", "--variant-catalog", folder)
    assert "read from app-1.0-py3-none-any.whl on 2026-11-29  nvidia ::" in done.out
    (tree,) = variants("catalog", "list", "--json", "--variant-catalog", folder).json
    assert [item["file"] for item in tree["variants"][0]["measured"]] == [
        "app-1.0-py3-none-any.whl"
    ]
    done = variants("catalog", "show", "nothing-here")
    assert (done.code, done.out) == (1, "")
    assert "nothing-here: the catalogue has no such project" in done.err


def test_the_shipped_catalogue(variants):
    done = variants("catalog", "check")
    assert done.code == 0
    assert done.out.split(" ", 1)[1] == "projects checked: 0 errors, 0 warnings\n"


def test_a_label_on_several_platforms(variants, entries):
    on = INDEX + 'platforms = ["manylinux_2_28_{}"]\n'
    path = entries(app=on.format("x86_64") + on.format("aarch64")) / "app.toml"
    assert variants("catalog", "check", path).out == NO_FAULT
    for other in (on.format("x86_64"), INDEX):
        entries(app=on.format("x86_64") + other)
        done = variants("catalog", "check", path, "--json")
        assert [each["code"] for each in done.json["findings"]] == ["overlap"]


def test_a_build_that_the_own_index_has_as_well(variants, entries):
    path = entries(app=INDEX + OWN) / "app.toml"
    assert variants("catalog", "check", path).code == 0


def test_a_known_fault(variants, entries):
    properties = CUDA12.replace("12.0", "12.0', 'nvidia :: sm_arch :: 120_real")
    folder = entries(app=properties + BROKEN)
    assert variants("catalog", "check", folder).code == 0
    done = variants("catalog", "show", "app", "--variant-catalog", folder)
    said = "cuda12 >=2 has a known fault on compute capability 12.*: https://example.org/1"
    assert said in done.out.splitlines()
    (tree,) = variants("catalog", "list", "--json", "--variant-catalog", folder).json
    assert tree["variants"][0]["broken"] == [
        {"gpu": "12.*", "versions": ">=2", "source": "https://example.org/1"}
    ]


def codes(result):
    return [(item["severity"], item["code"], item["place"]) for item in result.json["findings"]]


@pytest.mark.parametrize(
    ("tables", "code", "place"),
    [
        ("[[variant]\n", "invalid-catalog", ""),
        (INDEX.replace("label", "name", 1), "invalid-catalog", "variant 1"),
        (CUDA12.replace("12.0", "99.0"), "unknown-property", "variant 1.properties"),
        (CUDA12.replace("nvidia", "gpu"), "unknown-namespace", "variant 1.properties"),
        (CUDA12 + 'versions = ">=3,<2"\n', "no-version", "variant 1.versions"),
        (CUDA12 + 'versions = "<2"\n' + CUDA12 + 'versions = ">=1.9"\n', "overlap", "variant 2"),
        (CUDA12 + CUDA12, "overlap", "variant 2"),
        (CUDA12 + BROKEN, "fault-without-effect", "variant 1.broken"),
        (CUDA12 + 'versions = ">=3"\n' + BROKEN, "fault-without-effect", "variant 1.broken"),
        (INDEX + INDEX.replace("cuda12.8", "cuda12"), "overlap", "variant 2"),
        (INDEX + OWN.replace("12.0", "12.8"), "overlap", "variant 2"),
    ],
)
def test_faults(variants, entries, tables, code, place):
    """The place and the way out are named."""
    path = entries(app=tables) / "app.toml"
    path.write_text(path.read_text().replace('["nvidia",', '["nvidia", "gpu",'))
    done = variants("catalog", "check", path, "--json")
    assert done.code == 1
    ((severity, found, at),) = codes(done)
    assert (severity, found) == ("error", code)
    assert at.startswith(place)
    (finding,) = done.json["findings"]
    assert finding["file"] == str(path)
    assert finding["remedy"]


def test_versions_that_meet(variants, entries):
    ranges = ("<2", ">=2,<3", "==3.*")
    text = "".join(f'{CUDA12}versions = "{each}"\n' for each in ranges)
    assert variants("catalog", "check", entries(app=text) / "app.toml").out == NO_FAULT


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


def test_names(variants, entries, tmp_path):
    """A file that is not called as its project would not be found in a directory."""
    (entries(app=CUDA12) / "app.toml").rename(tmp_path / "App.toml")
    assert codes(variants("catalog", "check", tmp_path / "App.toml", "--json")) == [
        ("error", "catalog-filename", "project.name")
    ]
    done = variants("catalog", "check", tmp_path / "App.toml")
    assert "App.toml: project.name: error: is 'app': " in done.out
    assert "    rename the file to app.toml\n" in done.out
    folder = entries(lib=CUDA12)
    (folder / "app.toml").write_text(entry("app", [CUDA12], coherent=["other"]))
    assert codes(variants("catalog", "check", folder, "--json")) == [
        ("warning", "coherent-missing", "project.coherent")
    ]


def test_bundle(variants, entries, tmp_path):
    """What a server offers: the same entries under one URL."""
    folder, path = entries(app=CUDA12, lib=INDEX), tmp_path / "all.json"
    bundle = ("catalog", "bundle", folder, "-o", path)
    done = variants(*bundle)
    assert (done.code, done.err) == (0, f"{path}: 2 projects\n")
    listed = [
        variants("catalog", "list", "--json", "--variant-catalog", place).json
        for place in (folder, path)
    ]
    for tree in (*listed[0], *listed[1]):
        del tree["file"]
    assert listed[0] == listed[1]
    with served_folder(tmp_path) as url:
        assert variants("catalog", "enable", f"{url}all.json").code == 0
        assert variants("catalog", "list").out.split()[0] == "app"
        assert variants("catalog", "enable", f"{url}missing.json").code == 1
    tree = json.loads(path.read_text())
    tree["projects"]["other"] = tree["projects"].pop("lib")
    path.write_text(json.dumps(tree))
    done = variants("catalog", "check", path, "--json")
    assert codes(done) == [("error", "invalid-catalog", "other")]
    (folder / "bad.toml").write_text("name = 1")
    assert variants(*bundle).code == 1
    (tmp_path / "empty").mkdir()
    done = variants("catalog", "bundle", tmp_path / "empty", "-o", path)
    assert "has no entries" in done.err


def test_enable(variants, config, entries, monkeypatch):
    path = config / "variants.toml"
    done = variants("catalog", "enable")
    assert (done.code, path.read_text()) == (0, 'catalog = "default"\n')
    assert str(path) in done.err
    if os.name == "posix":
        assert path.stat().st_mode & 0o077 == 0
    # A path is made absolute, and is what the other commands use from now on.
    folder = entries(app=CUDA12)
    assert variants("catalog", "enable", "entries").code == 0
    assert path.read_text() == f"catalog = {json.dumps(str(folder))}\n"
    assert variants("catalog", "list").out.split()[0] == "app"
    for _ in range(2):
        assert variants("catalog", "disable").code == 0
        assert path.read_text() == ""
    done = variants("catalog", "enable", "missing.toml")
    assert done.code == 1
    assert "missing.toml: cannot be read" in done.err
    path.write_text("catalog = [")
    done = variants("catalog", "enable")
    assert (done.code, "variants.toml" in done.err) == (1, True)
    assert path.read_text() == "catalog = ["
    path.unlink()
    monkeypatch.setenv("VARIANTS_CATALOG", str(folder))
    done = variants("catalog", "enable")
    assert (done.code, "counts more" in done.err) == (0, True)


def test_the_rest_of_the_file_stays(variants, config, tmp_path):
    path = config / "variants.toml"
    text = '# mine\nprefer = ["nvidia"]  # fast\n\n[property_priorities.x86_64]\nlevel = ["v3"]\n'
    if os.name == "nt":  # symbolic links need a privilege
        path.write_text(text)
    else:
        (tmp_path / "dotfile.toml").write_text(text)
        path.symlink_to(tmp_path / "dotfile.toml")
    assert variants("catalog", "enable").code == 0
    assert path.is_symlink() or os.name == "nt"
    first, _, rest = path.read_text().partition("[property")
    assert rest == text.partition("[property")[2]
    assert first.startswith('# mine\nprefer = ["nvidia"]  # fast\n')
    assert '\ncatalog = "default"\n' in first
    assert variants("catalog", "disable").code == 0
    assert path.read_text().split() == text.split()


class Live:
    """A publisher's places and the user's index, and what a check of an entry finds there."""

    def __init__(self, variants, places, index):
        self.variants, self.places, self.index = variants, places, index
        self.message = ""

    def put(self, place, *versions):
        for version in versions:
            add(self.places, place, Wheel("torch", version))

    def own(self, name, *versions, extra=()):
        self.index.files[name] = {}
        for version in versions:
            self.index.add_wheel(Wheel(name, version, extras=extra))

    def backend(self, label, place, local=None, versions=""):
        where = f'index = "{place_url(self.places, place)}"\nversions = "{versions}"'
        where += f"\nlocal = {json.dumps(local or place)}"
        return variant(label, where, cuda="" if label == "null" else "12.0")

    def check(self, *tables, name="torch", more=""):
        """Return severity, code and place of each finding; the first message is kept."""
        with open(f"{name}.toml", "w") as stream:
            stream.write(entry(name, tables, more=more))
        result = self.variants("catalog", "check", f"{name}.toml", "--live", "--json")
        found = result.json["findings"]
        assert result.code == any(item["severity"] == "error" for item in found)
        self.message = " ".join((*found[0].values(),)) if found else ""
        return codes(result)


@pytest.fixture
def live(variants, monkeypatch):
    with standing_in(Field(Index(), Builds())) as found:
        monkeypatch.setenv("PIP_INDEX_URL", found.index.url)
        yield Live(variants, found.builds, found.index)


MISSING = [("error", "variant-missing", "variant 1")]


class TestLive:
    @pytest.mark.parametrize(
        ("answer", "reason"),
        [
            (Answer(401), "access denied (HTTP status 401)"),
            (Answer(403), "not found (HTTP status 403)"),
            (Answer(200, b"<html>log in", "text/html"), "lists no wheels"),
            (Answer(200, b"{", JSON), "is not JSON"),
        ],
    )
    def test_sources_that_cannot_be_read(self, live, answer, reason):
        """One finding for a host and a reason, however many pages."""
        for place in ("cu126", "cu128"):
            live.places.faults[page(place)] = answer
        live.put("cpu", "2.9.0+cpu")
        labels = (("cuda12.8", "cu128"), ("cuda12.6", "cu126"), ("null", "cpu"))
        found = live.check(*(live.backend(*each) for each in labels))
        assert found == [("error", "source-unusable", "")]
        assert live.places.root in live.message
        assert "choosing torch without its builds cuda12.8, cuda12.6" in live.message
        assert reason in live.message

    def test_new_and_missing_versions(self, live):
        null = live.backend("null", "cpu")
        live.put("cu128", "2.9.0+cu128", "2.10.0+cu128", "2.11.0rc1+cu128")
        live.put("cpu", "2.10.0+cpu")
        assert live.check(live.backend("cuda12.8", "cu128"), null) == []
        live.put("cpu", "2.11.0+cpu")
        missing = [("warning", "version-missing", "variant 1")]
        assert live.check(live.backend("cuda12.8", "cu128"), null) == missing
        limited = live.backend("cuda12.8", "cu128", versions="<2.11")
        assert live.check(limited, null) == []
        live.own("torch", "2.12.0")
        assert live.check(limited) == [("warning", "version-new", "")]
        assert "torch has version 2.12.0, the newest with" in live.message

    def test_a_label_of_several_platforms(self, live):
        """Each table has the wheels of its own platforms."""
        tables = [
            live.backend("cuda12.8", "cu128") + f'platforms = ["manylinux_2_17_{cpu}"]\n'
            for cpu in ("aarch64", "x86_64")
        ]
        tags = [f"py3-none-manylinux_2_17_{cpu}" for cpu in ("x86_64", "aarch64")]
        add(live.places, "cu128", Wheel("torch", "2.9.0+cu128", tag=tags[0]))
        assert live.check(*tables) == MISSING
        add(live.places, "cu128", Wheel("torch", "2.9.0+cu128", tag=tags[1]))
        assert live.check(*tables) == []
        add(live.places, "cu128", Wheel("torch", "2.10.0+cu128", tag=tags[0]))
        assert live.check(*tables) == [("warning", "version-missing", "variant 1")]

    def test_new_values_of_placeholders(self, live):
        """A build against a torch that the entry does not rank would never be chosen."""
        table = live.backend("cuda12_torch{torch}", "cu128", "cu.12.8.torch.{torch}")
        table = table.replace("priority :: order :: 1", "priority :: torch :: {torch}")
        ranked = 'static-properties.priority.torch = ["2.12", "2.11"]\n'
        live.put("cu128", "1.0+cu.12.8.torch.2.11", "1.0+cu.12.8.torch.2.12")
        assert live.check(table, more=ranked) == []
        live.put("cu128", "1.0+cu.12.8.torch.2.13")
        found = live.check(table, more=ranked)
        assert found == [("error", "unknown-property", "variant 1.properties")]
        assert "'priority :: torch :: 2.13' of cuda12_torch2.13 is not in" in live.message

    def test_other_names(self, live):
        def check(*requires):
            listed = json.dumps([f"{each}=={{version}}" for each in requires])
            return live.check(variant("cuda12", f"requires = {listed}", cuda="12.0"), name="app")

        live.own("app-cu12", "1.0", "1.1")
        assert check("app-cu12") == [("warning", "name-unregistered", "project.name"), *MISSING]
        live.own("app", "1.0")
        assert check("app-cu12") == []
        # What else a build requires has to be there, too.
        assert check("app-cu12", "app-libs") == [("error", "project-missing", "")]
        assert f"app-libs is not on {live.index.url}" in live.message
        # A project that has no wheels gives no variants.
        source = SourceDistribution("app-cu12", "1.0")
        live.index.files["app-cu12"] = {source.filename: source.build()}
        assert check("app-cu12") == MISSING
        assert "has no wheel for cuda12" in live.message

    def test_extras(self, live):
        """Those of the newest version, of the project itself or of another one."""
        live.own("app", "1.0", extra=("cuda12",))
        live.own("app-gpu", "1.0", extra=("cuda_12",))
        for requirement, expected in (
            ("{name}[cuda12]", []),
            ("app-gpu[cuda-12]", []),
            ("{name}[cuda13]", [("error", "extra-missing", "variant 1")]),
        ):
            table = variant("cuda12", f'requires = ["{requirement}=={{version}}"]', cuda="12.0")
            assert live.check(table, name="app") == expected
        assert "use one that it has: cuda12" in live.message

    def test_own_wheels(self, live):
        """They are the null variant; others without source are of those that `local` marks."""
        live.own("app", "1.0", "1.1")
        live.own("app-cu12", "1.0")
        null = variant("null", "")
        missing = [("warning", "version-missing", "variant 1")]
        assert live.check(CUDA12, null, name="app") == missing
        assert "cuda12 has 1.0, other variants have 1.1" in live.message
        live.own("app-cu12", "1.0", "1.1")
        assert live.check(CUDA12, null, name="app") == []
        plain, marked = (variant("a", f'local = "{each}"', cuda="12.0") for each in ("", "cu12"))
        assert live.check(plain, name="app") == []
        assert live.check(marked, name="app") == MISSING
        live.own("app", "1.0+cu12", "1.1")
        assert live.check(marked, name="app") == [("warning", "version-new", "")]

    def test_variants_index(self, live):
        index = f'variants-index = "{place_url(live.places, "variant")}"\n'
        missing = [("error", "variant-missing", "project.variants-index")]
        for label, expected in ((None, missing), ("cuda12.8", [])):
            add(live.places, "variant", Wheel("torch", "2.9.0", label))
            assert live.check(more=index) == expected
        live.places.files.clear()
        assert live.check(more=index) == [("error", "source-unusable", "")]


class TestWheels:
    """GPU code of wheels on a publisher's place and the user's index, against an entry."""

    SM = "nvidia :: sm_arch :: "

    @staticmethod
    def table(*architectures, where='local = ""', more=""):
        listed = json.dumps([f"{TestWheels.SM}{each}" for each in architectures])
        return f'[[variant]]\nlabel = "cuda12"\n{where}\nproperties = {listed}\n{more}'

    @staticmethod
    def wheel(version, *cuda, name="app", tag="py3-none-any", **code):
        data = wheel_of({f"{name}/lib.so": library(cuda=cuda, **code)}, name=name, version=version)
        return f"{name.replace('-', '_')}-{version}-{tag}.whl", data

    def put(self, live, *arguments, name="app", **code):
        filename, data = self.wheel(*arguments, name=name, **code)
        live.index.add(name, filename, data)
        return measured(filename, data)

    def check(self, live, *tables, asked="app.toml", more=()):
        with open("app.toml", "w") as stream:
            stream.write(entry("app", tables))
        command = ("catalog", "check", asked, "--wheels", "--json", *more)
        found = live.variants(*command, "--variant-catalog", "app.toml").json
        self.message = " ".join(each["message"] for each in found["findings"])
        self.read = [each["measured"]["file"] for each in found["wheels"]]
        self.listed = [each["properties"] for each in found["wheels"]]
        return [(each["severity"], each["code"]) for each in found["findings"]]

    def test_an_entry_as_its_wheels(self, live):
        row = self.put(live, "1.0", "75", "90", ptx=["90"])
        full = self.table("75_real", "90_real", "90_virtual", "100_virtual", "110_virtual",
                          "120_virtual", more=row)  # fmt: skip
        assert self.check(live, full) == []
        assert self.listed == [[f"{self.SM}{each}" for each in (
            "75_real", "90_real", "90_virtual", "100_virtual", "110_virtual", "120_virtual",
        )]]  # fmt: skip

    def test_differences(self, live):
        row = self.put(live, "1.0", "75", "90")
        assert self.check(live, self.table("75_real", "80_real", more=row)) == [
            ("error", "code-missing"), ("warning", "code-unlisted"),
        ]  # fmt: skip
        assert "without code for 8.0, 8.6, 8.7, 8.9" in self.message
        assert "with code for 9.0 as well" in self.message

    @pytest.mark.parametrize(
        ("platform", "expected"),
        [("manylinux_2_28_x86_64", []), ("manylinux_2_28_aarch64", [("error", "code-missing")])],
    )
    def test_gpus_beside_arm_alone(self, live, platform, expected):
        """Code for an RTX 50 alone: the other GPU of its generation is that of DGX Spark."""
        row = self.put(live, "1.0", "90", "120a", tag=f"py3-none-{platform}")
        assert self.check(live, self.table("90_real", "120_real", more=row)) == expected
        unlisted = [("warning", "code-unlisted")] if not expected else []
        assert self.check(live, self.table("90_real", more=row)) == unlisted

    def test_code_that_no_list_can_say(self, live):
        """Code for one GPU alone, of a generation that has more."""
        row = self.put(live, "1.0", "90", "100a")
        assert self.check(live, self.table("90_real", more=row)) == []

    def test_rows(self, live):
        row = self.put(live, "1.0", "75")
        other = row.replace(row.split('"')[3], "0" * 64)
        gone = row.replace("app-1.0", "app-0.9")
        for text in (other, gone):
            found = self.check(live, self.table("75_real", more=text))
            assert found == [("error", "measured-mismatch")]
            assert self.read == ["app-1.0-py3-none-any.whl"]
        assert self.check(live, self.table("75_real")) == [("warning", "not-measured")]

    def test_which_wheels_are_read(self, live):
        """Of each platform the oldest and the newest release, and those that are measured."""
        tags = "manylinux_2_28_x86_64", "manylinux_2_28_aarch64", "win_amd64"
        rows = {
            (version, tag): self.put(live, version, "75", tag=f"py3-none-{tag}")
            for version in ("0.9", "1.0", "1.1", "1.2", "1.3rc1")
            for tag in tags
        }
        where = 'local = ""\nversions = ">=1"\nplatforms = ["manylinux_2_28_x86_64", "win_amd64"]'
        table = self.table("75_real", where=where, more=rows["1.1", tags[0]])
        assert self.check(live, table) == []
        wanted = [("1.0", tags[0]), ("1.0", tags[2]), ("1.1", tags[0]), ("1.2", tags[0])]
        wanted += [("1.2", tags[2])]
        assert sorted(self.read) == [f"app-{version}-py3-none-{tag}.whl" for version, tag in wanted]
        assert self.check(live, table, asked="app==1.0") == []
        assert sorted(self.read) == [f"app-1.0-py3-none-{tag}.whl" for tag in tags[::2]]
        assert live.variants("catalog", "check", "app==1.0").code == 2
        assert live.variants("catalog", "check", "a b", "--wheels").code == 2

    def test_code_in_what_a_build_requires(self, live):
        live.own("app", "1.0", "2.0", extra=("cuda12",))
        where = 'requires = ["{name}[cuda12]=={version}"]'
        found = self.check(live, self.table("75_real", where=where))
        assert found == [("warning", "not-measured"), ("warning", "code-missing")]
        assert "app-1.0-py3-none-any.whl, app-2.0-py3-none-any.whl without" in self.message
        assert self.read == []
        row = self.put(live, "1.0", "75", name="app-libs")
        self.put(live, "2.0", "80", name="app-libs")
        found = self.check(live, self.table("75_real", where=where, more=row))
        assert found == [("error", "code-missing"), ("warning", "code-unlisted")]
        assert "app_libs-2.0-py3-none-any.whl without code for 7.5" in self.message

    def test_wheels_that_cannot_be_read(self, live):
        """Neither a damaged wheel, a large one nor a host that does not answer ends the check."""
        self.put(live, "1.0", "75")
        live.index.add("app", "app-2.0-py3-none-any.whl", b"PK\5\6")
        live.places.faults[page("cu128")] = Answer(403)
        lost = f'index = "{place_url(live.places, "cu128")}"'
        tables = self.table("75_real"), self.table("75_real", where=lost).replace("a12", "a12.8")
        unread, lost = ("warning", "wheel-unread"), ("warning", "source-unusable")
        assert self.check(live, *tables) == [("warning", "not-measured"), unread, lost]
        live.index.sizes = True
        live.index.add("app", "app-2.0-py3-none-any.whl", bytes(2 << 20))
        assert unread in self.check(live, *tables, more=("--max-size", "1"))
        assert "has 2097152 bytes" in self.message
        live.index.sizes = False
        assert unread in self.check(live, *tables, more=("--max-size", "1"))
        assert "larger than the 1048576 bytes" in self.message

    def test_lines_for_an_entry(self, live):
        """What is printed is what an entry takes; wheels with other code stand apart."""
        self.put(live, "1.0", "75")
        row = self.put(live, "1.1", "75", "80")
        with open("app.toml", "w") as stream:
            stream.write(entry("app", [self.table("75_real")]))
        printed = live.variants("catalog", "check", "app.toml", "--wheels").out
        one, two, _ = printed.split("\n\n")
        assert one.startswith(
            '# app, variant 1, cuda12\nproperties = [\n    "nvidia :: sm_arch :: 75'
        )
        assert [row.strip() for row in two.splitlines()[-2:]] == [row[12:-2] + ",", "]"]


def measured(filename, data):
    """Return the line of an entry that says that it was read from the file."""
    digest, day = hashlib.sha256(data).hexdigest(), datetime.now(timezone.utc).date()
    return f'measured = [{{ file = "{filename}", sha256 = "{digest}", date = "{day}" }}]\n'
