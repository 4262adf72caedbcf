"""Which commands had nothing to do, noted so that `noted_run` runs them again quickly.

Such a command asked no index, printed nothing of ours, and left its files as they were.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from variants_index.uv_files import configuration_files

from .command_note import PROXY_URL, SECONDS, Note, note_path, state_of
from .daemon.record import idle_seconds
from .programs import program_run
from .report import has_warned
from .site_packages import site_packages
from .used_indexes import script_of

if TYPE_CHECKING:
    from .context import Context
    from .prepared_run import PreparedRun

_COMMANDS = (("sync",), ("run",))
_MACHINE = (
    "/proc/sys/kernel/random/boot_id",
    "/proc/driver/nvidia/version",
    "/sys/module/nvidia/version",
    "/sys/module/amdgpu/version",
)
"""Files that change with the machine and its drivers."""


@dataclass(frozen=True)
class NotedCommand:
    """A command that may be noted when it has ended.

    Attributes:
        context: the command.
        prepared: what uv is run with.
        states: of its files before uv runs.
    """

    context: Context
    prepared: PreparedRun
    states: dict[str, str]

    @classmethod
    def of(cls, context: Context, prepared: PreparedRun) -> NotedCommand | None:
        """Return the command as it is before uv runs, None if it is never noted."""
        if os.name == "nt" or not _is_simple(context):
            return None
        if len(prepared.arguments) != len(context.invocation.arguments):
            return None  # something is installed again
        return cls(context, prepared, _states(context))

    def write(self) -> None:
        """Write the note, unless the command did something."""
        if has_warned() or self.prepared.session.was_used():
            return
        if _states(self.context) != self.states:
            return
        from pep_variants.files import replacing

        user = self.context.place.environ
        command, environ = program_run(self.context, self.prepared.arguments, self.prepared.environ)
        url = self.prepared.session.proxy_url
        changed: dict[str, str | None] = {name: None for name in user if name not in environ}
        for name, value in environ.items():
            if user.get(name) != value:
                changed[name] = PROXY_URL if value == url else value
        with contextlib.suppress(OSError):
            path = Path(note_path(sys.argv[1:], user))
            _remove_old(path.parent)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with replacing(path, mode=0o600) as file:
                text = Note(command, self.states, changed).text()
                file.write(text.encode("utf-8", "surrogateescape"))


def _is_simple(context: Context) -> bool:
    """Return whether all that decides the command is known, apart from what uv asks for."""
    invocation, place = context.invocation, context.place
    given = tuple(sys.argv[1:])
    own = context.options.uv_arguments
    if given[len(given) - len(own) :] != own:
        return False
    if invocation.command not in _COMMANDS or not context.is_frozen or context.is_verbose:
        return False
    if context.preferences.switch or invocation.has("refresh", "reinstall"):
        return False
    if script_of(invocation) is not None or context.preferences.allow_providers:
        return False
    if not context.lock.text or context.lock.is_floating or context.local_links:
        return False
    if context.preferences.platform_file is not None or idle_seconds(place.environ) <= 0:
        return False
    if not context.environments or not context.lock.path:
        return False
    more = ("with", "with-requirements", "with-editable", "env-file", "config-file")
    if invocation.values(*more) or place.environ.get("UV_ENV_FILE"):
        return False
    # A note has the variables that uv gets, but no passwords.
    if any("@" in value for name, value in place.environ.items() if "PROXY" in name.upper()):
        return False
    if invocation.command == ("run",):
        if invocation.has("script", "s", "gui-script") or not invocation.operands:
            return False
        return not (place.cwd / invocation.operands[0]).exists()
    return True


def _remove_old(folder: Path) -> None:
    for path in folder.glob("*"):
        if time.time() - path.stat().st_mtime > SECONDS:
            path.unlink()


def _states(context: Context) -> dict[str, str]:
    from pep_variants.settings.places import places

    place, environ = context.place, context.place.environ
    project = place.project.absolute()
    paths = [Path(context.uv), *map(Path, _MACHINE)]
    for folder in (project, *project.parents):
        paths += [folder / name for name in ("pyproject.toml", "uv.toml")]
    paths += [path for _, path in configuration_files(project, environ)]
    prefix = environ.get("VIRTUAL_ENV") or str(place.project / ".venv")
    paths += [each.path for each in places(place.cwd, prefix)]
    for name in ("SSL_CERT_FILE", "NETRC"):
        paths += [Path(environ[name])] if environ.get(name) else []
    if context.lock.path is not None:
        paths += [context.lock.path, context.lock.path.parent / "pyproject.toml"]
    for environment in context.environments:
        paths += [environment, environment / "pyvenv.cfg", *site_packages(environment)]
    if context.invocation.command == ("run",):
        paths += [place.cwd / context.invocation.operands[0]]
    texts = [str(path.absolute()) for path in paths]
    return {text: state_of(text) for text in texts}
