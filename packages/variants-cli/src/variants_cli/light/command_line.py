"""Reading a plain command line as click would; any other one is left to click.

Plain are the options of the command in full, each once unless it may be repeated, with values that
are neither empty nor begin with a dash, and files that are there.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import COMMANDS
from .parameters import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .parameters import Parameter

_COMPLETE = "_VARIANTS_COMPLETE"
"""Set by a shell that wants completions, which click gives."""
_EXPANDED = "*?[]~$%"
"""What click expands on Windows, as shells do elsewhere."""


def light_call(words: Sequence[str]) -> Callable[[], None] | None:
    """Return what does the command line *words*, None if click has to read it.

    Args:
        words: without the name of the program.
    """
    if not words or words[0] not in COMMANDS or _COMPLETE in os.environ:
        return None
    if sys.platform == "win32" and any(mark in word for word in words for mark in _EXPANDED):
        return None
    name, *rest = words
    module = import_module(f".{name}", __package__)
    values = read_words(rest, module.PARAMETERS)
    return None if values is None else partial(getattr(module, name), **values)


def read_words(words: Sequence[str], parameters: Sequence[Parameter]) -> dict[str, Any] | None:
    """Return the values of *parameters* by name, as click would; None if click has to."""
    options = {spelling: each for each in parameters for spelling in each.spellings}
    given: dict[str, list[str]] = {}
    arguments: list[str] = []
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            arguments.append(word)
            continue
        spelling, equals, value = word.partition("=")
        option = options.get(spelling)
        if option is None or (equals and (option.kind is Kind.FLAG or spelling[1] != "-")):
            return None
        if option.kind is not Kind.FLAG and not equals:
            value = next(rest, "")
        if value.startswith("-"):
            return None
        given.setdefault(option.name, []).append(value)
    values: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.spellings:
            found = given.get(parameter.name, [])
        elif parameter.several:
            found, arguments = arguments, []
        else:
            found, arguments = arguments[:1], arguments[1:]
            if not found:
                return None
        if (len(found) > 1 and not parameter.several) or not all(
            _is_plain(text, parameter.kind) for text in found
        ):
            return None
        values[parameter.name] = _value(found, parameter)
    return None if arguments else values


def _is_plain(text: str, kind: Kind) -> bool:
    if kind is Kind.FLAG:
        return True
    if kind is Kind.FILE or (kind is Kind.NEW_FILE and os.path.exists(text)):  # noqa: PTH110
        return os.path.isfile(text) and os.access(text, os.R_OK)  # noqa: PTH113
    return bool(text)


def _value(found: Sequence[str], parameter: Parameter) -> Any:  # noqa: ANN401 - as its kind says
    if parameter.kind is Kind.FLAG:
        return bool(found)
    values = list(map(Path if parameter.kind in (Kind.FILE, Kind.NEW_FILE) else str, found))
    if parameter.several:
        return values if parameter.spellings else tuple(values)
    return values[0] if values else None
