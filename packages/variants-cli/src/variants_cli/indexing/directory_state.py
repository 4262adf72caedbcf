"""What changed in a directory since its index was written."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pep_variants.errors import VariantError

from ..processes import CHUNK, ENOUGH, mapped
from ..progress import tracked
from .scanning import CORE_METADATA_SUFFIX, FoundFile, Scan, state_of
from .wheelhouse import Distribution, VariantFile, identified, read_distribution

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from .inventory import Inventory, KnownProject

_MUCH = 200_000_000
"""Bytes that are worth starting processes for, of however few files."""

_KEPT = 64 * 1024 * 1024
"""Bytes of METADATA that are kept until they are written; more of it is read again."""


class DirectoryProblems(VariantError):
    """Files that no index can be made of.

    Attributes:
        problems: one message for each.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


@dataclass
class DirectoryState:
    """The distributions of a directory, by project.

    Attributes:
        known: names of projects of which nothing changed, with what the last run knew.
        changed: distributions of the other projects: file and contents.
        unwritten: wheels whose METADATA file is missing or may be out of date.
        gone: paths of distributions that the last run listed, relative to the directory.
        problems: what is wrong with files; these are left out.
    """

    known: dict[str, KnownProject] = field(default_factory=dict)
    changed: dict[str, list[tuple[FoundFile, Distribution]]] = field(default_factory=dict)
    unwritten: list[Distribution] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def projects(self) -> list[str]:
        """All projects, ascending."""
        return sorted({*self.known, *self.changed})


def read_state(
    directory: Path,
    found: Scan,
    inventory: Inventory,
    *,
    output: Path,
    fresh: bool,
    core_metadata: bool,
    touched: Collection[str] = (),
    jobs: int | None = None,
) -> DirectoryState:
    """Read what changed in *directory*.

    Args:
        directory: of the distributions.
        found: the files in it.
        inventory: what the last run knew.
        output: directory of the pages.
        fresh: read all distributions again.
        core_metadata: every wheel has its METADATA in a file beside it.
        touched: projects that are to be written again, whether or not their files changed.
        jobs: number of processes, None for one per core.

    Raises:
        OSError: a folder cannot be read.
    """
    owners = {
        path: (name, row)
        for name, project in inventory.projects.items()
        for path, row in project.files.items()
    }
    state = DirectoryState()
    problems, changed = state.problems, set(touched)
    unread: list[tuple[str, FoundFile]] = []
    same: dict[str, list[FoundFile]] = {}
    names: dict[str, str] = {}
    for file in found.distributions:
        twin = names.setdefault(file.name, file.path)
        if twin != file.path:
            problems.append(f"{directory / twin} and {directory / file.path} have the same name")
            continue
        project, row = owners.pop(file.path, ("", []))
        if row and not fresh and _is_same(file, row, found):
            same.setdefault(project, []).append(file)
            if core_metadata and row[6] is not None:
                size = found.metadata_files.get(file.path + CORE_METADATA_SUFFIX)
                if size != row[6][1]:
                    changed.add(project)
            continue
        try:
            name = str(identified(file.name)[0])
        except VariantError as error:
            problems.append(f"{directory / file.path}: {error}")
            continue
        changed |= {name, project}
        unread.append((name, file))
    state.gone = sorted(owners)
    changed.update(name for name, _ in owners.values())
    changed.update(
        name for name in same if name not in changed and not _is_written(inventory, name, output)
    )
    read, failed = _read(directory, [file for _, file in unread], jobs)
    problems += failed
    for name, file in unread:
        if (item := read.get(file.path)) is None:
            continue
        state.changed.setdefault(name, []).append((file, item))
        state.unwritten.append(item)
    for name, files in same.items():
        if name not in changed:
            state.known[name] = inventory.projects[name]
            continue
        items = inventory.projects[name].distributions(name, directory)
        for file in files:
            item = items[file.path]
            state.changed.setdefault(name, []).append((file, item))
            known = item.core_metadata
            if (
                known is not None
                and found.metadata_files.get(file.path + CORE_METADATA_SUFFIX) != known.size
            ):
                state.unwritten.append(item)
    return state


def _is_same(file: FoundFile, row: list[object], found: Scan) -> bool:
    attestations = {
        path: list(state) for path, state in found.attestations.get(file.path, {}).items()
    }
    return row[:2] == [*file.state] and row[8] == attestations


def _is_written(inventory: Inventory, name: str, output: Path) -> bool:
    outputs = inventory.projects[name].outputs
    return bool(outputs) and all(
        [*state_of(output / path)] == state for path, state in outputs.items()
    )


def _read(
    directory: Path, files: Sequence[FoundFile], jobs: int | None
) -> tuple[dict[str, Distribution], list[str]]:
    """Return distributions by relative path, and what is wrong with others."""
    paths = [directory / file.path for file in files]
    size = sum(file.state.size for file in files)
    results = mapped(
        _read_one,
        paths,
        len(paths),
        jobs=jobs,
        enough=2 if size > _MUCH else ENOUGH,
        chunk=1 if size > _MUCH else CHUNK,
    )
    read: dict[str, Distribution] = {}
    problems: list[str] = []
    texts: dict[bytes, bytes] = {}
    room = _KEPT
    for file, result in zip(files, tracked(results, len(paths), "reading wheels"), strict=True):
        if isinstance(result, str):
            problems.append(result)
            continue
        if result.variant is not None:
            # Wheels for several Pythons and versions have the same metadata: keep it once.
            data = texts.setdefault(result.variant.data, result.variant.data)
            result = replace(result, variant=VariantFile(data, result.variant.source))
        known = result.core_metadata
        if known is not None:
            room -= known.size
            if room < 0:
                result = replace(result, core_metadata=replace(known, data=None))
        read[file.path] = result
    return read, problems


def _read_one(path: Path) -> Distribution | str:
    try:
        return read_distribution(path)
    except VariantError as error:
        return str(error)
    except OSError as error:
        return f"{path}: {error.strerror or error}"
