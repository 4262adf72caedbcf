"""uv's command line: its command, its options with their values, and what it works on.

Nothing is rejected here: options that are not known count as flags, and uv's own parser reports
errors. The module imports very little, because commands without an index become uv at once.

It cannot be parsed without knowing which options take a value, in every command of uv 0.5 to 0.13:
``uv run --with x y`` runs ``y``. A test compares the tables with ``--help`` of every command of
every tested uv, and with uv's parser.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from ._uv_program import DIRECT, PIP, TOOL

_VALUES = """
allow-insecure-host annotation-style author-from bounds branch build-backend build-constraints
bump cache-dir check-url color config-file config-setting config-setting-package
config-settings-package constraints custom-compile-command default-index depth description
directory env-file exclude exclude-newer exclude-newer-package excludes extra extra-index-url
find-links fork-strategy format from graalpy-mirror group ignore ignore-until-fixed index
index-strategy index-url install-dir keyring-provider link-mode marker mirror name
no-binary-package no-build-isolation-package no-build-package no-editable-package no-emit-package
no-extra no-group no-install-package no-sources-package only-binary only-group optional out-dir
output-file output-format output-version overrides package password path prefix prerelease
prerelease-package project prompt prune publish-url pyodide-mirror pypy-mirror python
python-downloads-json-url python-platform python-preference python-version refresh-package
reinstall-package requirements resolution rev script service-format service-url tag target token
torch-backend trusted-publishing ty-version upgrade-group upgrade-package username vcs with
with-editable with-executables-from with-requirements
"""

_HIDDEN = """
batch build-constraint cert client-cert config config-settings constraint max-recursion-depth
max-rounds only-emit-package only-install-package override pip-args preview-feature
preview-features python-executable python-fetch requirement resolver trusted-host unsafe-package
"""
HIDDEN = frozenset(_HIDDEN.split())
"""Options with a value, and aliases of such options, that are not in any help text."""

TAKES_VALUE = frozenset(_VALUES.split()) | HIDDEN
"""Long names, without dashes, of options that take a value, with the exceptions below."""

_Commands = tuple[tuple[str, ...], ...]

_VALUE_ONLY_IN: dict[str, _Commands] = {
    "editable": (("pip", "install"),),
    "no-binary": (("pip", "compile"), ("pip", "install"), ("pip", "sync")),
    "version": (("format",),),
}
"""Options that are flags in all commands except these."""

_FLAG_IN: dict[str, _Commands] = {"package": (("init",),), "script": (("init",), ("run",))}
"""Options that take a value in all commands except these."""

_SHORT = {
    "C": "config-setting",
    "P": "upgrade-package",
    "b": "build-constraints",
    "c": "constraints",
    "d": "depth",
    "e": "editable",
    "f": "find-links",
    "i": "index-url",
    "m": "marker",
    "o": "output-file",
    "p": "python",
    "r": "requirements",
    "t": "target",
    "u": "username",
    "w": "with",
}
_SHORT_FLAG_IN: dict[str, _Commands] = {
    "c": (("venv",),),
    "f": (("pip", "show"), ("python", "install")),
    "m": (("run",),),
    "r": (("python", "install"), ("python", "upgrade")),
}

_SAME = {
    "build-constraint": "build-constraints",
    "constraint": "constraints",
    "override": "overrides",
    "requirement": "requirements",
    "trusted-host": "allow-insecure-host",
}


def long_name(name: str) -> str:
    """Return the name under which an option is known that has several; names without dashes."""
    return _SAME.get(name, name)


def takes_value(name: str, command: tuple[str, ...]) -> bool:
    """Return whether the option ``--name`` takes a value in *command*."""
    if name in _VALUE_ONLY_IN:
        return command in _VALUE_ONLY_IN[name]
    return name in TAKES_VALUE and command not in _FLAG_IN.get(name, ())


def short_option(letter: str, command: tuple[str, ...]) -> str | None:
    """Return the long name of ``-letter`` if it takes a value in *command*, None for a flag."""
    if command in _SHORT_FLAG_IN.get(letter, ()):
        return None
    name = _SHORT.get(letter)
    return name if name is not None and takes_value(name, command) else None


class Scope(Enum):
    """Subject of a command."""

    NOTHING = "no index"
    ENVIRONMENT = "an environment"
    PROJECT = "a project with a lock file"
    TOOL = "a tool"
    BUILD = "a build"


EXPORTING = (("export",), ("pip", "compile"))
"""Commands that write what others are to install; see `exports`."""

_PROJECT = frozenset(
    (
        "add",
        "audit",
        "check",
        "export",
        "lock",
        "remove",
        "run",
        "sync",
        "tree",
        "version",
    )
)


def scope_of(invocation: Invocation) -> Scope:
    """Return the subject of *invocation*.

    A command that is not known may need an index.
    """
    command = invocation.command
    if not command or invocation.has("help", "version", "h", "V"):
        return Scope.NOTHING
    first, second = command[0], command[1] if len(command) > 1 else ""
    if first in DIRECT or first == "cache":
        return Scope.NOTHING
    if first == "pip":
        wanted = second in PIP or invocation.has("outdated")
        return Scope.ENVIRONMENT if wanted else Scope.NOTHING
    if first == "tool":
        wanted = second in TOOL or invocation.has("outdated")
        return Scope.TOOL if wanted else Scope.NOTHING
    if first == "venv":
        return Scope.BUILD if invocation.has("seed") else Scope.NOTHING
    return Scope.PROJECT if first in _PROJECT else Scope.BUILD


def is_frozen_sync(invocation: Invocation, environ: Mapping[str, str]) -> bool:
    """Return whether *invocation* may be ``sync --frozen``, by an option or its variable."""
    is_frozen = invocation.has("frozen") or bool(environ.get("UV_FROZEN"))
    return invocation.command == ("sync",) and is_frozen


_NESTED = frozenset(("pip", "tool", "python", "cache", "self", "auth", "workspace"))
_RUNS = (("run",), ("tool", "run"))
"""Commands whose first operand begins another command line."""


class GivenOption(NamedTuple):
    """An option with its value.

    Attributes:
        name: long name without dashes.
        value: the value.
        spelling: the text before the value, which is in the same argument if `glued`.
        glued: option and value are one argument.
        start: index of its first argument.
    """

    name: str
    value: str
    spelling: str
    glued: bool
    start: int

    def with_value(self, value: str) -> list[str]:
        """Return the arguments for the same option with another *value*."""
        return [self.spelling + value] if self.glued else [self.spelling, value]


class Invocation(NamedTuple):
    """A command line of uv.

    Attributes:
        arguments: all arguments, without the program.
        command: words of the command, ``("pip", "install")``; empty without one.
        given: options with values, in order.
        flags: flags, long ones without dashes, short ones as letters.
        operands: positional arguments, up to the command line of a program that uv runs.
        end: index at which uv's own arguments end.
    """

    arguments: tuple[str, ...]
    command: tuple[str, ...]
    given: tuple[GivenOption, ...]
    flags: tuple[str, ...]
    operands: tuple[str, ...]
    end: int

    def values(self, *names: str) -> list[str]:
        """Return the values of all options of these names, in order."""
        return [item.value for item in self.given if item.name in names]

    def last(self, name: str) -> str | None:
        """Return the value of the last option *name*, None without one."""
        return next(reversed(self.values(name)), None)

    def has(self, *flags: str) -> bool:
        """Return whether one of *flags* was given."""
        return any(flag in self.flags for flag in flags)

    def rewritten(self, values: Mapping[int, str], added: Sequence[str] = ()) -> list[str]:
        """Return the arguments with other values.

        Args:
            values: new values by `GivenOption.start`.
            added: further arguments, inserted where uv's own arguments end.
        """
        places = {item.start: item for item in self.given if item.start in values}
        result: list[str] = []
        position = 0
        while position < len(self.arguments):
            if position == self.end:
                result += added
            item = places.get(position)
            if item is None:
                result.append(self.arguments[position])
                position += 1
            else:
                result += item.with_value(values[position])
                position += 1 if item.glued else 2
        return result + list(added if self.end >= len(self.arguments) else ())


def parse(arguments: Sequence[str]) -> Invocation:
    """Parse *arguments*, those after ``uv``."""
    command: list[str] = []
    operands: list[str] = []
    given: list[GivenOption] = []
    flags: list[str] = []
    position = 0
    while position < len(arguments):
        text = arguments[position]
        if text == "--":
            if tuple(command) not in _RUNS:
                operands += arguments[position + 1 :]
            break
        if text.startswith("-") and text != "-":
            option, flag, taken = _option(arguments, position, tuple(command))
            flags += flag
            if option is not None:
                given.append(option)
            position += taken
            continue
        if not command or (len(command) == 1 and command[0] in _NESTED):
            command.append(text)
        elif tuple(command) in _RUNS:
            operands.append(text)
            break
        else:
            operands.append(text)
        position += 1
    return Invocation(
        tuple(arguments), tuple(command), tuple(given), tuple(flags), tuple(operands), position
    )


def _option(
    arguments: Sequence[str], position: int, command: tuple[str, ...]
) -> tuple[GivenOption | None, list[str], int]:
    """Return the option at *position*, the flags there, and the number of arguments used."""
    text = arguments[position]
    following = arguments[position + 1] if position + 1 < len(arguments) else ""
    if text.startswith("--"):
        name, equals, value = text[2:].partition("=")
        takes = takes_value(name, command)
        name = long_name(name)
        if equals and takes:
            return GivenOption(name, value, f"{text.partition('=')[0]}=", True, position), [], 1
        if not takes:
            return None, [name], 1
        return GivenOption(name, following, text, False, position), [], 2
    for place, letter in enumerate(text[1:], 1):
        option = short_option(letter, command)
        if option is not None:
            value = text[place + 1 :]
            flags = list(text[1:place])
            if value:
                spelling = text[: place + 1] + ("=" if value.startswith("=") else "")
                return (
                    GivenOption(option, value.removeprefix("="), spelling, True, position),
                    flags,
                    1,
                )
            return GivenOption(option, following, text, False, position), flags, 2
    return None, list(text[1:]), 1
