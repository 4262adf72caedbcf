"""`variants make` and `unmake`: turn plain wheels into variant wheels, and back."""

from __future__ import annotations

from dataclasses import replace
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pep_variants.errors import InvalidProperty
from pep_variants.files import replacing
from pep_variants.model.filename import parse_filename
from pep_variants.model.label import split_label
from pep_variants.model.property import Property
from pep_variants.wheelfile.metadata_edits import Edits
from pep_variants.wheelfile.rewriting import open_source

from ..build_providers import with_build_providers
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
from ..detection import plugin_runner_of
from ..matrix.combination import combine, label_wheels, metadata_of, select
from ..matrix.reading import read_matrix
from ..recipe import Job, plan, read_recipe, target_name, unused
from .arguments import (
    FILE,
    force_option,
    output_option,
    preference_options,
    wheels_argument,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pep_variants.model.metadata import Metadata

    Asked = Callable[[Metadata], Metadata]

_ATTESTATIONS = (".asc", ".provenance", ".attestation", ".sigstore", ".sigstore.json")
"""Ends of names of files beside a wheel that attest to it (PEP 740, Sigstore, OpenPGP)."""


def _parsed(
    context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> tuple[Property, ...]:
    try:
        return tuple(map(Property.parse, texts))
    except InvalidProperty as error:
        raise click.BadParameter(str(error), context, parameter) from None


@click.command()
@click.argument("wheels", metavar="WHEEL...", type=FILE, nargs=-1)
@click.option("--label", help="Label of the variant; 'null' has no properties.")
@click.option(
    "--property", "properties", callback=_parsed, metavar="PROPERTY", multiple=True,
    help="Property of the variant: 'namespace :: feature :: value'. Repeatable; of several "
    "values of one feature, one has to be supported.",
)  # fmt: skip
@click.option(
    "--namespace", "namespaces", metavar="NAMESPACE", multiple=True,
    help="Namespaces of the project's variants, most important first. Repeatable. Those of "
    "--property are appended.",
)  # fmt: skip
@click.option(
    "--pyproject", type=FILE,
    help="Take namespaces and providers from the [variant] table of this pyproject.toml.",
)  # fmt: skip
@click.option(
    "--config", type=FILE,
    help="Recipe: a TOML file with the variants of many wheels. Without WHEELs, "
    "uses those beside the file that its patterns match.",
)  # fmt: skip
@click.option(
    "--matrix", "matrix_file", type=FILE,
    help="Build matrix: gives wheels that were built elsewhere the label and the properties that "
    "it says. The label is that of --only, or the name of the wheel's folder.",
)  # fmt: skip
@click.option(
    "--only", metavar="WHICH", multiple=True,
    help="With --matrix: which variant the wheels are: a label, a pattern or AXIS=VALUE. "
    "Repeatable.",
)  # fmt: skip
@preference_options("variant-allow-provider")
@output_option
@force_option
def make(
    wheels: tuple[Path, ...],
    label: str | None,
    properties: tuple[Property, ...],
    namespaces: tuple[str, ...],
    pyproject: Path | None,
    config: Path | None,
    matrix_file: Path | None,
    only: tuple[str, ...],
    variant_allow_provider: tuple[str, ...],
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
    if only and matrix_file is None:
        raise click.UsageError("--only needs --matrix")
    described = bool(label or properties or namespaces or pyproject)
    if described + bool(config) + bool(matrix_file) > 1:
        one, other = ("matrix", "config") if matrix_file else ("config", "property")
        raise click.UsageError(
            f"--{one} cannot be combined with --label, --{other} and other options of variants"
        )
    if label is None and config is None and matrix_file is None:
        raise click.UsageError("Missing option '--label' (or '--config').")
    if pyproject is not None and namespaces:
        raise click.UsageError("--pyproject cannot be combined with --namespace")
    if not wheels and config is None:
        raise click.UsageError("Missing argument 'WHEEL...'.")

    def asked(project: Metadata) -> Metadata:
        for lost in lost_priorities(project):
            warn(
                f"{project.source}: {lost} does not exist in the current format and is not written"
            )
        return with_build_providers(
            project, lambda: plugin_runner_of({"variant-allow-provider": variant_allow_provider})
        )

    if matrix_file is not None:
        jobs = _from_matrix(matrix_file, only, wheels, asked)
    elif config is not None:
        jobs = _from_recipe(config, wheels, asked)
    else:
        assert label is not None
        if pyproject is None:
            project = from_options(namespaces, properties)
        else:
            project = from_pyproject(pyproject.read_bytes(), str(pyproject))
        variant_json = write_description(add_variant(asked(project), label, properties))
        for wheel in wheels:
            if parse_filename(wheel.name).label is not None:
                raise click.ClickException(f"{wheel} is a variant wheel: unmake it first")
        edits = Edits()
        jobs = [
            Job(wheel, target_name(wheel.name, label, edits), variant_json, edits)
            for wheel in wheels
        ]
    _check_documents(jobs)
    _write(jobs, output, force=force)


@click.command()
@wheels_argument
@output_option
@force_option
def unmake(wheels: tuple[Path, ...], output: Path | None, force: bool) -> None:
    """Turn variant wheels back into plain ones.

    The inverse of make: removes the label from the name and variant.json from dist-info; everything
    else is copied as it is. The paths of the new wheels are printed.
    """
    jobs = []
    for wheel in wheels:
        parse_filename(wheel.name)
        jobs.append(Job(wheel, split_label(wheel.name)[0], None, Edits()))
    _write(jobs, output, force=force, undo=True)


def _from_recipe(config: Path, wheels: Sequence[Path], asked: Asked) -> list[Job]:
    """Return the wheels to write for the recipe *config*."""
    recipe = read_recipe(config)
    recipe = replace(recipe, metadata=asked(recipe.metadata))
    if not wheels:
        wheels = sorted(
            path
            for path in config.parent.glob("*.whl")
            if split_label(path.name)[1] is None
            and any(item.matches(path.name) for item in recipe.wheels)
        )
        if not wheels:
            raise click.ClickException(
                f"{config}: no plain wheel beside it matches its patterns: name the wheels"
            )
    for item in unused(recipe, wheels):
        warn(f"{config}: {item.place}: no wheel matches {', '.join(item.patterns)}")
    return plan(recipe, wheels)


def _from_matrix(
    file: Path, only: Sequence[str], wheels: Sequence[Path], asked: Asked
) -> list[Job]:
    """Return the wheels to write to give *wheels* the labels of the matrix *file*."""
    matrix = read_matrix(file)
    matrix = replace(matrix, project=asked(matrix.project))
    variants = combine(matrix)
    for after in matrix.build.after:
        if after.abi:
            warn(
                f"{file}: build.after: no abi_dependency on {after.project} is written, as the "
                "release that the wheels were built against is not known: add it as a property"
            )
    jobs: list[Job] = []
    edits = Edits()
    for wheel, variant in label_wheels(variants, select(variants, only), wheels):
        document = write_description(metadata_of(matrix, [variant]))
        jobs.append(Job(wheel, target_name(wheel.name, variant.label, edits), document, edits))
    return jobs


def _check_documents(jobs: Sequence[Job]) -> None:
    """Print findings about the metadata of *jobs*; fail for errors."""
    names = {job.variant_json: job.name for job in jobs if job.variant_json}
    for document, name in names.items():
        for finding in check_document(document, f"variant {split_label(name)[1]!r}")[1]:
            if finding.severity == ERROR:
                raise click.ClickException(f"{finding.place}: {finding.message}")
            warn(f"{finding.place}: {finding.message}")


def _write(jobs: Sequence[Job], output: Path | None, *, force: bool, undo: bool = False) -> None:
    """Write the new wheels, and print their paths."""
    targets: dict[Path, Job] = {}
    for job in jobs:
        target = (output or job.wheel.parent) / job.name
        if (other := targets.setdefault(target, job)) is not job:
            raise click.ClickException(
                f"{other.wheel} and {job.wheel} would both be written to {target}"
            )
        if target.exists() and not force:
            raise click.ClickException(f"{target} exists: use --force to replace it")
    for target, job in targets.items():
        wheel = job.wheel
        with open_source(wheel) as source:
            if undo and not source.is_variant:
                raise click.ClickException(f"{wheel}: not a variant wheel: it has no variant.json")
            if source.is_variant and not undo:
                raise click.ClickException(
                    f"{wheel} has variant metadata in it although its filename has no label: "
                    "unmake it first"
                )
            for signature in source.signatures:
                note(f"{wheel}: {signature} is not copied: it does not sign the new RECORD")
            for beside in () if undo else sorted(wheel.parent.glob(f"{escape(wheel.name)}.*")):
                if beside.name.endswith(_ATTESTATIONS):
                    note(
                        f"{beside.name} attests to {wheel.name} only: sign the new wheel "
                        "before you publish it"
                    )
            target.parent.mkdir(parents=True, exist_ok=True)
            with replacing(target) as stream:
                source.write(stream, job.variant_json, job.edits)
    for target in targets:
        click.echo(target)
