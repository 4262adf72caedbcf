"""The record: what indexes list of the catalogue's projects, small enough for the repository.

Answers of the selector are computed from it without a network. `python -m selector record` renews
it from the real indexes. A page that could not be read is missing; then `supposed` counts.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from pep_variants.errors import InvalidWheel
from pep_variants.preferences import Sources
from variants_catalog.catalogs import shipped_catalog
from variants_catalog.listings import pages_of
from variants_index.finder import Session, fetch_metadata_file
from variants_index.http import PackageIndexError
from variants_index.pages import PageFile

PUBLIC = "https://pypi.org/simple"
"""The public index; pages of the record that are on it have the name of a project alone."""
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
SDIST = "sdist"
"""Among the tags of wheels: there is a source distribution."""
RECORD = Path(__file__).with_name("record.json")

_PYTHON_TAG = re.compile(r"(?:cp3([0-9]+)-(?:cp3\1|none|abi3)|py(?:2\.py)?3-none)-")
_PLATFORM = re.compile(
    r"any|(?:many)?linux.*_(?:x86_64|aarch64)|win_amd64|macosx_.*_(?:arm64|universal2)"
)
_NEWEST = int(PYTHONS[-1].rpartition(".")[2])
_OLDEST = int(PYTHONS[0].rpartition(".")[2])


@dataclass(frozen=True)
class Release:
    """The wheels of one version on a page.

    Attributes:
        tags: of each wheel, three with dashes between, and `SDIST`.
        python: its ``Requires-Python``.
        requires: its requirements among the projects of the record, and ``Provides-Extra``, as
            lines of METADATA.
        yanked: whether all of it is.
    """

    tags: tuple[str, ...]
    python: str = ""
    requires: tuple[str, ...] = ()
    yanked: bool = False


Pages = Mapping[str, Mapping[str, Release]]
"""Releases by version as published, of each page: a URL, or on `PUBLIC` the name of a project."""


@dataclass(frozen=True)
class Record:
    """What indexes list.

    Attributes:
        date: day on which they were asked, ISO 8601.
        pages: those that could be read.
    """

    date: str
    pages: Pages


def projects() -> tuple[str, ...]:
    """Return the normalized names of the projects that people install, ascending."""
    return tuple(
        name
        for name in sorted(shipped_catalog().names())
        if "-device-" not in name and not name.startswith("rocm")
    )


def read_record(path: Path = RECORD) -> Record:
    """Read the file of a record."""
    tree = json.loads(path.read_text("utf-8"))
    tags, texts = tree["tags"], tree["texts"]
    pages: dict[str, dict[str, Release]] = {}
    for page, releases in tree["pages"].items():
        pages[page] = {
            version: Release(
                tuple(tags[number] for number in tree["sets"][at]),
                texts[python],
                tuple(texts[number] for number in requires),
                bool(yanked),
            )
            for version, (at, python, requires, *yanked) in releases.items()
        }
    return Record(tree["date"], pages)


def write_record(record: Record, path: Path = RECORD) -> None:
    """Write a record, each tag and text once, a line for each page."""
    tags, texts = _Numbers(), _Numbers()
    sets: _Numbers = _Numbers()
    pages = []
    for page, releases in sorted(record.pages.items()):
        lines = {
            version: [
                sets.of(json.dumps([tags.of(tag) for tag in release.tags])),
                texts.of(release.python),
                [texts.of(text) for text in release.requires],
                *([1] if release.yanked else []),
            ]
            for version, release in releases.items()
        }
        pages.append(f"{json.dumps(page)}: {json.dumps(lines, separators=(',', ':'))}")
    body = ",\n".join(pages)
    known = f'"tags": {json.dumps(list(tags))},\n"texts": {json.dumps(list(texts))}'
    path.write_text(
        f'{{"date": "{record.date}",\n{known},\n"sets": [{", ".join(sets)}],\n'
        f'"pages": {{\n{body}\n}}}}\n',
        "utf-8",
    )


class _Numbers(dict[str, int]):
    """Numbers texts in the order in which they come."""

    def of(self, text: str) -> int:
        """Return the number of *text*."""
        return self.setdefault(text, len(self))


def renewed(tell: Callable[[str], object] = print) -> Record:
    """Ask the indexes; return what they list. Pages that cannot be read are told, and left out."""
    catalog = shipped_catalog()
    entries = [entry for name in catalog.names() if (entry := catalog.project(name)) is not None]
    names = {name for entry in entries for name in (entry.name, *entry.targets)}
    names -= {name for name in names if "-device-" in name}
    urls = {page.url: entry.name for entry in entries for page in pages_of(entry) if page.place}
    wanted = {**{name: (f"{PUBLIC}/{name}/", name) for name in names}}
    wanted |= {url: (url, name) for url, name in urls.items() if "-device-" not in name}
    pages: dict[str, dict[str, Release]] = {}
    with Session(Sources(), retries=1) as session, ThreadPoolExecutor(8) as pool:

        def read(item: tuple[str, tuple[str, str]]) -> tuple[str, dict[str, Release] | str]:
            page, (url, name) = item
            session.add_index(url)
            try:
                files = session.fetch_page(url, name, seconds=60).files
                return page, dict(_releases(files, name, session, names))
            except PackageIndexError as error:
                return page, error.problem_at(url)

        for page, found in pool.map(read, sorted(wanted.items())):
            if isinstance(found, str):
                tell(f"{page}: {found}")
            else:
                pages[page] = found
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    return Record(today, pages)


def _releases(
    files: Iterable[PageFile], name: str, session: Session, names: Set[str]
) -> Iterator[tuple[str, Release]]:
    """Yield the final releases of a page, newest first, as far as they matter."""
    by_version: dict[str, list[PageFile]] = {}
    for file in files:
        number = _version(file.filename, name)
        if number is not None and not number.is_prerelease:
            by_version.setdefault(str(number), []).append(file)
    for version in sorted(by_version, key=Version, reverse=True):
        group = by_version[version]
        kept = [file for file in group if file.yanked is None] or group
        wheels = {tag: file for file in kept for tag in _tags(file.filename)}
        python = next((file.requires_python or "" for file in wheels.values()), "")
        requires: tuple[str, ...] = ()
        if wheels:
            requires = tuple(_requires(session, [*wheels.values()][-1], names - {name}))
        sources = [SDIST] if any(not file.filename.endswith(".whl") for file in kept) else []
        if wheels or sources:
            yanked = kept[0].yanked is not None
            yield version, Release((*sorted(wheels), *sources), python, requires, yanked)


def _version(filename: str, name: str) -> Version | None:
    if filename.endswith(".whl"):
        text = filename.split("-")[1].replace("_", "-")
    else:
        text = re.sub(r"\.(tar\.gz|zip)$", "", filename)[len(name) + 1 :]
    with contextlib.suppress(InvalidVersion):
        return Version(text)
    return None


def _tags(filename: str) -> Iterator[str]:
    """Yield the tags of a wheel that count: for a Python and a system of the selector."""
    if not filename.endswith(".whl"):
        return
    python, abi, platforms = filename.removesuffix(".whl").split("-")[-3:]
    platform = ".".join(each for each in platforms.split(".") if _PLATFORM.fullmatch(each))
    match = _PYTHON_TAG.match(f"{python}-{abi}-")
    if not platform or match is None:
        return
    minor = int(match[1] or 0)
    if minor > _NEWEST or (abi.startswith("cp") and minor < _OLDEST):
        return
    yield f"{python}-{abi}-{platform}"


def _requires(session: Session, file: PageFile, names: Collection[str]) -> Iterator[str]:
    """Yield the lines of METADATA that count: requirements among *names*, and all extras."""
    beside = replace(file, core_metadata={}) if file.core_metadata is None else file
    try:
        text = fetch_metadata_file(session, beside).decode("utf-8", "replace")
    except (PackageIndexError, InvalidWheel):
        return
    for line in text.partition("\n\n")[0].splitlines():
        key, _, value = line.partition(":")
        if key == "Provides-Extra":
            yield line.strip()
        elif key == "Requires-Dist":
            with contextlib.suppress(InvalidRequirement):
                if canonicalize_name(Requirement(value.strip()).name) in names:
                    yield line.strip()
