"""What a proxy answers to one machine, as files: for sites without it, and for object storage.

===========================================  ====================================================
``simple/index.html``, ``index.v1_json``     the projects (PEP 503, PEP 691)
``simple/<project>/…``                       the same of one project; links are relative
``files/<index>/<project>/<label>/<name>``   a file under its plain filename, ``-`` without a label
``…/<name>.metadata``                        its core metadata (PEP 658)
===========================================  ====================================================

A variant is always a file of the export: its name at its index has a label, and installers take the
name from the URL. Other files are links to their index unless they are to be stored as well.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from urllib.parse import quote, unquote

import anyio.to_thread
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from pep_variants.errors import VariantError, redacted
from pep_variants.wheelfile.core_metadata import METADATA_FILE
from pep_variants.wheelfile.wheel import open_wheel
from variants_index.errors import PackageIndexError
from variants_index.pages import (
    JSON,
    Page,
    PageFile,
    html_page,
    html_projects,
    json_page,
    json_projects,
    read_page,
)
from variants_index.platforms import is_for_platform

from ..choice.offers import version_in
from ..choice.views import Client, ProjectView
from ..errors import ExportError
from ..service import Service
from ..settings import Upstream
from ..upstream.single_flight import gather_limited
from ..urls import PLAIN, file_path
from ..wheels.transfers import Transfer, stream_all, unchanged_transfer
from .export_folder import write

HTML_PAGE, JSON_PAGE = "index.html", "index.v1_json"

_PARALLEL = 4
_BASE = "https://export.invalid/"
_FILENAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!~-]{0,250}")


@dataclass(frozen=True)
class Wanted:
    """What to export.

    Attributes:
        client: machine whose answers they are.
        requirements: projects, with the versions of each.
        every_file: store files without a label as well, in place of links to their index.
    """

    client: Client
    requirements: Sequence[Requirement]
    every_file: bool = False


@dataclass(frozen=True)
class Exported:
    """One project of an export.

    Attributes:
        project: normalized name.
        stored: number of files that are there.
        linked: number of files that are links to their index.
        size: of the stored ones in bytes.
    """

    project: str
    stored: int
    linked: int
    size: int


async def export(service: Service, wanted: Wanted, folder: Path) -> list[Exported]:
    """Write the answers to one machine into an empty folder.

    Raises:
        ExportError: a project or version does not exist, or something cannot be read.
        ProxyError, VariantError: an index fails, or a file is not what it promises.
    """
    found: dict[str, SpecifierSet] = {}
    for requirement in wanted.requirements:
        project = canonicalize_name(requirement.name)
        found[project] = found.get(project, SpecifierSet()) & requirement.specifier
    done = [
        await _Project(service, wanted, folder, project, specifier).export()
        for project, specifier in found.items()
    ]
    names = sorted(found)
    write(folder / "simple" / HTML_PAGE, html_projects(names))
    write(folder / "simple" / JSON_PAGE, json_projects(names))
    return done


class _Project:
    def __init__(
        self,
        service: Service,
        wanted: Wanted,
        folder: Path,
        project: str,
        specifier: SpecifierSet,
    ) -> None:
        self._service = service
        self._wanted = wanted
        self._folder = folder
        self._project = project
        self._specifier = specifier

    async def export(self) -> Exported:
        """Write the pages and files of the project."""
        service, client, project = self._service, self._wanted.client, self._project
        shown = await service.views.view(client, None, project)
        if shown is None:
            raise ExportError(f"no index has the project {project}")
        self._check(shown)
        answer = await service.pages.page(client, [shown], "../../", ("json",))
        url = f"{_BASE}simple/{project}/"
        page = await service.upstreams.compute(
            lambda: self._narrowed(read_page(answer.body, JSON, url, project))
        )
        if not page.files:
            raise ExportError(
                f"{project}{self._specifier}: {redacted(shown.upstream.url)}{project}/ has no such "
                "file for this machine"
            )
        works = [partial(self._entry, shown, file) for file in page.files]
        entries = await gather_limited(works, _PARALLEL)
        page = replace(page, files=tuple(entries))
        place = self._folder / "simple" / project
        write(place / HTML_PAGE, html_page(page))
        write(place / JSON_PAGE, json_page(page))
        stored = [file for file in entries if file.url.startswith("../../")]
        size = sum(file.size or 0 for file in stored)
        return Exported(project, len(stored), len(entries) - len(stored), size)

    def _check(self, shown: ProjectView) -> None:
        """Raise an error if the variant metadata of a wanted version cannot be used.

        A proxy asks again after some seconds, an export never.
        """
        for decision in shown.choice.decisions if shown.choice else ():
            version = decision.release.version
            problems = decision.selection.problems
            if problems and self._specifier.contains(version, prereleases=True):
                raise ExportError(
                    f"{self._project} {version}: {next(iter(problems.values()))} (nothing was "
                    "exported: try again, or without this version: "
                    f"--project '{self._project}!={version}')"
                )

    def _narrowed(self, page: Page) -> Page:
        """Return *page* with the versions and the wheels that are wanted."""
        target = self._wanted.client.machine.target
        files = []
        for file in page.files:
            version = version_in(file.filename)
            if self._specifier and (
                version is None or not self._specifier.contains(version, prereleases=True)
            ):
                continue
            tags = file.filename.removesuffix(".whl").rpartition("-")[2]
            if file.filename.endswith(".whl") and not is_for_platform(tags, target):
                continue
            files.append(file)
        versions = {version for file in files if (version := version_in(file.filename))}
        kept = None if page.versions is None else tuple(map(str, sorted(versions)))
        return replace(page, files=tuple(files), versions=kept)

    async def _entry(self, shown: ProjectView, file: PageFile) -> PageFile:
        """Return the entry of a file, which is stored if it has to be."""
        ours = file.url.startswith(_BASE)
        if not ours and not self._wanted.every_file:
            return file
        if not _FILENAME.fullmatch(file.filename):
            raise ExportError(f"{redacted(file.url)}: {file.filename!r} cannot be a filename here")
        choice = unquote(file.url.split("/")[-2]) if ours else PLAIN
        try:
            chunks = await self._chunks(shown.upstream, file, choice, ours=ours)
            relative = file_path(shown.upstream.name, self._project, quote(choice), file.filename)
            return await anyio.to_thread.run_sync(self._stored, file, chunks, relative)
        except PackageIndexError as error:
            raise ExportError(f"{error} (nothing was exported: try again)") from None

    async def _chunks(
        self, upstream: Upstream, file: PageFile, choice: str, *, ours: bool
    ) -> Iterable[bytes]:
        """Return the contents of a file from its index, with its metadata rewritten if need be."""
        upstreams, source = self._service.upstreams, file
        transfer: Transfer | None = None
        if ours:
            delivery = await self._service.deliveries.file(
                self._wanted.client, upstream, self._project, choice, file.filename
            )
            upstream, transfer = delivery.upstream, delivery.transfer
            source = replace(file, url=delivery.redirect)
        session = upstreams.session(upstream)
        if transfer is None:
            upstreams.allow_links(upstream, source.url)
            transfer = await anyio.to_thread.run_sync(unchanged_transfer, session, source)
        return stream_all(session, transfer, upstreams.store)

    def _stored(self, file: PageFile, chunks: Iterable[bytes], relative: str) -> PageFile:
        """Write a file and its core metadata; return its entry."""
        path = self._folder / unquote(relative)
        path.parent.mkdir(parents=True, exist_ok=True)
        digest, size = hashlib.sha256(), 0
        with path.open("wb") as stream:
            for chunk in chunks:
                digest.update(chunk)
                size += len(chunk)
                stream.write(chunk)
        promised = file.hashes.get("sha256")
        if promised is not None and promised != digest.hexdigest():
            raise ExportError(
                f"{self._project}: {file.filename} has the SHA-256 {digest.hexdigest()}, its page "
                f"says {promised}: the index has changed it, try again"
            )
        metadata = self._metadata(path, file)
        return replace(
            file,
            url=f"../../{relative}",
            hashes={**file.hashes, "sha256": digest.hexdigest()},
            size=size,
            core_metadata=metadata,
            provenance=None,  # of other bytes, or at an index that cannot be reached
            gpg_sig=None,
        )

    def _metadata(self, path: Path, file: PageFile) -> dict[str, str] | None:
        """Write the core metadata of a wheel beside it; return its hash."""
        if path.suffix != ".whl":
            return None
        limit = self._service.settings.limits.metadata_bytes
        try:
            with open_wheel(path, redacted(file.url)) as contents:
                data = contents.read(METADATA_FILE, limit)
        except VariantError:
            return None  # what an installer says of such a wheel is better
        if data is None:
            return None
        write(path.with_name(f"{path.name}.metadata"), data)
        return {"sha256": hashlib.sha256(data).hexdigest()}
