"""JSON as the files of the corpus have it: on one line what fits there, by hand or generated."""

from __future__ import annotations

import json
from typing import Any

WIDTH = 100


def text_of(tree: Any) -> str:  # noqa: ANN401
    """Return *tree* as JSON text that ends with a newline."""
    return _text(tree, 0, 0) + "\n"


def _text(value: Any, indent: int, before: int) -> str:  # noqa: ANN401
    """Return *value*, which starts *before* characters into a line indented by *indent*."""
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value:
        return flat
    # The names of cases and files stand on lines of their own, short or not.
    if before + len(flat) < WIDTH and not (isinstance(value, dict) and "expect" in value):
        return flat
    inner = indent + 2
    if isinstance(value, dict):
        items = []
        for key, item in value.items():
            name = f"{json.dumps(key, ensure_ascii=False)}: "
            items.append(name + _text(item, inner, inner + len(name)))
        opening, closing = "{", "}"
    else:
        items = [_text(item, inner, inner) for item in value]
        opening, closing = "[", "]"
    lines = ",\n".join(" " * inner + item for item in items)
    return f"{opening}\n{lines}\n{' ' * indent}{closing}"
