"""Builds that publishers have under other names, in pip: one distribution owns every file."""

from __future__ import annotations

import hashlib
import json
import random
import threading
from dataclasses import replace
from functools import partial

import pytest
import tomli

from pep_variants._wheelfile.installed import ownership_problems
from support.catalog_places import entry, variant
from support.index import Index
from support.mounts import mounted
from support.pip_commands import dry_run, installs, labels, versions
from support.projects import DRIVER, cuda
from support.wheels import SourceDistribution, Wheel
from variants_catalog._installed_builds import Origin, read_origin, write_origin

RECORDED = b"pip\npep-variants-shim\n"
"""INSTALLER of a distribution whose record of origin counts."""
CUDA_13, CUDA_12, NO_GPU = ({DRIVER: version} for version in ("13.0", "12.8", "11.0"))
BUILD = "cupy_cuda13x-14.2.0-py3-none-any.whl"


def build(name: str, version: str) -> Wheel:
    """Return a build of cupy under *name*: all have the same files, with other contents."""
    files = {
        "cupy/__init__.py": f"BUILD = {name!r}\n",
        f"cupy/libs/{name}.so": f"code of {name} {version}",
        f"{name.replace('-', '_')}-{version}.data/scripts/cupy-tool": "#!python\n",
    }
    return Wheel(name, version, files=files)


def owned(environment) -> dict[str, str]:
    """Return versions by name, after a check that each file has one owner and is there."""
    assert ownership_problems([str(environment.site_packages)]) == []
    return versions(environment)


@pytest.fixture
def index(serve):
    """cupy as sources, and wheels under one name for each CUDA version; cudf requires one."""
    index = Index(metadata_hashes=True)
    for version in ("14.0.0", "14.2.0"):
        for number in ("12", "13"):
            index.add_wheel(build(f"cupy-cuda{number}x", version), metadata_file=True)
        source = SourceDistribution("cupy", version)
        index.add("cupy", source.filename, source.build())
    index.add_wheel(build("cupy-cuda12x", "14.3.0"))
    index.add_wheel(Wheel("cudf", "26.10", requires=("cupy-cuda13x>=14.0",)))
    for name, requirement in (("new", ">=14.1"), ("old", "<14.1"), ("any", "")):
        index.add_wheel(Wheel(f"app-{name}", "1.0", requires=(f"cupy{requirement}",)))
    index.add_wheel(Wheel("app-old-cuda", "1.0", requires=("cupy-cuda13x<14.1",)))
    return serve(index)


@pytest.fixture
def catalog(tmp_path):
    """Options for an entry of cupy."""
    places = 'requires = ["cupy-cuda{}x=={{version}}"]'
    tables = [variant(f"cuda{n}", places.format(n), cuda=f"{n}.0", order=14 - n) for n in (13, 12)]
    path = tmp_path / "cupy.toml"
    path.write_text(entry("cupy", tables))
    return ("--variant-catalog", str(path))


@pytest.fixture
def options(index, catalog):
    return ("-i", index.url, *catalog)


@pytest.mark.everywhere
def test_a_life(fresh, options):
    """C1, C2: install, upgrade, switch there and back, a requirement, reinstall, uninstall."""
    module = fresh.site_packages / "cupy"

    def pip(machine, *args):
        done = fresh.pip("install", *options, *args, env=machine)
        assert (done.code, done.err) == (0, ""), done
        version = owned(fresh)["cupy"]
        (record,) = fresh.site_packages.glob("cupy-*.dist-info/variant_origin.json")
        name = read_origin(record.read_bytes(), str(record)).name
        assert name == f"cupy-{labels(fresh)['cupy']}x"
        assert (module / "__init__.py").read_text() == f"BUILD = {name!r}\n"
        assert [path.stem for path in module.glob("libs/*.so")] == [name]
        return f"{name} {version}"

    assert pip(CUDA_12, "cupy==14.0.0") == "cupy-cuda12x 14.0.0"
    assert pip(CUDA_12, "-U", "cupy") == "cupy-cuda12x 14.2.0"
    assert pip(CUDA_13, "--variant-switch", "cupy") == "cupy-cuda13x 14.2.0"
    assert pip(CUDA_12, "--variant-switch", "cupy") == "cupy-cuda12x 14.2.0"
    assert pip(CUDA_12, "app-any") == "cupy-cuda12x 14.2.0"
    assert pip(CUDA_12, "--force-reinstall", "cupy") == "cupy-cuda12x 14.2.0"
    assert fresh.pip("check").code == 0
    fresh.pip("uninstall", "-y", *owned(fresh))
    assert owned(fresh) == {}
    assert not module.exists()


@pytest.mark.everywhere
def test_pages_are_asked_for_at_the_same_time(patched, index, catalog):
    """Each is answered when both are asked for, and neither is asked for again."""
    pages = [f"/simple/cupy-cuda{number}x/" for number in ("12", "13")]
    both = threading.Barrier(len(pages), timeout=30)

    def answered(path, headers):
        both.wait()
        return index._found(path, headers)

    index.resources |= {path: partial(answered, path) for path in pages}
    done = dry_run(patched, index, *catalog, "cupy", **CUDA_12)
    installs(done, "cupy-14.2.0-cuda12")
    assert [index.requests.count(path) for path in pages] == [1, 1]


@pytest.mark.everywhere
@pytest.mark.hook
def test_freeze_and_plain_pip(fresh, plain, options, tmp_path):
    """C4: the publisher's requirement; plain pip installs the same files."""
    done = fresh.pip("install", *options, "cupy", "app-any", env=CUDA_13)
    assert (done.code, done.err) == (0, ""), done
    assert "Variant cuda13 for cupy 14.2.0 (published as cupy-cuda13x): CUDA driver" in done.out
    frozen = fresh.pip("freeze").out
    assert frozen == "app-any==1.0\ncupy-cuda13x==14.2.0\n"
    assert "pep-variants-shim" in fresh.pip("freeze", "--all").out
    (tmp_path / "frozen.txt").write_text(frozen)
    listed = ("install", "--no-deps", *options[:2], "-r", str(tmp_path / "frozen.txt"))
    copy = plain.copied(tmp_path / "plain")
    done = copy.pip(*listed)
    assert done.code == 0, done
    module = str(fresh.site_packages.relative_to(fresh.path) / "cupy")
    assert copy.files(module) == fresh.files(module) != {}
    # The same lines in the environment that they are of.
    done = fresh.pip("install", *options, "-r", str(tmp_path / "frozen.txt"), env=CUDA_13)
    assert (done.code, done.err) == (0, ""), done
    assert "cupy-cuda13x 14.2.0 is installed already, as cupy" in done.out
    assert "Successfully" not in done.out


@pytest.mark.everywhere
@pytest.mark.parametrize("name", ["variant_origin.json", "Variant_Origin.json"])
def test_records_that_a_wheel_brings(fresh, index, name):
    """They are dropped with the shim, and not believed without it; no wheel writes its own line."""
    origin = Origin("popular", "9.9", "https://host.example/popular-9.9-py3-none-any.whl")
    direct = {"url": "https://host.example/popular-9.9.zip", "archive_info": {}}
    info = "evil-1.0.dist-info"
    files = {
        f"{info}/{name}": write_origin(origin),
        f"{info}/variant_forced": "cu128",
        f"{info}/direct_url.json": json.dumps(direct),
        f"{info}/REQUESTED": "",
        f"{info}/INSTALLER": RECORDED,
    }
    own = {**cuda(), "variants": {"cu128": {"nvidia": {"cuda_version_lower_bound": ["12.8"]}}}}
    index.add_wheel(Wheel("evil", "1.0", variant_json=own, files=files))
    index.add_wheel(Wheel("needs-evil", "1.0", requires=("evil",)))
    folder = fresh.site_packages / info
    for wanted, recorded in (("needs-evil", {"INSTALLER"}), ("evil", {"INSTALLER", "REQUESTED"})):
        done = fresh.pip("install", "-i", index.url, wanted)
        assert (done.code, done.err) == (0, ""), done
        assert fresh.pip("freeze").out.splitlines()[0] == "evil==1.0"
        assert {path.name for path in folder.iterdir()} == {
            "METADATA", "RECORD", "WHEEL", "variant.json", *recorded,
        }  # fmt: skip
        assert (folder / "INSTALLER").read_bytes() == b"pip\n"
        assert owned(fresh)["evil"] == "1.0"
        fresh.pip("uninstall", "-y", "evil", "needs-evil")
        assert not folder.exists()
    fresh.pip("install", "-i", index.url, "evil", env={"PEP_VARIANTS_SHIM": "0"})
    (folder / "direct_url.json").unlink()  # plain pip believes it
    assert fresh.pip("freeze").out == "evil==1.0\n"


@pytest.mark.one
def test_no_room_for_the_wheel_under_its_new_name(fresh, options, index, tmp_path):
    """The line names the place; nothing is installed, and nobody is asked to report it."""
    wheel = build("cupy-cuda13x", "14.2.0")
    big = replace(wheel, files={**wheel.files, "cupy/data": random.Random(1).randbytes(20_000)})
    index.add_wheel(big, metadata_file=True)
    (tmp_path / "full").mkdir()
    setup = f"mount -t tmpfs -o size=32k,mode=777 tmpfs {tmp_path / 'full'}"
    env = {**CUDA_13, "TMPDIR": str(tmp_path / "full"), "PIP_NO_CACHE_DIR": "1"}
    done = mounted(fresh, setup, "install", *options, "cupy==14.2.0", env=env)
    assert done.code == 1, done
    place = f"temporary folder {tmp_path / 'full'} (TMPDIR)"
    assert done.err == f"ERROR: {place}: No space left on device\n", done
    assert owned(fresh) == {}


@pytest.mark.everywhere
def test_the_publishers_name_beside_the_project(fresh, options):
    """C14: what is required under the publisher's name stands for the project."""
    done = fresh.pip("install", *options, "cudf", "app-new", env=CUDA_12)
    assert done.code == 0, done
    unfit = "WARNING: cupy-cuda13x 14.2.0 does not run on the NVIDIA GPU that is here"
    assert done.err.startswith(unfit), done
    assert done.err.count("\n") == 1, done
    line = "cupy is left out: it is cupy-cuda13x 14.2.0, which is also required, under its"
    assert line in done.out, done
    assert sorted(owned(fresh)) == ["app-new", "cudf", "cupy-cuda13x"]
    # It is installed and stays.
    done = fresh.pip("install", *options, "app-any", env=CUDA_12)
    assert (done.code, done.err) == (0, ""), done
    assert "cupy is left out: it is cupy-cuda13x 14.2.0, which is installed" in done.out
    before = owned(fresh)
    done = fresh.pip("install", *options, "app-old", env=CUDA_12)
    assert done.code == 1, done
    assert done.err.startswith(
        "ERROR: cupy has the same files as cupy-cuda13x 14.2.0, which is installed and does not "
        "satisfy cupy<14.1 (from app-old 1.0): require a version of cupy-cuda13x that does, or "
        "pip uninstall cupy-cuda13x"
    )
    assert owned(fresh) == before == {**before, "app-any": "1.0"}


@pytest.mark.one
def test_the_project_is_installed_before(fresh, index, options):
    """C14: a build is not installed over the project, nor beside a version that is asked for."""
    done = fresh.pip("install", *options, "cupy", env=CUDA_13)
    assert (done.code, done.err) == (0, ""), done
    before = owned(fresh)
    # C15: a version that only the other name has is no version of cupy.
    assert before == {"cupy": "14.2.0"}
    for wanted in ("cudf", "cupy-cuda12x"):
        done = fresh.pip("install", *options, wanted, env=CUDA_13)
        assert done.code == 1, done
        assert "cupy 14.2.0 is installed and has the same files as cupy-cuda1" in done.err
        assert "pip uninstall cupy, then try again" in done.err
    assert owned(fresh) == before
    fresh.pip("uninstall", "-y", "cupy")
    done = fresh.pip("install", *options, "app-old-cuda", "app-new", env=CUDA_13)
    assert "cupy has the same files as cupy-cuda13x 14.0.0, which is also required" in done.err
    assert "leave cupy-cuda13x out" in done.err
    # Two builds of one project.
    both = "ERROR: cupy-cuda13x and cupy-cuda12x have the same files, those of cupy: "
    done = fresh.pip("install", *options, "cudf", "cupy-cuda12x", env=CUDA_13)
    assert done.err.startswith(f"{both}require one of them"), done
    assert owned(fresh) == {}
    fresh.pip("install", *options, "cupy-cuda12x", env=CUDA_13)
    done = fresh.pip("install", *options, "cudf", env=CUDA_13)
    assert done.err.startswith(f"{both}pip uninstall cupy-cuda12x, then try again"), done
    assert sorted(owned(fresh)) == ["cupy-cuda12x"]
    fresh.pip("uninstall", "-y", "cupy-cuda12x")
    # A project that requires a build itself has no code: both are installed.
    index.files["cupy"].clear()
    index.add_wheel(Wheel("cupy", "14.2.0", requires=("cupy-cuda12x==14.2.0",)))
    done = fresh.pip("install", "--dry-run", *options, "cupy", env=NO_GPU)
    installs(done, "cupy-14.2.0", "cupy-cuda12x-14.2.0")


@pytest.mark.everywhere
def test_hashes(patched, index, catalog, tmp_path):
    """C16: the given hashes decide; a renamed build has another hash than the project's files."""
    (name,) = (name for name in index.files["cupy"] if "14.2.0" in name)
    digests = {
        "cupy": hashlib.sha256(index.files["cupy"][name]).hexdigest(),
        "cupy-cuda13x": hashlib.sha256(index.files["cupy-cuda13x"][BUILD]).hexdigest(),
    }
    listed = tmp_path / "requirements.txt"
    given = ("--no-build-isolation", "--require-hashes", "-r", str(listed))
    for project, digest in digests.items():
        listed.write_text(f"{project}==14.2.0 --hash=sha256:{digest}\n")
        done = dry_run(patched, index, *catalog, *given, **CUDA_13)
        installs(done, f"{project}-14.2.0")
        said = "Hashes of cupy are given: its builds under another name or with other dependencies"
        assert (said in done.out) == (project == "cupy"), done


@pytest.mark.everywhere
def test_reports_downloads_and_locks(fresh, plain, index, options, tmp_path):
    """All name the publisher's file and its hash; plain pip installs from them."""
    report, lock, folder = tmp_path / "report.json", tmp_path / "pylock.toml", tmp_path / "files"
    digest = hashlib.sha256(index.files["cupy-cuda13x"][BUILD]).hexdigest()
    done = fresh.pip("install", "--dry-run", *options, "--report", str(report), "cupy", env=CUDA_13)
    installs(done, "cupy-14.2.0-cuda13")
    (item,) = json.loads(report.read_text())["install"]
    assert (item["metadata"]["name"], item["metadata"]["version"]) == ("cupy-cuda13x", "14.2.0")
    assert (item["variant_of"], item["variant_label"]) == ("cupy", "cuda13")
    assert item["download_info"]["url"].endswith(f"/{BUILD}")
    assert item["download_info"]["archive_info"]["hashes"] == {"sha256": digest}
    for command, into in (("download", "-d"), ("download", "-d"), ("wheel", "-w")):
        done = fresh.pip(command, *options, into, str(folder), "cupy", env=CUDA_13)
        assert done.code == 0, done
        (path,) = folder.iterdir()
        assert (path.name, hashlib.sha256(path.read_bytes()).hexdigest()) == (BUILD, digest)
    done = fresh.pip("lock", *options, "-o", str(lock), "cupy", "app-new", env=CUDA_13)
    if "unknown command" in done.err:
        return
    packages = {item["name"]: item for item in tomli.loads(lock.read_text())["packages"]}
    assert list(packages) == ["app-new", "cupy-cuda13x"], done
    (wheel,) = packages["cupy-cuda13x"]["wheels"]
    assert (wheel["name"], wheel["hashes"]) == (BUILD, {"sha256": digest})
    assert packages["cupy-cuda13x"]["version"] == "14.2.0"
    for environment in (plain.copied(tmp_path / "plain"), fresh):
        done = environment.pip("install", "--no-deps", *options[:2], "-r", str(lock))
        if "unknown option" in done.err or "Invalid requirement" in done.err:
            return  # pips that only write lock files
        assert done.code == 0, done
        assert sorted(owned(environment)) == ["app-new", "cupy-cuda13x"]


@pytest.mark.one
def test_another_index_adds_no_version(patched, serve, catalog):
    """C15: versions are the project's own; a build is of the index that has the version.

    `test_own_versions` has more of such indexes, for all clients.
    """
    internal, public, other = serve(Index()), serve(Index()), serve(Index())
    internal.add_wheel(Wheel("cupy", "3.0"))
    for version in ("3.0", "99.0"):
        public.add_wheel(build("cupy-cuda13x", version))
    # A file for another platform: the version is there all the same.
    other.add_wheel(Wheel("cupy", "3.0", tag="py3-none-win_amd64"))
    for first, second, found in (
        (internal, public, "cupy-3.0"),
        (public, internal, "cupy-3.0"),
        (public, other, ""),
        (other, public, ""),
    ):
        done = dry_run(patched, first, "--extra-index-url", second.url, *catalog, "cupy", **CUDA_13)
        if found:
            installs(done, found)
        else:
            assert "No matching distribution found for cupy" in done.err, done


@pytest.mark.one
def test_a_build_before_a_newer_version(fresh, index, catalog, tmp_path):
    """Where the entry says so: not below what is installed, unless the project is named."""
    index.add_wheel(Wheel("cupy", "14.5.0"))
    installs(dry_run(fresh, index, *catalog, "cupy", **CUDA_13), "cupy-14.5.0")
    text = (tmp_path / "cupy.toml").read_text()
    (tmp_path / "cupy.toml").write_text(text.replace("coherent", "before-version = true\ncoherent"))
    installs(dry_run(fresh, index, *catalog, "cupy", **CUDA_13), "cupy-14.2.0-cuda13")
    assert fresh.pip("install", "-i", index.url, "cupy", "app-any").code == 0
    eager = ("--upgrade", "--upgrade-strategy", "eager")
    done = dry_run(fresh, index, *catalog, *eager, "app-any", **CUDA_13)
    assert "Would install" not in done.out, done
    installs(dry_run(fresh, index, *catalog, *eager, "cupy", **CUDA_13), "cupy-14.2.0-cuda13")


@pytest.mark.one
def test_no_build_fits(patched, index, options):
    """C11: why there is no wheel stands before the error of a build."""
    name = next(name for name in index.files["cupy"] if "14.2.0" in name)
    index.files["cupy"][name] = b"damaged"
    done = patched.pip("install", "--dry-run", *options, "cupy", env=NO_GPU)
    assert done.code != 0, done
    assert "Non-variant file for cupy 14.2.0: no variant fits" in done.out, done


@pytest.mark.everywhere
def test_a_damaged_build(fresh, index, options):
    """The publisher's hash is checked first; a wheel of another project is refused."""
    wanted = ("install", *options, "--no-deps", "cupy==14.2.0")
    index.wrong_hashes.add(BUILD)
    done = fresh.pip(*wanted, env=CUDA_13)
    assert (done.code, "DO NOT MATCH THE HASHES" in done.err) == (1, True), done
    index.wrong_hashes.clear()
    index.metadata_files.pop(BUILD)
    index.files["cupy-cuda13x"][BUILD] = Wheel("other", "14.2.0").build()
    done = fresh.pip(*wanted, env=CUDA_13)
    assert (done.code, BUILD in done.err) == (1, True), done
    assert owned(fresh) == {}
