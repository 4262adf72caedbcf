"""Commands that see file systems of their own, such as one that is full."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping

import pytest

from .environments import Environment, Result, clean_environ


def mounted(environment: Environment, setup: str, *args: str, env: Mapping[str, str]) -> Result:
    """Run pip with mounts of its own, which the shell script *setup* makes."""
    if sys.platform != "linux" or not shutil.which("unshare"):
        pytest.skip("needs mounts")
    command = [environment.python, "-m", "pip", *args]
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", f'{setup} || exit 99\nexec "$@"', "sh", *command],
        env=clean_environ(env), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode == 99 or "unshare failed" in done.stderr:
        pytest.skip(f"may not mount: {done.stderr.strip()}")
    return Result(done.returncode, done.stdout, done.stderr)
