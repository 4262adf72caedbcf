"""A table for people at a terminal, with headings and colour."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text


def show_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print *rows* of printable cells below *headers*, if any is not empty."""
    table = Table(box=None, header_style="bold", pad_edge=False, show_header=any(headers))
    for header in headers:
        table.add_column(header, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)
