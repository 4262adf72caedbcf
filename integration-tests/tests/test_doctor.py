"""``variants doctor`` about real pips, and what a real pip installed."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.doctor_report import check_report
from support.environments import Environment, clean_environ
from support.index import Index
from support.projects import CUDA_12_8, DRIVER, gpu_index

pytestmark = pytest.mark.one


def doctor(environment: Environment, *options: str, **environ: str) -> dict[str, Any]:
    """Return what the command finds with the pip of *environment* on PATH."""
    folder = environment.path / ("Scripts" if os.name == "nt" else "bin")
    command = [str(Path(sys.executable).with_name("variants")), "doctor", "--json", "--no-cache"]
    done = subprocess.run(
        [*command, "--python", str(environment.path), *options],
        env=clean_environ({"PATH": str(folder), **environ}),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    tree: dict[str, Any] = json.loads(done.stdout)
    check_report(tree)
    assert done.returncode == (0 if tree["well"] else 1)
    return tree


def codes(tree: dict[str, Any]) -> set[str]:
    """Return the causes that pip is to blame for."""
    found = {problem["code"] for problem in tree["problems"]}
    return found & {"plain-pip", "shim-off", "old-pip", "broken-pip", "pip-configuration"}


def test_a_pip_with_the_shim(fresh: Environment, tmp_path: Path) -> None:
    tree = doctor(fresh, "--offline")
    assert (codes(tree), [pip["patched"] for pip in tree["installers"]["pip"]]) == (set(), [True])
    tree = doctor(fresh, "--offline", PEP_VARIANTS_SHIM="0")
    assert codes(tree) == {"shim-off"}
    file = tmp_path / "pip.conf"
    file.write_text("[global]\nindex-url = https://example.org/simple\n")
    tree = doctor(fresh, "--offline", PIP_CONFIG_FILE=str(file))
    assert codes(tree) == {"pip-configuration"}
    assert {"url": "https://example.org/simple", "file": str(file)} in (
        tree["installers"]["pip"][0]["indexes"]
    )


def test_a_pip_without_the_shim(plain: Environment) -> None:
    tree = doctor(plain, "--offline")
    (problem,) = (problem for problem in tree["problems"] if problem["code"] == "plain-pip")
    assert "without pep-variants-shim" in problem["text"]
    assert problem["command"].endswith("pip install --upgrade pip pep-variants-shim")


def test_the_command_that_it_names(fresh: Environment, serve: Callable[[Index], Index]) -> None:
    """A newer driver: the command installs what fits, after which nothing is wrong with it."""
    index = serve(gpu_index())
    assert fresh.pip("install", "-i", index.url, "gpu", env={DRIVER: "12.6"}).code == 0
    tree = doctor(fresh, "-i", index.url, **CUDA_12_8)
    (problem,) = (problem for problem in tree["problems"] if problem["code"] == "better-variant")
    words = shlex.split(problem["command"])
    assert words[:3] == ["pip", "--python", str(fresh.path)]
    done = fresh.pip(*words[3:], env=CUDA_12_8)
    assert done.code == 0, done
    tree = doctor(fresh, "-i", index.url, **CUDA_12_8)
    assert [state["installed"] for state in tree["packages"]] == ["cu128"]
    assert "better-variant" not in {problem["code"] for problem in tree["problems"]}
