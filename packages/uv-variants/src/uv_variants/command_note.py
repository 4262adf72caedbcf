"""The note of a command that had nothing to do: its file, and what is in it.

Commands that are run again import this module, and little besides.
"""

# ruff: noqa: PTH109, PTH111, PTH116, PTH118, PTH123 - pathlib would take as long as the rest

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # `typing` would take as long as the rest
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SECONDS = 3600.0
"""Seconds for which a note counts: drivers and indexes may change meanwhile."""

PROXY_URL = "http://PROXY/"
"""Stands for the proxy's URL in a note."""

_FORMAT = "1"
_VOLATILE = ("_", "OLDPWD", "SHLVL")
"""Variables of shells that change, and decide nothing."""

_CONTENT = ("/proc/", "/sys/")


class Note:
    """What is known of a command that had nothing to do.

    Attributes:
        command: of uv.
        states: of files, by path, see `state_of`.
        variables: that uv gets with other values than the user's; None for those that it does not
            get.
    """

    def __init__(
        self,
        command: Sequence[str],
        states: Mapping[str, str],
        variables: Mapping[str, str | None],
    ) -> None:
        self.command = list(command)
        self.states = dict(states)
        self.variables = dict(variables)

    def text(self) -> str:
        """Return the note as it is in a file."""
        lists = (
            self.command,
            [part for item in self.states.items() for part in item],
            [
                name if value is None else f"{name}={value}"
                for name, value in self.variables.items()
            ],
        )
        parts = [_FORMAT]
        for each in lists:
            parts += [str(len(each)), *each]
        return "\0".join(parts)

    @classmethod
    def of(cls, text: str) -> Note | None:
        """Return the note in *text*, None if it is not one."""
        parts = text.split("\0")
        if parts[0] != _FORMAT:
            return None
        lists, position = [], 1
        try:
            for _ in range(3):
                end = position + 1 + int(parts[position])
                lists.append(parts[position + 1 : end])
                position = end
        except (IndexError, ValueError):
            return None
        if position != len(parts) or not lists[0]:
            return None
        command, states, variables = lists
        split = [item.partition("=") for item in variables]
        return cls(
            command,
            dict(zip(states[::2], states[1::2], strict=True)),
            {name: value if equals else None for name, equals, value in split},
        )

    def environ(self, environ: Mapping[str, str], proxy_url: str) -> dict[str, str]:
        """Return the variables that uv gets."""
        found = {name: value for name, value in environ.items() if name not in self.variables}
        for name, value in self.variables.items():
            if value is not None:
                found[name] = proxy_url if value == PROXY_URL else value
        return found


def note_path(arguments: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return where the note of a command is: for this directory, installation and variables."""
    from hashlib import sha256

    parts = [_FORMAT, sys.executable, state_of(__file__), os.getcwd(), str(len(arguments))]
    parts += arguments
    parts += sorted(f"{name}={environ[name]}" for name in environ if name not in _VOLATILE)
    digest = sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
    base = environ.get("VARIANTS_CACHE_DIR")
    if not base:
        home = environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        base = os.path.join(home, "variants")
    return os.path.join(base, "noted", digest[:32])


def state_of(path: str) -> str:
    """Return a text that changes if the file or directory at *path* does."""
    try:
        if path.startswith(_CONTENT):
            with open(path, "rb") as file:
                return file.read(1000).hex()
        status = os.stat(path)
    except OSError:
        return ""
    return f"{status.st_mtime_ns} {status.st_size} {status.st_ino}"
