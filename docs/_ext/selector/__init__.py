"""The selector: which build each machine needs of each project, and what that is made of.

`record` is what indexes list, `answers` is what the engine chooses out of it; `selector_page` makes
a page of them.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from .answers import tree
from .record import read_record


@cache
def all_answers() -> dict[str, Any]:
    """Return the data of the page, computed once, without a network."""
    return tree(read_record())
