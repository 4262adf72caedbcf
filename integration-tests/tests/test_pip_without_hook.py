"""pip-variants: the pip of an environment with the patches, and nothing that runs at start."""

from __future__ import annotations

import ast
import hashlib
import subprocess
import zipfile

import pytest

from support.environments import ROOT, Environment, Result, clean_environ
from support.projects import CUDA_12_8, ON_GPU, app_index, gpu_index
from support.wheels import SourceDistribution, Wheel

SOURCE = ROOT / "pip-patch" / "src"
pytestmark = pytest.mark.one


@pytest.fixture
def wheel(environments):
    return environments.command_wheel


@pytest.fixture
def environment(environments, available, wheel, tmp_path):
    # Installed where it stays: the script has the path of its interpreter in it.
    made = environments.plain(available.python, available.pip).copied(tmp_path / "without-hook")
    made.install(str(wheel))
    return made


def command(environment: Environment, *args: str) -> Result:
    program = environment.path / "bin" / "pip-variants"
    env = clean_environ({**CUDA_12_8, "PIP_NO_CACHE_DIR": "1"})
    done = subprocess.run([str(program), *args], capture_output=True, text=True, env=env)
    return Result(done.returncode, done.stdout, done.stderr)


def test_files(environments, wheel):
    """It has the package of the shim, byte for byte, and writes no file that runs at start."""
    with zipfile.ZipFile(wheel) as ours, zipfile.ZipFile(environments.shim_wheel) as shim:
        names = {name for name in ours.namelist() if ".dist-info/" not in name}
        others = {name for name in shim.namelist() if ".dist-info/" not in name}
        assert others - names == {
            "pep_variants_shim.pth", "pep_variants_shim.start", "pep_variants_shim_start.py"
        }  # fmt: skip
        assert names < others
        assert all(ours.read(name) == shim.read(name) for name in names)
        (record,) = (name for name in ours.namelist() if name.endswith("/RECORD"))
        assert "pip_variants-" in record
        text = ours.read(record.replace("RECORD", "METADATA")).decode()
    assert "\nName: pip-variants\n" in text
    assert "\nRequires-Dist: " not in text


def test_both_ways_to_start_it(environment, serve):
    index = app_index()
    index.add_wheel(Wheel("app", "1.0", requires=("always",)))
    serve(index)
    version = command(environment, "--version")
    assert version.out.startswith("pip ")
    assert " with pip-variants " in version.out
    install = ("install", "--dry-run", "-i", index.url, "app")
    for done in (
        command(environment, *install),
        environment.run("-m", "pep_variants_shim", *install, env=CUDA_12_8),
    ):
        assert done.out.endswith(f"Would install {ON_GPU}\n"), done
        assert (done.code, done.err) == (0, "")
    # pip itself is as it was.
    assert environment.pip(*install, env=CUDA_12_8).out.endswith("always-1.0 app-1.0\n")
    assert "variants" not in environment.pip("--version").out
    done = environment.run("-c", "import sys; print('pep_variants_shim' in sys.modules)  # pip")
    assert done.text == "False\n"
    assert "--variant-platform" in command(environment, "install", "--help").out
    assert command(environment, "freeze").out == ""


def test_builds(environment, serve):
    """Other processes of pip that it starts have variants, too."""
    index = gpu_index()
    index.add_wheel(Wheel("gpu", "2.0"))
    source = SourceDistribution("built", "1.0", ("gpu",))
    index.add("built", source.filename, source.build())
    serve(index)
    done = command(environment, "install", "--dry-run", "-i", index.url, "built")
    assert done.code == 0, done
    assert "gpu-2.0-py3-none-any-cu128.whl" in index.fetched


def test_not_beside_the_shim(environments, environment, fresh, wheel):
    """Both have the same files, so removing one would break the other."""
    shim = environments.shim_wheel
    done = command(environment, "install", "--no-index", str(shim))
    assert (done.code, done.err) == (
        1,
        "ERROR: pep-variants-shim and pip-variants have the same files: "
        "pip uninstall pip-variants, then try again\n",
    )
    done = fresh.pip("install", "--no-index", str(wheel))
    assert done.code == 1, done
    assert "pip uninstall pep-variants-shim, then try again" in done.err
    assert command(environment, "install", "--no-index", "--force-reinstall", str(wheel)).code == 0


def test_environment_without_pip(environments, available, wheel, tmp_path):
    made = environments.plain(available.python, None).copied(tmp_path / "without-hook")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(made.site_packages)
    done = made.run("-m", "pep_variants_shim", "install", "app")
    assert done.code == 1
    assert done.err == f"error: {made.path} has no pip: {made.python} -m ensurepip installs one\n"


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
