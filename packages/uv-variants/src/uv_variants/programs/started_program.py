"""uv's command and variables, so that what it starts runs in the user's environment.

A program is started by way of `startup.sitecustomize`. What uv runs with Python by itself (scripts,
modules, archives) stays as it is in the arguments, because uv reads its metadata: it is caught when
Python starts, and so are the backends of builds.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from uv_variants.invocation import parse

from .env_files import file_variables
from .startup import sitecustomize
from .state import changed_names, state_of, user_environ

if TYPE_CHECKING:
    from uv_variants.context import Context
    from uv_variants.invocation import Invocation

_LAUNCHER = os.path.abspath(sitecustomize.__file__)  # noqa: PTH100 - no file is looked for
_FOLDER = os.path.dirname(_LAUNCHER)  # noqa: PTH120
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

_END_OF_ZIP = b"PK\x05\x06"


def program_run(
    context: Context, arguments: Sequence[str], own: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """Return command and variables with which uv is run; all that it starts has the user's.

    Args:
        context: the command.
        arguments: of uv.
        own: environment variables that uv shall have.
    """
    environ = dict(own)
    if os.pathsep not in _FOLDER:
        # An empty item would be the working directory.
        environ["PYTHONPATH"] = os.pathsep.join(filter(None, (_FOLDER, own.get("PYTHONPATH"))))
    invocation, user = parse(arguments), user_environ(context.place.environ)
    if invocation.command in (("run",), ("tool", "run")):
        changed = changed_names(environ, user)
        user = {**user, **file_variables(context.uv, invocation, context.place, changed)}
    environ[sitecustomize.STATE] = state_of(environ, user)
    if invocation.command == ("run",):
        arguments = _with_launcher(context.uv, invocation, context.place.cwd)
    elif invocation.command == ("tool", "run"):
        arguments = _with_tool_launcher(context.uv, invocation)
    return [context.uv, *arguments], environ


def _with_launcher(uv: str, invocation: Invocation, cwd: Path) -> list[str]:
    """Return the arguments of ``uv run`` with the launcher before the program, if it needs one."""
    arguments, end = list(invocation.arguments), invocation.end
    start = end + (arguments[end : end + 1] == ["--"])
    before, program = arguments[:start], arguments[start:]
    if not program:
        return arguments
    if invocation.has("module", "m", "script", "s", "gui-script") or _is_script(program[0], cwd):
        return arguments
    if program[0].lower() == "python":
        return [*before, program[0], "-I", "-S", _LAUNCHER, "python", *program[1:]]
    again = [uv, "run", "--no-project", "--"]
    return [*before, sys.executable, "-I", "-S", _LAUNCHER, "program", *again, *program]


def _with_tool_launcher(uv: str, invocation: Invocation) -> list[str]:
    """Return the arguments of ``uv tool run`` with the launcher before the program."""
    arguments, end = list(invocation.arguments), invocation.end
    start = end + (arguments[end : end + 1] == ["--"])
    if not arguments[start:]:
        return arguments
    target, *rest = arguments[start:]
    number = str(2 + start)  # uv, its own arguments, and the target
    source = invocation.last("from")
    if source is None and _PYTHON.fullmatch(target):
        return [*arguments[: start + 1], "-I", "-S", _LAUNCHER, "python", *rest]
    requirement = target if source is None else source
    if source is None and target.lower().endswith(_SCRIPTS):
        return arguments  # an error of uv's
    if "@" in requirement and _version(uv) < _NEWER:
        return arguments  # with `--from name@version` it runs `name`, whatever follows
    named = _NAMED.fullmatch(requirement)
    name = "" if named is None or named[1].endswith(_ARCHIVES) else named[1]
    distribution = sitecustomize.normalized(name)
    program = distribution
    if target == name != distribution and _version(uv) >= _NEWER:
        program = name  # looked for as it is written
    about = [program, distribution, ""] if source is None else [target, distribution, "from"]
    launched = [sys.executable, "-I", "-S", _LAUNCHER, "tool", *about, number]
    added = ["--from", target] if source is None else []
    return [*arguments[:end], *added, *arguments[end:start], *launched, uv, *arguments]


def _version(uv: str) -> tuple[int, ...]:
    """Return the first two numbers of the version of *uv*."""
    done = subprocess.run([uv, "--version"], stdout=subprocess.PIPE, text=True, check=False)
    return tuple(map(int, re.findall(r"\d+", done.stdout)[:2]))


def _is_script(target: str, cwd: Path) -> bool:
    """Return whether uv runs *target* with Python, which it decides by what is there."""
    if target == "-" or target.lower().startswith(("http://", "https://")):
        return True
    path = cwd / target
    if path.is_dir():
        return (path / "__main__.py").is_file()
    if not path.is_file():
        return False
    return path.suffix.lower() in _SCRIPTS or _is_application(path)


def _is_application(path: Path) -> bool:
    """Return whether the file at *path* is a ZIP archive with a ``__main__.py``."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - (1 << 16) - 22))
            if _END_OF_ZIP not in file.read():
                return False
    except OSError:
        return False
    import zipfile

    try:
        with zipfile.ZipFile(path) as archive:
            return "__main__.py" in archive.namelist()
    except (OSError, ValueError, zipfile.BadZipFile):
        return False
