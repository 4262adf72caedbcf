"""One pylock.toml of a project with accelerators: a dependency group (PEP 751) for each.

uv exports one accelerator at a time, since they exclude each other. What it writes is merged, and
our table says which builds a group has, so that our clients take the one that fits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from packaging.utils import canonicalize_name

from pep_variants import safe_files
from pep_variants.errors import LockError
from variants_index import finder

from .._errors import warn
from .._exports import print_bytes, restored, run_export

if TYPE_CHECKING:
    from .._context import Context
    from .groups import GroupBuild

_PYLOCK = "pylock.toml"
_PROGRAM = "uv-variants"

_PLACES = {
    "sys_platform != 'win32' and platform_machine != 'aarch64'": "linux_x86_64",
    "platform_machine == 'aarch64'": "linux_aarch64",
    "sys_platform == 'win32'": "win_amd64",
}
"""Platform tags by the marker of what the builds for them are looked at for."""

Commands = Mapping[str, tuple[Sequence[str], Mapping[str, str]]]
"""Command lines of uv with their variables, by the group that each exports."""


def export_groups(
    context: Context,
    builds: Callable[[str], Mapping[str, Sequence[GroupBuild]]],
    commands: Commands,
) -> int:
    """Export the groups of all accelerators into one pylock.toml; return uv's exit code.

    Args:
        context: the command.
        builds: returns what each group of the lock has for a platform tag.
        commands: uv's command line and variables that export a group alone.

    Raises:
        LockError: what uv wrote cannot be merged.
    """
    output = context.invocation.last("output-file")
    path = context.place.cwd / output if output else None
    quiet = ["--quiet"] if not context.is_quiet else []
    locks: dict[str, Mapping[str, Any]] = {}
    with restored(path) as write:
        for group, (command, environ) in commands.items():
            more = quiet if locks else ()  # the first one has said what uv did
            code, printed, written = run_export([*command, *more], environ, path)
            if code:
                return code
            try:
                text = (printed if written is None else written).decode()
                locks[group] = safe_files.read_toml(text)
            except ValueError as error:
                raise LockError(f"uv's {_PYLOCK} of group {group}: {error}") from None
        described = {
            marker: {
                group: dict(item.described for item in items)
                for group, items in builds(tag).items()
            }
            for marker, tag in _PLACES.items()  # uv may have changed the lock
        }
        header = "".join(line for line in text.splitlines(keepends=True) if line.startswith("#"))
        header = header.replace("    uv export", f"    {_PROGRAM} export")
        merged = header.encode() + finder.merge_locks(locks, described, _PROGRAM)
        write(merged)
    if path is None or not context.is_quiet:
        print_bytes(merged)
    if not context.is_quiet:
        names = list(map(canonicalize_name, commands))
        warn(
            f"the dependency groups are {', '.join(names)}; plain installers have to be told "
            f"which: pip install --group {output or _PYLOCK}:{names[0]}"
        )
    return 0
