"""What goes to the terminal, and how."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pep_variants.errors import printable as printable
from pep_variants.errors import some as some

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

T = TypeVar("T")

_FEW = 20


def one_line(text: str) -> str:
    """Return *text* on one line and printable; it may contain values from untrusted files."""
    return printable(" ".join(text.split()))


def counted(number: int, noun: str) -> str:
    """Return *number* and *noun*, as in ``1 file`` and ``2,000 files``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def coloured(text: str, colour: str) -> str:
    """Return *text* for a terminal; as it is where the user wants no colours (no-color.org)."""
    return text if os.environ.get("NO_COLOR") else click.style(text, fg=colour)


def note(text: str) -> None:
    """Tell the user something on stderr that changes nothing about success."""
    click.echo(f"note: {one_line(text)}", err=True)


def warn(text: str) -> None:
    """Tell the user on stderr of something that is probably not what they want."""
    click.echo(f"{coloured('warning:', 'yellow')} {one_line(text)}", err=True)


def fail(text: str) -> None:
    """Tell the user on stderr what went wrong."""
    click.echo(f"{coloured('error:', 'red')} {one_line(text)}", err=True)


def print_json(value: Any) -> None:  # noqa: ANN401
    """Print *value* for programs: ASCII, so that no locale can break it."""
    click.echo(json.dumps(value, indent=2))


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print aligned columns; with headings and colour when people look, plain in a pipe."""
    lines = [tuple(map(one_line, row)) for row in rows]
    if sys.stdout.isatty():
        # Rich takes a moment to import, which programs that read the output need not wait for.
        from ._terminal_table import show_table

        show_table(headers, lines)
        return
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def grouped(rows: Iterable[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Yield *rows* for a table; a first cell as in the row above is left empty."""
    before = None
    for first, *rest in rows:
        yield "" if first == before else first, *rest
        before = first


def created_by() -> str:
    """Return what files that are written name as their author."""
    from importlib.metadata import version

    return f"variants-cli {version('variants-cli')}"


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
    with click.progressbar(items, total, what, file=sys.stderr) as bar:
        yield from bar
