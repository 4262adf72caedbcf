"""`variants matrix`: shows the variants of a build matrix, plans CI jobs, or builds them."""

from __future__ import annotations

import os
import sys
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pep_variants.errors import VariantError

from ..checks.document import check_document
from ..checks.finding import ERROR
from ..console import counted, fail, note, one_line, print_table, warn
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
from ..matrix.cibuildwheel import as_shell, as_variables
from ..matrix.combination import combine, select
from ..matrix.flags import warnings_of_lost_flags
from ..matrix.frontends import AUTO, FRONTENDS, find_frontend
from ..matrix.model import Matrix, Variant
from ..matrix.output import LIMITS, PARTS, TEXTS, metadata, table
from ..matrix.parts import counts, grouped, read_share, share
from ..matrix.reading import read_matrix
from ..matrix.source_archive import make_sdist
from .index import index

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.status import Status

TABLE, METADATA = "table", "metadata"
CIBUILDWHEEL = {"cibuildwheel": as_shell, "cibuildwheel-env": as_variables}


def _share(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> tuple[int, int] | None:
    try:
        return None if text is None else read_share(text)
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from None


@click.command(short_help="Show, plan or build the variants of a build matrix.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice([TABLE, *TEXTS, *CIBUILDWHEEL, METADATA]),
    default=TABLE,
    show_default=True,
    help="What to print; 'metadata' is the *-variants.json of the release.",
)
@click.option(
    "--only",
    metavar="WHICH",
    multiple=True,
    help="Select variants: a label, a pattern such as 'sm90_*', or AXIS=VALUE. Repeatable.",
)
@click.option(
    "--part",
    metavar="N/COUNT",
    callback=_share,
    help="Of the selected ones, the N-th of COUNT shares of equal size.",
)
@click.option(
    "--group-by",
    metavar="AXIS",
    multiple=True,
    help="With --format github or gitlab: a list of jobs for each value of the axis, and several "
    "where the service's limit is exceeded. Repeatable.",
)
@click.option("--build", is_flag=True, help="Build variant wheels on this machine, and index them.")
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("dist"),
    show_default=True,
    help="Directory for the wheels and the index.",
)
@click.option(
    "--source",
    metavar="PATH",
    type=click.Path(exists=True, path_type=Path),
    help="Source tree or source distribution. Default: 'build.source' of the file.",
)
@click.option(
    "-j",
    "--jobs",
    metavar="N",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of parallel builds.",
)
@click.option(
    "--frontend",
    type=click.Choice([AUTO, *FRONTENDS]),
    default=AUTO,
    show_default=True,
    help="Build frontend; 'auto' is uv if it is installed.",
)
@click.option(
    "--isolation/--no-isolation",
    default=True,
    show_default=True,
    help="Build in isolated environments, or in the current one.",
)
@click.option("--fresh", is_flag=True, help="Rebuild wheels that are up to date.")
@click.option(
    "--index/--no-index", "indexed", default=True, show_default=True, help="Index the built wheels."
)
def matrix(
    file: Path,
    form: str,
    only: tuple[str, ...],
    part: tuple[int, int] | None,
    group_by: tuple[str, ...],
    build: bool,
    output: Path,
    source: Path | None,
    jobs: int,
    frontend: str,
    isolation: bool,
    fresh: bool,
    indexed: bool,
) -> None:
    """Show, plan or build the variants of a build matrix.

    FILE lists axes, such as GPU architectures and CPU instruction sets, and what each value needs
    and builds with; every combination is a variant.

    With --build, builds a wheel of each variant in a separate source tree. Wheels that are up to
    date are not built again. Logs are in DIR-build.

    Example: variants matrix torch.toml --only 'gpu=sm90' --build -o dist
    """
    read = read_matrix(file)
    if source is not None:
        read = replace(read, build=replace(read.build, source=source))
    variants = combine(read)
    _check(read, variants)
    chosen = select(variants, only)
    if part is not None:
        chosen = share(chosen, *part)
        if not chosen:
            raise click.ClickException("this share is empty: choose a smaller count")
    if group_by and form not in PARTS:
        raise click.UsageError(f"--group-by needs --format {' or '.join(PARTS)}")
    if build:
        plan = Plan(read, output, find_frontend(frontend), isolation, jobs, fresh)
        _build(plan, chosen, variants)
        if indexed:
            index.main([str(output)], prog_name="variants index", standalone_mode=False)
    elif form == TABLE:
        print_table(("label", "for", "needs"), table(chosen))
        of = f" of {len(variants)}" if len(chosen) < len(variants) else ""
        note(f"{counts(chosen)}{of}")
    elif form == METADATA:
        click.echo(metadata(read, chosen), nl=False)
    elif form in CIBUILDWHEEL:
        click.echo(CIBUILDWHEEL[form](read.build, chosen))
    elif group_by:
        click.echo(PARTS[form](grouped(chosen, group_by, LIMITS[form][1])))
    else:
        service, limit = LIMITS.get(form, ("", len(chosen)))
        if len(chosen) > limit:
            warn(f"{service} runs at most {limit} jobs per matrix, this one has {len(chosen)}: "
                 "split it with --group-by")  # fmt: skip
        click.echo(TEXTS[form](chosen))


def _check(read: Matrix, variants: Sequence[Variant]) -> None:
    _, findings = check_document(metadata(read, variants).encode(), read.source)
    for finding in findings:
        if finding.severity == ERROR:
            raise click.ClickException(f"{finding.place}: {finding.message}")
        warn(f"{finding.place}: {finding.message}")
    for message in warnings_of_lost_flags(read, variants, os.environ):
        warn(f"{read.source}: {message}")


def _build(plan: Plan, chosen: Sequence[Variant], variants: Sequence[Variant]) -> None:
    here, elsewhere = for_this_machine(chosen)
    if elsewhere:
        note(f"not built on this machine: {', '.join(variant.name for variant in elsewhere)}")
    if not here:
        raise click.ClickException("none of the selected variants can be built on this machine")
    built: list[Built] = []
    failed: list[Failed] = []
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
        raise click.ClickException(
            f"{len(failed)} of {counted(len(here), 'variant')} could not be built: {left_out}; "
            "no index was written; run the same command again to continue"
        )


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
