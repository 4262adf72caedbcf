"""`variants resolve`: resolves requirements with variants, for this machine or others."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pep_variants.files import replacing

from ..console import note, print_json, print_table, warn
from .arguments import json_option, option_values
from .index_options import index_options, places, progress, resolving

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from resolvelib_variants.resolution.requirements import RequirementSet
    from resolvelib_variants.resolution.resolver import IndexResolver
    from resolvelib_variants.resolution.result import Package, Resolution
    from variants_index.downloads import Download
    from variants_index.http.session import Session
    from variants_index.lock.reading import Locked

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(short_help="Resolve requirements over indexes, variants included.")
@click.argument("requirements", metavar="[REQUIREMENT]...", nargs=-1)
@click.option(
    "-r", "--requirement", "files", metavar="FILE", type=_FILE, multiple=True,
    help="Requirements file; repeatable.",
)  # fmt: skip
@click.option(
    "-e", "--editable", "directories", metavar="DIR", multiple=True,
    help="Directory of a project to install in editable mode; repeatable.",
)  # fmt: skip
@click.option(
    "-c", "--constraint", "constraints", metavar="FILE", type=_FILE, multiple=True,
    help="Constraints file; repeatable.",
)  # fmt: skip
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path),
    help="Also write a lock file, pylock.toml or pylock.NAME.toml; an existing file is replaced.",
)  # fmt: skip
@click.option(
    "--all-variants", is_flag=True,
    help="Lock all variants of each version and their dependencies, not only the chosen variant.",
)  # fmt: skip
@click.option(
    "--from", "lock_file", metavar="FILE", type=_FILE,
    help="Select from this lock file instead of resolving.",
)  # fmt: skip
@click.option(
    "--download", "folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path),
    help="Also download the files to this directory, and verify their hashes.",
)  # fmt: skip
@index_options
@json_option
def resolve(
    requirements: tuple[str, ...],
    files: tuple[Path, ...],
    directories: tuple[str, ...],
    constraints: tuple[Path, ...],
    output: Path | None,
    all_variants: bool,
    lock_file: Path | None,
    folder: Path | None,
    as_json: bool,
    **options: Any,  # noqa: ANN401
) -> None:
    """Resolve requirements over indexes, variants included.

    Prints every file that would be installed, on this machine or on those of --platform. Nothing is
    built and nothing is installed. A requirement may also be the directory of a project whose
    pyproject.toml has static metadata.

    Example: variants resolve torch torchvision --platform h100.toml -o pylock.toml
    """
    if lock_file is not None:
        if (
            requirements or files or directories or constraints
            or output is not None or all_variants
        ):  # fmt: skip
            raise click.UsageError("--from cannot be combined with requirements")
        _from_lock(lock_file, folder, as_json, options)
        return
    requirement_set = _requirement_set(requirements, files, directories, constraints)
    if not requirement_set.requirements:
        raise click.UsageError(
            "no requirements: give a requirement, or a requirements file with -r"
        )
    if output is not None:
        from packaging.pylock import is_valid_pylock_path

        if not is_valid_pylock_path(output):
            raise click.UsageError(
                f"{output}: the name of a lock file has to be pylock.toml or pylock.NAME.toml"
            )
    elif all_variants:
        raise click.UsageError("--all-variants needs a lock file: add -o")
    where = places(options, requirement_set)
    with resolving(where, option_values(options)) as resolver, progress() as tell:
        resolutions = [
            resolver.resolve(requirement_set, target, tell, every_variant=all_variants)
            for target in where.targets
        ]
        if output is not None:
            _write_lock(output, resolutions, resolver)
        if folder is not None:
            _download(resolver.session, _orders(resolutions), folder, tell)
            for name in sorted(_directories(resolutions)):
                note(f"{name} is a local directory, which is not downloaded")
    if as_json:
        print_json({"resolutions": [resolution.to_tree() for resolution in resolutions]})
    else:
        for number, resolution in enumerate(resolutions):
            if len(resolutions) > 1:
                click.echo(f"{'' if number == 0 else chr(10)}{resolution.target.name}")
            _show(resolution.packages)
    for text in dict.fromkeys(text for found in resolutions for text in found.warnings):
        warn(text)
    from pep_variants.choose.unmatched import unmatched

    given = [f"--{name}" for name, value in option_values(options).items() if value]
    projects = {package.name for found in resolutions for package in found.packages}
    seen = [metadata for found in resolutions for metadata in found.seen]
    for text in unmatched(resolver.preferences, given, projects, seen):
        warn(text)


def _from_lock(path: Path, folder: Path | None, as_json: bool, options: dict[str, Any]) -> None:
    from resolvelib_variants.resolution.reporting import Notes
    from variants_index.downloads import Download
    from variants_index.lock.reading import read_lock, select_locked

    where = places(options)
    found = []
    notes = Notes()
    with resolving(where, option_values(options)) as resolver, progress() as tell:
        lock = read_lock(path)
        for target in where.targets:
            detect = resolver.detector(target).platform
            chosen = select_locked(
                lock,
                target,
                detect,
                resolver.preferences,
                decided=lambda choice: notes.selected(
                    choice.name, choice.version, choice.selection
                ),
            )
            found.append((target, chosen))
        if folder is not None:
            orders = {
                item.filename: Download(
                    item.filename, item.url, item.hashes, item.size, item.metadata
                )
                for _, items in found
                for item in items
                if item.url is not None
            }
            for order in orders.values():
                resolver.session.add_index(order.url)  # the user named the lock file
            _download(resolver.session, list(orders.values()), folder, tell)
    if as_json:
        trees = [
            {"target": target.name, "packages": [item.to_tree() for item in items]}
            for target, items in found
        ]
        print_json({"resolutions": trees})
    else:
        for number, (target, items) in enumerate(found):
            if len(found) > 1:
                click.echo(f"{'' if number == 0 else chr(10)}{target.name}")
            _show(items)
    for text in notes.warnings:
        warn(text)


def _write_lock(output: Path, resolutions: Sequence[Resolution], resolver: IndexResolver) -> None:
    from importlib.metadata import version

    from variants_index.lock.writing import write_lock

    data = write_lock(
        resolutions,
        created_by=f"variants-cli {version('variants-cli')}",
        folder=output.absolute().parent,
        documents=resolver.variant_documents,
        digests=lambda candidate: resolver.digests(candidate, ("sha256",)),
    )
    with replacing(output) as stream:
        stream.write(data)


def _orders(resolutions: Sequence[Resolution]) -> list[Download]:
    from variants_index.downloads import Download

    found = {
        package.filename: Download(
            package.filename,
            package.file.url,
            package.file.hashes,
            package.file.size,
            package.metadata,
            None if (redirect := package.candidate.redirect) is None else redirect.wheel(),
        )
        for resolution in resolutions
        for package in resolution.packages
        if not package.candidate.is_directory
    }
    return list(found.values())


def _directories(resolutions: Sequence[Resolution]) -> set[str]:
    return {
        package.name
        for resolution in resolutions
        for package in resolution.packages
        if package.candidate.is_directory
    }


def _download(
    session: Session,
    orders: Sequence[Download],
    folder: Path,
    tell: Callable[[str], None] | None,
) -> None:
    from variants_index.downloads import download_files

    for order in orders:
        if tell is not None:
            tell(f"downloading {order.filename}")
        download_files(session, [order], folder)


def _requirement_set(
    requirements: Sequence[str],
    files: Sequence[Path],
    directories: Sequence[str],
    constraints: Sequence[Path],
) -> RequirementSet:
    from resolvelib_variants.resolution.errors import RequirementError
    from resolvelib_variants.resolution.requirements import (
        RequirementSet,
        parse_requirement,
        read_file,
    )

    try:
        requirement_set = RequirementSet(tuple(map(parse_requirement, requirements)))
        requirement_set += RequirementSet(
            tuple(parse_requirement(item, editable=True) for item in directories)
        )
        for path in files:
            requirement_set += read_file(path, os.environ)
        for path in constraints:
            requirement_set += read_file(path, os.environ, constraints=True)
    except RequirementError as error:
        raise click.UsageError(str(error)) from None
    return requirement_set


def _show(packages: Sequence[Package | Locked]) -> None:
    if any(package.why or package.label is not None for package in packages):
        rows = [
            (package.name, str(package.version or "-"), package.label or "-", package.why)
            for package in packages
        ]
        print_table(("project", "version", "variant", "why"), rows)
    elif packages:
        pairs = [(package.name, str(package.version or "-")) for package in packages]
        print_table(("project", "version"), pairs)
