"""The variables of ``--env-file`` that would differ because uv runs with variables of ours.

uv sets what such a file names unless it is set already, and replaces ``${NAME}`` in values. So a
file that mentions one of our variables is read by uv a second time, with the user's variables.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uv_variants.invocation import Invocation
    from uv_variants.place import Place

_PRINT = (
    "import os, sys; sys.stdout.buffer.write(b'\\0'.join("
    "os.fsencode(n) + b'=' + os.fsencode(v) for n, v in os.environ.items()))"
)
_OF_UV = {"PATH", "VIRTUAL_ENV", "UV", "UV_RUN_RECURSION_DEPTH", "LC_CTYPE"}
"""What uv, and Python in the C locale, set as well."""


def file_variables(
    uv: str, invocation: Invocation, place: Place, changed: Collection[str]
) -> Mapping[str, str]:
    """Return what the files set in the user's environment, empty if none mentions *changed*.

    What is wrong with a file is left to uv.
    """
    if invocation.has("no-env-file") or place.is_on("UV_NO_ENV_FILE"):
        return {}
    named = invocation.values("env-file")
    files = named or place.environ.get("UV_ENV_FILE", "").split()
    if not any(_mentions(place, file, changed) for file in files):
        return {}
    options = [word for file in named for word in ("--env-file", file)]
    python = [sys.executable, "-I", "-S", "-c", _PRINT]
    alone = ["--quiet", "--no-project", "--no-config", "--offline", "--python", sys.executable]
    done = subprocess.run(
        [uv, "run", *alone, *options, "--", *python],
        env=dict(place.environ),
        cwd=place.cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode != 0:
        return {}
    found = dict(os.fsdecode(item).split("=", 1) for item in done.stdout.split(b"\0"))
    return {
        name: value
        for name, value in found.items()
        if name not in _OF_UV and name not in place.environ
    }


def _mentions(place: Place, file: str, names: Collection[str]) -> bool:
    try:
        text = (place.cwd / file).read_bytes()
    except OSError:
        return False
    return any(os.fsencode(name) in text for name in names)
