"""The shim in places of every kind: a user's, a system's, none that can be written."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from support.environments import Environment, Result, clean_environ, find_python
from support.projects import CUDA_12_8, app_index

CHOSEN = "Would install app-1.0-cu128\n"
ROOT = {"PIP_ROOT_USER_ACTION": "ignore"}
"""Tests may run as root, which pip warns of."""


@pytest.fixture
def index(serve):
    return serve(app_index())


def dry_run(environment, index, *options, **env):
    return environment.run(
        *options, "-m", "pip", "install", "--dry-run", "--no-deps", "-i", index.url, "app",
        env={**CUDA_12_8, **env},
    )  # fmt: skip


@pytest.fixture
def installation(environments, available, tmp_path):
    """A Python that is no virtual environment, with a pip in its own site-packages."""
    if sys.platform == "win32":
        pytest.skip("made of links")
    original = Path(find_python(available.python)).resolve()
    library = f"python{available.python}"
    root = tmp_path / "python"
    (root / "bin").mkdir(parents=True)
    shutil.copy(original, root / "bin" / "python")
    site_packages = root / "lib" / library / "site-packages"
    site_packages.mkdir(parents=True)
    for path in (original.parents[1] / "lib" / library).iterdir():
        if path.name not in ("site-packages", "EXTERNALLY-MANAGED"):
            (root / "lib" / library / path.name).symlink_to(path)
    with zipfile.ZipFile(environments.pip_wheel(available.pip)) as archive:
        archive.extractall(site_packages)
    found = Environment(root)
    code = "import sys; print(sys.prefix == sys.base_prefix, *sys.path[-1:])"
    if found.run("-c", code).out != f"True {site_packages}\n":
        pytest.skip(f"{original} does not find its library when it is copied")
    return found


@pytest.mark.one
@pytest.mark.nightly
def test_whole_system(environments, installation, index):
    """Where the user asks for it; a system that its packagers manage refuses, as ever."""
    marker = installation.site_packages.parent / "EXTERNALLY-MANAGED"
    marker.write_text("[externally-managed]\nError=ask your packager\n")
    wheel = str(environments.shim_wheel)
    refused = installation.pip("install", "--no-index", wheel)
    assert refused.code == 1
    assert "ask your packager" in refused.err
    done = installation.pip("install", "--no-index", "--break-system-packages", wheel)
    assert done.code == 0, done
    done = dry_run(installation, index, PIP_BREAK_SYSTEM_PACKAGES="1")
    assert CHOSEN in done.out, done
    # Environments that see the system's packages see the shim; others do not.
    for option, expected in (("--system-site-packages", True), ("--clear", False)):
        made = Environment(installation.path.parent / f"made{option}")
        done = installation.run("-m", "venv", "--without-pip", option, str(made.path))
        assert done.code == 0, done
        code = "import sys; print('pep_variants_shim' in sys.modules)"
        assert made.run("-c", code, "pip").out == f"{expected}\n"
        if expected:
            assert CHOSEN in dry_run(made, index).out
    options = ("-y", "--break-system-packages")
    done = installation.pip("uninstall", *options, "pep-variants-shim", env=ROOT)
    assert (done.code, done.err) == (0, ""), done


@pytest.mark.one
@pytest.mark.nightly
def test_user_site(environments, installation, index, tmp_path):
    env = {"PYTHONUSERBASE": str(tmp_path / "user"), **ROOT}
    done = installation.pip(
        "install", "--no-index", "--user", str(environments.shim_wheel), env=env
    )
    assert done.code == 0, done
    assert not list(installation.site_packages.glob("pep_variants*"))
    assert CHOSEN in dry_run(installation, index, **env).out
    # Who leaves out the user's packages leaves out this one.
    for option in ("-s", "-I"):
        done = installation.run(option, "-m", "pip", "--version", env=env)
        assert (done.code, done.err) == (0, "")
        assert "variants" not in done.out
    done = installation.pip("uninstall", "-y", "pep-variants-shim", env=env)
    assert (done.code, done.err) == (0, ""), done
    assert not list((tmp_path / "user").rglob("pep_variants*"))


@pytest.mark.one
@pytest.mark.nightly
@pytest.mark.parametrize("option", ["--target", "--prefix"])
def test_folders_that_python_does_not_start_from(environments, plain, index, tmp_path, option):
    """There it does nothing, and harms nothing: only site-packages are read for .pth files."""
    folder = tmp_path / "folder"
    done = plain.pip("install", "--no-index", option, str(folder), str(environments.shim_wheel))
    assert done.code == 0, done
    (package,) = folder.rglob("pep_variants_shim/_hook.py")
    env = {"PYTHONPATH": str(package.parents[1])}
    done = plain.pip("--version", env=env)
    assert (done.code, done.err) == (0, "")
    assert "variants" not in done.out
    # With such a folder made a site folder, it works.
    code = (
        "import runpy, site, sys; site.addsitedir(sys.argv.pop(1)); "
        "runpy.run_module('pip', {}, '__main__')"
    )
    done = plain.run(
        "-c", code, str(package.parents[1]), "install", "--dry-run", "--no-deps",
        "-i", index.url, "app", env=CUDA_12_8,
    )  # fmt: skip
    assert CHOSEN in done.out, done


def isolated(command, setup, environment, **env):
    """Run *command* with mounts of its own, which the shell script *setup* makes."""
    if sys.platform != "linux" or not shutil.which("unshare"):
        pytest.skip("needs mounts")
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", f'{setup} || exit 99\nexec "$@"', "sh", *command],
        env=clean_environ({"PIP_NO_CACHE_DIR": "1", **env}), cwd=environment.path,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode == 99 or "unshare failed" in done.stderr:
        pytest.skip(f"may not mount: {done.stderr.strip()}")
    return Result(done.returncode, done.stdout, done.stderr)


@pytest.mark.one
@pytest.mark.nightly
def test_nothing_can_be_written(fresh, index):
    """The shim works where neither site-packages nor the home can be written."""
    setup = f"mount --bind {fresh.path} {fresh.path} && mount -o remount,ro,bind {fresh.path}"
    env = {**CUDA_12_8, "HOME": "/proc/nowhere", "XDG_CACHE_HOME": "/proc/nowhere"}
    pip = (fresh.python, "-m", "pip")
    done = isolated(
        (*pip, "install", "--dry-run", "--no-deps", "-i", index.url, "app"), setup, fresh, **env
    )
    assert CHOSEN in done.out, done
    assert done.code == 0
    done = isolated((*pip, "uninstall", "-y", "pep-variants-shim"), setup, fresh, **env)
    assert done.code != 0  # as pip says it
    assert "Read-only file system" in done.err
    assert CHOSEN in dry_run(fresh, index).out
