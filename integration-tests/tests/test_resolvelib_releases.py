"""The tests of the wrapper with every supported release of resolvelib.

Without ``--full-matrix`` the oldest alone, on a part of the universes. The releases come from the
package index, once, into pytest's cache.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.environments import once, uv_command
from support.isolation import outside

TESTS = Path(__file__).resolve().parents[2] / "resolver-ext" / "tests"


@pytest.mark.parametrize("release", ["1.0.1", "1.1.0", "1.2.0", "1.2.1"])
def test_our_tests_pass_with_it(release, pytestconfig):
    full = pytestconfig.getoption("full_matrix")
    if release != "1.0.1" and not full:
        pytest.skip("only in make test-matrix")

    def install(folder):
        command = [*uv_command(), "pip", "install", "--quiet", "--no-deps", "--python"]
        command += [sys.executable, "--target", str(folder), f"resolvelib=={release}"]
        subprocess.run(command, check=True, env=outside())

    installed = once(pytestconfig.cache.mkdir("resolvelib-releases") / f"{release}-alone", install)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0"]
    command += [TESTS / f"test_{name}.py" for name in ("provider", "universes", "abi")]
    command += ["--resolvelib", release, *(["--every-universe"] if full else [])]
    done = subprocess.run(
        command,
        env=os.environ | {"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 60
