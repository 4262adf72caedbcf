"""The chain of decisions that ``-v`` logs, of each command, as pip's finder logs its own."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from base64 import b64encode
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.environments import Environment, clean_environ
from support.index import Index
from support.pip_commands import dry_run
from support.projects import CUDA_12_8, cuda
from support.uvs import Machine
from support.wheels import Release, Wheel
from variants_proxy.urls import Machine as Described
from variants_proxy.urls import encode

SKIPPED = "Skipping variant cu130 of torch: needs CUDA driver 13.0 or newer, this one supports up"
CHOSEN = "chosen: torch-2.9.0-py3-none-any-cu128.whl"


@pytest.fixture
def index(serve: Callable[[Index], Index]) -> Index:
    """An index whose newest release of torch has no build for the driver."""
    index = Index()
    index.add_release(Release("torch", "2.9.0", cuda("12.6", "12.8", "13.0")))
    index.add_wheel(Wheel("torch", "2.8.0"))
    return serve(index)


def check(log: str, *more: str) -> None:
    """Check that *log* has the chain of decisions, and *more* in its order."""
    place = 0
    for text in more:
        assert text in log[place:], f"{text!r} is not in\n{log[place:]}"
        place = log.index(text, place)
    assert SKIPPED in log
    assert "secret" not in log


def test_pip(patched: Environment, index: Index) -> None:
    url = index.url.replace("://", "://me:secret@")
    chain = ("Reading variant metadata from", "Provider of nvidia: ", SKIPPED, CHOSEN)
    quiet = dry_run(patched, index, "torch", "-v")
    assert SKIPPED not in quiet.text
    done = dry_run(patched, index, "-i", url, "torch", "-vv")
    check(done.out, *chain)


def test_uv(machine: Machine, index: Index) -> None:
    machine.create_environment(sys.executable)
    url = index.url.replace("://", "://me:secret@")
    gpu = machine.with_environ({**CUDA_12_8, "UV_DEFAULT_INDEX": url})
    command = ("pip", "install", "--python", ".venv", "--dry-run", "torch")
    assert "DEBUG" not in gpu.run(*command).err
    done = gpu.run("-v", *command)
    assert done.code == 0, done
    log = "".join(line for line in done.err.splitlines(True) if line.startswith("DEBUG uv-var"))
    check(
        log,
        "Answering for the index ",
        "Running uv with: -v pip install",
        "Answering for torch on index ",
        "Page of project torch on index ",
        SKIPPED,
        CHOSEN,
        "Offering of torch 2.9.0: ",
    )


def test_variants(index: Index, tmp_path: Path) -> None:
    url = index.url.replace("://", "://me:secret@")
    program = [sys.executable, "-c", "from variants_cli.main import main; main()"]
    environ = clean_environ({"VARIANTS_CACHE_DIR": str(tmp_path / "cache"), **CUDA_12_8})

    def log(*options: str) -> str:
        command = [*program, *options, "resolve", "torch", "--index-url", url]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
        return done.stderr

    assert "DEBUG" not in log()
    check(
        log("-v"),
        "DEBUG variants: Found 6 files of 2 versions of project torch on ",
        "Checked 4 files for project torch against 0 hashes: 4 can be used",
        "Reading variant metadata from",
        "Provider of nvidia: ",
        SKIPPED,
        "Variants of torch that fit, from ",
        CHOSEN,
        "Pinning torch",
    )


def test_proxy(index: Index, tmp_path: Path) -> None:
    program = [sys.executable, "-c", "from variants_proxy._commands.cli import main; main()"]
    url = index.url.replace("://", "://me:secret@")
    command = [*program, "-v", "serve", "--open", "--port", "0", "--index", f"main={url}"]
    environ = clean_environ({"VARIANTS_CACHE_DIR": str(tmp_path / "cache")})
    with ExitStack() as stack:
        server = subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True)
        stack.callback(server.wait)
        stack.callback(server.terminate)
        assert server.stderr is not None
        lines = iter(server.stderr)
        base = next(line for line in lines if line.startswith("Serving")).split()[-1]
        key = encode(Described())
        request = urllib.request.Request(f"{base}/simple/torch/")
        user = b64encode(f"{key}:v".encode()).decode()
        request.add_header("Authorization", f"Basic {user}")
        urllib.request.urlopen(request).close()
        server.terminate()
        log = "".join(lines)
    assert log.count(SKIPPED.partition(":")[0]) == 1, "each line once"
    assert "Page of project torch on index main: asked for" in log
    assert "Offering of torch 2.9.0: torch-2.9.0-py3-none-any-null.whl" in log
    assert "secret" not in log
