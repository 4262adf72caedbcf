"""TOML reading, from the standard library or, on Python 3.10, from tomli."""

from __future__ import annotations

import sys
from typing import Any


def loads(text: str) -> dict[str, Any]:
    """Return the tables of a TOML document.

    Raises:
        ValueError: it is none.
    """
    # Imported late: most commands find no file to read.
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    tree: dict[str, Any] = tomllib.loads(text)
    return tree
