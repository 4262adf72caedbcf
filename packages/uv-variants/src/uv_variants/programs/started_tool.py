"""The arguments of ``uv tool run`` with which a tool runs in the user's environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

from .startup import sitecustomize

if TYPE_CHECKING:
    from uv_variants.invocation import Invocation

LAUNCHER = os.path.abspath(sitecustomize.__file__)  # noqa: PTH100 - no file is looked for

_SCRIPTS = (".py", ".pyc", ".pyw")
_ARCHIVES = (".whl", ".zip", ".gz", ".bz2", ".xz", ".tar", ".tgz", ".zst")
_NAMED = re.compile(
    r"\s*([a-z0-9](?:[a-z0-9._-]*[a-z0-9])?)\s*(?:\[[^\]]*\])?\s*(?:[@<>=!~;(].*)?",
    re.IGNORECASE | re.DOTALL,
)
"""A requirement with the name of its distribution."""

_PYTHON = re.compile(r"(?:c?python|pypy|graalpy|pyodide)[0-9.tw]*(?:@.*)?")
"""A Python, which ``uv tool run`` runs in place of a tool."""

_NEWER = (0, 8)
"""uv from this version on; others may have changed as well between 0.5 and it."""


def started_tool(uv: str, invocation: Invocation, cache: str) -> list[str]:
    """Return the arguments of ``uv tool run`` with the launcher before the program.

    Args:
        uv: path of uv.
        invocation: the command line.
        cache: uv's cache directory, empty for the user's.
    """
    arguments, end = list(invocation.arguments), invocation.end
    start = end + (arguments[end : end + 1] == ["--"])
    if not arguments[start:]:
        return arguments
    target, *rest = arguments[start:]
    source = invocation.last("from")
    requirement = target if source is None else source
    if source is None and _PYTHON.fullmatch(target):
        return [*arguments[: start + 1], "-I", "-S", LAUNCHER, "python", *rest]
    if source is None and target.lower().endswith(_SCRIPTS):
        return arguments  # an error of uv's
    if "@" in requirement and _version(uv) < _NEWER:
        return arguments  # with `--from name@version` it runs `name`, whatever follows
    named = _NAMED.fullmatch(requirement)
    name = "" if named is None or named[1].endswith(_ARCHIVES) else named[1]
    distribution = sitecustomize.normalized(name)
    program = distribution if source is None else target
    if target == name != distribution and _version(uv) >= _NEWER:
        program = name  # looked for as it is written
    added = ["--from", target] if source is None else []
    again, whose = [uv], ""
    if cache and not (invocation.has("refresh") or invocation.values("refresh-package")):
        # It finds in its cache what it has just found.
        whose = sitecustomize.USER
        again += [] if invocation.has("offline") else ["--offline"]
        again += [] if invocation.values("cache-dir") else ["--cache-dir", cache]
    number = str(len(again) + start + 1)
    about = [program, distribution, "" if source is None else "from", whose, number]
    launched = [sys.executable, "-I", "-S", LAUNCHER, "tool", *about, *again, *arguments]
    return [*arguments[:end], *added, *arguments[end:start], *launched]


def _version(uv: str) -> tuple[int, ...]:
    """Return the first two numbers of the version of *uv*."""
    done = subprocess.run([uv, "--version"], stdout=subprocess.PIPE, text=True, check=False)
    return tuple(map(int, re.findall(r"\d+", done.stdout)[:2]))
