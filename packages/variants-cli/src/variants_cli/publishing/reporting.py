"""What a person sees while a release is published: progress bars on a terminal, lines otherwise."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import click

from ..console import counted, note, one_line, printable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from .target import Progress


class Reporter(Protocol):
    """Shows what happens; may be called from several threads."""

    def step(self, what: str, files: int) -> None:
        """Show that a step begins, with so many files."""

    def sending(self, filename: str, size: int) -> AbstractContextManager[Progress]:
        """Show that a file is uploaded, in the context that is returned."""

    def done(self, filename: str, size: int, state: str) -> None:
        """Show that the target has a file."""

    def published(self, filename: str, state: str) -> None:
        """Show that metadata is visible."""

    def note(self, text: str) -> None:
        """Show that something takes longer, or goes another way."""


class Lines:
    """Lines on stdout for a log; notes on stderr."""

    def __init__(self, steps: int, *, quiet: bool = False) -> None:
        """Set up.

        Args:
            steps: how many there are.
            quiet: print notes alone: stdout is for JSON.
        """
        self._steps, self._number, self._quiet = steps, 0, quiet

    def step(self, what: str, files: int) -> None:
        """Print the step."""
        self._number += 1
        self._print(f"[{self._number}/{self._steps}] {what}: {counted(files, 'file')}")

    @contextmanager
    def sending(self, filename: str, size: int) -> Iterator[Progress]:
        """Print nothing before it is done."""
        del filename, size
        yield lambda _: None

    def done(self, filename: str, size: int, state: str) -> None:
        """Print the file."""
        self._print(f"  {filename}: {in_bytes(size)}, {state}")

    def published(self, filename: str, state: str) -> None:
        """Print the name of the metadata."""
        self._print(f"  {filename}: {state}")

    def note(self, text: str) -> None:
        """Print a note."""
        note(text)

    def _print(self, text: str) -> None:
        if not self._quiet:
            click.echo(printable(text))


class ProgressBars(Lines):
    """The same lines above bars on stderr: one for all bytes, one for each upload."""

    def __init__(self, steps: int, bars: Bars, total: int, *, quiet: bool = False) -> None:
        """Set up.

        Args:
            steps: how many there are.
            bars: on the terminal, started.
            total: bytes of all files.
            quiet: print no lines to stdout.
        """
        super().__init__(steps, quiet=quiet)
        self._bars = bars
        self._all: TaskID = bars.add_task("all files", total=total)

    @contextmanager
    def sending(self, filename: str, size: int) -> Iterator[Progress]:
        """Show a bar while the file is sent."""
        from rich.markup import escape

        task = self._bars.add_task(escape(one_line(filename)[-60:]), total=size)
        sent = 0

        def advance(count: int) -> None:
            nonlocal sent
            sent += count
            self._bars.update(task, advance=count)
            self._bars.update(self._all, advance=count)

        try:
            yield advance
        finally:
            self._bars.remove_task(task)
            self._bars.update(self._all, advance=-sent)  # counted once, when it is done

    def done(self, filename: str, size: int, state: str) -> None:
        """Print the file, and count it."""
        self._bars.update(self._all, advance=size)
        super().done(filename, size, state)

    def note(self, text: str) -> None:
        """Print a note above the bars."""
        self._bars.console.print(f"note: {one_line(text)}", markup=False, highlight=False)

    def _print(self, text: str) -> None:
        if not self._quiet:
            self._bars.console.print(text, markup=False, highlight=False)


@contextmanager
def reporter(steps: int, total: int, *, as_json: bool) -> Iterator[Reporter]:
    """Yield what fits: bars if stderr is a terminal, lines otherwise.

    Args:
        steps: how many there are.
        total: bytes of all files.
        as_json: stdout is for JSON.
    """
    import sys

    if not sys.stderr.isatty():
        yield Lines(steps, quiet=as_json)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    # Results go to stdout, wherever that is; notes to stderr, above the bars.
    with Progress(*columns, console=console, transient=True, redirect_stdout=False) as bars:
        yield ProgressBars(steps, bars, total, quiet=as_json)


def in_bytes(size: int) -> str:
    """Return a size as people read it: ``1.2 GB``."""
    amount = float(size)
    for unit in ("bytes", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:,.1f} GB"
