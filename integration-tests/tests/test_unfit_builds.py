"""Builds with a publisher's own name that do not run here, as each client says it.

What runs where is tested beside `variants_catalog._unfit_builds`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.environments import Result, clean_environ
from support.index import Index
from support.projects import DRIVER, GPU
from support.uvs import Machine, project
from support.wheels import Wheel

OLDER = {DRIVER: "12.8", GPU: "9.0"}
NEWER = {DRIVER: "13.0", GPU: "9.0"}
LINE = (
    "onnxruntime-gpu 1.31.1 does not run on the NVIDIA GPU that is here (needs CUDA driver 13.0 or "
    "newer, this one supports up to 12.8); onnxruntime-gpu<1.27,>=1.21 does"
)
CATALOGS = ("none", "default")


@pytest.fixture
def index(serve):
    found = Index()
    for version in ("1.26.0", "1.31.1"):
        found.add_wheel(Wheel("onnxruntime-gpu", version))
    found.add_wheel(Wheel("fastembed", "1.0", requires=("onnxruntime-gpu",)))
    return serve(found)


def said(done: Result) -> int:
    assert done.code == 0, done
    return done.text.count(LINE)


@pytest.mark.everywhere
def test_pip(fresh, index):
    def pip(*words: str, **machine: str) -> Result:
        return fresh.pip("install", "-i", index.url, *words, env=machine)

    for catalog in CATALOGS:
        options = ("--dry-run", "--variant-catalog", catalog)
        assert said(pip(*options, "fastembed", **OLDER)) == 1
        assert said(pip(*options, "fastembed", "onnxruntime-gpu<1.27", **OLDER)) == 0
        assert said(pip(*options, "onnxruntime-gpu", **NEWER)) == 0
    assert said(pip("--quiet", "onnxruntime-gpu", **OLDER)) == 0
    assert said(pip("onnxruntime-gpu", **OLDER)) == 1  # what is installed already, too


def test_uv(machine: Machine, index):
    def uv(*words: str, cwd: Path | None = None, **facts: str) -> Result:
        return machine.with_environ({"UV_DEFAULT_INDEX": index.url, **facts}).run(*words, cwd=cwd)

    machine.create_environment(sys.executable)
    for catalog in CATALOGS:
        facts = {**OLDER, "VARIANTS_CATALOG": catalog}
        assert said(uv("pip", "install", "--dry-run", "onnxruntime-gpu", **facts)) == 1
        folder = project(machine.work / catalog, ["fastembed"])
        assert said(uv("lock", cwd=folder, **facts)) == 1
        assert said(uv("-q", "lock", "--upgrade", cwd=folder, **facts)) == 0
    assert said(uv("pip", "install", "onnxruntime-gpu", **NEWER)) == 0


def test_resolve(environments, index, tmp_path):
    programs = Path(environments.programs().python).parent

    def resolve(*words: str) -> Result:
        command = [str(programs / "variants"), "resolve", "-i", index.url, *words]
        environ = clean_environ({"HOME": str(tmp_path)})
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
        return Result(done.returncode, done.stdout, done.stderr)

    for catalog in CATALOGS:
        options = ("--variant-catalog", catalog, "fastembed", "onnxruntime-gpu")
        assert said(resolve("--platform", "h100-zen4", *options)) == 1
        assert said(resolve("--platform", "h100-sapphirerapids", *options)) == 0
        assert said(resolve("--platform", "cpu-zen4", *options)) == 0
        # Its wheels for aarch64 have no code before compute capability 8.9.
        for cpu, lines in (("aarch64", 1), ("x86_64", 0)):
            target = ("--platform", "cuda=13.0,sm=8.0", "--python-platform", f"linux-{cpu}")
            text = resolve(*target, *options).text
            assert text.count("1.31.1 does not run on the NVIDIA GPU that is here") == lines
