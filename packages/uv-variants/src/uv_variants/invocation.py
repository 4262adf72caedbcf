"""uv's command line: its command, and its options with their values.

Nothing is rejected here: options that are not known count as flags, and uv's own parser reports
errors. The module imports very little, because commands without an index become uv at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .uv_options import long_name, short_option, takes_value

_NESTED = frozenset(("pip", "tool", "python", "cache", "self", "auth", "workspace"))
_RUNS = (("run",), ("tool", "run"))
"""Commands whose first operand begins another command line."""


class Given(NamedTuple):
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
    """Return the option at *position*, the flags there, and the number of arguments used."""
    text = arguments[position]
    following = arguments[position + 1] if position + 1 < len(arguments) else ""
    if text.startswith("--"):
        name, equals, value = text[2:].partition("=")
        takes = takes_value(name, command)
        name = long_name(name)
        if equals and takes:
            return Given(name, value, f"{text.partition('=')[0]}=", True, position), [], 1
        if not takes:
            return None, [name], 1
        return Given(name, following, text, False, position), [], 2
    for place, letter in enumerate(text[1:], 1):
        option = short_option(letter, command)
        if option is not None:
            value = text[place + 1 :]
            flags = list(text[1:place])
            if value:
                spelling = text[: place + 1] + ("=" if value.startswith("=") else "")
                return Given(option, value.removeprefix("="), spelling, True, position), flags, 1
            return Given(option, following, text, False, position), flags, 2
    return None, list(text[1:]), 1
