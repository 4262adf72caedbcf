"""`variants resolve`: what to install, of indexes with variants, for this machine or others."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..atomic import replacing
from ..console import note, print_json, print_table, warn
from .arguments import json_option, option_values
from .index_options import index_options, places, progress, resolving

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from resolvelib_variants.index.session import Session
    from resolvelib_variants.lock.reading import Locked
    from resolvelib_variants.resolution.downloading import Order
    from resolvelib_variants.resolution.requirements import Wishes
    from resolvelib_variants.resolution.resolver import IndexResolver
    from resolvelib_variants.resolution.result import Package, Resolution

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(short_help="Resolve requirements over indexes, variants included.")
@click.argument("requirements", metavar="[REQUIREMENT]...", nargs=-1)
@click.option(
    "-r", "--requirement", "files", metavar="FILE", type=_FILE, multiple=True,
    help="Also what this requirements file lists; repeatable.",
)  # fmt: skip
@click.option(
    "-e", "--editable", "directories", metavar="DIR", multiple=True,
    help="Also the project in this directory, to be installed in place; repeatable.",
)  # fmt: skip
@click.option(
    "-c", "--constraint", "constraints", metavar="FILE", type=_FILE, multiple=True,
    help="Hold to the versions in this file; repeatable.",
)  # fmt: skip
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path),
    help="Also write a lock file, pylock.toml or pylock.NAME.toml; one that exists is replaced.",
)  # fmt: skip
@click.option(
    "--all-variants", is_flag=True,
    help="Lock every variant of each version, not the chosen one alone, and what any depends on.",
)  # fmt: skip
@click.option(
    "--from", "lock_file", metavar="FILE", type=_FILE,
    help="Choose from this lock file what to install, in place of resolving.",
)  # fmt: skip
@click.option(
    "--download", "folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path),
    help="Also download the files, verify their hashes and put them into this directory.",
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

    Prints every file that would be installed, on this machine or on those of --target. Nothing is
    built and nothing is installed. A requirement may also be the directory of a project whose
    pyproject.toml says all that resolving needs.

    Example: variants resolve torch torchvision --target h100.toml -o pylock.toml
    """
    if lock_file is not None:
        if (
            requirements or files or directories or constraints
            or output is not None or all_variants
        ):  # fmt: skip
            raise click.UsageError("--from takes everything from the lock file")
        _from_lock(lock_file, folder, as_json, options)
        return
    wishes = _wishes(requirements, files, directories, constraints)
    if not wishes.requirements:
        raise click.UsageError("give a requirement, or a file of them with -r")
    if output is not None:
        from packaging.pylock import is_valid_pylock_path

        if not is_valid_pylock_path(output):
            raise click.UsageError(f"{output}: call it pylock.toml or pylock.NAME.toml")
    elif all_variants:
        raise click.UsageError("--all-variants is about the lock file: add -o")
    where = places(options, wishes)
    with resolving(where, option_values(options)) as resolver, progress() as tell:
        resolutions = [
            resolver.resolve(wishes, target, tell, every_variant=all_variants)
            for target in where.targets
        ]
        if output is not None:
            _write_lock(output, resolutions, resolver)
        if folder is not None:
            _download(resolver.session, _orders(resolutions), folder, tell)
            for name in sorted(_directories(resolutions)):
                note(f"{name} is a directory here, and is not downloaded")
    if as_json:
        print_json({"resolutions": [resolution.to_tree() for resolution in resolutions]})
    else:
        for number, resolution in enumerate(resolutions):
            if len(resolutions) > 1:
                click.echo(f"{'' if number == 0 else chr(10)}{resolution.target.name}")
            _show(resolution.packages)
    for text in dict.fromkeys(text for found in resolutions for text in found.warnings):
        warn(text)


def _from_lock(path: Path, folder: Path | None, as_json: bool, options: dict[str, Any]) -> None:
    from pep_variants.preferences import load_preferences
    from resolvelib_variants.lock.errors import LockError
    from resolvelib_variants.lock.reading import read_lock, select_locked
    from resolvelib_variants.resolution.downloading import Order

    where = places(options)
    values = option_values(options)
    found = []
    with resolving(where, values) as resolver, progress() as tell:
        try:
            lock = read_lock(path)
            for target in where.targets:
                detect = resolver.detector(target).platform
                preferences = load_preferences(values, os.environ)
                found.append((target, select_locked(lock, target, detect, preferences)))
        except LockError as error:
            raise click.ClickException(str(error)) from None
        if folder is not None:
            orders = {
                item.filename: Order(item.filename, item.url, item.hashes, item.size, item.metadata)
                for _, items in found
                for item in items
                if item.url is not None
            }
            _download(resolver.session, list(orders.values()), folder, tell)
    if as_json:
        trees = [
            {"target": target.name, "packages": [item.to_tree() for item in items]}
            for target, items in found
        ]
        print_json({"resolutions": trees})
        return
    for number, (target, items) in enumerate(found):
        if len(found) > 1:
            click.echo(f"{'' if number == 0 else chr(10)}{target.name}")
        _show(items)


def _write_lock(output: Path, resolutions: Sequence[Resolution], resolver: IndexResolver) -> None:
    from importlib.metadata import version

    from resolvelib_variants.lock.errors import LockError
    from resolvelib_variants.lock.writing import lock

    try:
        data = lock(
            resolutions,
            created_by=f"variants-cli {version('variants-cli')}",
            folder=output.absolute().parent,
            document=resolver.variant_document,
            digests=lambda candidate: resolver.digests(candidate, ("sha256",)),
        )
    except LockError as error:
        raise click.ClickException(str(error)) from None
    with replacing(output) as stream:
        stream.write(data)


def _orders(resolutions: Sequence[Resolution]) -> list[Order]:
    from resolvelib_variants.resolution.downloading import Order

    found = {
        package.filename: Order(
            package.filename,
            package.file.url,
            package.file.hashes,
            package.file.size,
            package.metadata,
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
    orders: Sequence[Order],
    folder: Path,
    tell: Callable[[str], None] | None,
) -> None:
    from resolvelib_variants.resolution.downloading import download_all

    for order in orders:
        if tell is not None:
            tell(f"downloading {order.filename}")
        download_all(session, [order], folder)


def _wishes(
    requirements: Sequence[str],
    files: Sequence[Path],
    directories: Sequence[str],
    constraints: Sequence[Path],
) -> Wishes:
    from resolvelib_variants.resolution.errors import RequirementError
    from resolvelib_variants.resolution.requirements import Wishes, parse_requirement, read_file

    try:
        wishes = Wishes(tuple(map(parse_requirement, requirements)))
        wishes += Wishes(tuple(parse_requirement(item, editable=True) for item in directories))
        for path in files:
            wishes += read_file(path, os.environ)
        for path in constraints:
            wishes += read_file(path, os.environ, constraints=True)
    except RequirementError as error:
        raise click.UsageError(str(error)) from None
    return wishes


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
