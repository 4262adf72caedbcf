"""Every supported resolvelib release: its own tests with all providers wrapped, and ours.

The releases come from the package index, once, into pytest's cache.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest

from support.isolation import outside

TESTS = Path(__file__).resolve().parents[2] / "resolver-ext" / "tests"
RELEASES = ["1.0.1", "1.1.0", "1.2.0", "1.2.1"]
"""Without ``--full-matrix`` the oldest alone."""


def fetch(command):
    """Run a command that needs the package index; skip if that cannot be had."""
    try:
        subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=180, env=outside()
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        pytest.skip(f"cannot be fetched, no network? {said[-1]}")


@pytest.fixture(scope="module", params=RELEASES)
def release(request):
    if request.param != RELEASES[0] and not request.config.getoption("full_matrix"):
        pytest.skip("only in make test-matrix")
    return request.param


@pytest.fixture(scope="module")
def folder(release, request):
    """A folder with the release installed in `installed` and its source tree in `source`."""
    cache = request.config.cache.mkdir("resolvelib-releases")
    folder = cache / release
    if folder.is_dir():
        return folder
    requirement = f"resolvelib=={release}"
    python = (sys.executable, "-m")
    uv = (shutil.which("uv"),) if shutil.which("uv") else (*python, "uv")
    with tempfile.TemporaryDirectory(dir=cache, ignore_cleanup_errors=True) as name:
        fresh = Path(name) / release
        install = ("pip", "install", "--no-deps", "--python", sys.executable, "--target")
        fetch([*uv, *install, fresh / "installed", requirement])
        download = ("pip", "download", "--no-deps", "--no-binary", ":all:", "--dest")
        fetch([*python, *download, fresh, requirement])
        (archive,) = fresh.glob("*.tar.gz")
        with tarfile.open(archive) as source:
            source.extractall(fresh, filter="data")
        (fresh / f"resolvelib-{release}").rename(fresh / "source")
        try:
            fresh.rename(folder)  # whole or not at all
        except OSError:
            if not folder.is_dir():  # another worker was first
                raise
    return folder


def run_pytest(folder, *arguments, **environ):
    environ |= {
        "PYTHONPATH": os.pathsep.join(map(str, (folder / "installed", TESTS))),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        env=os.environ | environ,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    return done.stdout


def number(pattern, output):
    return int(re.search(pattern, output)[1])


@pytest.mark.parametrize("mode", ["told", "unknowing"])
def test_its_own_tests_pass_with_every_provider_wrapped(folder, mode):
    source = folder / "source"
    output = run_pytest(
        folder,
        *("-p", "wrap_every_provider", "--rootdir", source, source / "tests"),
        WRAP_MODE=mode,
    )
    assert number(r"(\d+) passed", output) >= 10
    assert number(r"(\d+) providers wrapped", output) >= 5


def test_our_tests_pass_with_it(release, folder, pytestconfig):
    """On every universe with ``--full-matrix``, as all tests of the wrapper are not."""
    full = pytestconfig.getoption("full_matrix")
    names = [f"test_{name}.py" for name in ("provider", "universes", "abi")]
    output = run_pytest(
        folder,
        *("--import-mode=importlib", *(TESTS / name for name in names)),
        *("--resolvelib", release, *(["--every-universe"] if full else [])),
    )
    assert number(r"(\d+) passed", output) > 60
