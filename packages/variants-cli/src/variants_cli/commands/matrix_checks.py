"""Checking the wheels of a matrix in view of the user."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import TYPE_CHECKING

import click

from ..console import fail, note, one_line, warn
from ..matrix.build_plan import BuildError
from ..matrix.build_results import KEPT, Failed
from ..matrix.checked_commands import FASTER
from ..matrix.checking import Checked, Checker
from ..matrix.combination import metadata_of
from ..matrix.performance_gate import shown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ..matrix.build_plan import Plan
    from ..matrix.build_results import Built
    from ..matrix.model import Variant
    from ..matrix.performance_gate import Comparison

_NOISY = 0.1
"""Half of the interval of a ratio from which on a benchmark is called noisy."""


def check_built(
    plan: Plan, variants: Sequence[Variant], built: Sequence[Built], sdist: Path
) -> list[Failed]:
    """Test and measure *built*, show what is found, and return those that fail.

    Args:
        plan: options.
        variants: all of the matrix.
        built: wheels to check.
        sdist: the source distribution they were built from.
    """
    stop = threading.Event()
    failed: list[Failed] = []
    compared: list[Comparison] = []
    try:
        with closing(Checker(plan, variants, sdist, stop).check(built)) as found:
            for checked in found:
                _show(checked)
                if checked.comparison is not None:
                    compared.append(checked.comparison)
                if checked.error is not None:
                    failed.append(Failed(checked.built.name, checked.error))
    finally:
        stop.set()
    benchmark = plan.matrix.build.benchmark
    if compared and benchmark is not None:
        _show_table(compared, benchmark.baseline)
        for item in compared:
            if (item.high - item.low) / 2 > _NOISY:
                note(
                    f"{item.name}: the figures of its benchmark differ much: measure on an idle "
                    "machine, or raise build.benchmark.rounds"
                )
            if item.is_slower and not plan.gate:
                warn(f"{item.name} is slower than {benchmark.baseline}: kept, as --no-gate says")
            elif not (item.is_slower or item.is_faster or benchmark.require == FASTER):
                note(f"{item.name} is not faster than {benchmark.baseline}: is it worth a wheel?")
    return failed


def audit_built(plan: Plan, variants: Sequence[Variant], built: Sequence[Built]) -> None:
    """Warn where the libraries of wheels that were built now disagree with their labels."""
    from ..audit.audit_findings import check_instructions
    from ..audit.wheel_audit import AuditUnavailable

    by_name = {variant.name: variant for variant in variants}
    for item in built:
        if item.how == KEPT:
            continue
        metadata = metadata_of(plan.matrix, [by_name[item.name]])
        try:
            findings = check_instructions(plan.place(item.wheel), metadata)
        except AuditUnavailable as problem:
            note(f"instructions are not audited: {problem}")
            return
        for finding in findings:
            warn(f"{item.name}: {finding.place}: {finding.message} [{finding.code}]")


def _show(checked: Checked) -> None:
    name = checked.built.name
    if checked.error is not None:
        click.echo(f"{name} FAILED", err=True)
        fail(str(checked.error))
        for line in checked.error.tail if isinstance(checked.error, BuildError) else ():
            click.echo(f"    {one_line(line)}", err=True)
    elif checked.tested:
        click.echo(f"{name} tested", err=True)
    if checked.untested:
        note(f"{name}: {checked.untested}")


def _show_table(compared: Sequence[Comparison], baseline: str) -> None:
    """Print the figures on stderr, where everything but the paths of wheels goes."""
    rows = [("variant", "figure", f"of {baseline}", "ratio", "95 % interval", "")]
    rows += [
        (
            item.name,
            shown(item.time, item.unit),
            shown(item.baseline_time, item.unit),
            f"{item.ratio:.3f}",
            f"{item.low:.3f} to {item.high:.3f}",
            item.verdict,
        )
        for item in compared
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip(), err=True)
