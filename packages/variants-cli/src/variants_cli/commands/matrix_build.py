"""Building the variants of a matrix in view of the user."""

from __future__ import annotations

import sys
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import click

from ..console import counted, fail, note, one_line, warn
from ..matrix.build_plan import BuildError, Plan
from ..matrix.build_results import (
    KEPT,
    PACKED,
    Built,
    Failed,
    same_contents,
    same_wheels,
    unrelated_wheels,
)
from ..matrix.building import build_all, for_this_machine, locked
from ..matrix.memory import machine_memory, parallel_builds, shown_size
from ..matrix.model import Variant
from ..matrix.source_archive import make_sdist
from .matrix_checks import audit_built, check_built

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.status import Status

    from pep_variants.errors import VariantError


def build_variants(
    plan: Plan, chosen: Sequence[Variant], variants: Sequence[Variant]
) -> list[Built]:
    """Build *chosen* on this machine, show how it goes, and print the paths of the wheels.

    Args:
        plan: options.
        chosen: what to build; those for other machines are named and left out.
        variants: all of the matrix.

    Raises:
        click.ClickException: some could not be built.
    """
    here, elsewhere = for_this_machine(chosen)
    if elsewhere:
        note(f"not built on this machine: {', '.join(variant.name for variant in elsewhere)}")
    if not here:
        raise click.ClickException("none of the selected variants can be built on this machine")
    built: list[Built] = []
    failed: list[Failed] = []
    refused: list[Failed] = []
    memory = plan.matrix.build.memory
    at_once = parallel_builds(plan.jobs, memory, machine_memory())
    if at_once < min(plan.jobs, len(here)):
        note(
            f"building {at_once} at a time: each may take {shown_size(memory)}, and there is "
            f"{shown_size(machine_memory() or 0)}"
        )
    note(f"building with {plan.frontend} from {plan.matrix.build.source}")
    with locked(plan), _Progress(len(here)) as progress:
        try:
            sdist = make_sdist(plan)
        except BuildError as error:
            with progress.paused():
                _show_log(error)
            raise
        with closing(build_all(plan, here, sdist)) as events:
            for event in events:
                if isinstance(event, Variant):
                    progress.start(event.name)
                    continue
                with progress.ending(event.name) as place:
                    if isinstance(event, Built):
                        built.append(event)
                        click.echo(f"{place} {event.name} {_how(event)}", err=True)
                    else:
                        failed.append(event)
                        click.echo(f"{place} {event.name} FAILED", err=True)
                        fail(str(event.error))
                        _show_log(event.error)
        order = {variant.name: number for number, variant in enumerate(here)}
        built.sort(key=lambda item: order[item.name])
        audit_built(plan, variants, built)
        if plan.has_checks and built:
            with progress.paused():
                refused = check_built(plan, variants, built, sdist)
            failed += refused
            left = {item.name for item in refused}
            built = [item for item in built if item.name not in left]
    for labels in same_contents(built):
        warn(
            f"{' and '.join(labels)} install the same files: "
            "the build does not use what distinguishes them"
        )
    for names in same_wheels(built):
        warn(
            f"{' and '.join(names)} have the same wheel, which works for all of them: "
            "leave the others out"
        )
    for unrelated in unrelated_wheels(plan.output, built, variants):
        warn(
            f"{plan.output / unrelated} is not a variant of this matrix: "
            "remove it if it is outdated"
        )
    for item in built:
        click.echo(plan.output / item.wheel)
    if failed:
        left_out = ", ".join(sorted((item.name for item in failed), key=order.__getitem__))
        how = "could not be built or did not pass" if refused else "could not be built"
        raise click.ClickException(
            f"{len(failed)} of {counted(len(here), 'variant')} {how}: {left_out}; "
            "no index was written; run the same command again to continue"
        )
    return built


def _how(built: Built) -> str:
    if built.how == KEPT:
        return "is up to date"
    return "packed again" if built.how == PACKED else f"built in {built.seconds:.1f} s"


def _show_log(error: VariantError) -> None:
    for line in error.tail if isinstance(error, BuildError) else ():
        click.echo(f"    {one_line(line)}", err=True)


class _Progress:
    """A status line on stderr with the running builds, on a terminal only."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._ended = 0
        self._running: list[str] = []
        self._status: Status | None = None

    def __enter__(self) -> _Progress:
        if sys.stderr.isatty():
            from rich.console import Console

            self._status = Console(stderr=True).status("building the source distribution")
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def start(self, label: str) -> None:
        """Show that *label* is running."""
        self._running.append(label)
        self._show()

    @contextmanager
    def ending(self, label: str) -> Iterator[str]:
        """Remove *label* from the status line; yield its number, to print with a line meanwhile."""
        self._running.remove(label)
        self._ended += 1
        with self.paused():
            yield f"[{self._ended:{len(str(self._total))}}/{self._total}]"
        self._show()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Hide the status line while other lines are printed."""
        if self._status is None:
            yield
            return
        self._status.stop()
        yield
        self._status.start()

    def _show(self) -> None:
        if self._status is not None and self._running:
            self._status.update(f"building {', '.join(self._running)}")
