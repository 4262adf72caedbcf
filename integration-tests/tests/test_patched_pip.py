"""The patched pip: its wheel, and the many ways in which a pip is run and put somewhere."""

from __future__ import annotations

import ast
import base64
import csv
import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from email.parser import BytesParser
from pathlib import Path

import pytest

from support.environments import PIPS, ROOT, clean_environ
from support.index import index_of
from support.patched_pip import build, local_version, patched_pip, with_patched_pip
from support.projects import CUDA_12_8, ON_GPU, app_index
from support.wheels import X86_64, Release, Wheel, metadata

UPSTREAM = ROOT / "pip-patch" / "patched" / "upstream.py"


def assigned(path, name):
    """Return the literal that is assigned to *name* in the file at *path*."""
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == name:
            return ast.literal_eval(node.value)
    raise LookupError(name)


VERSIONS = tuple(assigned(UPSTREAM, "SHA256"))


def contents(wheel):
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def test_versions_are_those_of_the_shim():
    assert set(VERSIONS) == set(PIPS)


@pytest.mark.parametrize(
    "version",
    [
        VERSIONS[0],
        *(pytest.param(version, marks=pytest.mark.nightly) for version in VERSIONS[1:-1]),
        VERSIONS[-1],
    ],
)
def test_wheel(environments, version):
    """It is the upstream wheel with our code beside pip's, and says so."""
    wheel = patched_pip(environments, version)
    patched = local_version(version)
    assert wheel.name == f"pip-{patched}-py3-none-any.whl"
    files = contents(wheel)
    info = f"pip-{patched}.dist-info"
    assert list(files)[-1] == f"{info}/RECORD"

    rows = list(csv.reader(files[f"{info}/RECORD"].decode().splitlines()))
    assert [row[0] for row in rows] == [*sorted(files.keys() - {f"{info}/RECORD"}), rows[-1][0]]
    assert rows[-1] == [f"{info}/RECORD", "", ""]
    for name, digest, size in rows[:-1]:
        sha256 = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=")
        assert (digest, size) == (f"sha256={sha256.decode()}", str(len(files[name])))

    upstream = {
        name.replace(f"pip-{version}.dist-info/", f"{info}/"): data
        for name, data in contents(environments.pip_wheel(version)).items()
    }
    ours = {name for name in files if files[name] != upstream.get(name)}
    assert upstream.keys() <= files.keys()
    assert {name for name in ours if name in upstream} == {
        "pip/__init__.py",
        *(f"{info}/{name}" for name in ("METADATA", "RECORD", "WHEEL")),
    }
    places = ("pip/_variants/", f"{info}/licenses/src/pip/_variants/", f"{info}/sboms/pep-")
    assert all(name.startswith(places) for name in ours - upstream.keys())

    message = BytesParser().parsebytes(files[f"{info}/METADATA"])
    before = BytesParser().parsebytes(upstream[f"{info}/METADATA"])
    assert message["Version"] == patched
    assert message["Name"] == "pip"
    assert message.get_payload() == before.get_payload()
    assert "Apache-2.0" in (message["License-Expression"] or message["License"])
    added = set(message.get_all("License-File")) - set(before.get_all("License-File"))
    assert {f"{info}/licenses/{name}" for name in added} == {
        name for name in files if name.startswith(places[1])
    }
    for library in ("archspec", "filelock", "packaging", "platformdirs", "tomli"):
        assert any(f"/_vendor/licenses/{library}/" in name for name in added), library
    assert "src/pip/_variants/LICENSE" in added

    for name in files:
        if name.startswith("pip/_variants/") and name.endswith(".py"):
            for imported in re.findall(rb"^\s*(?:from|import) (\w+)", files[name], re.MULTILINE):
                assert imported != b"pep_variants_shim", name


def test_same_input_gives_same_bytes(environments, tmp_path):
    version = VERSIONS[-1]
    first = patched_pip(environments, version).read_bytes()
    env = {**os.environ, "TZ": "Asia/Kathmandu", "PYTHONHASHSEED": "7"}
    again = build(environments, version, tmp_path / "again", **env)
    assert again.read_bytes() == first
    dated = build(environments, version, tmp_path / "dated", SOURCE_DATE_EPOCH="1700000000", **env)
    with zipfile.ZipFile(dated) as archive:
        assert {info.date_time for info in archive.infolist()} == {(2023, 11, 14, 22, 13, 20)}
    assert contents(dated) == contents(again)


def test_other_bytes_are_refused(environments, tmp_path):
    """What is not pip as its developers released it is not built upon."""
    version = VERSIONS[-1]
    wheel = tmp_path / environments.pip_wheel(version).name
    wheel.write_bytes(environments.pip_wheel(version).read_bytes() + b"\0")
    command = [sys.executable, "-m", "patched", "--shim", str(environments.shim_wheel)]
    for arguments, message in (
        (
            (version, "--upstream", str(wheel)),
            f"{wheel} is not the released wheel of pip {version}",
        ),
        (
            (VERSIONS[0], "--upstream", str(environments.pip_wheel(version))),
            f"is not the released wheel of pip {VERSIONS[0]}: its sha256 is ",
        ),
        (("1.0",), "invalid choice: '1.0'"),
    ):
        done = subprocess.run(
            [*command, "--out-dir", str(tmp_path / "out"), *arguments],
            cwd=ROOT / "pip-patch", capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode != 0
        assert message in done.stderr, done
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.fixture
def wheel(environments, available):
    return patched_pip(environments, available.pip)


@pytest.fixture
def empty(environments, available, tmp_path):
    """An environment without pip."""
    return environments.plain(available.python, None).copied(tmp_path / "empty")


@pytest.fixture
def index(serve):
    return serve(app_index())


def asks(environment, index, *start):
    """Return what the pip that *start* starts, in *environment*, would install of the index."""
    done = environment.run(
        *(start or ("-m", "pip")), "install", "--dry-run", "-i", index.url, "app", env=CUDA_12_8
    )
    assert done.code == 0, done
    assert done.err == "", done
    return done.out.splitlines()[-1]


@pytest.mark.everywhere
def test_installed(wheel, empty, index, available):
    """It installs itself, and is the pip of the environment then."""
    zipped = str(wheel / "pip")
    assert asks(empty, index, zipped) == f"Would install {ON_GPU}"
    done = empty.run(zipped, "install", "--no-index", str(wheel))
    assert (done.code, done.err) == (0, ""), done
    version = local_version(available.pip)
    assert f"Successfully installed pip-{version}\n" in done.out
    assert empty.pip("--version").out.startswith(f"pip {version} from {empty.site_packages}")
    assert asks(empty, index) == f"Would install {ON_GPU}"
    assert empty.pip("list", "--format", "freeze").out == f"pip=={version}\n"
    assert empty.pip("check").code == 0
    script = Path(empty.python).with_name("pip")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=False)
    assert done.stdout.startswith(f"pip {version} from ")
    done = empty.pip("uninstall", "-y", "pip")
    assert done.code == 0, done
    assert not (empty.site_packages / "pip").exists()


@pytest.fixture
def baked(environments, available):
    """An environment with the patched pip, shared by tests: do not change it."""
    return with_patched_pip(environments, available.python, available.pip)


@pytest.fixture
def fresh(baked, tmp_path):
    """An environment with the patched pip, to do with as one likes."""
    return baked.copied(tmp_path / "environment")


@pytest.mark.one
def test_for_another_environment(baked, wheel, empty, index):
    """``--python`` runs the same pip with an interpreter that knows nothing of it."""
    for start in (("-m", "pip"), (str(wheel / "pip"),)):
        assert asks(baked, index, *start, "--python", empty.python) == f"Would install {ON_GPU}"
    done = baked.pip("--python", empty.python, "install", "-i", index.url, "app", env=CUDA_12_8)
    assert "Successfully installed " + ON_GPU in done.out, done
    assert empty.run("-c", "import app; print(app.LABEL)").out == "cu128\n"


@pytest.mark.one
def test_data_in_a_zip_file(wheel, empty, baked, serve):
    """The CPU is recognized with tables that are in the wheel."""
    levels = {f"v{n}": {"x86_64": {"level": [f"v{n}"]}} for n in (1, 2, 3, 4)}
    found = metadata({"null": {}, **levels}, namespaces=["x86_64"], providers={"x86_64": X86_64})
    index = serve(index_of([Release("app", "1.0", found)]))
    seen = [
        environment.run(*start, "install", "--dry-run", "-i", index.url, "app")
        for environment, *start in ((empty, str(wheel / "pip")), (baked, "-m", "pip"))
    ]
    assert seen[0].out.splitlines()[-1] == seen[1].out.splitlines()[-1]
    assert [done.err for done in seen] == ["", ""]


@pytest.mark.one
def test_plugin_from_a_zip_file(wheel, empty, serve, tmp_path):
    """Asking a plugin takes a script that is in the wheel."""
    info = {"requires": ["acme-provider"], "plugin-api": "acme_provider:Plugin"}
    found = metadata(
        {"null": {}, "fast": {"acme": {"speed": ["fast"]}}},
        namespaces=["acme"], providers={"acme": info},
    )  # fmt: skip
    index = index_of([Release("app", "1.0", found)])
    plugin = (
        "from types import SimpleNamespace as N\n"
        "class Plugin:\n"
        "    namespace = 'acme'\n"
        "    def get_supported_configs(self):\n"
        "        return [N(name='speed', values=['fast'], multi_value=False)]\n"
    )
    index.add_wheel(Wheel("acme-provider", "1.0", files={"acme_provider/__init__.py": plugin}))
    serve(index)
    done = empty.run(
        str(wheel / "pip"), "install", "--dry-run", "-i", index.url,
        "--variant-allow-provider", "acme-provider", "app",
        env={"VARIANTS_CACHE_DIR": str(tmp_path / "cache")},
    )  # fmt: skip
    assert "Would install app-1.0-fast\n" in done.out, done


@pytest.mark.everywhere
def test_with_ensurepip(wheel, empty, index, available, tmp_path):
    """A distribution of Python that ships it brings it into every virtual environment."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    shutil.copy(wheel, folder)
    # On Python 3.10 and 3.11 setuptools is bootstrapped, too.
    setuptools = Wheel("setuptools", "99.0")
    (folder / setuptools.filename).write_bytes(setuptools.build())
    # Where its wheels are is decided when Python is built.
    code = (
        "import sys, sysconfig; sysconfig.get_config_vars()['WHEEL_PKG_DIR'] = sys.argv[1]\n"
        "import ensurepip; ensurepip.bootstrap(default_pip=True); print(ensurepip.version())"
    )
    done = empty.run("-c", code, str(folder))
    assert done.code == 0, done
    assert done.out.endswith(f"{local_version(available.pip)}\n")
    assert asks(empty, index) == f"Would install {ON_GPU}"


@pytest.mark.everywhere
def test_with_the_shim_beside_it(environments, fresh, index, available):
    """Both are one: nothing happens twice, whichever comes or goes."""
    plain = environments.patched(available.python, available.pip)
    one = plain.pip("install", "-v", "--dry-run", "-i", index.url, "app", env=CUDA_12_8)
    alone = fresh.pip("install", "-v", "--dry-run", "-i", index.url, "app", env=CUDA_12_8)
    fresh.install(str(environments.shim_wheel))
    both = fresh.pip("install", "-v", "--dry-run", "-i", index.url, "app", env=CUDA_12_8)
    assert both == alone
    # The first line says which pip it is.
    assert both.out.partition("\n")[2] == one.out.partition("\n")[2]
    assert both.err == one.err == ""
    version = local_version(available.pip)
    assert re.fullmatch(rf"pip {re.escape(version)} from \S+ \(python \S+\)\n",
                        fresh.pip("--version").out)  # fmt: skip
    assert fresh.pip("uninstall", "-y", "pep-variants-shim").err == ""
    assert asks(fresh, index) == f"Would install {ON_GPU}"
    # The other way round: the shim takes over from the pip that had it built in.
    fresh.install(str(environments.shim_wheel))
    done = fresh.pip("install", "--no-index", str(environments.pip_wheel(available.pip)))
    assert (done.code, done.err) == (0, ""), done
    assert asks(fresh, index) == f"Would install {ON_GPU}"
    assert "with pep-variants-shim" in fresh.pip("--version").out


def test_made_as_people_make_it(environments, tmp_path):
    """From the index, without the options that these tests use to save time."""
    wheel = environments.shim_wheel
    done = subprocess.run(
        [sys.executable, "-m", "patched", "26.3", "--shim", str(wheel), "-o", str(tmp_path)],
        cwd=ROOT / "pip-patch", env=clean_environ(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done
    made = Path(done.stdout.strip())
    assert made.read_bytes() == patched_pip(environments, "26.3").read_bytes()
