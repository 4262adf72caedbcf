"""`variants make`: turns plain wheels into variant wheels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pep_variants.errors import InvalidProperty
from pep_variants.files import replacing
from pep_variants.model.filename import parse_filename
from pep_variants.model.generation import V0_1_1, V0_2_0
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
from ..variant_config import (
    as_recipe,
    is_variant_config,
    project_of,
    read_variant_config,
)
from .arguments import (
    check_targets,
    force_option,
    json_option,
    output_option,
    preference_options,
)
from .written_wheels import print_written, written_wheel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pep_variants.model.generation import Generation
    from pep_variants.model.metadata import Metadata

_ATTESTATION_SUFFIXES = (
    ".asc",
    ".provenance",
    ".publish.attestation",
    ".sigstore",
    ".sigstore.json",
    ".slsa.attestation",
)
"""Of files beside a wheel that attest to its bytes (PEP 740, Sigstore, OpenPGP)."""

GENERATIONS = {"0.1.1": V0_1_1, "0.2.0": V0_2_0}


def _parsed(
    context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> tuple[Property, ...]:
    try:
        return tuple(map(Property.parse, texts))
    except InvalidProperty as error:
        raise click.BadParameter(str(error), context, parameter) from None


@click.command(short_help="Turn plain wheels into variant wheels.")
@click.argument(
    "wheels",
    metavar="WHEEL...",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    nargs=-1,
)
@click.option("--label", help="Label of the variant; 'null' has no properties.")
@click.option(
    "--property",
    "properties",
    callback=_parsed,
    metavar="PROPERTY",
    multiple=True,
    help="Property of the variant: 'namespace :: feature :: value'. Repeatable; of several "
    "values of one feature, one has to be supported.",
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
    help="The provider plugin package of a namespace. Repeatable.",
)
@click.option(
    "--pyproject",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Take namespaces and providers from the [variant] table of this pyproject.toml.",
)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Recipe: a TOML file with the variants of many wheels. Without WHEELs, "
    "uses those beside the file that its patterns match. Or a variant_config.toml of "
    "variant-repack: wheels are the variant that --only names, or the local part of their version.",
)
@click.option(
    "--metadata-config",
    metavar="NAME",
    help="With --config variant_config.toml: which of its metadata_configs. Default: the one named "
    "like the project, or 'default'.",
)
@click.option(
    "--matrix",
    "matrix_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Build matrix: gives wheels that were built elsewhere the label and the properties that "
    "it says. The label is that of --only, or the name of the wheel's folder.",
)
@click.option(
    "--only",
    metavar="WHICH",
    multiple=True,
    help="With --matrix: which variant the wheels are: a label, a pattern or AXIS=VALUE. "
    "Repeatable. With --config variant_config.toml: one of its variant_configs.",
)
@click.option(
    "--generation",
    type=click.Choice(list(GENERATIONS)),
    help="Format version of the metadata. Default: 0.2.0 if there are providers, else 0.1.1.",
)
@preference_options("variant-allow-provider")
@output_option
@force_option
@json_option
def make(  # noqa: C901
    wheels: tuple[Path, ...],
    label: str | None,
    properties: tuple[Property, ...],
    namespaces: tuple[str, ...],
    providers: tuple[str, ...],
    pyproject: Path | None,
    config: Path | None,
    metadata_config: str | None,
    matrix_file: Path | None,
    only: tuple[str, ...],
    generation: str | None,
    variant_allow_provider: list[str],
    output: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Turn plain wheels into variant wheels.

    The new wheels have the label in their name and variant.json in their dist-info; everything
    else is copied as it is, without recompressing. The same input gives the same bytes. Their
    paths are printed.

    Example: variants make six-1.17-py3-none-any.whl --label x86_64_v3 --property
    'x86_64 :: level :: v3'
    """
    wanted = GENERATIONS[generation] if generation else None

    def asked(project: Metadata) -> Metadata:
        return with_build_providers(
            project, lambda: plugin_runner_of({"variant-allow-provider": variant_allow_provider})
        )

    repack = config is not None and is_variant_config(config)
    if only and matrix_file is None and not repack:
        raise click.UsageError("--only needs --matrix or --config variant_config.toml")
    if metadata_config is not None and not repack:
        raise click.UsageError("--metadata-config needs --config variant_config.toml")
    if matrix_file is not None:
        if label or properties or namespaces or providers or pyproject or config:
            raise click.UsageError(
                "--matrix cannot be combined with --label, --config and other options of variants"
            )
        if not wheels:
            raise click.UsageError("Missing argument 'WHEEL...'.")
        jobs = _from_matrix(matrix_file, only, wheels, wanted, asked)
    elif config is not None and repack:
        if label or properties or namespaces or providers:
            raise click.UsageError(
                "--config cannot be combined with --label, --property and other options of variants"
            )
        if not wheels:
            raise click.UsageError("Missing argument 'WHEEL...'.")
        if len(only) > 1:
            raise click.UsageError("--only names one variant of a variant_config.toml")
        project = asked(project_of(config, pyproject))
        recipe = as_recipe(
            read_variant_config(config), project, wheels, only[0] if only else None, metadata_config
        )
        _tell_lost(project)
        jobs = plan(recipe, wheels, wanted)
    elif config is not None:
        if label or properties or namespaces or providers or pyproject:
            raise click.UsageError(
                "--config cannot be combined with --label, --property and other options of variants"
            )
        jobs = _from_recipe(config, wheels, wanted, asked)
    else:
        if label is None:
            raise click.UsageError("Missing option '--label' (or '--config').")
        if not wheels:
            raise click.UsageError("Missing argument 'WHEEL...'.")
        if pyproject is not None:
            if namespaces or providers:
                raise click.UsageError(
                    "--pyproject cannot be combined with --namespace or --provider"
                )
            project = from_pyproject(pyproject.read_bytes(), str(pyproject))
        else:
            project = from_options(namespaces, properties, providers)
        project = asked(project)
        jobs = _labelled(wheels, add_variant(project, label, properties), label, wanted)
    _check_documents(jobs)
    _write(jobs, output, force=force)
    written = [written_wheel(job.wheel, (output or job.wheel.parent) / job.name) for job in jobs]
    print_written(written, as_json=as_json)


def _labelled(
    wheels: Sequence[Path], metadata: Metadata, label: str, generation: Generation | None
) -> list[Job]:
    """Return the wheels to write to give all *wheels* one label."""
    variant_json = write_description(metadata, generation)
    _tell_lost(metadata)
    for wheel in wheels:
        if parse_filename(wheel.name).label is not None:
            raise click.ClickException(f"{wheel} is a variant wheel: unmake it first")
    edits = Edits()
    return [
        Job(wheel, target_name(wheel.name, label, edits), variant_json, edits) for wheel in wheels
    ]


def _from_recipe(
    config: Path,
    wheels: Sequence[Path],
    generation: Generation | None,
    asked: Callable[[Metadata], Metadata],
) -> list[Job]:
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
    _tell_lost(recipe.metadata)
    return plan(recipe, wheels, generation)


def _from_matrix(
    file: Path,
    only: Sequence[str],
    wheels: Sequence[Path],
    generation: Generation | None,
    asked: Callable[[Metadata], Metadata],
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
    documents: dict[str, bytes] = {}
    jobs = []
    edits = Edits()
    for wheel, variant in label_wheels(variants, select(variants, only), wheels):
        if variant.label not in documents:
            metadata = metadata_of(matrix, [variant])
            documents[variant.label] = write_description(metadata, generation)
        name = target_name(wheel.name, variant.label, edits)
        jobs.append(Job(wheel, name, documents[variant.label], edits))
    _tell_lost(matrix.project)
    return jobs


def _tell_lost(metadata: Metadata) -> None:
    for lost in lost_priorities(metadata):
        warn(f"{metadata.source}: {lost} does not exist in the current format and is not written")


def _check_documents(jobs: Sequence[Job]) -> None:
    """Print findings about the metadata of *jobs*; fail for errors."""
    for document in dict.fromkeys(job.variant_json for job in jobs if job.variant_json):
        name = next(job.name for job in jobs if job.variant_json == document)
        label = split_label(name)[1]
        for finding in check_document(document, f"variant {label!r}")[1]:
            if finding.severity == ERROR:
                raise click.ClickException(f"{finding.place}: {finding.message}")
            warn(f"{finding.place}: {finding.message}")


def _write(jobs: Sequence[Job], output: Path | None, *, force: bool) -> None:
    check_targets(
        [(job.wheel, (output or job.wheel.parent) / job.name) for job in jobs], force=force
    )
    for job in jobs:
        target = (output or job.wheel.parent) / job.name
        with open_source(job.wheel) as source:
            if source.is_variant:
                raise click.ClickException(
                    f"{job.wheel} has variant metadata in it although its filename has no label: "
                    "unmake it first"
                )
            for signature in source.signatures:
                note(f"{job.wheel}: {signature} is not copied: it does not sign the new RECORD")
            for attestation in _attestations_of(job.wheel):
                note(
                    f"{attestation.name} attests to {job.wheel.name} only: sign the new wheel "
                    "before you publish it"
                )
            target.parent.mkdir(parents=True, exist_ok=True)
            with replacing(target) as stream:
                source.write(stream, job.variant_json, job.edits)


def _attestations_of(wheel: Path) -> list[Path]:
    """Return the files beside *wheel* that attest to its bytes, and to nothing else."""
    candidates = (wheel.with_name(wheel.name + suffix) for suffix in _ATTESTATION_SUFFIXES)
    return [path for path in candidates if path.exists()]
