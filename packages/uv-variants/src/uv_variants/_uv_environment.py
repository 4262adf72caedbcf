"""The variables and settings with which uv's requests come to the session of its command.

uv from 0.9.23 on reads its proxies from a file of the system level, which `XDG_CONFIG_DIRS` names:
so that what uv starts (builds, keyring programs, tools) does not get our proxy. An
older uv, Windows, and a command without such files have the proxy in environment variables.

Programs of ``uv run`` start by way of `launcher`, in the user's own environment; what uv itself
runs with Python because of its metadata (scripts, modules) stays as it is.
"""

from __future__ import annotations

import os
import re
import sys
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Final

import tomli_w

from variants_index import uv_files

from . import _launcher as launcher
from ._command_line import Invocation, parse
from ._indexes import PROXIES, PROXY_VARIABLES
from ._uv_version import release_of

if TYPE_CHECKING:
    from ._context import Context
    from ._named_projects import CommandPlace
    from ._state import CommandState

_READS_PROXIES: Final = (0, 9, 23)
"""The first release of uv that has `PROXIES` as settings; older ones reject them."""
_EXEMPT: Final = ("NO_PROXY", "no_proxy")
_LAUNCHER: Final = os.path.abspath(launcher.__file__)  # noqa: PTH100 - no file is looked for
_SCRIPTS: Final = (".py", ".pyc", ".pyw")
_METADATA: Final = b"# /// script"
_HEAD_BYTES: Final = 1 << 20
_VARIABLE: Final = re.compile(
    r"""^[ \t]*(?:export[ \t]+)?(\w+)[ \t]*=[ \t]*(['"]?)(.*?)\2[ \t]*(?:[ \t]#.*)?$""",
    re.MULTILINE,
)
"""A variable in a file of ``--env-file``."""


def uv_variables(state: CommandState) -> dict[str, str]:
    """Return the variables that uv gets; its session is open.

    Those of the command for proxies count for what is sent to the outside.
    """
    context, session = state.context, state.session
    environ = dict(context.place.environ)
    text = _system_settings(context, session.proxy_url)
    if text is None:
        environ = {name: value for name, value in environ.items() if name not in _EXEMPT}
        environ.update(dict.fromkeys(PROXY_VARIABLES, session.proxy_url))
    else:
        folder = session.folder / "uv"
        folder.mkdir(mode=0o700)
        (folder / "uv.toml").write_text(text, "utf-8")
        others = environ.get("XDG_CONFIG_DIRS") or "/etc/xdg"
        environ["XDG_CONFIG_DIRS"] = f"{session.folder}{os.pathsep}{others}"
    return {**environ, "SSL_CERT_FILE": str(session.ca_file), "UV_CACHE_DIR": str(state.uv_cache)}


def variables_without_session(state: CommandState) -> dict[str, str]:
    """Return the variables of a uv that asks for nothing: should it, that is an error."""
    return {**state.context.place.environ, "UV_CACHE_DIR": str(state.uv_cache), "UV_OFFLINE": "1"}


def _system_settings(context: Context, proxy_url: str) -> str | None:
    """Return the settings of the system level with our proxy, None if uv cannot have them."""
    place, invocation = context.place, context.invocation
    if os.name == "nt" or invocation.has("no-config") or place.is_on("UV_NO_CONFIG"):
        return None
    if invocation.last("config-file") or place.environ.get("UV_CONFIG_FILE"):
        return None
    if release_of(context.uv, place.environ, context.cache / "uv-versions") < _READS_PROXIES:
        return None
    path = uv_files.system_path(place.environ)
    tree: Mapping[str, object] = {}
    if path is not None and path.is_file():
        found = uv_files.read_toml(path)
        if found is None or any(name in found for name in PROXIES):
            return None  # uv says what is wrong with it, or uses the user's own proxy
        tree = found
    return tomli_w.dumps({**tree, "http-proxy": proxy_url, "https-proxy": proxy_url})


STARTED_BY_UV = ("module", "m", "script", "s", "gui-script")
"""Flags of ``uv run`` with which the first operand is no program."""


def program_run(
    context: Context, arguments: Sequence[str], own: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """Return command and variables with which uv is run.

    Args:
        context: the command.
        arguments: of uv.
        own: environment variables that uv shall have.
    """
    invocation = parse(arguments)
    start = invocation.end + (list(arguments[invocation.end :][:1]) == ["--"])
    before, program = list(arguments[:start]), list(arguments[start:])
    if invocation.command != ("run",) or not program or invocation.has(*STARTED_BY_UV):
        return [context.uv, *arguments], dict(own)
    kind = _script_kind(program[0], context.place.cwd)
    if kind == "uv":
        return [context.uv, *arguments], dict(own)
    user = {**_from_files(invocation, context.place, own), **context.place.environ}
    environ = {**own, launcher.STATE: _state_of(own, user)}
    if kind == "python" or program[0].lower() == "python":
        name, *rest = program if kind != "python" else ["python", *program]
        launched = [name, "-I", "-S", _LAUNCHER, "python", *rest]
    else:
        again = [context.uv, "run", "--no-project", "--", *program]
        launched = [sys.executable, "-I", "-S", _LAUNCHER, "program", *again]
    return [context.uv, *before, *launched], environ


def _from_files(
    invocation: Invocation, place: CommandPlace, own: Mapping[str, str]
) -> dict[str, str]:
    """Return what the files of ``--env-file`` say of the variables *own*.

    uv leaves out what is set already.
    """
    listed = invocation.values("env-file") or place.environ.get("UV_ENV_FILE", "").split()
    if invocation.has("no-env-file") or place.is_on("UV_NO_ENV_FILE"):
        listed = []
    found: dict[str, str] = {}
    for path in listed:
        with suppress(OSError, ValueError):  # uv says so
            for name, quote, value in _VARIABLE.findall((place.cwd / path).read_text("utf-8")):
                expanded = value if quote == "'" else Template(value).safe_substitute(place.environ)
                found.update({name: expanded} if name in own else {})
    return found


def _script_kind(target: str, cwd: Path) -> str:
    """Return ``python`` for what uv runs with Python, ``uv`` if uv has to read it, else nothing."""
    if target == "-" or target.lower().startswith(("http://", "https://")):
        return "uv"
    path = cwd / target
    try:
        if path.is_dir():
            return "python" if (path / "__main__.py").is_file() else ""
        if path.suffix.lower() in _SCRIPTS and path.is_file():
            with path.open("rb") as file:
                return "uv" if _METADATA in file.read(_HEAD_BYTES) else "python"
        if path.is_file() and zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                return "uv" if "__main__.py" in archive.namelist() else ""
    except (OSError, ValueError, zipfile.BadZipFile):
        pass
    return ""


def _state_of(own: Mapping[str, str], user: Mapping[str, str]) -> str:
    """Return the value of `launcher.STATE` with which *own* becomes *user* again.

    Both are environment variables; what uv adds to *own* stays.
    """
    changed = {name for name in {*own, *user} if own.get(name) != user.get(name)}
    return ";".join(_item(name, user.get(name)) for name in sorted(changed))


def _item(name: str, value: str | None) -> str:
    return name if value is None else f"{name}={os.fsencode(value).hex()}"
