"""Parsing the JSON of variant metadata: text that repeats is parsed once.

Thousands of variants list a few hundred different tables of features, as the same text. Splitting
that text at its closing braces and looking the pieces up takes less time than parsing all of it,
and what is equal becomes one object, which is checked and judged once.

A document that is written in another way than JSON libraries write it, or in which little repeats,
is parsed as a whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from operator import itemgetter
from typing import Any, NamedTuple

_VARIANTS = re.compile(r'(?<!\\)"variants"[ \t\n\r]*:[ \t\n\r]*\{')
_SPACE = " \t\n\r"
_DIFFERENT = 1000
_BETWEEN_LABELS = re.compile(r"[ \t\n\r]*:[ \t\n\r]*\0[ \t\n\r]*,[ \t\n\r]*")
_decode = json.JSONDecoder().raw_decode


class Listed(NamedTuple):
    """Where a table of features is listed first.

    Attributes:
        label: of the variant.
        namespace: of the features.
        features: the table as parsed, of whatever type; one object wherever it is repeated.
    """

    label: str
    namespace: str
    features: Any


class Document(NamedTuple):
    """Parsed metadata.

    Attributes:
        tree: what `json.loads` returns for the text.
        listed: every table of features, once if it is shared, in the order of the text; None if
            nothing was looked up, so that nothing is shared.
    """

    tree: Any
    listed: list[Listed] | None = None


class _Unusual(Exception):
    """The text may be valid, but cannot be parsed in pieces."""


def load(text: str) -> Document:
    """Parse *text*.

    Raises:
        ValueError, RecursionError: as `json.loads`.
    """
    try:
        return _in_pieces(text)
    except (_Unusual, ValueError, RecursionError):
        return Document(json.loads(text))


def _in_pieces(text: str) -> Document:
    # The one key of this name, as no other spelling of it is left: `\"` is the only escape.
    if text.count('"variants"') != 1:
        raise _Unusual
    if "\\" in text and text.count("\\") != text.count('\\"'):
        raise _Unusual
    found = _VARIANTS.search(text)
    if found is None:
        raise _Unusual
    split = text[found.end() :].split("}")
    pieces = iter(split)
    heads, variants, listed = _variants(pieces)
    rest = list(pieces)
    # Each variant is a piece for each namespace, and one behind it; a name that is there twice
    # leaves fewer.
    if sum(map(len, variants)) + len(variants) + 1 != len(split) - len(rest):
        raise _Unusual
    tree = json.loads("}".join((text[: found.end()], *rest)))
    if type(tree) is not dict or tree.get("variants") != {}:
        raise _Unusual  # the key is further inside
    labels = _labels(heads)
    tree["variants"] = dict(zip(labels, variants, strict=True))
    if len(tree["variants"]) != len(labels):
        raise _Unusual
    return Document(tree, [Listed(labels[place], *item) for place, *item in listed])


def _variants(
    pieces: Iterator[str],
) -> tuple[list[str], list[dict[str, Any]], list[tuple[int, str, Any]]]:
    """Read *pieces* up to the end of the table of variants.

    A piece stands for the same in every place: it has no closing brace, and was parsed by itself,
    so that no string goes on behind its end.

    Returns:
        The text before the properties of each variant, these properties, and for every different
        piece the number of its first variant, its namespace and features.
    """
    heads: list[str] = []
    variants: list[dict[str, Any]] = []
    first: dict[str, tuple[int, str, Any] | None] = {}
    later: dict[str, tuple[int, str, Any] | None] = {}  # with a comma in front
    for piece in pieces:
        head, brace, rest = piece.partition("{")
        if not brace:
            if head.strip(_SPACE):
                raise _Unusual
            found = (*first.values(), *later.values())
            return heads, variants, sorted(filter(None, found), key=itemgetter(0))
        properties: dict[str, Any] = {}
        known = first
        while True:
            try:
                item = known[rest]
            except KeyError:
                if len(first) + len(later) > _DIFFERENT + len(heads) // 2:
                    raise _Unusual from None  # too little repeats
                item = known[rest] = _namespace(rest, len(heads), "," if known is later else "")
            if item is None:
                break
            properties[item[1]] = item[2]
            rest = next(pieces, "{")
            known = later
        heads.append(head)
        variants.append(properties)
    raise _Unusual


def _namespace(piece: str, variant: int, comma: str) -> tuple[int, str, Any] | None:
    """Return *variant*, the namespace and the features of *piece*; None for white space."""
    piece = piece.strip(_SPACE)
    if not piece:
        return None
    if not piece.startswith(comma):
        raise _Unusual
    text = f"{{{piece[len(comma) :]}}}}}"
    table, end = _decode(text)
    if end != len(text) or len(table) != 1:
        raise _Unusual
    [(namespace, features)] = table.items()
    return variant, namespace, features


def _labels(heads: list[str]) -> list[str]:
    """Return the label of each of *heads*: ``"LABEL":``, with a comma before all but the first."""
    if not heads:
        return []
    joined = "\0".join(heads)
    parts = f":\0,{joined}\0,".split('"')
    labels = parts[1::2]
    if (
        len(labels) != len(heads)
        or not all(map(_BETWEEN_LABELS.fullmatch, set(parts[::2])))
        or "\\" in joined
        or not "".join(labels).isprintable()
    ):
        raise _Unusual
    return labels
