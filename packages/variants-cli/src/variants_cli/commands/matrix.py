"""`variants matrix`: shows the variants of build matrices, plans CI jobs, or builds them."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pep_variants.files import replacing

from ..build_providers import with_build_providers
from ..checks.finding import ERROR
from ..checks.toml_file import check_matrix
from ..console import counted, fail, note, one_line, print_table, warn
from ..detection import plugin_runner_of
from ..matrix import output as outputs
from ..matrix.building import (
    Built,
    Failed,
    Plan,
    build_all,
    for_this_machine,
    locked,
    make_sdist,
    parallel_builds,
    same_contents,
    same_wheels,
)
from ..matrix.combination import combine, select
from ..matrix.model import BuildError, Matrix, Variant
from ..matrix.output import LIMITS, TEXTS, counts
from ..matrix.projects import (
    Project,
    check_build_requires,
    find_wheel,
    read_projects,
    select_lenient,
    with_abi_dependency,
    with_needed,
)
from ..matrix.reading import read_matrix
from ..pages.release_page import DOCUMENTS, SEVERAL, document, problem_of
from .arguments import platform_option, preference_options
from .index import index

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pep_variants.errors import VariantError
    from variants_plugins import PluginRunner

    Chosen = Mapping[str, Sequence[Variant]]

TABLE = "table"


class _MatrixFile(click.Path):
    """A file, or else the name of a matrix that comes with the package."""

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str | bytes | os.PathLike[str]:
        """Return the path."""
        shipped = Path(__file__).parents[1] / "matrices" / value
        found = shipped if shipped.is_file() and not os.path.exists(value) else value  # noqa: PTH110
        return super().convert(found, param, ctx)


@click.command(short_help="Show, plan or build the variants of a build matrix.")
@click.argument(
    "files",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=_MatrixFile(exists=True, dir_okay=False, path_type=Path),
)
@click.option(
    "--format",
    "form",
    type=click.Choice([TABLE, *TEXTS, *DOCUMENTS]),
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
    "--index/--no-index", "indexed", default=True, show_default=True, help="Index the built wheels."
)
def matrix(
    files: tuple[Path, ...],
    form: str,
    only: tuple[str, ...],
    verbose: bool,
    machines: tuple[str, ...],
    variant_enable: list[str],
    variant_allow_provider: list[str],
    build: bool,
    output: Path | None,
    source: Path | None,
    jobs: int,
    isolation: bool,
    against: Path | None,
    fresh: bool,
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
    if len(files) > 1 and not build and form not in (TABLE, *SEVERAL):
        raise click.UsageError(f"--format {form} is for one project: name one FILE")
    if (machines or variant_enable) and form not in DOCUMENTS:
        raise click.UsageError(
            f"--platform and --variant-enable need --format {' or '.join(DOCUMENTS)}"
        )
    _check_output(output, build=build, form=form)
    if form in DOCUMENTS and not build:
        # One by one: several files may be releases of one project.
        matrices = map(read_matrix, files)
        projects = tuple(Project("", read, combine(read)) for read in matrices)
        projects = tuple(_prepared(item, source, variant_allow_provider) for item in projects)
        releases = [(item.matrix, select(item.variants, only)) for item in projects]
        _print(_document(form, releases, machines, variant_enable), output)
        return
    projects = read_projects(files)
    if source is not None and len(projects) > 1:
        raise click.UsageError("--source needs one FILE that is built after no other project")
    projects = tuple(_prepared(item, source, variant_allow_provider) for item in projects)
    chosen = select_lenient(projects, only)
    if build:
        target = output or Path("dist")
        plan = Plan(projects[0].matrix, target, isolation, jobs, fresh)
        _build_projects(projects, chosen, plan, against)
        if indexed:
            index.main([str(target)], prog_name="variants index", standalone_mode=False)
        return
    listed = [project for project in projects if project.name in chosen]
    if form == TABLE:
        _show_table(listed, chosen, complete=verbose)
        return
    (project,) = listed
    variants, (service, limit) = chosen[project.name], LIMITS.get(form, ("", 0))
    if limit and len(variants) > limit:
        warn(
            f"{service} runs at most {limit} jobs per matrix, this one has {len(variants)}: "
            "select fewer with --only, such as --only AXIS=VALUE, in a job list each"
        )
    _print(TEXTS[form](project.matrix, variants), output)


# Reading.


def _prepared(project: Project, source: Path | None, allowed: Sequence[str]) -> Project:
    """Return *project* with what the providers of the build answer; print findings about it."""

    def runner_of() -> PluginRunner:
        return plugin_runner_of({"variant-allow-provider": list(allowed)})

    read = project.matrix
    read = replace(read, project=with_build_providers(read.project, runner_of))
    if source is not None:
        read = replace(read, build=replace(read.build, source=source))
    for finding in check_matrix(read, project.variants):
        message = ": ".join(filter(None, (finding.file, finding.place, finding.message)))
        if finding.severity == ERROR:
            raise click.ClickException(message)
        warn(message)
    return replace(project, matrix=read)


def _check_output(output: Path | None, *, build: bool, form: str) -> None:
    if output is None:
        return
    if not build and form == TABLE:
        raise click.UsageError("-o needs --build, or another --format than the table")
    if build and output.exists() and not output.is_dir():
        raise click.UsageError(f"-o: {output} is a file: name a directory for the wheels")
    if not build and output.is_dir():
        raise click.UsageError(f"-o: {output} is a directory: name a file, or add --build")


# Printing.


def _print(text: str, output: Path | None) -> None:
    """Print *text*, or write it to *output*."""
    text = text if text.endswith("\n") else f"{text}\n"
    if output is None:
        click.echo(text, nl=False)
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    with replacing(output) as stream:
        stream.write(text.encode())


def _document(
    form: str,
    chosen: Sequence[tuple[Matrix, Sequence[Variant]]],
    wanted: Sequence[str],
    enabled: Sequence[str],
) -> str:
    """Return who gets what.

    Args:
        form: one of `DOCUMENTS`.
        chosen: matrices with their selected variants.
        wanted: machines, as for ``--platform``.
        enabled: optional namespaces.
    """
    from ..pages.coverage import read_machines
    from ..pages.release_page import examine

    known, machines = read_machines(), read_machines(wanted)
    releases = [examine(item, some, machines, known, enabled) for item, some in chosen]
    text = document(form, releases)
    if problem := problem_of(form, text):
        warn(problem)
    return text


def _show_table(projects: Sequence[Project], chosen: Chosen, *, complete: bool) -> None:
    several = len(projects) > 1
    rows = [
        (*([project.name] if several else []), *row)
        for project in projects
        for row in outputs.table(chosen[project.name], complete=complete)
    ]
    print_table((*(["project"] if several else []), "label", "for", "needs"), rows)
    for project in projects:
        variants = chosen[project.name]
        after = ", ".join(item.project for item in project.matrix.build.after)
        name = f"{project.name}: " if several else ""
        of = f" of {len(project.variants)}" if len(variants) < len(project.variants) else ""
        built_after = f", built after {after}" if several and after else ""
        note(f"{name}{counts(variants)}{'' if several else of}{built_after}")


# Building.


def _build_projects(
    projects: Sequence[Project], chosen: Chosen, plan: Plan, against: Path | None
) -> None:
    """Build *chosen* variants of *projects*, in order, and what they are built against.

    Args:
        projects: in build order.
        chosen: by name of the project.
        plan: options for all of them.
        against: folder with wheels that are not built again.

    Raises:
        click.ClickException: some could not be built.
    """
    for project in projects:
        check_build_requires(project.matrix, isolated=plan.isolated)
    here = {name: for_this_machine(variants)[0] for name, variants in chosen.items()}
    wanted = with_needed(projects, here)
    wheels: dict[tuple[str, str], Path] = {}
    for project in projects:
        # Those for other machines are named, too.
        elsewhere = [v for v in chosen.get(project.name, ()) if v not in here[project.name]]
        variants: list[Variant] = []
        needed: dict[str, tuple[Path, ...]] = {}
        for variant in (*wanted[project.name], *elsewhere):
            if against is not None and not project.is_target:
                there = find_wheel(against, project.name, variant)
                if there is not None:
                    wheels[project.name, variant.name] = there
                    continue
            if variant not in elsewhere:
                for after, needs in project.needs.items():
                    wheel = wheels.get((after.project, needs[variant.name].name))
                    if wheel is None:
                        raise BuildError(
                            f"{project.name} {variant.name} needs {after.project} "
                            f"{needs[variant.name].name}, which cannot be built on this machine: "
                            "name a folder that has its wheel with --against"
                        )
                    needed[variant.name] = (*needed.get(variant.name, ()), wheel)
                    variant = with_abi_dependency(variant, after, wheel)
            variants.append(variant)
        if not variants:
            continue
        own = replace(plan, matrix=project.matrix, against=needed)
        if len(projects) > 1:
            own = replace(own, subfolder=project.name)
            note(f"{project.name}: {counts(variants)}")
        for built in _build(own, variants, project.variants):
            wheels[project.name, built.name] = plan.output / built.wheel


def _build(plan: Plan, chosen: Sequence[Variant], variants: Sequence[Variant]) -> list[Built]:
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
    at_once = parallel_builds(plan.jobs, plan.matrix.build.memory)
    if at_once < min(plan.jobs, len(here)):
        note(f"building {at_once} at a time, as the memory is not enough for {plan.jobs} builds")
    note(f"building with uv from {plan.matrix.build.source}")
    built: list[Built] = []
    failed: list[Failed] = []
    with locked(plan):
        try:
            sdist = make_sdist(plan)
        except BuildError as error:
            _show_log(error)
            raise
        with closing(build_all(plan, here, variants, sdist)) as results:
            for number, result in enumerate(results, 1):
                place = f"[{number:{len(str(len(here)))}}/{len(here)}] {result.name}"
                if isinstance(result, Built):
                    built.append(result)
                    click.echo(f"{place} {_how(result)}", err=True)
                else:
                    failed.append(result)
                    click.echo(f"{place} FAILED", err=True)
                    fail(str(result.error))
                    _show_log(result.error)
    order = {variant.name: number for number, variant in enumerate(here)}
    built.sort(key=lambda item: order[item.name])
    for item in built:
        if item.untested:
            note(f"{item.name}: not tested here: {item.untested}")
    _warn_of(built)
    for item in built:
        click.echo(plan.output / item.wheel)
    if failed:
        names = ", ".join(sorted((item.name for item in failed), key=order.__getitem__))
        raise click.ClickException(
            f"{len(failed)} of {counted(len(here), 'variant')} could not be built: {names}; "
            "no index was written; run the same command again to continue"
        )
    return built


def _warn_of(built: Sequence[Built]) -> None:
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


def _how(built: Built) -> str:
    if built.kept:
        return "is up to date"
    how = f"built in {built.seconds:.1f} s"
    return f"{how}, tested" if built.tested else how


def _show_log(error: VariantError) -> None:
    for line in error.tail if isinstance(error, BuildError) else ():
        click.echo(f"    {one_line(line)}", err=True)
