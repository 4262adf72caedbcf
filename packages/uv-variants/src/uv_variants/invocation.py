"""uv's command line, understood as far as it matters: the command, and options about indexes.

Imports next to nothing: commands that need no index are handed to uv at once.

uv's own parser has the last word; nothing here refuses anything. What is not known is taken for a
flag, and passed on as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

# Every option of uv 0.5 to 0.13 that takes a value, by every spelling. They have to be known to
# tell where `uv run` ends and the command that it runs begins.
_LONG_NAMES = (
    "add-bounds allow-insecure-host annotation-style bounds branch build-constraint build- "
    "constraints cache-dir cert color config-file config-setting config-settings config-settings- "
    "package constraint constraints default-index directory editable env-file exclude exclude- "
    "newer exclude-newer-package excludes extra extra-index-url find-links fork-strategy format "
    "from group index index-strategy index-url keyring-provider link-mode marker module no-binary "
    "no-binary-package no-build-isolation-package no-build-package no-editable-package no-emit- "
    "package no-extra no-group no-install-package no-sources-package only-binary only-group "
    "optional out-dir output-file output-format override overrides package preview-features "
    "prefix prerelease prerelease-package project prompt prune python python-platform python- "
    "preference python-version refresh-package reinstall-package requirement requirements "
    "resolution rev script tag target torch-backend trusted-host unsafe-package upgrade-group "
    "upgrade-package with with-editable with-executables-from with-requirements"
)
_LONG = frozenset(_LONG_NAMES.split())
_SHORT = {
    "C": "config-setting",
    "P": "upgrade-package",
    "b": "build-constraints",
    "c": "constraints",
    "e": "editable",
    "f": "find-links",
    "i": "index-url",
    "m": "module",
    "o": "output-file",
    "p": "python",
    "r": "requirements",
    "t": "target",
    "w": "with",
}
_SAME = {
    "requirement": "requirements",
    "constraint": "constraints",
    "trusted-host": "allow-insecure-host",
}
_NESTED = frozenset(("pip", "tool", "python", "cache", "self", "auth", "workspace"))
_RUNS = (("run",), ("tool", "run"))
"""Commands whose first operand is a command line of its own."""


class Given(NamedTuple):
    """An option with its value, as it was given.

    Attributes:
        name: long name without dashes.
        value: what it was given.
        spelling: how it was written, up to the value, which follows it in the same argument if
            `glued`.
        glued: option and value are one argument.
        start: its place among the arguments.
    """

    name: str
    value: str
    spelling: str
    glued: bool
    start: int

    def with_value(self, value: str) -> list[str]:
        """Return the arguments that give *value* in its place."""
        return [self.spelling + value] if self.glued else [self.spelling, value]


class Invocation(NamedTuple):
    """A command line of uv's.

    Attributes:
        arguments: all of it, without the program.
        command: the command's words, ``("pip", "install")``; empty if there is none.
        given: options with values, in order.
        flags: flags, long ones without dashes, short ones as letters.
        operands: the rest, up to where another command line begins.
        end: where uv's own arguments end.
    """

    arguments: tuple[str, ...]
    command: tuple[str, ...]
    given: tuple[Given, ...]
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
            values: new values by `Given.start`.
            added: further arguments, put behind the options of the command.
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
    """Understand *arguments*, those after ``uv``."""
    command: list[str] = []
    operands: list[str] = []
    given: list[Given] = []
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
                if option.name == "module" and tuple(command) in _RUNS:
                    break  # what follows belongs to the module
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
) -> tuple[Given | None, list[str], int]:
    """Return the option at *position*, the flags there, and how many arguments they take."""
    text = arguments[position]
    following = arguments[position + 1] if position + 1 < len(arguments) else ""
    if text.startswith("--"):
        name, equals, value = text[2:].partition("=")
        name = _SAME.get(name, name)
        takes = name in _LONG and not (name == "script" and command in _RUNS)
        if equals and takes:
            return Given(name, value, f"{text.partition('=')[0]}=", True, position), [], 1
        if not takes:
            return None, [name], 1
        return Given(name, following, text, False, position), [], 2
    for place, letter in enumerate(text[1:], 1):
        if letter in _SHORT:
            value = text[place + 1 :]
            flags = list(text[1:place])
            name = _SHORT[letter]
            if value:
                spelling = text[: place + 1] + ("=" if value.startswith("=") else "")
                return Given(name, value.removeprefix("="), spelling, True, position), flags, 1
            return Given(name, following, text, False, position), flags, 2
    return None, list(text[1:]), 1
