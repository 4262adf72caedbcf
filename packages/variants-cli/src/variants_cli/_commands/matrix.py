"""`variants matrix`: shows the variants of build matrices, plans CI jobs, or builds them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from packaging.utils import canonicalize_name

from pep_variants import safe_files

from .._build_providers import with_build_providers
from .._checks.document import check_document
from .._checks.finding import require_valid
from .._console import counted, fail, note, one_line, print_table, warn
from .._matrix import output as outputs
from .._matrix.building import (
    Built,
    Plan,
    build_all,
    for_this_machine,
    locked,
    same_contents,
    with_other_projects,
)
from .._matrix.combination import built_against, combine, select
from .._matrix.document import document, reference
from .._matrix.model import BuildError, Matrix, Variant
from .._matrix.output import TEXTS
from .._matrix.reading import matrix_path, read_matrix
from .._matrix.trial import tested
from .arguments import FILE, preference_options
from .index import index

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pep_variants.errors import VariantError

TABLE = "table"
_REFERENCE = "reference"
_TEXTS = {**TEXTS, "document": document, _REFERENCE: reference}


def _matrix_file(text: str) -> object:
    """Return the path of a file, or else of the matrix with this name that comes with the package.

    Raises:
        click.BadParameter: there is none.
    """
    return FILE.convert(matrix_path(text), None, None)


def _sources(
    _context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> dict[str, Path]:
    """Return paths by the name of their project, "" where none is named.

    Raises:
        click.BadParameter: there is no such file, or two are for one project.
    """
    found: dict[str, Path] = {}
    for text in texts:
        name, _, path = ("", "", text) if Path(text).exists() else text.rpartition("=")
        if not Path(path).exists():
            raise click.BadParameter(f"{path}: no such file or directory", param=parameter)
        if found.setdefault(canonicalize_name(name), Path(path)) != Path(path):
            raise click.BadParameter(f"two for {name or 'one project'}", param=parameter)
    return found


@click.command(short_help="Show, plan or build the variants of a build matrix.")
@click.argument(
    "files",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=_matrix_file,
)
@click.option(
    "--format",
    "form",
    type=click.Choice([TABLE, *_TEXTS]),
    default=TABLE,
    show_default=True,
    help="What to print; 'metadata' is the *-variants.json of the release, 'document' Markdown.",
)
@click.option(
    "--reference",
    "form",
    flag_value=_REFERENCE,
    help="Print what the file says of GPUs and CPUs, as Markdown; the same as --format reference.",
)
@click.option(
    "--only",
    metavar="WHICH",
    multiple=True,
    help="Select variants: a label, a pattern such as 'sm90_*', or AXIS=VALUE. Repeatable.",
)
@preference_options("variant-allow-provider")
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
    "sources",
    metavar="[PROJECT=]PATH",
    multiple=True,
    callback=_sources,
    help="Source tree or source distribution. Default: 'build.source' of the file. With the name "
    "of a project of 'build.after', its variants that are needed are built first. Repeatable.",
)
def matrix(
    files: tuple[Path, ...],
    form: str,
    only: tuple[str, ...],
    variant_allow_provider: list[str],
    build: bool,
    output: Path | None,
    sources: Mapping[str, Path],
) -> None:
    """Show, plan or build the variants of build matrices.

    A FILE lists axes, such as GPU architectures and CPU instruction sets, and what each value needs
    and builds with; every combination is a variant.

    With --build, builds a wheel of each variant in a separate source tree, and indexes the wheels.
    Those that are up to date are not built again. Logs are in DIR-build. Of several projects, name
    those first that others are built against ('build.after').

    Example: variants matrix torch.toml --only 'gpu=sm90' --build -o dist
    """
    if len(files) > 1 and not build:
        raise click.UsageError(f"--format {form} is for one project: name one FILE")
    if len(files) > 1 and "" in sources:
        raise click.UsageError("several FILEs: name the project of each --source, PROJECT=PATH")
    _check_output(output, build=build, form=form)
    releases = [_read(file, sources, variant_allow_provider) for file in files]
    chosen = [(read, select(variants, only)) for read, variants in releases]
    if build:
        target = output or Path("dist")
        plan = _with_needed(chosen, sources, variant_allow_provider)
        if len(plan) > 1:
            note(", then ".join(_step(read, some) for read, some in plan))
        for read, some in plan:
            _build(read, some, target)
        index.main([str(target)], prog_name="variants index", standalone_mode=False)
    elif form == TABLE:
        _show_table(chosen[0][1], releases[0][1])
    else:
        _print(_TEXTS[form](*chosen[0]), output)


def _read(
    file: Path, sources: Mapping[str, Path], allowed: Sequence[str]
) -> tuple[Matrix, Sequence[Variant]]:
    """Read a matrix *file*, ask the providers of the build, and print findings about it.

    Args:
        file: the matrix file.
        sources: what to build in place of what it names, by name of the project; "" for any.
        allowed: provider plugins that may run.
    """
    read = read_matrix(file)
    variants = combine(read)
    asked = with_build_providers(read.project, allowed)
    source = sources.get(read.name, sources.get(""))
    build = replace(read.build, source=source) if source is not None else read.build
    read = replace(read, project=asked, build=build)
    for after in read.build.after:
        built_against(read, variants, after)
    require_valid(check_document(outputs.metadata(read, variants).encode(), read.source)[1])
    return read, variants


def _with_needed(
    chosen: Sequence[tuple[Matrix, Sequence[Variant]]],
    sources: Mapping[str, Path],
    allowed: Sequence[str],
) -> list[tuple[Matrix, Sequence[Variant]]]:
    """Return *chosen* with the variants of other projects before them that they need.

    Args:
        chosen: matrices with those of their variants that are built.
        sources: sources by project; what is built against a project without one finds its wheels.
        allowed: provider plugins that may run.
    """
    plan: list[tuple[Matrix, Sequence[Variant]]] = []
    named = {read.name for read, _ in chosen}
    for read, some in chosen:
        here, _ = for_this_machine(some)
        for after in read.build.after if here else ():
            if after.project in sources and after.project not in named:
                needed = built_against(read, here, after).values()
                other, _ = _read(after.matrix, {"": sources[after.project]}, allowed)
                plan.append((other, tuple({variant.label: variant for variant in needed}.values())))
        plan.append((read, some))
    return plan


def _step(read: Matrix, some: Sequence[Variant]) -> str:
    return f"{read.name or read.source}: {counted(len(some), 'variant')}"


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
    with safe_files.replacing(output) as stream:
        stream.write(text.encode())


def _show_table(chosen: Sequence[Variant], variants: Sequence[Variant]) -> None:
    print_table(("label", "for", "needs"), outputs.table(chosen))
    of = f" of {len(variants)}" if len(chosen) < len(variants) else ""
    note(f"{counted(len(chosen), 'variant')}{of}")


# Building.


def _build(read: Matrix, chosen: Sequence[Variant], output: Path) -> None:
    """Build *chosen* on this machine, show how it goes, and print the paths of the wheels.

    Raises:
        click.ClickException: some could not be built.
    """
    here, elsewhere = for_this_machine(chosen)
    if elsewhere:
        note(f"not built on this machine: {', '.join(variant.label for variant in elsewhere)}")
    if not here:
        raise click.ClickException("none of the selected variants can be built on this machine")
    plan = with_other_projects(Plan(read, here, output))
    note(f"building with uv from {read.build.source}")
    built: list[Built] = []
    failed: list[str] = []
    try:
        with locked(plan):
            for number, (variant, result) in enumerate(tested(plan, build_all(plan)), 1):
                place = f"[{number:{len(str(len(here)))}}/{len(here)}] {variant.label}"
                if isinstance(result, Built):
                    built.append(result)
                    click.echo(f"{place} {one_line(result.how)}", err=True)
                else:
                    failed.append(variant.label)
                    click.echo(f"{place} FAILED", err=True)
                    fail(str(result))
                    _show_log(result)
    except BuildError as error:
        _show_log(error)
        raise
    for labels in same_contents(built):
        warn(
            f"{' and '.join(labels)} install the same files: "
            "the build does not use what distinguishes them"
        )
    for item in built:
        click.echo(output / item.wheel)
    if failed:
        or_tested = ", or failed the test" if read.build.test else ""
        raise click.ClickException(
            f"{len(failed)} of {counted(len(here), 'variant')} could not be built{or_tested}: "
            f"{', '.join(failed)}; no index was written; run the same command again to continue"
        )


def _show_log(error: VariantError) -> None:
    for line in error.tail if isinstance(error, BuildError) else ():
        click.echo(f"    {one_line(line)}", err=True)
