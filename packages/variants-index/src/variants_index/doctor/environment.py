"""What is wrong with the files of an environment, whatever variants are in it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import distributions
from pathlib import Path

from packaging.utils import canonicalize_name

from pep_variants.internal import listed, metadata_field, ownership_problems, read_version
from variants_catalog.internal import is_in_catalog

from .findings import Problem


def environment_problems(
    paths: Iterable[str], install: str = "pip install", uninstall: str = "pip uninstall --yes"
) -> Iterator[Problem]:
    """Yield distributions that own the same files, lack files or are there twice.

    Args:
        paths: package folders of the environment.
        install: beginning of the command that installs requirements there.
        uninstall: of the one that removes projects.
    """
    folders = tuple(dict.fromkeys(map(os.path.realpath, paths)))
    twice = set()
    for folder in folders:
        for name, versions in _twice(folder):
            twice.add(name)
            yield Problem(
                "duplicate-distribution",
                f"{folder} has {name} twice, as {' and as '.join(versions)}: what is removed or "
                "compared is only one of them",
                f"{uninstall} {name} && {uninstall} {name} && {install} {name}=={versions[-1]}",
            )
    shared: dict[tuple[str, ...], list[str]] = {}
    missing: dict[str, list[str]] = {}
    for each in ownership_problems(folders):
        if twice.intersection(map(_name, each.owners)):
            continue
        if len(each.owners) > 1:
            shared.setdefault(each.owners, []).append(each.path)
        elif each.path.startswith(tuple(f"{folder}{os.sep}" for folder in folders)):
            # Not scripts, which other tools move or leave out.
            missing.setdefault(each.owners[0], []).append(each.path)
    for owners, files in shared.items():
        names = [_name(owner) for owner in owners]
        kept = next((owner for owner in owners if is_in_catalog(_name(owner))), owners[0])
        yield Problem(
            "shared-files",
            f"{listed(owners, 'and')} own the same {_counted(files)}: installing or removing one "
            "overwrites or deletes what belongs to the other",
            f"{uninstall} {shlex.join(names)} && {install} {shlex.quote(kept)}",
        )
    for owner, files in missing.items():
        if owner not in {each for owners in shared for each in owners}:
            yield Problem(
                "missing-files",
                f"{owner} lacks {_counted(files)}: another project was removed that had them, or "
                "they were deleted",
                f"{install} --force-reinstall --no-deps {shlex.quote(owner)}",
            )


def catalog_hints(
    installed: Iterable[tuple[str, object]], command: Callable[[str], str]
) -> Iterator[Problem]:
    """Yield projects whose builds the catalogue would know, if it was asked.

    Args:
        installed: name and version of projects without a variant.
        command: returns the command that asks it about a project.
    """
    for name, version in installed:
        if is_in_catalog(name):
            text = (
                f"{name} {version} is installed without a variant, and the catalogue describes its "
                "builds for GPUs and CPUs as variants, once it is asked"
            )
            yield Problem("catalog-off", text, command(name), fails=False)


def _twice(folder: str) -> Iterator[tuple[str, list[str]]]:
    """Yield projects that *folder* has several times, with their versions, ascending."""
    found: dict[str, list[str]] = {}
    for distribution in distributions(path=[folder]):
        name, version = (metadata_field(distribution, key) for key in ("Name", "Version"))
        if name is not None and version is not None and read_version(version) is not None:
            found.setdefault(canonicalize_name(name), []).append(version)
    for project, versions in sorted(found.items()):
        if len(versions) > 1:
            yield project, sorted(versions, key=lambda text: read_version(text) or 0)


def _name(owner: str) -> str:
    return owner.partition("==")[0]


def _counted(files: list[str]) -> str:
    return f"{len(files)} file{'s'[: len(files) != 1]}, {Path(files[0]).name} for example"
