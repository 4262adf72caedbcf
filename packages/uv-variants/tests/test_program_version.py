"""The version of uv, found out once for each program."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from uv_variants._uv_version import release_of

posix = pytest.mark.skipif(sys.platform == "win32", reason="runs a shell script")


def script(path: Path, version: str) -> str:
    path.write_text(f"#!/bin/sh\necho 'uv {version} (abc 2025-01-01)'\n")
    path.chmod(0o755)
    return str(path)


@posix
def test_scripts_are_always_asked(tmp_path: Path) -> None:
    uv, folder = tmp_path / "uv", tmp_path / "versions"
    assert release_of(script(uv, "0.5.31"), {}, folder) == (0, 5, 31)
    assert release_of(script(uv, "0.13.9rc1"), {}, folder) == (0, 13, 9)
    assert not folder.exists()


def test_what_is_no_uv_has_no_release(tmp_path: Path) -> None:
    assert release_of(str(tmp_path / "missing"), {}, tmp_path) == ()
    assert release_of(sys.executable, {}, tmp_path) == ()
