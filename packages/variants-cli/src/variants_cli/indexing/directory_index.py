"""The index of a directory: one state, from its files and from the pages of the last run."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from pep_variants.errors import VariantError
from pep_variants.model.label import METADATA_SUFFIX

from ..project_pages import design
from .directory_state import DirectoryProblems, DirectoryState, read_state
from .inventory import FILENAME, Inventory, KnownProject, known_project
from .page_state import matches, unyanked, with_status, yanked
from .scanning import Scan, scan
from .static_index import IndexFiles, read_own_page
from .update import Update, updated
from .wheelhouse import identified

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from variants_index.pages import Page

    from .wheelhouse import Distribution


@dataclass(frozen=True)
class IndexSettings:
    """How an index is written.

    Attributes:
        base_url: URL where the directory is served, None for relative links.
        core_metadata: write METADATA of every wheel beside it (PEP 658).
        plain_pages: HTML pages have links alone, and nothing for people.
        fresh: read all files again.
        jobs: number of processes, None for one per core.
        yank: reasons by filename or pattern (PEP 592).
        unyank: filenames or patterns.
        statuses: status and reason of projects by normalized name (PEP 792).
        provenances: returns the attestations of distributions that have some beside them, as an
            index publishes them (PEP 740); raises VariantError if one is not valid.
    """

    base_url: str | None = None
    core_metadata: bool = True
    plain_pages: bool = False
    fresh: bool = False
    jobs: int | None = None
    yank: Mapping[str, str] = field(default_factory=dict)
    unyank: Sequence[str] = ()
    statuses: Mapping[str, tuple[str, str | None]] = field(default_factory=dict)
    provenances: Callable[[Sequence[Distribution]], Sequence[bytes | None]] | None = None


@dataclass(frozen=True)
class WrittenIndex:
    """An index that was written.

    Attributes:
        projects: number of projects.
        wheels: number of wheels.
        sdists: number of source distributions.
        releases: number of versions with variants.
        changed: the files that were written or removed, in this order.
        notes: what the user may want to know.
    """

    projects: int
    wheels: int
    sdists: int
    releases: int
    changed: tuple[Path, ...]
    notes: tuple[str, ...]


def write_index(directory: Path, output: Path, settings: IndexSettings) -> WrittenIndex:
    """Write the index of the distributions in *directory*, or bring it up to date.

    Nothing is written before everything that changed was read and fits together.

    Raises:
        DirectoryProblems: files are not usable, or contradict each other.
        VariantError: there is nothing to index, a page of the last run is damaged, or another
            run has the lock.
        OSError: a file cannot be read or written.
    """
    found = scan(directory, output)
    if not found.distributions:
        raise VariantError(f"{directory}: no wheels found")
    output.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(output / f"{FILENAME}.lock", timeout=0):
            return _written(directory, output, settings, found)
    except Timeout:
        raise VariantError(
            f"{output}: another variants index is writing it: wait for its end"
        ) from None


def _written(directory: Path, output: Path, settings: IndexSettings, found: Scan) -> WrittenIndex:
    inventory = Inventory(
        output / FILENAME,
        {
            "base-url": settings.base_url,
            "core-metadata": settings.core_metadata,
            "pages": "plain" if settings.plain_pages else design(),
        },
    )
    touched = _touched(found, settings)
    state = read_state(
        directory,
        found,
        inventory,
        output=output,
        fresh=settings.fresh,
        core_metadata=settings.core_metadata,
        touched=touched,
        jobs=settings.jobs,
    )
    files = IndexFiles(directory, output, settings.base_url, plain_pages=settings.plain_pages)
    notes = _attest(state, found, settings)
    pages = {name: read_own_page(output / name, name) for name in state.changed}
    updates = _updates(directory, state, pages, files, settings)
    projects = dict(state.known)
    if settings.core_metadata:
        wheels = [item for item in state.unwritten if item.is_wheel]
        files.write_metadata(wheels, settings.jobs)
    for name, update in sorted(updates.items()):
        items = state.changed[name]
        written = files.write_project(update, (item for _, item in items))
        wheel_count = sum(item.is_wheel for _, item in items)
        projects[name] = known_project(
            ((file, item, found.attestations.get(file.path, {})) for file, item in items),
            written,
            (wheel_count, len(items) - wheel_count, len(update.documents)),
        )
    files.write_projects(state.projects)
    _remove(files, output, state, pages, updates)
    inventory.write(projects)
    notes += _stray_documents(directory, found, projects)
    counts = [project.counts for project in projects.values()]
    return WrittenIndex(
        len(projects),
        wheels=sum(count[0] for count in counts),
        sdists=sum(count[1] for count in counts),
        releases=sum(count[2] for count in counts),
        changed=tuple(files.changed),
        notes=tuple(notes),
    )


def _touched(found: Scan, settings: IndexSettings) -> set[str]:
    """Return the projects that are to be written because of options."""
    problems, touched = [], set()
    for pattern in (*settings.yank, *settings.unyank):
        names = [file.name for file in found.distributions if matches(file.name, pattern)]
        if not names:
            problems.append(f"{pattern}: no file here has this name")
        for name in names:
            try:
                touched.add(str(identified(name)[0]))
            except VariantError as error:
                problems.append(str(error))
    if problems:
        raise DirectoryProblems(problems)
    return touched | set(settings.statuses)


def _attest(state: DirectoryState, found: Scan, settings: IndexSettings) -> list[str]:
    """Give distributions the attestations beside them; return what to tell the user."""
    places = [
        (name, number)
        for name, items in state.changed.items()
        for number, (file, _) in enumerate(items)
        if file.path in found.attestations
    ]
    if not places or settings.provenances is None:
        return []
    if settings.base_url is None:
        return ["attestations are listed with --base-url only: PEP 740 requires complete URLs"]
    items = [state.changed[name][number][1] for name, number in places]
    try:
        provenances = settings.provenances(items)
    except VariantError as error:
        raise DirectoryProblems([str(error)]) from None
    for (name, number), data in zip(places, provenances, strict=True):
        file, item = state.changed[name][number]
        state.changed[name][number] = file, replace(item, provenance=data)
    return []


def _updates(
    directory: Path,
    state: DirectoryState,
    pages: Mapping[str, Page | None],
    files: IndexFiles,
    settings: IndexSettings,
) -> dict[str, Update]:
    now = datetime.now(timezone.utc)
    updates, problems = {}, list(state.problems)
    for name, items in state.changed.items():
        before = pages[name]
        paths = {file.name: file.path for file, _ in items}
        try:
            removed: list[str] = []
            if before is not None:
                before, removed = _prepared(before, [item for _, item in items])
            update = updated(
                before,
                {},
                [item for _, item in items],
                url_of=files.urls(name, paths),
                now=now,
                removed=removed,
                core_metadata=settings.core_metadata,
            )
        except VariantError as error:
            problems.append(str(error))
            continue
        updates[name] = replace(update, page=_stated(update.page, settings))
    for name in settings.statuses:
        if name not in state.projects:
            problems.append(f"{directory}: has no files of {name}")
    if problems:
        raise DirectoryProblems(problems)
    return updates


def _prepared(page: Page, items: Sequence[Distribution]) -> tuple[Page, list[str]]:
    """Return the page of the last run to be updated, and the names of files that are not there.

    A file with other contents replaces the one that was listed: in a directory, builds are
    repeated until they are published.
    """
    present = {item.path.name: item.sha256 for item in items}
    removed = [
        file.filename
        for file in page.files
        if file.filename not in present or file.hashes.get("sha256") != present[file.filename]
    ]
    # Attestations are those that lie beside the files now.
    listed = tuple(replace(file, provenance=None) for file in page.files)
    return replace(page, files=listed), removed


def _stated(page: Page, settings: IndexSettings) -> Page:
    """Return *page* with what options say of it."""
    names = [file.filename for file in page.files]

    def here(pattern: str) -> bool:
        return any(matches(name, pattern) for name in names)

    page = unyanked(page, [pattern for pattern in settings.unyank if here(pattern)])
    page = yanked(page, {key: reason for key, reason in settings.yank.items() if here(key)})
    if page.project in settings.statuses:
        page = with_status(page, *settings.statuses[page.project])
    return page


def _remove(
    files: IndexFiles,
    output: Path,
    state: DirectoryState,
    pages: Mapping[str, Page | None],
    updates: Mapping[str, Update],
) -> None:
    """Remove what the last run wrote for files that are gone."""
    before = dict(pages)
    gone = files.others(state.projects)
    for name in gone:
        before[name] = read_own_page(output / name, name)
    for name, page in before.items():
        kept = updates[name].documents if name in updates else {}
        for file in page.files if page else ():
            if file.filename.endswith(METADATA_SUFFIX) and file.filename not in kept:
                files.remove_document(file.filename)
    for name in gone:
        files.remove_project(name)
    for path in state.gone:
        files.remove_beside(path)


def _stray_documents(
    directory: Path, found: Scan, projects: Mapping[str, KnownProject]
) -> list[str]:
    """Return notes on metadata documents in *directory* that are of none of its wheels."""
    own = {os.path.basename(path) for project in projects.values() for path in project.outputs}  # noqa: PTH119
    return [
        f"{directory / name}: no wheel here has its variants, so it is not listed: delete it, or "
        "add its wheels"
        for name in sorted(found.documents)
        if name not in own and (directory / name).exists()
    ]
