"""A component for servers that are made with the library simple-repository.

`VariantSelected` wraps a repository for one machine: of each version it lists the variant that
fits, under its plain filename, so that any installer takes it. Files are served as they are. Needs
``variants-proxy[simple-repository]``.
"""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import httpx
from packaging.utils import canonicalize_name
from packaging.version import Version
from simple_repository import SimpleRepository, errors, model
from simple_repository.components.core import RepositoryContainer

from pep_variants import (
    Detector,
    Failed,
    File,
    Metadata,
    MetadataError,
    Preferences,
    ReleaseFile,
    ReleaseReader,
    VariantError,
    load_machine,
    read_response,
    select,
)
from pep_variants.choose.preferences import NON_VARIANT_LABEL
from pep_variants.fetch import Absent, Answer, Fetch, LocalFile, Whole
from pep_variants.model.filename import parse_metadata_filename, read_version
from pep_variants.model.label import METADATA_SUFFIX, NULL_LABEL, ZERO_LABEL, split_label
from variants_index.platforms import covers, environment_of, is_for_platform, platform_of_namespaces

from .client.key import Machine, decode

VERSIONS = 200
"""Versions of a project, newest first, whose variants are considered."""

_CONCURRENT_READS = 16
_CACHED_METADATA = 1024
_CORE_METADATA = ".metadata"
_WHEEL_DASHES = 4
_WITH_BODY = (200, 206)

logger = logging.getLogger(__name__)


class VariantSelected(RepositoryContainer):
    """Lists of each version the variant that fits one machine, as a plain wheel.

    For each plain filename there is one wheel: the best variant, or else the null variant or the
    non-variant wheel. It has the bytes, hashes and METADATA of the file in the source; its label is
    the private member ``_variant_label`` of the page. For platforms other than the machine's, which
    lock files need, there are null variants and non-variant wheels. Source distributions and
    versions without variants are left alone; ``*-variants.json`` files are not served.

    If the variant metadata of a version is broken or cannot be fetched, that version has only its
    non-variant wheels, and a warning is logged.

    Every page and every wheel asks the source for the page of the project: put a component that
    caches pages, such as `CachedHttpRepository`, below this one.
    """

    def __init__(
        self,
        source: SimpleRepository,
        machine: Machine | str,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        """Wrap *source* for *machine*.

        Args:
            source: a repository with variant wheels.
            machine: of the clients: a `Machine`, or a platform key, which may also be the name of
                a known machine (``h100-zen4``) or facts (``cuda=12.8,sm=9.0``).
            http_client: fetches variant metadata from *source* where its resources are URLs.

        Raises:
            InvalidKey: the platform key is not valid.
            PlatformFileError: there is no machine of that name.
        """
        super().__init__(source)
        if isinstance(machine, str):
            machine = decode(machine)
        if machine.name:
            machine = replace(machine, platform=load_machine(machine.name), name="")
        self._machine = machine
        self._http_client = http_client or httpx.AsyncClient(follow_redirects=True)
        self._metadata: dict[object, Metadata] = {}

    async def get_project_page(
        self, project_name: str, *, request_context: model.RequestContext | None = None
    ) -> model.ProjectDetail:
        """Return the page of the source, with the selected wheels under their plain filenames."""
        page = await self.source.get_project_page(project_name, request_context=request_context)
        releases = _releases(page)
        chosen = await self._choose(page.name, releases)
        # As in pip, a label that the user asks for is an error if a version does not have it.
        asked = self._machine.preferences.forced.get(canonicalize_name(page.name))
        judged = {wheel.filename for release in releases for wheel in release.wheels}
        files = [
            _under(chosen.get(file.filename, file.filename), file)
            for file in page.files
            if file.filename in chosen
            or (file.filename not in judged and _is_plain(file.filename) and not asked)
        ]
        return replace(page, files=tuple(files))

    async def get_resource(
        self,
        project_name: str,
        resource_name: str,
        *,
        request_context: model.RequestContext | None = None,
    ) -> model.Resource:
        """Return the resource of the source that the page lists as *resource_name*.

        Raises:
            ResourceUnavailable: the page does not list it.
        """
        filename = resource_name.removesuffix(_CORE_METADATA)
        wanted: str | None = filename if _is_plain(filename) else None
        version = _wheel_version(filename)
        if wanted is not None and version is not None:
            page = await self.source.get_project_page(project_name)
            releases = [release for release in _releases(page) if release.version == version]
            if releases:
                chosen = await self._choose(page.name, releases)
                wanted = next((name for name, plain in chosen.items() if plain == filename), None)
        if wanted is None:
            raise errors.ResourceUnavailable(resource_name)
        return await self.source.get_resource(
            project_name,
            wanted + resource_name[len(filename) :],
            request_context=request_context,
        )

    async def _choose(self, project: str, releases: Sequence[_Release]) -> dict[str, str]:
        """Return the selected wheels of *releases*: plain filenames by filenames of the source."""
        reads = asyncio.Semaphore(_CONCURRENT_READS)

        async def read(release: _Release) -> Metadata | VariantError:
            async with reads:
                try:
                    return await self._read(project, release)
                except VariantError as error:
                    logger.warning("variants ignored: %s %s: %s", project, release.version, error)
                    return error

        preferences = self._machine.preferences
        if (
            not preferences.use_variants
            or preferences.forced.get(canonicalize_name(project)) == NON_VARIANT_LABEL
        ):
            names = [wheel.filename for release in releases for wheel in release.wheels]
            return {name: name for name in names if _is_plain(name)}
        found = await asyncio.gather(*map(read, releases[:VERSIONS]))
        unread = MetadataError(project, "", f"variants of the newest {VERSIONS} versions are read")
        found += [unread] * (len(releases) - len(found))
        return await asyncio.to_thread(_selected, project, releases, found, self._machine)

    async def _read(self, project: str, release: _Release) -> Metadata:
        """Return the variant metadata of *release*; what has hashes is read once.

        Raises:
            VariantError: it is broken, or cannot be fetched.
        """
        document = release.document
        files = (document,) if document is not None else release.wheels
        key = tuple((file.filename, *sorted(file.hashes.items())) for file in files)
        if key in self._metadata:
            return self._metadata[key]
        reader = ReleaseReader(
            [_release_file(file) for file in release.wheels if not _is_plain(file.filename)],
            None if document is None else _release_file(document),
            source=project,
        )
        while fetches := reader.wanted():
            answer = await self._answer(project, fetches[0])
            await asyncio.to_thread(reader.receive, fetches[0], answer)
        metadata = reader.result()
        if all(file.hashes for file in files):
            while len(self._metadata) >= _CACHED_METADATA:
                self._metadata.pop(next(iter(self._metadata)), None)
            self._metadata[key] = metadata
        return metadata

    async def _answer(self, project: str, fetch: Fetch) -> Answer:
        """Fetch from the source; what fails is an answer."""
        try:
            resource = await self.source.get_resource(project, fetch.file.filename)
            if isinstance(resource, model.LocalResource):
                return LocalFile(resource.path.open("rb"))
            if isinstance(resource, model.TextResource):
                return Whole(resource.text.encode())
            if isinstance(resource, model.HttpResource):
                return await self._response(resource.url, fetch)
        except LookupError as error:  # the library's errors for what is not there
            return Absent(str(error))
        except (errors.SourceRepositoryUnavailable, httpx.HTTPError, OSError) as error:
            return Failed(str(error) or type(error).__name__)
        return Failed(f"{type(resource).__name__} is an unknown kind of resource")

    async def _response(self, url: str, fetch: Fetch) -> Answer:
        async with self._http_client.stream("GET", url, headers=fetch.headers) as response:
            body = bytearray()
            if response.status_code in _WITH_BODY:
                async for chunk in response.aiter_bytes():
                    body += chunk[: fetch.limit + 1 - len(body)]
                    if len(body) > fetch.limit:
                        break
        return read_response(fetch, response.status_code, response.headers, io.BytesIO(body).read)


class _Release(NamedTuple):
    """A version with variants.

    Attributes:
        version: of the wheels.
        wheels: all of them, in the order of the page.
        document: the file with the variant metadata of the version, None if there is none.
    """

    version: Version
    wheels: tuple[model.File, ...]
    document: model.File | None


def _releases(page: model.ProjectDetail) -> list[_Release]:
    """Return the versions of *page* that have variants, newest first."""
    wheels: dict[Version, list[model.File]] = {}
    documents: dict[Version, model.File] = {}
    for file in page.files:
        version = _wheel_version(file.filename)
        if version is not None:
            wheels.setdefault(version, []).append(file)
        elif (found := parse_metadata_filename(file.filename)) is not None and (
            found[0] == canonicalize_name(page.name)
        ):
            documents.setdefault(found[1], file)
    return [
        _Release(version, tuple(files), documents.get(version))
        for version, files in sorted(wheels.items(), reverse=True)
        if not all(_is_plain(file.filename) for file in files)
    ]


def _wheel_version(filename: str) -> Version | None:
    """Return the version of a wheel, None for other files."""
    if not filename.endswith(".whl") or filename.count("-") < _WHEEL_DASHES:
        return None
    return read_version(filename.split("-", 2)[1])


def _is_plain(filename: str) -> bool:
    """Return whether it is a file that installers without variants know."""
    return not filename.endswith(METADATA_SUFFIX) and split_label(filename)[1] is None


def _release_file(file: model.File) -> ReleaseFile:
    return ReleaseFile(file.filename, file.url, file.hashes)


def _under(filename: str, file: model.File) -> model.File:
    label = split_label(file.filename)[1]
    if label is None:
        return file
    private = file.private_metadata | {"_variant_label": label}
    return replace(file, filename=filename, private_metadata=private)


def _selected(
    project: str,
    releases: Iterable[_Release],
    metadata: Iterable[Metadata | VariantError],
    machine: Machine,
) -> dict[str, str]:
    """Select among the wheels of *releases*: plain filenames by filenames of the source."""
    supported = {**machine.detected.namespaces, **machine.platform.namespaces}
    target = machine.target or platform_of_namespaces(
        tuple(sorted(name for name, support in supported.items() if support.features))
    )
    detector = Detector(
        environment=environment_of(target),
        enabled=machine.preferences.enable,
        platform=machine.platform,
        detected=machine.detected if machine.detected.namespaces else None,
        answers=machine.answers,
    )
    project = canonicalize_name(project)
    preferences = machine.preferences
    # A forced label is for this platform only; others have what fits everywhere.
    elsewhere = replace(preferences, forced={})
    selected: dict[str, str] = {}
    for release, found in zip(releases, metadata, strict=True):
        here: list[model.File] = []
        others: list[model.File] = []
        for wheel in release.wheels:
            plain, label = split_label(wheel.filename)
            if is_for_platform(plain.removesuffix(".whl").rpartition("-")[2], target):
                here.append(wheel)
            elif label in (None, NULL_LABEL, ZERO_LABEL):
                others.append(wheel)
        # Yanked wheels are used only if there is no other (PEP 592).
        standing = [wheel for wheel in here if not wheel.yanked]
        best = _best(project, standing, found, detector, preferences)
        best = best or _best(project, here, found, detector, preferences)
        best = {**_best(project, others, found, detector, elsewhere), **best}
        selected.update((filename, plain) for plain, filename in best.items())
    return selected


def _best(
    project: str,
    wheels: Iterable[model.File],
    metadata: Metadata | VariantError,
    detector: Detector,
    preferences: Preferences,
) -> dict[str, str]:
    """Return the best wheel of each plain filename: filenames of the source by plain ones.

    An installer without variants compares platform tags and build tags first, while the order of
    variants outranks both. So a wheel is left out if a better variant can be installed wherever it
    can.
    """

    def read(_: str) -> Metadata:
        if isinstance(metadata, VariantError):
            raise metadata
        return metadata

    selection = select(
        [File(wheel.filename, "", wheel) for wheel in wheels],
        metadata=read,
        platform=detector.platform,
        preferences=preferences,
        project=project,
    )
    ranks: dict[str | None, int] = {}
    best: dict[str, tuple[int, str]] = {}
    for file in selection.files:
        rank = ranks.setdefault(file.label, len(ranks))
        best.setdefault(split_label(file.filename)[0], (rank, file.filename))
    tags = {plain: "-".join(plain.removesuffix(".whl").rsplit("-", 3)[1:]) for plain in best}
    return {
        plain: filename
        for plain, (rank, filename) in best.items()
        if not any(
            better < rank and covers(tags[other], tags[plain])
            for other, (better, _) in best.items()
        )
    }
