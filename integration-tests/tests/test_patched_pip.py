"""The wheels of the shim, the patched pip and pip-variants, and the ways in which they are run."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from email.parser import BytesParser
from pathlib import Path

import pytest

from pep_variants import safe_files
from pep_variants.machines import Detector
from support.environments import PIPS, ROOT, Result, built_wheel, clean_environ
from support.patched_pip import build, local_version, patched_pip, with_patched_pip
from support.pip_commands import chooses, installs
from support.plugins import PLUGIN, acme_index
from support.projects import CUDA_12_8, ON_GPU, app_index
from support.wheels import X86_64, Release, SourceDistribution, Wheel, metadata
from variants_catalog import projects

SBOM = "sboms/pep-variants-shim.cdx.json"
SOURCE = ROOT / "pip-patch" / "src"


def contents(wheel):
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.parametrize(
    "version",
    [*(pytest.param(version, marks=pytest.mark.nightly) for version in PIPS[:-1]), PIPS[-1]],
)
def test_wheel(environments, version):
    """It is the upstream wheel with our code beside pip's, and says so."""
    wheel = patched_pip(environments, version)
    patched = local_version(version)
    assert wheel.name == f"pip-{patched}-py3-none-any.whl"
    files = contents(wheel)
    info = f"pip-{patched}.dist-info"
    upstream = {
        name.replace(f"pip-{version}.dist-info/", f"{info}/"): data
        for name, data in contents(environments.pip_wheel(version)).items()
    }
    assert upstream.keys() <= files.keys()
    assert {name for name in upstream if files[name] != upstream[name]} == {
        "pip/__init__.py",
        *(f"{info}/{name}" for name in ("METADATA", "RECORD", "WHEEL")),
    }
    places = ("pip/_variants/", f"{info}/licenses/src/pip/_variants/", f"{info}/sboms/pep-")
    assert all(name.startswith(places) for name in files.keys() - upstream.keys())
    message, before = (
        BytesParser().parsebytes(each[f"{info}/METADATA"]) for each in (files, upstream)
    )
    assert message["Version"] == patched
    assert message.get_payload() == before.get_payload()
    for name in files:
        if name.startswith("pip/_variants/") and name.endswith(".py"):
            for imported in re.findall(rb"^\s*(?:from|import) (\w+)", files[name], re.MULTILINE):
                assert imported != b"pep_variants_shim", name


def test_same_input_gives_same_bytes(environments, tmp_path):
    again = built_wheel("pip-patch", tmp_path / "shim")
    assert again.read_bytes() == environments.shim_wheel.read_bytes()
    first = patched_pip(environments, PIPS[-1]).read_bytes()
    env = {**os.environ, "TZ": "Asia/Kathmandu", "PYTHONHASHSEED": "7"}
    assert build(environments, PIPS[-1], tmp_path / "again", **env).read_bytes() == first


def test_what_is_bundled_is_listed(environments):
    """PEP 770, PEP 639; the same in the patched pip."""
    bills = []
    for wheel in (environments.shim_wheel, patched_pip(environments, PIPS[-1])):
        files = contents(wheel)
        (bill,) = (name for name in files if name.endswith(f".dist-info/{SBOM}"))
        bills.append(json.loads(files[bill]))
        info = bill.removesuffix(SBOM)
        metadata = BytesParser().parsebytes(files[f"{info}METADATA"])
        (listed,) = (name for name in files if name.endswith("_vendor/vendor.txt")
                     if "variants" in name)  # fmt: skip
        pins = dict(line.split("==") for line in files[listed].decode().splitlines())
        parts = {part["name"]: part for part in bills[-1]["components"]}
        assert {name: parts[name]["version"] for name in pins} == pins
        texts = metadata.get_all("License-File")
        for name in pins:
            (licence,) = parts[name]["licenses"]
            assert licence["expression"] in metadata["License-Expression"]
            assert any(f"licenses/{name}/" in text for text in texts), (name, texts)
        assert all(f"{info}licenses/{text}" in files for text in texts)
        entries = {
            name.rpartition("/")[2]: json.loads(text)
            for name, text in files.items()
            if "/variants_catalog/projects/" in name
        }
        assert entries == {
            f"{path.stem}.json": safe_files.read_toml(path.read_text("utf-8"))
            for path in projects().glob("*.toml")
        }
    assert bills[0] == bills[1]


@pytest.mark.nightly
def test_made_as_people_make_it(environments, tmp_path):
    """From the index, without the options that these tests use to save time."""
    done = subprocess.run(
        [sys.executable, "-m", "patched", PIPS[-1], "--shim", str(environments.shim_wheel),
         "-o", str(tmp_path)],
        cwd=ROOT / "pip-patch", env=clean_environ(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done
    made = Path(done.stdout.strip())
    assert made.read_bytes() == patched_pip(environments, PIPS[-1]).read_bytes()


# The patched pip.


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


@pytest.mark.everywhere
def test_installed(wheel, empty, index, available):
    """It installs itself, and is the pip of the environment then."""
    zipped = str(wheel / "pip")
    chooses(empty, index, zipped)
    done = empty.run(zipped, "install", "--no-index", str(wheel))
    assert (done.code, done.err) == (0, ""), done
    version = local_version(available.pip)
    assert f"Successfully installed pip-{version}\n" in done.out
    assert empty.pip("--version").out.startswith(f"pip {version} from {empty.site_packages}")
    chooses(empty, index)
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


@pytest.mark.one
def test_for_another_environment(baked, wheel, empty, index):
    """``--python`` runs the same pip with an interpreter that knows nothing of it."""
    for start in (("-m", "pip"), (str(wheel / "pip"),)):
        chooses(baked, index, *start, "--python", empty.python)
    done = baked.pip("--python", empty.python, "install", "-i", index.url, "app", env=CUDA_12_8)
    assert "Successfully installed " + ON_GPU in done.out, done
    assert empty.run("-c", "import app; print(app.LABEL)").out == "cu128\n"


@pytest.mark.one
def test_in_a_zip_file(wheel, empty, serve, tmp_path):
    """The CPU is recognized with tables in the wheel; a script there asks plugins."""
    levels = {f"v{n}": {"x86_64": {"level": [f"v{n}"]}} for n in (1, 2, 3, 4)}
    found = metadata({"null": {}, **levels}, namespaces=["x86_64"], providers={"x86_64": X86_64})
    index = serve(acme_index(PLUGIN))
    index.add_release(Release("levels", "1.0", found))
    pip = (str(wheel / "pip"), "install", "--dry-run", "-i")
    supported = Detector().host().support("x86_64").features.get("level", ["null"])
    installs(empty.run(*pip, index.url, "levels"), f"levels-1.0-{supported[0]}")
    allowed = ("--variant-allow-provider", "acme-provider", "app")
    env = {"VARIANTS_CACHE_DIR": str(tmp_path / "cache")}
    installs(empty.run(*pip, index.url, *allowed, env=env), "app-1.0-fast")


@pytest.mark.nightly
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
    chooses(empty, index)


@pytest.mark.everywhere
def test_with_the_shim_beside_it(environments, baked, index, available, tmp_path):
    """Both are one: nothing happens twice, whichever comes or goes."""
    changeable = baked.copied(tmp_path / "environment")
    shim = environments.patched(available.python, available.pip)
    wanted = ("install", "-v", "--dry-run", "-i", index.url, "app")
    one, alone = (each.pip(*wanted, env=CUDA_12_8) for each in (shim, changeable))
    changeable.install(str(environments.shim_wheel))
    both = changeable.pip(*wanted, env=CUDA_12_8)
    assert both == alone
    # The first line says which pip it is.
    assert both.out.partition("\n")[2] == one.out.partition("\n")[2]
    assert both.err == one.err == ""
    version = local_version(available.pip)
    assert re.fullmatch(rf"pip {re.escape(version)} from \S+ \(python \S+\)\n",
                        changeable.pip("--version").out)  # fmt: skip
    assert changeable.pip("uninstall", "-y", "pep-variants-shim").err == ""
    chooses(changeable, index)
    # The other way round: the shim takes over from the pip that had it built in.
    changeable.install(str(environments.shim_wheel))
    done = changeable.pip("install", "--no-index", str(environments.pip_wheel(available.pip)))
    assert (done.code, done.err) == (0, ""), done
    chooses(changeable, index)
    assert "with pep-variants-shim" in changeable.pip("--version").out


# pip-variants: the pip of an environment with the patches, and nothing that runs at start.


def test_files_of_pip_variants(environments):
    """It has the package of the shim, byte for byte, and writes no file that runs at start."""
    ours, shim = contents(environments.command_wheel), contents(environments.shim_wheel)
    names = {name for name in ours if ".dist-info/" not in name}
    assert {name for name in shim if ".dist-info/" not in name} - names == {
        "pep_variants_shim.pth", "pep_variants_shim.start", "pep_variants_shim_start.py"
    }  # fmt: skip
    assert all(ours[name] == shim[name] for name in names)
    (text,) = (data.decode() for name, data in ours.items() if name.endswith("/METADATA"))
    assert "\nName: pip-variants\n" in text
    assert "\nRequires-Dist: " not in text


@pytest.mark.one
def test_pip_variants(environments, available, changeable, serve, tmp_path):
    index = app_index(plain=True)
    source = SourceDistribution("built", "1.0", ("app",))
    index.add("built", source.filename, source.build())
    serve(index)
    # Not shared: the script has the path of its interpreter in it.
    variants = environments.plain(available.python, available.pip).copied(tmp_path / "variants")
    variants.install(str(environments.command_wheel))

    def command(*args):
        program = variants.path / "bin" / "pip-variants"
        env = clean_environ({**CUDA_12_8, "PIP_NO_CACHE_DIR": "1"})
        done = subprocess.run([str(program), *args], capture_output=True, text=True, env=env)
        return Result(done.returncode, done.stdout, done.stderr)

    version = command("--version")
    assert version.out.startswith("pip ")
    assert " with pip-variants " in version.out
    install = ("install", "--dry-run", "-i", index.url)
    done = command(*install, "app")
    installs(done, *ON_GPU.split())
    assert done.err == ""
    # Other processes of pip that it starts have variants, too.
    index.requests.clear()
    assert command(*install, "built").code == 0
    assert "app-1.0-py3-none-any-cu128.whl" in index.fetched
    # pip itself is as it was.
    installs(variants.pip(*install, "app", env=CUDA_12_8), "always-1.0", "app-1.0")
    assert "with pip-variants" not in variants.pip("--version").out
    done = variants.run("-c", "import sys; print('pep_variants_shim' in sys.modules)  # pip")
    assert done.text == "False\n"
    assert command("freeze").out == ""
    # Both distributions have the same files, so removing one would break the other.
    done = command("install", "--no-index", str(environments.shim_wheel))
    assert (done.code, done.err) == (
        1,
        "ERROR: pep-variants-shim and pip-variants have the same files: "
        "pip uninstall pip-variants, then try again\n",
    )
    again = ("install", "--no-index", "--force-reinstall", str(environments.command_wheel))
    assert command(*again).code == 0
    done = changeable.pip(*again)
    assert (done.code, "pip uninstall pep-variants-shim, then try again" in done.err) == (1, True)
    variants.pip("uninstall", "-y", "pip")
    done = variants.run("-m", "pep_variants_shim", "install", "app")
    assert (done.code, done.err) == (
        1, f"error: {variants.path} has no pip: {variants.python} -m ensurepip installs one\n"
    )  # fmt: skip


def test_start_file_is_readable():
    """One plain import, of a module of a page; the hashes are documented."""
    page = (ROOT / "docs" / "explanation" / "security-team.md").read_text()
    for name in ("pep_variants_shim.pth", "pep_variants_shim.start"):
        assert f"{hashlib.sha256((SOURCE / name).read_bytes()).hexdigest()}  {name}\n" in page
    assert (SOURCE / "pep_variants_shim.pth").read_text() == "import pep_variants_shim_start\n"
    assert (SOURCE / "pep_variants_shim.start").read_text() == "pep_variants_shim_start:start\n"
    text = (SOURCE / "pep_variants_shim_start.py").read_text()
    assert len(text.splitlines()) <= 30
    called = {
        node.func.id
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert called == {"start", "str", "watch"}
