"""METADATA for locks is read out of large wheels by range requests, as much as uv itself reads."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.catalog_places import add, entry, family, numbered_entry, place_url, variant
from support.index import Index
from support.projects import DRIVER
from support.published_builds import Builds, Field, standing_in
from support.uvs import Machine, project
from support.wheels import Wheel

LINUX, MAC = "py3-none-manylinux_2_17_x86_64", "py3-none-macosx_11_0_arm64"
SIZE = 12 * 2**20
"""Bytes of a wheel, more than a server may send ahead of a client that stops reading."""


def large(wheel: Wheel) -> Wheel:
    """Return *wheel* with a large file in it that is not compressible."""
    data = random.Random(wheel.filename).randbytes(SIZE)
    return Wheel(**{**vars(wheel), "files": {f"{wheel.name}/large.so": data}})


@pytest.fixture(scope="module")
def served() -> Iterator[Field]:
    """An index and PyTorch's places with large wheels, without any metadata files."""
    found = Field(Index(sizes=True), Builds())
    for local in ("cu128", "cpu"):
        add(found.builds, local, *map(large, family("2.9.0", local, LINUX)))
    for tag in (LINUX, MAC):
        for wheel in family("2.9.0", tag=tag):
            found.index.add_wheel(large(wheel))
    for version in ("1.0", "1.1", "2.0"):
        extras = Wheel("many", version, extras=("cuda12", "cuda13"))
        found.index.add_wheel(large(extras) if version != "2.0" else extras)
    found.index.add_wheel(Wheel("cudalib", "128"))
    with standing_in(found) as field:
        yield field


@pytest.fixture
def settings(served: Field, tmp_path: Path) -> dict[str, str]:
    """A machine with a GPU, the index, and entries of torch and what is made for it."""
    folder = tmp_path / "catalog"
    folder.mkdir()
    tables = [
        variant("cuda12.8", f'index = "{place_url(served.builds, "cu128")}"', cuda="12.8"),
        variant("null", f'index = "{place_url(served.builds, "cpu")}"\nlocal = ["cpu", ""]'),
    ]
    others = ("torchvision", "torchaudio")
    for name in ("torch", *others):
        coherent = others if name == "torch" else ["torch"]
        (folder / f"{name}.toml").write_text(entry(name, tables, coherent=coherent))
    numbered = numbered_entry("many", "{{name}}[cuda{}]=={{version}}")
    (folder / "many.toml").write_text(numbered)
    return {
        DRIVER: "12.8",
        "UV_DEFAULT_INDEX": served.index.url,
        "UV_PYTHON": sys.executable,
        "VARIANTS_CATALOG": str(folder),
    }


def serve_ranges(served: Field, *, ranges: bool = True, suffixes: bool = True) -> None:
    for each in (served.index, served.files):
        each.ranges, each.suffixes = ranges, suffixes


@pytest.mark.parametrize(
    ("name", "command", "suffixes"),
    [
        ("torch", "lock", True),
        ("torchvision", "pip compile --universal r.in -o uv.lock", True),
        ("torchvision", "add --no-sync idna", False),
    ],
)
def test_bytes(
    machine: Machine,
    settings: dict[str, str],
    served: Field,
    name: str,
    command: str,
    suffixes: bool,
) -> None:
    """Of each wheel the end is read, from servers too that do not know ``bytes=-N``."""
    served.index.add_wheel(Wheel("idna", "1.0"))
    serve_ranges(served, suffixes=suffixes)
    machine = machine.with_environ(settings)
    project(machine.work, [name])
    (machine.work / "r.in").write_text(name)
    before = served.sent
    done = machine.run(*command.split())
    sent = served.sent - before
    assert done.code == 0, done
    assert "0+cu128" in (machine.work / "uv.lock").read_text(), done
    assert sent < (2**20 if suffixes else SIZE), sent
    assert "downloading all of it" not in done.err


def test_a_server_without_ranges(machine: Machine, settings: dict[str, str], served: Field) -> None:
    """A line says what is waited for."""
    serve_ranges(served, ranges=False)
    machine = machine.with_environ(settings)
    project(machine.work, ["torchvision"])
    done = machine.run("lock")
    assert done.code == 0, done
    (line,) = (line for line in done.err.splitlines() if "downloading all of it" in line)
    assert line.startswith("uv-variants: http://")
    assert line.endswith(".whl: downloading all of it for its metadata: its server has no ranges")


def test_rewritten_wheels(machine: Machine, settings: dict[str, str], served: Field) -> None:
    """Those of the version that is locked are read alone."""
    serve_ranges(served)
    machine = machine.with_environ(settings)
    project(machine.work, ["many"])
    done = machine.run("lock")
    assert done.code == 0, done
    text = (machine.work / "uv.lock").read_text()
    assert "/.variant/cuda12/many-2.0" in text
    assert text.count("hash = ") == text.count(".whl")
    assert not [each for each in served.index.requests if "many-1" in each]
