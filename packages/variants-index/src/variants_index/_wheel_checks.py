"""Entries of the catalogue against the GPU code in the wheels that they are about.

A wheel is downloaded to a temporary file: nearly all of it is libraries, and these are deflated,
so that ranges would not be cheaper.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from pep_variants import metadata as variant_metadata
from pep_variants import wheel_files
from pep_variants.errors import InvalidWheel, some
from pep_variants.metadata import Property
from pep_variants.preferences import Sources
from pep_variants.wheel_files import GpuCode
from variants_catalog import catalogs, entries
from variants_catalog.catalogs import FileCatalog, Finding
from variants_catalog.entries import CatalogProject, CatalogVariant, Measured

from ._candidate import Candidate
from ._catalog_checks import taken
from ._downloads import downloaded
from ._errors import PackageIndexError
from ._http.responses import CHUNK
from ._http.session import Session
from ._package_finder import PackageFinder, Project
from .pages import PageFile

_GPU_CODE = (("nvidia", "sm_arch"), ("amd", "gfx_arch"))
_UNREAD = "try again later, or with a larger limit"


_Difference = tuple[bool, str, str, str]
"""Whether it is an error, its code, what wheels have that properties do not, the remedy."""


@dataclass(frozen=True)
class ReadWheel:
    """A wheel whose GPU code was read.

    Attributes:
        project: that the entry is of.
        place: the variant in the entry.
        label: of the variant.
        measured: the wheel, as a row of the entry.
        properties: of the variant, those about GPU code as the wheel has it.
    """

    project: str
    place: str
    label: str
    measured: Measured
    properties: tuple[str, ...]


@dataclass
class WheelCheck:
    """Reads wheels of entries; collects what they say and findings, so that one run reports all.

    Attributes:
        session: fetches pages and wheels.
        sources: the user's indexes, which have the projects that entries name.
        largest: bytes of a wheel; larger ones are not read.
        progress: called with what is read.
        wheels: that were read.
        findings: what is wrong.
    """

    session: Session
    sources: Sources
    largest: int
    progress: Callable[[str], None]
    wheels: list[ReadWheel] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def check(self, entry: CatalogProject, wanted: SpecifierSet) -> None:
        """Read wheels of *entry*, of the versions *wanted*.

        They are those that it names, and of each variant and platform those of the oldest and the
        newest release. A variant that names wheels of other projects has its code in these.
        """
        finder = PackageFinder(
            self.session, self.sources, None, FileCatalog("", {}, {entry.name: entry})
        )
        self.progress(entry.name)
        try:
            project = finder.project(entry.name)
            lost = {label for each in project.unavailable for label in each.labels}
            for variant in entry.variants:
                if _others(variant) == list(variant.properties):
                    continue
                if variant.label in lost and variant.place is not None:
                    continue
                place = f"variant {variant.number}"
                self._check_variant(finder, entry, place, variant, project, wanted)
        except PackageIndexError as problem:
            self._add("source-unusable", entry, "", str(problem), "try again later")
        else:
            for each in project.unavailable:
                self._add("source-unusable", entry, "", str(each), "try again later")

    def _check_variant(
        self,
        finder: PackageFinder,
        entry: CatalogProject,
        place: str,
        variant: CatalogVariant,
        project: Project,
        wanted: SpecifierSet,
    ) -> None:
        found = taken(variant, project)
        own = {item.published_name for items in found.values() for item in items}
        names = {wheel_files.parse_filename(row.file).name for row in variant.measured}
        pages: list[Mapping[Version, Sequence[Candidate]]]
        pages = [finder.project(name).versions for name in sorted(names - own)]
        if not names or names & own:
            pages.append(found)
        files: dict[str, tuple[Version, PageFile]] = {}
        for page in pages:
            for version, items in page.items():
                for item in items:
                    file = item.file if item.catalog is None else item.catalog.original
                    files[file.filename] = version, file
        if not variant.measured:
            message = f"the GPU code of {variant.label} is as a page says"
            self._add("not-measured", entry, f"{place}.properties", message, "add measured")
        for row in variant.measured:
            listed = files.get(row.file)
            if listed is None or listed[1].hashes.get("sha256", row.sha256) != row.sha256:
                what = "is not on its index" if listed is None else "has another SHA-256 there"
                where, message = f"{place}.measured", f"{row.file} {what}"
                self._add("measured-mismatch", entry, where, message, "measure another wheel", True)
        same: dict[_Difference, list[str]] = {}
        for file in _chosen(variant, files, wanted):
            code = self._read(entry, place, variant, file)
            for each in _differences(variant, code, file) if code is not None else ():
                same.setdefault(each, []).append(file.filename)
        for (is_error, kind, what, remedy), named in same.items():
            message = f"{some(named, 2)} {what}"
            self._add(kind, entry, f"{place}.properties", message, remedy, is_error)

    def _read(
        self, entry: CatalogProject, place: str, variant: CatalogVariant, file: PageFile
    ) -> GpuCode | None:
        """Return the code of a wheel, None if it cannot be read."""
        self.progress(f"{entry.name}, {variant.label}: {file.filename}")
        try:
            if (file.size or 0) > self.largest:
                raise InvalidWheel(f"has {file.size} bytes", file.filename)
            with downloaded(
                self.session, file.url, file.hashes, size=file.size, limit=self.largest
            ) as copy:
                digest = hashlib.sha256()
                while chunk := copy.read(CHUNK):
                    digest.update(chunk)
                code = wheel_files.combined(wheel_files.wheel_code(copy, file.filename).values())
        except (PackageIndexError, InvalidWheel, OSError) as problem:
            self._add("wheel-unread", entry, place, f"{file.filename}: {problem}", _UNREAD)
            return None
        if code:
            day = datetime.now(timezone.utc).date().isoformat()
            row = Measured(file.filename, digest.hexdigest(), day)
            tags = wheel_files.parse_filename(file.filename).tags
            said = (*_others(variant), *map(str, code.properties(tags)))
            self.wheels.append(ReadWheel(entry.name, place, variant.label, row, said))
        return code

    def _add(
        self,
        code: str,
        entry: CatalogProject,
        place: str,
        message: str,
        way: str,
        is_error: bool = False,
    ) -> None:
        make = catalogs.error if is_error else catalogs.warning
        self.findings.append(make(code, entry.source, place, message, way))


def _differences(variant: CatalogVariant, code: GpuCode, file: PageFile) -> Iterator[_Difference]:
    """Yield where the properties of a variant and the *code* of *file*, its wheel, differ."""
    tags = wheel_files.parse_filename(file.filename).tags
    parsed = [Property.parse(text) for text in variant.properties if "{" not in text]
    found = code.compared(variant_metadata.group_properties(parsed), tags)
    sayable = code.compared(variant_metadata.group_properties(code.properties(tags)), tags)
    lacking = dict.fromkeys(gpu for gpus in found.lacking.values() for gpu in gpus)
    unlisted = [gpu for gpu in found.unnamed if gpu not in sayable.unnamed]
    if not code:
        remedy = "if it requires a wheel that has it, name that in measured"
        yield (False, "code-missing", "without GPU code", remedy)
    if lacking:
        remedy = "list what it has, or limit versions or platforms"
        yield (True, "code-missing", f"without code for {', '.join(lacking)}", remedy)
    if unlisted:
        what = f"with code for {', '.join(unlisted)} as well"
        yield (False, "code-unlisted", what, "list it")


def _others(variant: CatalogVariant) -> list[str]:
    """Return the properties of *variant* that are not about GPU code."""
    return [
        text
        for text in variant.properties
        if "{" in text or Property.parse(text)[:2] not in _GPU_CODE
    ]


def _chosen(
    variant: CatalogVariant, files: Mapping[str, tuple[Version, PageFile]], wanted: SpecifierSet
) -> Sequence[PageFile]:
    """Return the *files* that are read, each once.

    Of the wheels of a release for a platform, which differ in Python alone, it is the measured one.
    """
    rows = {row.file for row in variant.measured}
    builds: dict[str, dict[Version, PageFile]] = {}
    chosen = {}
    for filename, (version, file) in files.items():
        if not filename.endswith(".whl") or not wanted.contains(version.public, prereleases=True):
            continue
        if filename in rows:
            chosen[filename] = file
        if version.is_prerelease or file.yanked is not None or not variant.admits(version):
            continue
        tags = filename.removesuffix(".whl").rpartition("-")[2].split(".")
        for tag in tags if tags == ["any"] or variant.is_for(tags) else ():
            releases = builds.setdefault(entries.platform_kind(tag), {})
            if version not in releases or filename in rows:
                releases[version] = file
    for releases in builds.values():
        chosen |= {
            file.filename: file for file in (releases[min(releases)], releases[max(releases)])
        }
    return list(chosen.values())
