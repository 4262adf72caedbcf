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

import ctypes
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from urllib.parse import quote, unquote

import anyio.to_thread
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from pep_variants import wheel_files
from pep_variants.errors import VariantError, redacted
from variants_index import pages as index_pages
from variants_index import target as target_machines
from variants_index.http import NotFound, PackageIndexError
from variants_index.pages import Page, PageFile

from .._choice.in_place_names import UNLABELLED, wheel_at
from .._choice.offers import Choice, ProjectView, version_in
from .._choice.reports import held_back
from .._clients import Client
from .._key import Machine, encode
from .._service import Service
from .._sharing import gather_limited
from .._upstream.transfers import Transfer, stream_all, unchanged_transfer
from ..errors import ExportError, UpstreamError
from ..settings import Settings, Upstream

RECORD = "variants-export.json"
"""What a folder has at its top if it is an export: what it is of."""

_HTML_PAGE, _JSON_PAGE = "index.html", "index.v1_json"
_PARALLEL = 4
_OLD_SECONDS = 86_400
_BASE = "https://export.invalid/"
_FILENAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!~-]{0,250}")


@dataclass(frozen=True)
class Exported:
    """One project of an export.

    Attributes:
        project: normalized name.
        stored: number of files that are there.
        linked: number of files that are links to their index.
        size: of the stored ones in bytes.
        gone: why files are left out that their index lists and does not have.
    """

    project: str
    stored: int
    linked: int
    size: int
    gone: tuple[str, ...] = ()


async def export(
    settings: Settings,
    machine: Machine,
    requirements: Sequence[Requirement],
    folder: Path,
    *,
    every_file: bool,
) -> list[Exported]:
    """Write the answers to one machine into *folder*, in place of an earlier export.

    Args:
        settings: of the proxy.
        machine: whose answers they are.
        requirements: projects, with the versions of each.
        folder: does not exist, is empty, or is an earlier export.
        every_file: store files without a label as well, in place of links to their index.

    Raises:
        ExportError: a project or version does not exist, or something cannot be read or written.
        ProxyError, VariantError: an index fails, or a file is not what it promises.
    """
    wanted: dict[str, SpecifierSet] = {}
    for requirement in requirements:
        project = canonicalize_name(requirement.name)
        wanted[project] = wanted.get(project, SpecifierSet()) & requirement.specifier
    record: dict[str, object] = {
        "platform": machine.name,
        "system": machine.target,
        "projects": list(map(str, requirements)),
        "files": every_file,
    }
    # An old page is for clients that wait, not for files that stay.
    service = Service(replace(settings, serves_old=settings.allow_missing_sources))
    try:
        client = service.clients.client(encode(machine))
        with _replaced_folder(folder, record) as beside:
            done = [
                await _Project(service, client, beside, project, specifier, every_file).export()
                for project, specifier in wanted.items()
            ]
            _write(beside / "simple" / _HTML_PAGE, index_pages.html_projects(sorted(wanted)))
            _write(beside / "simple" / _JSON_PAGE, index_pages.json_projects(sorted(wanted)))
    except PackageIndexError as error:
        raise ExportError(f"{error} (nothing was exported: try again)") from None
    finally:
        service.upstreams.close()
    return done


@dataclass(frozen=True)
class _Project:
    """The export of one project; see `export`."""

    service: Service
    client: Client
    folder: Path
    project: str
    specifier: SpecifierSet
    every_file: bool
    gone: list[str] = field(default_factory=list)

    async def export(self) -> Exported:
        """Write the pages and files of the project."""
        service, client, project = self.service, self.client, self.project
        shown = await service.views.view(client, None, project)
        if shown is None:
            raise ExportError(f"no index has the project {project}")
        if shown.choice is not None and shown.choice.held and self.specifier:
            shown = replace(shown, choice=self._ordered(shown.choice))
        self._check(shown)
        answer = await service.pages.page(client, [shown], ("json",))
        url = f"{_BASE}simple/{project}/"
        page = await service.upstreams.compute(
            lambda: self._narrowed(
                index_pages.read_page(answer.body, index_pages.JSON, url, project), shown.choice
            )
        )
        if not page.files:
            raise ExportError(
                f"{project}{self.specifier}: {redacted(shown.upstream.url)}{project}/ has no such "
                "file for this machine"
            )
        if self._has_variants(shown) and not any(map(_is_wheel, page.files)):
            raise ExportError(
                f"{project}{self.specifier}: none of its wheels is for this machine, and sources "
                "alone are not what was asked for: leave the project out"
            )
        works = [partial(self._entry, shown, file) for file in page.files]
        entries = [*filter(None, await gather_limited(works, _PARALLEL))]
        if not entries:
            raise ExportError(f"{project}: {self.gone[0]}")
        page = replace(page, files=tuple(entries))
        place = self.folder / "simple" / project
        _write(place / _HTML_PAGE, index_pages.html_page(page))
        _write(place / _JSON_PAGE, index_pages.json_page(page))
        stored = [file for file in entries if file.url.startswith("../../")]
        size = sum(file.size or 0 for file in stored)
        counts = len(stored), len(entries) - len(stored)
        return Exported(project, *counts, size, tuple(self.gone))

    def _ordered(self, choice: Choice) -> Choice:
        """Return *choice* with the order of the versions that are wanted."""
        python = self.client.machine.python
        held = held_back(choice, self.project, python, self._admits)
        return replace(choice, held=held)

    def _admits(self, version: Version) -> bool:
        return self.specifier.contains(version, prereleases=True)

    def _check(self, shown: ProjectView) -> None:
        """Raise an error if the variant metadata of a wanted version cannot be used.

        A proxy asks again after some seconds, an export never.
        """
        for decision in shown.choice.decisions if shown.choice else ():
            version = decision.release.version
            problems = decision.selection.problems
            if problems and self._admits(version):
                raise ExportError(
                    f"{self.project} {version}: {next(iter(problems.values()))} (nothing was "
                    "exported: try again, or without this version: "
                    f"--project '{self.project}!={version}')"
                )

    def _has_variants(self, shown: ProjectView) -> bool:
        """Return whether there are variants of a wanted version, for whatever machine."""
        return any(
            each.release.has_variants and self._admits(each.release.version)
            for each in (shown.choice.decisions if shown.choice else ())
        )

    def _narrowed(self, page: Page, choice: Choice | None) -> Page:
        """Return *page* with the versions and the wheels that are wanted."""
        target = self.client.machine.target
        # What a variant is taken in place of is on pages for requirements with hashes.
        stood_for = choice.stood_for if choice is not None else ()
        files = []
        for file in page.files:
            version = version_in(file.filename)
            if self.specifier and (version is None or not self._admits(version)):
                continue
            if file.filename in stood_for:
                continue
            tags = file.filename.removesuffix(".whl").rpartition("-")[2]
            if file.filename.endswith(".whl") and not target_machines.is_for_platform(tags, target):
                continue
            files.append(file)
        versions = {version for file in files if (version := version_in(file.filename))}
        kept = None if page.versions is None else tuple(map(str, sorted(versions)))
        return replace(page, files=tuple(files), versions=kept)

    async def _entry(self, shown: ProjectView, file: PageFile) -> PageFile | None:
        """Return the entry of a file, which is stored if it has to be; None if it is gone."""
        ours = file.url.startswith(_BASE)
        if not ours and not self.every_file:
            return file
        name = (wheel_at(file.url) or (None, file.filename))[1]
        if not _FILENAME.fullmatch(name):
            raise ExportError(f"{redacted(file.url)}: {name!r} cannot be a filename here")
        folder = unquote(file.url.split("/")[-2]) if ours else UNLABELLED
        relative = f"files/{shown.upstream.name}/{self.project}/{quote(folder)}/{name}"
        named = replace(file, filename=name)
        try:
            chunks = await self._chunks(shown.upstream, file, folder if ours else None)
            return await anyio.to_thread.run_sync(self._stored, named, chunks, relative)
        except (NotFound, UpstreamError) as error:
            if error.status not in (0, 404, 410):
                raise
            (self.folder / unquote(relative)).unlink(missing_ok=True)
            self.gone.append(str(error))
            return None

    async def _chunks(
        self, upstream: Upstream, file: PageFile, folder: str | None
    ) -> Generator[bytes, None, None]:
        """Return the contents of a file, from its index or, with a *folder*, as it is delivered."""
        upstreams, source = self.service.upstreams, file
        transfer: Transfer | None = None
        if folder is not None:
            delivery = await self.service.deliveries.file(
                self.client, upstream, self.project, folder, file.filename
            )
            upstream, transfer = delivery.upstream, delivery.transfer
            source = replace(file, url=delivery.redirect)
        session = upstreams.session(upstream)
        if transfer is None:
            upstreams.allow_links(upstream, source.url)
            transfer = await anyio.to_thread.run_sync(unchanged_transfer, session, source)
        return stream_all(session, transfer, upstreams.store)

    def _stored(self, file: PageFile, chunks: Iterator[bytes], relative: str) -> PageFile:
        """Write a file and its core metadata; return its entry."""
        path = self.folder / unquote(relative)
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
                f"{self.project}: {file.filename} has the SHA-256 {digest.hexdigest()}, its page "
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
        )

    def _metadata(self, path: Path, file: PageFile) -> dict[str, str] | None:
        """Write the core metadata of a wheel beside it; return its hash."""
        if path.suffix != ".whl":
            return None
        limit = self.service.settings.limits.metadata_bytes
        try:
            with wheel_files.open_wheel(path, redacted(file.url)) as contents:
                data = contents.read(wheel_files.METADATA_FILE, limit)
        except VariantError:
            return None  # what an installer says of such a wheel is better
        if data is None:
            return None
        _write(path.with_name(f"{path.name}.metadata"), data)
        return {"sha256": hashlib.sha256(data).hexdigest()}


@contextmanager
def _replaced_folder(folder: Path, record: dict[str, object]) -> Iterator[Path]:
    """Yield an empty folder that becomes *folder* if the context ends without an error.

    An earlier export is replaced as a whole. Installers that read it meanwhile see the old or
    the new files, on the systems that let a folder be renamed while its files are open.
    """
    folder = folder.absolute()
    try:
        if folder.exists() and not (folder / RECORD).is_file() and any(folder.iterdir()):
            raise ExportError(
                f"{folder}: is neither empty nor an earlier export (it has no {RECORD}): "
                "name another folder"
            )
        folder.parent.mkdir(parents=True, exist_ok=True)
        _tidy(folder)
        beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise ExportError(f"{folder}: cannot be written: {error.strerror}") from None
    try:
        yield beside
        _write(beside / RECORD, json.dumps(record, indent=2).encode() + b"\n")
        _swap(beside, folder)
    except OSError as error:
        raise ExportError(
            f"{error.filename or folder}: cannot be written: {error.strerror} "
            f"({folder} is as it was)"
        ) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _is_wheel(file: PageFile) -> bool:
    return file.filename.endswith(".whl")


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two folders in one step, which Linux can; return whether that was done.

    A process that is ended between two steps would leave no export.
    """
    if sys.platform != "linux":
        return False
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    names = os.fsencode(one), os.fsencode(other)
    return rename is not None and rename(here, names[0], here, names[1], exchange) == 0


def _tidy(folder: Path) -> None:
    """Remove what exports to *folder* that were ended have left beside it a day ago."""
    name = re.compile(rf"\.{re.escape(folder.name)}-[a-z0-9_]{{8}}(-old)?")
    for left in folder.parent.iterdir():
        if not name.fullmatch(left.name) or left.is_symlink() or not left.is_dir():
            continue
        with suppress(OSError):
            written = max(path.lstat().st_mtime for path in (left, *left.rglob("*")))
            if written < time.time() - _OLD_SECONDS:
                shutil.rmtree(left, ignore_errors=True)


def _write(path: Path, data: bytes) -> None:
    """Write a file, and the folders that it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _swap(beside: Path, folder: Path) -> None:
    """Put *beside* in place of *folder*."""
    # mkdtemp has made it readable for this user only.
    umask = os.umask(0)
    os.umask(umask)
    beside.chmod(0o777 & ~umask)
    if not folder.exists():
        beside.rename(folder)
        return
    if _exchanged(beside, folder):
        return
    old = beside.with_name(f"{beside.name}-old")
    folder.rename(old)
    try:
        beside.rename(folder)
    except OSError:
        with suppress(OSError):
            old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)
