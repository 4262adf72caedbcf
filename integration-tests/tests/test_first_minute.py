"""The first minute: what is said where the catalogue is off, and what turns it on.

What is missed on which machine is tested beside `variants_catalog.missed_builds`.
"""

from __future__ import annotations

import re
import shlex

import pytest

from support.environments import Result
from support.projects import DRIVER, GPU
from support.published_builds import published, standing_in
from support.wheels import Wheel

OLDER = {DRIVER: "12.8", GPU: "9.0"}
NEWER = {DRIVER: "13.0", GPU: "9.0"}
NONE = {DRIVER: "11.0"}
VERSIONS = {"torch": ("2.14.0", "2.15.0"), "jax": ("0.10.2",), "onnxruntime": ("1.26.0", "1.32.0")}


@pytest.fixture
def field():
    """PyPI, and the places of the publishers."""
    with standing_in(published(**VERSIONS)) as found:
        found.index.add_wheel(Wheel("app", "1.0", requires=("torch",)))
        yield found


@pytest.fixture
def environ(field, tmp_path):
    """The variables of a person who has just installed the shim."""
    return {
        "PIP_INDEX_URL": field.index.url,
        "PIP_CONFIG_FILE": str(tmp_path / "pip.conf"),
        "VARIANTS_CACHE_DIR": str(tmp_path / "cache"),
        "VARIANTS_CATALOG_MIRROR": " ".join(field.mirrors),
    }


def lines(done: Result) -> list[str]:
    """Return the lines about the catalogue."""
    assert done.code == 0, done
    return [line for line in done.text.splitlines() if "takes a build that does" in line]


@pytest.mark.everywhere
def test_pip_says_what_is_missed(fresh, field, environ):
    """Once a day, without a request of its own; what it says to type works."""

    def pip(*words: str, **machine: str) -> Result:
        return fresh.pip(*words, env={**environ, **machine})

    for machine in (NEWER, NONE):
        assert lines(pip("install", "--dry-run", "torch", **machine)) == []
    install = ("install", "--dry-run")
    chosen = (
        ("--quiet", "torch"), ("--no-variants", "torch"), ("torch>=2.15",), ("torch===2.15.0",),
        ("--no-index", "--find-links", field.index.url + "torch/", "torch"),
    )  # fmt: skip
    for words in chosen:
        assert lines(pip(*install, *words, **OLDER)) == [], words
    field.index.requests.clear()
    (line,) = lines(pip(*install, "app", **OLDER))
    assert {each.split("/")[2] for each in field.index.requests} == {"app", "torch"}
    expected = (
        "torch 2.15.0 does not run on the NVIDIA GPU that is here (needs CUDA driver 13.0 or "
        "newer, this one supports up to 12.8): "
    )
    assert line.startswith(expected)
    assert line.endswith(", takes a build that does (cuda12.6 of another release)")
    assert lines(pip(*install, "torch", **OLDER)) == []  # it was said
    (idle,) = lines(pip(*install, "torch", "jax", **OLDER))
    assert idle.startswith("jax 0.10.2 does not use the NVIDIA GPU that is here: ")
    assert " install --variant-switch jax torch, " in idle
    # Other commands have no option to switch.
    files = str(fresh.path / "files")
    (line,) = lines(pip("download", "--dest", files, "torch==2.14.0", **OLDER))
    assert line.endswith("default, then the same command, takes a build that does (cuda12.6)")
    # What is installed already counts as well.
    assert lines(pip("install", "onnxruntime==1.26.0", **NONE)) == []
    (line,) = lines(pip("install", "onnxruntime", **OLDER))
    assert line.endswith("(cuda12)")
    typed = re.search(": .* -m [a-z_]+ (config .*), then .* -m [a-z_]+ (.*), takes", line)
    assert typed is not None, line
    for command in typed.groups():
        assert pip(*shlex.split(command), **OLDER).code == 0
    done = pip("list", **OLDER)
    assert re.search("^onnxruntime +1.26.0 +cuda12$", done.out, re.MULTILINE), done
    assert lines(pip("install", "torch", **OLDER)) == []
