"""uv's command and variables, so that what it starts runs in the user's environment.

A program is started by way of `startup.sitecustomize`. What uv runs with Python by itself (scripts,
modules, archives) stays as it is in the arguments, because uv reads its metadata: it is caught when
Python starts, and so are the backends of builds.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from uv_variants.invocation import parse

from .env_files import file_variables
from .started_tool import LAUNCHER, started_tool
from .startup import sitecustomize
from .state import changed_names, state_of, user_environ

if TYPE_CHECKING:
    from uv_variants.context import Context
    from uv_variants.invocation import Invocation

_FOLDER = os.path.dirname(LAUNCHER)  # noqa: PTH120 - no file is looked for
_SCRIPTS = (".py", ".pyc", ".pyw")
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
        # What uv has just downloaded is in its cache, which need not be the user's.
        cache = environ.get("UV_CACHE_DIR", "")
        cache = cache if cache != context.place.environ.get("UV_CACHE_DIR") else ""
        arguments = started_tool(context.uv, invocation, cache)
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
        return [*before, program[0], "-I", "-S", LAUNCHER, "python", *program[1:]]
    again = [uv, "run", "--no-project", "--"]
    return [*before, sys.executable, "-I", "-S", LAUNCHER, "program", *again, *program]


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
