"""`variants make` and `unmake`: turn plain wheels into variant wheels, and back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
from packaging.requirements import Requirement

from pep_variants import labels as wheel_labels
from pep_variants import markers, safe_files, wheel_files
from pep_variants.errors import VariantError
from pep_variants.metadata import Property
from pep_variants.wheel_files import Edits

from .._build_providers import with_build_providers
from .._checks.document import check_document
from .._checks.finding import require_valid
from .._console import note, warn
from .._description import add_variant, from_options, from_pyproject, write_description
from .._matrix.combination import combine, label_wheels, metadata_of, select
from .._matrix.reading import read_matrix
from .._tables import project_name
from .arguments import FILE, force_option, output_option, preference_options, wheels_argument

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Job(NamedTuple):
    """One wheel to write.

    Attributes:
        wheel: the existing wheel.
        label: of the new one, None for a wheel without a variant.
        variant_json: its metadata, None for a wheel without a variant.
    """

    wheel: Path
    label: str | None = None
    variant_json: bytes | None = None


def _checked(read: Callable[[str], object]) -> Callable[[str], object]:
    """Return *read* as the type of an option."""

    def checked(text: str) -> object:
        try:
            return read(text)
        except VariantError as error:
            raise click.BadParameter(str(error)) from None
        except ValueError as error:
            raise click.BadParameter(f"{text!r}: {error}") from None

    return checked


def _dependency(text: str) -> str:
    """Return *text*, a dependency that may have variant markers."""
    if text.splitlines() != [text]:
        raise ValueError("must be one line")
    Requirement(markers.reduce_requirement(text, markers.NON_VARIANT, publishing=True) or "none")
    return text


@click.command()
@wheels_argument
@click.option("--label", help="Label of the variant; 'null' has no properties.")
@click.option(
    "--property", "properties", type=_checked(Property.parse), metavar="PROPERTY",
    multiple=True,
    help="Property of the variant: 'namespace :: feature :: value'. Repeatable; of several "
    "values of one feature, one has to be supported.",
)  # fmt: skip
@click.option(
    "--gpu-code", is_flag=True,
    help="Add the properties of the GPU code in the wheels, as variants inspect shows them.",
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
    "--matrix", "matrix_file", type=FILE,
    help="Build matrix: gives wheels that were built elsewhere the label and the properties that "
    "it says. The label is that of --only, or the name of the wheel's folder.",
)  # fmt: skip
@click.option(
    "--only", metavar="WHICH", multiple=True,
    help="With --matrix: which variant the wheels are: a label, a pattern or AXIS=VALUE. "
    "Repeatable.",
)  # fmt: skip
@click.option(
    "--rename", metavar="PROJECT", type=_checked(lambda text: project_name(text) and text),
    help="New name of the project. Modules keep theirs.",
)  # fmt: skip
@click.option(
    "--drop-local-version", is_flag=True,
    help="Remove the local part of the version: 2.9.0+cu126 becomes 2.9.0.",
)  # fmt: skip
@click.option(
    "--remove-dependency", "remove", metavar="NAME", multiple=True,
    help="Remove a dependency: a name or a pattern such as 'nvidia-*-cu12'. Repeatable.",
)  # fmt: skip
@click.option(
    "--add-dependency", "add", metavar="REQUIREMENT", multiple=True,
    type=_checked(_dependency),
    help="Add a dependency, such as \"numpy; 'nvidia' in variant_namespaces\". Repeatable.",
)  # fmt: skip
@preference_options("variant-allow-provider")
@output_option
@force_option
def make(
    wheels: tuple[Path, ...],
    label: str | None,
    properties: tuple[Property, ...],
    gpu_code: bool,
    namespaces: tuple[str, ...],
    pyproject: Path | None,
    matrix_file: Path | None,
    only: tuple[str, ...],
    rename: str | None,
    drop_local_version: bool,
    remove: tuple[str, ...],
    add: tuple[str, ...],
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
    if matrix_file and (label or properties or gpu_code or namespaces or pyproject):
        raise click.UsageError(
            "--matrix cannot be combined with --label, --property and other options of variants"
        )
    if label is None and matrix_file is None:
        raise click.UsageError("Missing option '--label' (or '--matrix').")
    if pyproject is not None and namespaces:
        raise click.UsageError("--pyproject cannot be combined with --namespace")

    for wheel in wheels:
        if wheel_files.parse_filename(wheel.name).label is not None:
            raise click.ClickException(f"{wheel} is a variant wheel: unmake it first")
    if label is None:
        assert matrix_file is not None
        jobs = _from_matrix(matrix_file, only, wheels, variant_allow_provider)
    else:
        if gpu_code:
            properties = (*properties, *_of_gpu_code(wheels))
        if pyproject is None:
            project = from_options(namespaces, properties)
        else:
            project = from_pyproject(pyproject.read_bytes(), str(pyproject))
        is_described = properties or label in (wheel_labels.NULL_LABEL, *project.variants)
        if not is_described and (proposed := _of_gpu_code(wheels)):
            raise click.ClickException(
                f"variant {label!r} has no properties: --gpu-code adds those of its GPU code, "
                f"{', '.join(map(str, proposed))}"
            )
        project = with_build_providers(project, variant_allow_provider)
        document = write_description(add_variant(project, label, properties))
        jobs = [Job(wheel, label, document) for wheel in wheels]
    for data in dict.fromkeys(job.variant_json or b"" for job in jobs):
        require_valid(check_document(data, "")[1])
    _write(jobs, Edits(rename, drop_local_version, remove, add), output, force=force)


@click.command()
@wheels_argument
@output_option
@force_option
def unmake(wheels: tuple[Path, ...], output: Path | None, force: bool) -> None:
    """Turn variant wheels back into plain ones.

    The inverse of make: removes the label from the name and variant.json from dist-info; everything
    else is copied as it is. The paths of the new wheels are printed.
    """
    for wheel in wheels:
        wheel_files.parse_filename(wheel.name)
    _write([Job(wheel) for wheel in wheels], Edits(), output, force=force)


def _of_gpu_code(wheels: Sequence[Path]) -> tuple[Property, ...]:
    """Return the properties of the GPU code in *wheels*, which is the same in all; maybe none."""
    codes = {wheel: wheel_files.wheel_code(wheel, str(wheel)).values() for wheel in wheels}
    found = {wheel_files.combined(each).properties(): wheel for wheel, each in codes.items()}
    if len(found) > 1:
        raise click.ClickException(
            f"{' and '.join(map(str, found.values()))} have code for different GPUs, and wheels of "
            "one label the same properties: give those of all of them with --property"
        )
    return next(iter(found), ())


def _from_matrix(
    file: Path, only: Sequence[str], wheels: Sequence[Path], allowed: Sequence[str]
) -> list[Job]:
    """Return the wheels to write to give *wheels* the labels of the matrix *file*."""
    matrix = read_matrix(file)
    matrix = replace(matrix, project=with_build_providers(matrix.project, allowed))
    variants = combine(matrix)
    for after in matrix.build.after:
        if after.abi:
            warn(
                f"{file}: build.after: no abi_dependency on {after.project} is written, as the "
                "release that the wheels were built against is not known: add it as a property"
            )
    return [
        Job(wheel, variant.label, write_description(metadata_of(matrix, [variant])))
        for wheel, variant in label_wheels(variants, select(variants, only), wheels)
    ]


def _write(jobs: Sequence[Job], edits: Edits, output: Path | None, *, force: bool) -> None:
    """Write the new wheels, and print their paths."""
    targets: dict[Path, Job] = {}
    for job in jobs:
        name, version, rest = (
            wheel_labels.split_label(job.wheel.name)[0].removesuffix(".whl").split("-", 2)
        )
        parts = (*edits.renamed(name, version), rest, *([job.label] if job.label else []))
        target = (output or job.wheel.parent) / f"{'-'.join(parts)}.whl"
        if (other := targets.setdefault(target, job)) is not job:
            raise click.ClickException(
                f"{other.wheel} and {job.wheel} would both be written to {target}"
            )
        if target.exists() and not force:
            raise click.ClickException(f"{target} exists: use --force to replace it")
    for folder in {target.parent for target in targets}:
        safe_files.remove_leftovers(folder)
    for target, (wheel, label, variant_json) in targets.items():
        with wheel_files.open_source(wheel) as source:
            if label is None and not source.is_variant:
                raise click.ClickException(f"{wheel}: not a variant wheel: it has no variant.json")
            if label is not None and source.is_variant:
                raise click.ClickException(
                    f"{wheel} has variant metadata in it although its filename has no label: "
                    "unmake it first"
                )
            for signature in source.signatures:
                note(f"{wheel}: {signature} is not copied: it does not sign the new RECORD")
            target.parent.mkdir(parents=True, exist_ok=True)
            with safe_files.replacing(target) as stream:
                source.write(stream, variant_json, edits)
    for target in targets:
        click.echo(target)
