"""Commands in place of what published build documents tell people to do by hand."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from variants_cli import matrices

RUN = "from variants_cli.main import main; main()"
# What the build documents of Flox's PyTorch and torchvision, the post about PyTorch 2.9 for ROCm
# and the PyTorch tutorial of the prototype tell people to look up by hand.
COMMANDS = """
variants matrix torch-2.10.0-cuda13.0.toml --only cuda13_0_sm90_avx512 --format shell
variants matrix torch-2.10.0-cuda13.0.toml --only gpu=sm90
variants matrix torch-2.10.0-cuda13.0.toml --format github
variants matrix torch-2.10.0-cuda13.0.toml --only cuda13_0_sm90_avx512 --format cibuildwheel
variants matrix torch-2.10.0-cuda13.0.toml --format json
variants matrix torch-2.9.0-rocm.toml
variants detect --verbose
AMD_VARIANT_PROVIDER_FORCE_GFX_ARCH=gfx1100 AMD_VARIANT_PROVIDER_FORCE_ROCM_VERSION=6.4.1 variants detect
variants matrix torch-2.10.0-cuda13.0.toml --format metadata -o torch-2.10.0-variants.json
NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION=13.0 NV_VARIANT_PROVIDER_FORCE_SM_ARCH=9.0 variants rank torch-2.10.0-variants.json
""".strip().splitlines()  # noqa: E501 - one command a line


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    words = shlex.split(command.replace("/tmp/", f"{folder.as_posix()}/"))
    environment = dict(os.environ)
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        environment[name] = value
    return subprocess.run(
        [sys.executable, "-c", RUN, *words[1:]],
        cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8",
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped matrices, and the metadata that some commands read."""
    folder = tmp_path_factory.mktemp("matrices")
    for path in Path(matrices.__path__[0]).glob("*.toml"):
        shutil.copy(path, folder)
    for command in COMMANDS:
        if "--format metadata" in command:
            run(command, folder)
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_command_runs_as_it_stands(command: str, folder: Path) -> None:
    result = run(command, folder)
    assert result.returncode == 0, result.stderr
    if " -o " not in command:
        assert result.stdout.strip()
