"""The page about build matrices: its console blocks are run, in order, and compared."""

from __future__ import annotations

import platform
import shutil
import sysconfig
from pathlib import Path

import pytest

from support.documents import Page, Reader
from support.environments import ROOT
from support.isolation import registries

GUIDE = Page(ROOT / "docs/how-to/matrix.md")
CPU = Path("/proc/cpuinfo")

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        platform.system() != "Linux" or platform.machine() != "x86_64",
        reason="the builds are for Linux on x86-64",
    ),
    pytest.mark.skipif(
        shutil.which("gcc") is None or not Path(sysconfig.get_path("include"), "Python.h").exists(),
        reason="there is no C compiler, or Python's headers are not here",
    ),
    pytest.mark.skipif(
        "-O" not in (sysconfig.get_config_var("CFLAGS") or ""),
        reason="this Python was not compiled with optimization",
    ),
    pytest.mark.skipif(
        not CPU.exists() or " avx2 " not in CPU.read_text(), reason="this CPU has no AVX2"
    ),
]


def test_guide(reader: Reader) -> None:
    reader.use_variants()
    reader.use_uv()
    reader.tool("python", f'exec {reader.environments.programs().python} "$@"')
    reader.environ |= {**registries(), "CC": "gcc"}
    reader.follow(GUIDE)
