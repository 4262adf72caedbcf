"""What ``uv pip install --dry-run`` would take: nothing is installed that tells of variants.

uv alone knows which versions a resolution takes, so its output is read while it is printed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from .named_projects import normalized
from .site_packages import Installed, installed_without_variant

if TYPE_CHECKING:
    from .context import Context
    from .installed_state import InstalledState

# " + torch==2.9.0", with colours on a terminal; "~" is a reinstallation.
_TAKEN = re.compile(rb"\s*[+~]\s([A-Za-z0-9][\w.-]*)==([\w.+!]+)\s*")
_STYLE = re.compile(rb"\x1b\[[0-9;]*m")

Planned = Sequence[tuple[str, str]]
"""Normalized names and versions."""


def is_planned(context: Context) -> bool:
    """Return whether uv says what the command would install."""
    invocation = context.invocation
    return invocation.command == ("pip", "install") and invocation.has("dry-run")


def run_and_read(command: Sequence[str], environ: Mapping[str, str]) -> tuple[int, Planned]:
    """Run uv; return its exit code, and what it says that it would install."""
    from .uv_process import run_uv

    planned: list[tuple[str, str]] = []

    def read(line: bytes) -> None:
        match = _TAKEN.fullmatch(_STYLE.sub(b"", line))
        if match is not None:
            planned.append((normalized(match[1].decode()), match[2].decode()))

    if sys.stderr.isatty() and not environ.get("NO_COLOR"):
        environ = {"FORCE_COLOR": "1", **environ}
    return run_uv(command, environ, read_line=read), planned


def would_take(planned: Planned, state: InstalledState, *, verbose: bool) -> Iterator[Installed]:
    """Yield the variants among what is *planned*.

    Args:
        planned: what uv says that it would install.
        state: of the environment.
        verbose: also the variants of what the command names and what stays as it is.
    """
    choices = state.choices
    listed = [Installed(name, version, None) for name, version in planned]
    if verbose:
        names = [name for name in state.context.requested if name not in dict(planned)]
        environments = state.context.environments
        there = (state.before.get(n) or installed_without_variant(environments, n) for n in names)
        listed += [each for each in there if each is not None]
    choices.ask(each.name for each in listed)
    for each in listed:
        choice = choices.of_installed(each)
        if choice is not None and choice.chosen is not None:
            label = choices.label_of(each) or choice.chosen.label
            yield Installed(each.name, each.version, label)
