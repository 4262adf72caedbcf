"""TOML reading, from the standard library or, on Python 3.10, from tomli."""

from __future__ import annotations

import re
import sys
from typing import Any

from ..limits import TOML_DEPTH, TOML_KEY_PARTS, TOML_WORD_CHARACTERS, TOML_WORK

_STEP = r"\"\"\"|'''|\"[^\"\\\n]*\"|[\"'\[\]{}=,.\n]|\#[^\n]*|[A-Za-z0-9_+-]+"
_ENDS = {'"""': '"{3,5}', "'''": "'{3,5}", '"': '["\n]', "'": "['\n]"}
"""Ends of strings by their beginnings. Before the end of the long ones may be two more quotation
marks; a short one that is not terminated ends with its line."""


def read_toml(text: str) -> dict[str, Any]:
    r"""Return the tables of a TOML document.

    Raises:
        ValueError: not TOML, or beyond one of the limits of TOML in `limits`, so that no document
            costs more than two seconds or 300 MB.

    >>> from pep_variants.safe_files import read_toml
    >>> read_toml("[variant]\nnamespace = ['nvidia']")
    {'variant': {'namespace': ['nvidia']}}
    """
    # Imported late: most commands find no file to read.
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    _check_work(text)
    tree: dict[str, Any] = tomllib.loads(text)
    return tree


def _check_work(text: str) -> None:
    """Refuse what would take the parser too long, in one pass over *text*.

    It need not be TOML: the parser stops at the first fault, and what is counted up to there is
    what it sees.
    """
    search = re.compile(_STEP).search  # kept by `re`
    work = text.count("\\")  # each escape is one step of the parser's
    depth = dots = position = 0
    problem = ""
    while token := search(text, position):
        start, position = token.span()
        char = token[0]
        work += 1
        if char in _ENDS:
            position, candidates = _after_string(text, position, char)
            work += candidates
        elif char[0] == '"':  # a string without escapes, begun and ended
            work += 1
        elif char == ".":
            dots += 1
            work += dots  # the parser looks at all parts before it
            if dots >= TOML_KEY_PARTS:
                problem = f"a key of more than {TOML_KEY_PARTS} parts"
        elif char in "[]{}=,\n":
            dots = 0
            if char in "[{":
                depth += 1
                if depth > TOML_DEPTH:
                    problem = f"nested more than {TOML_DEPTH} deep"
            elif char in "]}":
                depth = max(depth - 1, 0)
        elif char[0] != "#" and len(char) > TOML_WORD_CHARACTERS:
            problem = f"a key or number of more than {TOML_WORD_CHARACTERS:,} characters"
        if work > TOML_WORK:
            problem = "the document has too many values"
        if problem:
            raise ValueError(f"line {text.count(chr(10), 0, start) + 1}: {problem}")


def _after_string(text: str, position: int, begins: str) -> tuple[int, int]:
    """Return where the string ends whose content is at *position*, and how often it seemed to."""
    search = re.compile(_ENDS[begins]).search
    escapes = begins[0] == '"'
    candidates = 0
    while end := search(text, position):
        candidates += 1
        before = end.start()
        while escapes and text[before - 1] == "\\" and before > position:
            before -= 1
        if (end.start() - before) % 2 == 0:
            return end.end(), candidates
        # An escaped quotation mark; the two others of three may begin the next candidate.
        position = end.start() + 1
        if candidates > TOML_WORK:
            break
    return len(text), candidates
