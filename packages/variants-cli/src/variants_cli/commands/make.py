"""`variants make`: plain wheels and properties into variant wheels."""

from __future__ import annotations

from pathlib import Path

import click

from pep_variants.errors import InvalidProperty
from pep_variants.filename import parse_filename
from pep_variants.generation import V0_1_1, V0_2_0
from pep_variants.property import Property

from ..atomic import replacing
from ..checks.document import check_document
from ..checks.finding import ERROR
from ..console import note, warn
from ..description import (
    add_variant,
    from_options,
    from_pyproject,
    lost_priorities,
    write_description,
)
from ..rewriting import open_source
from .arguments import check_targets, force_option, output_option, wheels_argument

GENERATIONS = {"0.1.1": V0_1_1, "0.2.0": V0_2_0}


def _parsed(
    context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> tuple[Property, ...]:
    try:
        return tuple(map(Property.parse, texts))
    except InvalidProperty as error:
        raise click.BadParameter(str(error), context, parameter) from None


@click.command(short_help="Turn plain wheels into variant wheels.")
@wheels_argument
@click.option("--label", required=True, help="Label of the variant; 'null' has no properties.")
@click.option(
    "--property",
    "properties",
    callback=_parsed,
    metavar="PROPERTY",
    multiple=True,
    help="What the wheel needs, as 'namespace :: feature :: value'. Repeatable; of several "
    "values of one feature the system needs any one.",
)
@click.option(
    "--namespace",
    "namespaces",
    metavar="NAMESPACE",
    multiple=True,
    help="Namespaces of the project's variants, most important first. Repeatable. Those of "
    "--property are appended.",
)
@click.option(
    "--provider",
    "providers",
    metavar="NAMESPACE=REQUIREMENT",
    multiple=True,
    help="The plugin package that knows what a system supports. Repeatable.",
)
@click.option(
    "--pyproject",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Take namespaces and providers from the [variant] table of this pyproject.toml.",
)
@click.option(
    "--generation",
    type=click.Choice(list(GENERATIONS)),
    help="Format version of the metadata. Default: 0.2.0 if there are providers, else 0.1.1.",
)
@output_option
@force_option
def make(
    wheels: tuple[Path, ...],
    label: str,
    properties: tuple[Property, ...],
    namespaces: tuple[str, ...],
    providers: tuple[str, ...],
    pyproject: Path | None,
    generation: str | None,
    output: Path | None,
    force: bool,
) -> None:
    """Turn plain wheels into variant wheels.

    The new wheels have the label in their name and variant.json in their dist-info; everything
    else is copied as it is, without recompressing. The same input gives the same bytes. Their
    paths are printed.

    Example: variants make six-1.17-py3-none-any.whl --label x86_64_v3 --property
    'x86_64 :: level :: v3'
    """
    if pyproject is not None:
        if namespaces or providers:
            raise click.UsageError("--pyproject says what --namespace and --provider say")
        project = from_pyproject(pyproject.read_bytes(), str(pyproject))
    else:
        project = from_options(namespaces, properties, providers)
    metadata = add_variant(project, label, properties)
    variant_json = write_description(metadata, GENERATIONS[generation] if generation else None)
    for lost in lost_priorities(metadata):
        warn(f"{project.source}: {lost} has no place in current metadata and is left out")

    _, findings = check_document(variant_json, f"variant {label!r}")
    for finding in findings:
        if finding.severity == ERROR:
            raise click.ClickException(f"{finding.place}: {finding.message}")
        warn(f"{finding.place}: {finding.message}")

    targets = {}
    for wheel in wheels:
        if parse_filename(wheel.name).label is not None:
            raise click.ClickException(f"{wheel} is a variant wheel: unmake it first")
        targets[wheel] = (output or wheel.parent) / f"{wheel.stem}-{label}.whl"
    check_targets(targets, force=force)
    for wheel, target in targets.items():
        with open_source(wheel) as source:
            if source.is_variant:
                raise click.ClickException(
                    f"{wheel} has variant metadata in it although its name has no label: "
                    "unmake it first"
                )
            for signature in source.signatures:
                note(f"{wheel}: its signature {signature} is left out, it would not hold any more")
            target.parent.mkdir(parents=True, exist_ok=True)
            with replacing(target) as stream:
                source.write(stream, variant_json)
        click.echo(target)
