"""The selector: which build each machine needs of each project, and what that is made of.

`record` is what indexes list, `answers` is what the engine chooses out of it; `selector_page` makes
a page of them.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import Any

from .answers import tree
from .record import read_record


@cache
def all_answers() -> dict[str, Any]:
    """Return the data of the page, computed once, without a network.

    ``answers[rows[choices[PROJECT][SYSTEM][number]][python]]`` is the answer for a machine: its
    number is the place of ``GPU/DRIVER`` among ``machines[SYSTEM]``, where a GPU counts by its
    facts on that system; Python by its place among ``pythons``. Equal answers, rows and facts are
    there once. An answer without ``chosen`` has none; with ``ask`` an index could not be read.
    """
    log = logging.getLogger("pep_variants")
    level = log.level
    log.setLevel(logging.WARNING)  # a theme shows what is logged, of thousands of machines
    try:
        return tree(read_record())
    finally:
        log.setLevel(level)
