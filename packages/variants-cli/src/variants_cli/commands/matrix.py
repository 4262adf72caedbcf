"""`variants matrix`: shows the variants of a build matrix, plans CI jobs, or builds them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pep_variants.files import replacing

from ..build_providers import with_build_providers
from ..checks.finding import ERROR
from ..checks.matrix_file import check_matrix
from ..console import note, print_table, warn
from ..detection import plugin_runner_of
from ..matrix.build_plan import Plan
from ..matrix.cibuildwheel import as_shell, as_variables
from ..matrix.combination import combine, select
from ..matrix.frontends import AUTO, FRONTENDS, find_frontend
from ..matrix.model import Matrix, Variant
from ..matrix.output import LIMITS, PARTS, TEXTS, metadata, table
from ..matrix.parts import counts, grouped, read_share, share
from ..matrix.planned_flags import planned_source
from ..matrix.project_order import Project, read_projects, select_lenient
from ..matrix.reading import read_matrix
from ..pictures.documents import DOCUMENTS, SEVERAL, document, problem_of
from .arguments import platform_option, preference_options
from .index import index
from .matrix_projects import as_text, as_text_of_one, build_projects, show_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from variants_plugins import PluginRunner

    from ..pictures.release import Release

TABLE, METADATA = "table", "metadata"
TOGETHER = ("json", "github", "gitlab")
"""Formats for several projects, beside the table."""
CIBUILDWHEEL = {"cibuildwheel": as_shell, "cibuildwheel-env": as_variables}


def _share(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> tuple[int, int] | None:
    try:
        return None if text is None else read_share(text)
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from None


@click.command(short_help="Show, plan or build the variants of a build matrix.")
@click.argument(
    "files",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@click.option(
    "--format",
    "form",
    type=click.Choice([TABLE, *TEXTS, *CIBUILDWHEEL, METADATA, *DOCUMENTS]),
    default=TABLE,
    show_default=True,
    help="What to print; 'metadata' is the *-variants.json of the release. "
    f"{', '.join(DOCUMENTS)} show which machines get what.",
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
@platform_option(
    "machines",
    several=True,
    help="Machine to show in a picture: a name or pattern such as 'h100-*', facts such as "
    "cuda=12.8,sm=9.0,cpu=zen4, or a platform file. Default: all known machines",
)
@preference_options("variant-enable", "variant-allow-provider")
@click.option("-v", "--verbose", is_flag=True, help="In the table, show all alternatives.")
@click.option("--build", is_flag=True, help="Build variant wheels on this machine, and index them.")
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="Where the output goes: with --build the directory of the wheels and the index, 'dist' by "
    "default; otherwise a file in place of the terminal.",
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
@click.option(
    "--against",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Directory with wheels of the projects in 'build.after', which are not built then.",
)
@click.option("--fresh", is_flag=True, help="Rebuild wheels that are up to date.")
@click.option(
    "--gate/--no-gate",
    default=True,
    show_default=True,
    help="Refuse variants that 'build.benchmark' finds slower than the null variant.",
)
@click.option(
    "--index/--no-index", "indexed", default=True, show_default=True, help="Index the built wheels."
)
def matrix(  # noqa: C901
    files: tuple[Path, ...],
    form: str,
    only: tuple[str, ...],
    part: tuple[int, int] | None,
    group_by: tuple[str, ...],
    verbose: bool,
    machines: tuple[str, ...],
    variant_enable: list[str],
    variant_allow_provider: list[str],
    build: bool,
    output: Path | None,
    source: Path | None,
    jobs: int,
    frontend: str,
    isolation: bool,
    against: Path | None,
    fresh: bool,
    gate: bool,
    indexed: bool,
) -> None:
    """Show, plan or build the variants of build matrices.

    A FILE lists axes, such as GPU architectures and CPU instruction sets, and what each value needs
    and builds with; every combination is a variant.

    With --build, builds a wheel of each variant in a separate source tree. Wheels that are up to
    date are not built again. Logs are in DIR-build. Of several projects, those that others are
    built against ('build.after') are built first.

    Several files make one document, with --format markdown.

    Example: variants matrix torch.toml --only 'gpu=sm90' --build -o dist
    """
    if len(files) > 1 and not build and form not in (TABLE, *TOGETHER, *SEVERAL):
        raise click.UsageError(f"--format {form} is for one project: name one FILE")
    if (machines or variant_enable) and form not in DOCUMENTS:
        raise click.UsageError(
            f"--platform and --variant-enable need --format {' or '.join(DOCUMENTS)}"
        )
    if group_by and form not in PARTS:
        raise click.UsageError(f"--group-by needs --format {' or '.join(PARTS)}")
    _check_output(output, build=build, form=form)
    if form in DOCUMENTS and not build:
        examined = [_read(file, source, only, part, variant_allow_provider) for file in files]
        releases = _releases(examined, machines, variant_enable)
        text = document(form, releases)
        _print(text, output)
        if problem := problem_of(form, text):
            warn(problem)
        return
    projects = read_projects(files)
    if source is not None:
        if len(projects) > 1:
            raise click.UsageError("--source needs one FILE that is built after no other project")
        projects = (replace(projects[0], matrix=_from_source(projects[0].matrix, source)),)
    projects = tuple(
        replace(project, matrix=_asked(project.matrix, variant_allow_provider))
        for project in projects
    )
    for project in projects:
        _check(project.matrix, project.variants)
    selected = select_lenient(projects, only)
    chosen = {name: _share_of(variants, part) for name, variants in selected.items()}
    if build:
        target = output or Path("dist")

        def plan_of(matrix: Matrix, folder: str) -> Plan:
            tool = find_frontend(frontend)
            return Plan(matrix, target, tool, isolation, jobs, fresh, subfolder=folder, gate=gate)

        build_projects(projects, chosen, plan_of, against)
        if indexed:
            index.main([str(target)], prog_name="variants index", standalone_mode=False)
    elif len(chosen) == 1:
        (project,) = (project for project in projects if project.name in chosen)
        if form == TABLE:
            _show_table(project, chosen[project.name], complete=verbose)
        else:
            _show(project, chosen[project.name], form, group_by, output)
    elif group_by:
        raise click.UsageError("--group-by is for one project: name one FILE")
    elif form == TABLE:
        show_table(projects, chosen, complete=verbose)
    else:
        for variants in chosen.values():
            _warn_of_limit(form, variants)
        _print(as_text(form, projects, chosen), output)


def _from_source(matrix: Matrix, source: Path) -> Matrix:
    return replace(matrix, build=replace(matrix.build, source=source))


def _share_of(variants: Sequence[Variant], part: tuple[int, int] | None) -> tuple[Variant, ...]:
    found = tuple(variants) if part is None else share(variants, *part)
    if not found:
        raise click.ClickException("this share is empty: choose a smaller count")
    return found


def _read(
    file: Path,
    source: Path | None,
    only: Sequence[str],
    part: tuple[int, int] | None,
    allowed: Sequence[str],
) -> tuple[Matrix, tuple[Variant, ...], tuple[Variant, ...]]:
    """Return a matrix, all its variants, and those of them that are selected."""
    read = _asked(read_matrix(file), allowed)
    if source is not None:
        read = _from_source(read, source)
    variants = combine(read)
    _check(read, variants)
    return read, variants, _share_of(select(variants, only), part)


def _releases(
    examined: Sequence[tuple[Matrix, tuple[Variant, ...], tuple[Variant, ...]]],
    wanted: Sequence[str],
    enabled: Sequence[str],
) -> list[Release]:
    """Return what pictures show of each matrix.

    Args:
        examined: matrices with all and with the selected variants.
        wanted: machines, as for ``--platform``.
        enabled: optional namespaces.
    """
    from ..pictures.machines import read_machines
    from ..pictures.release import examine

    known = read_machines()
    machines = read_machines(wanted)
    return [examine(read, chosen, machines, known, enabled) for read, _, chosen in examined]


def _check_output(output: Path | None, *, build: bool, form: str) -> None:
    if output is None:
        return
    if not build and form == TABLE:
        raise click.UsageError("-o needs --build, or another --format than the table")
    if build and output.exists() and not output.is_dir():
        raise click.UsageError(f"-o: {output} is a file: name a directory for the wheels")
    if not build and output.is_dir():
        raise click.UsageError(f"-o: {output} is a directory: name a file, or add --build")


def _print(text: str, output: Path | None) -> None:
    """Print *text*, or write it to *output*."""
    text = text if text.endswith("\n") else f"{text}\n"
    if output is None:
        click.echo(text, nl=False)
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    with replacing(output) as stream:
        stream.write(text.encode())


def _show_table(project: Project, chosen: Sequence[Variant], *, complete: bool) -> None:
    print_table(("label", "for", "needs"), table(chosen, complete=complete))
    of = f" of {len(project.variants)}" if len(chosen) < len(project.variants) else ""
    note(f"{counts(chosen)}{of}")


def _show(
    project: Project,
    chosen: Sequence[Variant],
    form: str,
    group_by: Sequence[str],
    output: Path | None,
) -> None:
    if form == METADATA:
        _print(metadata(project.matrix, chosen), output)
    elif form in CIBUILDWHEEL:
        _print(CIBUILDWHEEL[form](project.matrix.build, chosen), output)
    elif group_by:
        source = planned_source(project.matrix.build, chosen)
        _print(PARTS[form](grouped(chosen, group_by, LIMITS[form][1]), source), output)
    else:
        _warn_of_limit(form, chosen)
        own = project.needs and form in TOGETHER
        if own:
            text = as_text_of_one(form, project, chosen)
        else:
            text = TEXTS[form](chosen, planned_source(project.matrix.build, chosen))
        _print(text, output)


def _warn_of_limit(form: str, chosen: Sequence[Variant]) -> None:
    service, limit = LIMITS.get(form, ("", len(chosen)))
    if len(chosen) > limit:
        warn(f"{service} runs at most {limit} jobs per matrix, this one has {len(chosen)}: "
             "split it with --group-by")  # fmt: skip


def _asked(read: Matrix, allowed: Sequence[str]) -> Matrix:
    """Return the matrix with what the providers of the build say."""

    def runner_of() -> PluginRunner:
        return plugin_runner_of({"variant-allow-provider": list(allowed)})

    return replace(read, project=with_build_providers(read.project, runner_of))


def _check(read: Matrix, variants: Sequence[Variant]) -> None:
    for finding in check_matrix(read, variants):
        message = ": ".join(filter(None, (finding.file, finding.place, finding.message)))
        if finding.severity == ERROR:
            raise click.ClickException(message)
        warn(message)
