"""Environment markers as uv writes them: where one of them holds and others do not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_TOKEN = re.compile(
    r"""\s*(?:(?P<mark>[()]|\b(?:and|or)\b)
    |(?P<left>[a-z_]+|'[^']*'|"[^"]*")
     \s*(?P<operator>==|!=|<=|>=|<|>|\bnot\s+in\b|\bin\b)
     \s*(?P<right>[a-z_]+|'[^']*'|"[^"]*"))\s*""",
    re.VERBOSE,
)
_OPPOSITES = {
    "==": "!=",
    "!=": "==",
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
    "in": "not in",
    "not in": "in",
}
_MOST_CHARACTERS = 10_000
_MOST_DEPTH = 20


class _Unknown(ValueError):
    """A marker that is not one of those that uv writes."""


def outside(marker: str, others: Iterable[str]) -> str | None:
    """Return a marker that holds where *marker* does and none of *others* does.

    None if that is nowhere as far as their texts tell, or cannot be said: for markers with ``~=``
    and ``===``, which have no opposite.

    Args:
        marker: empty for everywhere.
        others: the same.
    """
    parts = [marker] if marker else []
    for other in dict.fromkeys(others):
        if not other or other == marker:
            return None
        try:
            parts.append(_opposite(other))
        except _Unknown:
            return None
    return _both(parts)


def _both(parts: list[str]) -> str:
    """Return the marker that holds where all of *parts* do."""
    if len(parts) == 1:
        return parts[0]
    return " and ".join(f"({part})" if " or " in part else part for part in parts)


def _opposite(marker: str) -> str:
    """Return the marker that holds where *marker* does not.

    Raises:
        _Unknown: there is none, or *marker* is not valid.
    """
    if len(marker) > _MOST_CHARACTERS:
        raise _Unknown(marker)
    tokens = _tokens(marker)
    text, end = _any_of(tokens, 0)
    if end != "":
        raise _Unknown(marker)
    return text


def _tokens(marker: str) -> Iterator[str]:
    """Yield parentheses, ``and``, ``or``, and the opposites of comparisons; at the end ''."""
    position = 0
    while position < len(marker):
        match = _TOKEN.match(marker, position)
        if match is None:
            raise _Unknown(marker)
        position = match.end()
        if match["mark"]:
            yield match["mark"]
        else:
            operator = _OPPOSITES[" ".join(match["operator"].split())]
            yield f"{match['left']} {operator} {match['right']}"
    yield ""


def _any_of(tokens: Iterator[str], depth: int) -> tuple[str, str]:
    """Read operands of ``or``; return the opposite of all of it, and the token behind."""
    if depth > _MOST_DEPTH:
        raise _Unknown
    parts = []
    end = "or"
    while end == "or":
        part, end = _all_of(tokens, depth)
        parts.append(part)
    return _both(parts), end


def _all_of(tokens: Iterator[str], depth: int) -> tuple[str, str]:
    """Read operands of ``and``; return the opposite of all of it, and the token behind."""
    parts = []
    end = "and"
    while end == "and":
        item = next(tokens)
        if item == "(":
            part, closing = _any_of(tokens, depth + 1)
            if closing != ")":
                raise _Unknown
        elif item in ("", ")", "and", "or"):
            raise _Unknown
        else:
            part = item
        # "and" binds tighter than "or", so that groups of it need no parentheses.
        parts.append(part)
        end = next(tokens)
    if end not in ("", ")", "or"):
        raise _Unknown
    return " or ".join(parts), end
