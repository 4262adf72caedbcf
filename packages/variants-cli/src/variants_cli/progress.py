"""Bars for long work, on a terminal."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeVar

    from rich.progress import Progress

    T = TypeVar("T")

_FEW = 20


def tracked(items: Iterable[T], total: int, what: str) -> Iterator[T]:
    """Yield *items*, and show on stderr how many have come, if that is a terminal.

    Args:
        items: results of steps that take long.
        total: their number; nothing is shown for a few.
        what: what is being done, such as ``reading wheels``.
    """
    if total < _FEW or not sys.stderr.isatty():
        yield from items
        return
    with _bar() as progress:
        task = progress.add_task(what, total=total)
        for item in items:
            yield item
            progress.advance(task)


@contextmanager
def _bar() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield progress
