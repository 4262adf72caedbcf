"""`variants resolve`: resolves requirements with variants, for this machine or others."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from packaging.pylock import is_valid_pylock_path

from pep_variants import preferences as user_preferences
from pep_variants import safe_files
from resolvelib_variants import resolution
from resolvelib_variants.resolution import (
    Notes,
    RequirementError,
    RequirementSet,
)
from variants_index import finder as package_finder
from variants_index.finder import Download, Locked

from .._console import created_by, note, print_json, print_table, warn
from .._missed_builds import missed_line, unfit_lines
from .arguments import FILE, NEW_FILE, Command, json_option, option_values
from .index_options import Unsolved, index_options, places, progress, resolving

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pep_variants.lock_entries import GroupChoice
    from resolvelib_variants.resolution import IndexResolver, Package, Resolution
    from variants_index.finder import Session
    from variants_index.target import Target

    Found = tuple[str, Sequence[Package | Locked], dict[str, Any]]
    "What was chosen for a target: its name, the packages, and both as JSON data."


@click.command(cls=Command)
@click.argument("requirements", metavar="[REQUIREMENT]...", nargs=-1)
@click.option(
    "-r", "--requirement", "files", metavar="FILE", type=FILE, multiple=True,
    help="Requirements file; repeatable.",
)  # fmt: skip
@click.option(
    "-c", "--constraint", "constraints", metavar="FILE", type=FILE, multiple=True,
    help="Constraints file; repeatable.",
)  # fmt: skip
@click.option(
    "-o", "--output", metavar="FILE", type=NEW_FILE,
    help="Also write a lock file, pylock.toml or pylock.NAME.toml; an existing file is replaced.",
)  # fmt: skip
@click.option(
    "--from", "lock_file", metavar="FILE", type=FILE,
    help="Select from this lock file instead of resolving.",
)  # fmt: skip
@click.option(
    "--group", "groups", metavar="NAME", multiple=True,
    help="Dependency group of the lock file of --from, instead of the one that fits; repeatable.",
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
    constraints: tuple[Path, ...],
    output: Path | None,
    lock_file: Path | None,
    groups: tuple[str, ...],
    folder: Path | None,
    as_json: bool,
    **options: Any,  # noqa: ANN401
) -> None:
    """Resolve requirements over indexes, variants included.

    Prints every file that would be installed, on this machine or on those of --platform. Nothing is
    built and nothing is installed.

    Example: variants resolve torch torchvision --platform h100.toml -o pylock.toml
    """
    wanted = _requirement_set(requirements, files, constraints)
    if lock_file is not None:
        if requirements or files or constraints or output:
            raise click.UsageError("--from cannot be combined with requirements")
    elif groups:
        raise click.UsageError("--group names a dependency group of the lock file of --from")
    elif not wanted.requirements:
        raise click.UsageError(
            "no requirements: give a requirement, or a requirements file with -r"
        )
    if output is not None and not is_valid_pylock_path(output):
        raise click.UsageError(
            f"{output}: the name of a lock file has to be pylock.toml or pylock.NAME.toml"
        )
    where = places(options, wanted)
    wanted = replace(wanted, pre=where.pre)
    values = user_preferences.with_listed(option_values(options), wanted.labels)
    with resolving(where, values) as resolver, progress() as tell:
        if lock_file is not None:
            found, warnings = _from_lock(lock_file, groups, where.targets, resolver)
        else:
            if output is not None:
                resolutions = resolver.resolve_all(wanted, where.targets, tell)
            else:
                resolutions = [resolver.resolve(wanted, each, tell) for each in where.targets]
            if output is not None:
                if not resolver.preferences.allow_missing_sources:
                    _check_sources(output, resolutions)
                _write_lock(output, resolutions, resolver)
            found = [(each.target.name, each.packages, each.to_tree()) for each in resolutions]
            warnings = [text for each in resolutions for text in each.warnings]
            given = [f"--{name}" for name, value in values.items() if value]
            projects = {package.name for each in resolutions for package in each.packages}
            seen = [metadata for each in resolutions for metadata in each.seen]
            warnings += user_preferences.unmatched(resolver.preferences, given, projects, seen)
            warnings += filter(None, [missed_line(resolver, where.sources, wanted, resolutions)])
            warnings += unfit_lines(resolver, resolutions)
        if folder is not None:
            _download(resolver.session, [item for _, items, _ in found for item in items], folder)
    if as_json:
        print_json({"resolutions": [tree for _, _, tree in found]})
    else:
        _show(found)
    for text in dict.fromkeys(warnings):
        warn(text)


def _from_lock(
    path: Path, groups: Sequence[str], targets: Iterable[Target], resolver: IndexResolver
) -> tuple[list[Found], list[str]]:
    """Select from the lock file *path* for every target; return warnings as well."""
    found: list[Found] = []
    notes = Notes()
    lock = package_finder.read_lock(path)
    for target in targets:
        lines: list[GroupChoice] = []
        chosen = package_finder.select_locked(
            lock,
            target,
            resolver.detector(target).platform,
            resolver.preferences,
            groups=groups or None,
            grouped=lines.append,
            decided=lambda choice: notes.selected(choice.name, choice.version, choice.selection),
        )
        for each in chosen:
            if each.url is not None:
                resolver.session.add_index(each.url)  # the user named the lock file
        trees = [item.to_tree() for item in chosen]
        taken = [{"name": each.name, "why": each.why, "unfit": [*each.unfit]} for each in lines]
        tree = {"target": target.name, "group": next(iter(taken), None), "packages": trees}
        found.append((target.name, chosen, tree))
        for line in lines:
            (warn if line.unfit else note)(f"{path}: {line}")
    return found, [*notes.warnings]


def _check_sources(output: Path, resolutions: Sequence[Resolution]) -> None:
    """Refuse to lock what another run, which reaches all sources, would not choose."""
    lacking = dict.fromkeys(text for each in resolutions for text in each.unavailable)
    if lacking:
        raise Unsolved(
            f"{output} is not written, as builds of the catalogue or metadata of variants cannot "
            "be reached: try again, or add --allow-missing-sources to lock without them",
            tuple(lacking),
        )


def _write_lock(output: Path, resolutions: Sequence[Resolution], resolver: IndexResolver) -> None:
    data = package_finder.write_lock(
        resolutions,
        created_by=created_by(),
        folder=output.absolute().parent,
        documents=resolver.variant_documents,
        digests=lambda candidate: resolver.digests(candidate, ("sha256",)),
    )
    with safe_files.replacing(output) as stream:
        stream.write(data)
    groups = package_finder.read_lock(output).tree.get("dependency-groups")
    if groups:
        note(
            f"{output}: no marker tells the targets apart, so it has the dependency groups "
            f"{', '.join(groups)}; plain installers have to be told which: "
            f"pip install --group {output}:{groups[0]}"
        )


def _download(session: Session, packages: Iterable[Package | Locked], folder: Path) -> None:
    downloads = {}
    for each in packages:
        if isinstance(each, Locked):
            if each.url is not None:
                downloads[each.filename] = Download(
                    each.filename, each.url, each.hashes, each.size, each.metadata
                )
        else:
            file, candidate = each.file, each.candidate
            name, rewritten = candidate.installed_filename, candidate.rewritten
            download = Download(name, file.url, file.hashes, file.size, each.metadata, rewritten)
            if downloads.setdefault(name, download).rewritten != rewritten:
                raise click.ClickException(
                    f"the targets need different builds that are both named {name}: "
                    "use --download for one target at a time"
                )
    package_finder.download_files(session, downloads.values(), folder)


def _requirement_set(
    requirements: Sequence[str],
    files: Sequence[Path],
    constraints: Sequence[Path],
) -> RequirementSet:
    try:
        found = RequirementSet(tuple(map(resolution.parse_requirement, requirements)))
        for path in files:
            found += resolution.read_file(path, os.environ)
        for path in constraints:
            found += resolution.read_file(path, os.environ, constraints=True)
    except RequirementError as error:
        raise click.UsageError(str(error)) from None
    return found


def _show(found: Sequence[Found]) -> None:
    for number, (target, packages, _) in enumerate(found):
        if len(found) > 1:
            click.echo(f"{chr(10) if number else ''}{target}")
        columns = ["project", "version"]
        if any(package.why or package.label is not None for package in packages):
            columns += ["variant", "why"]
        rows = [
            (each.name, str(each.version or "-"), each.label or "-", each.why) for each in packages
        ]
        if rows:
            print_table(columns, [row[: len(columns)] for row in rows])
