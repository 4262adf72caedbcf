"""A component for servers that are made with the library simple-repository.

`VariantSelected` wraps a repository for one machine: of each version it lists the variant that
fits, under its plain filename, so that any installer takes it. Files are served as they are. Needs
``variants-proxy[simple-repository]``.
"""

from __future__ import annotations

import asyncio
import io
import logging
from dataclasses import replace
from functools import partial

import httpx
from packaging.utils import canonicalize_name
from packaging.version import Version
from simple_repository import SimpleRepository, errors, model
from simple_repository.components.core import RepositoryContainer

from pep_variants import labels as wheel_labels
from pep_variants import machines
from pep_variants import metadata as variant_metadata
from pep_variants.errors import VariantError
from pep_variants.metadata import (
    Absent,
    Failed,
    Fetch,
    FetchAnswer,
    LocalFile,
    Metadata,
    ReleaseFile,
    ReleaseReader,
    Whole,
)
from variants_index.pages import Page, PageFile

from ._choice.choice import Chooser
from ._choice.offers import Choice, Offer
from ._choice.reports import held_back
from ._key import Machine, decode
from ._sharing import LRUCache
from ._upstream.release_metadata import known_metadata
from ._upstream.releases import PageRelease, releases, wheel_version

__all__ = ["VariantSelected"]

VERSIONS = 200
"""Versions of a project, newest first, whose variants are considered."""

_CONCURRENT_READS = 16
_CACHED_METADATA = 1024
_CORE_METADATA = ".metadata"
_WITH_BODY = (200, 206)

logger = logging.getLogger(__name__)


class VariantSelected(RepositoryContainer):
    """Lists of each version the variant that fits one machine, as a plain wheel.

    For each plain filename there is one wheel: the best variant, or else the null variant or the
    non-variant wheel. It has the bytes, hashes and METADATA of the file in the source; its label is
    the private member ``_variant_label`` of the page. For platforms other than the machine's, which
    lock files need, there are null variants and non-variant wheels. Source distributions and
    versions without variants are left alone; ``*-variants.json`` files are not served.

    If the variant metadata of a version is broken or not there, that version has only its
    non-variant wheels, and a warning is logged. If it cannot be fetched for now, neither can the
    page (`SourceRepositoryUnavailable`): installers ask again.

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
            machine = replace(machine, platform=machines.load_machine(machine.name), name="")
        self._machine = machine
        self._http_client = http_client or httpx.AsyncClient(follow_redirects=True)
        self._metadata: LRUCache[object, Metadata] = LRUCache(_CACHED_METADATA)

    async def get_project_page(
        self, project_name: str, *, request_context: model.RequestContext | None = None
    ) -> model.ProjectDetail:
        """Return the page of the source, with the selected wheels under their plain filenames."""
        page = await self.source.get_project_page(project_name, request_context=request_context)
        files = {file.filename: file for file in page.files}
        choice = await self._choose(page)
        project = canonicalize_name(page.name)
        if self._machine.preferences.puts_first(project):
            held = partial(held_back, choice, project, self._machine.python)
            choice = replace(choice, held=await asyncio.to_thread(held))
        shown = (_shown(each, files[each.file.filename], choice) for each in choice.offers)
        return replace(page, files=tuple(shown))

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
        version = wheel_version(filename)
        if wanted is not None and version is not None:
            page = await self.source.get_project_page(project_name)
            choice = await self._choose(page, version)
            names = (each.file.filename for each in choice.offers if each.filename == filename)
            wanted = next(names, None)
        if wanted is None:
            raise errors.ResourceUnavailable(resource_name)
        return await self.source.get_resource(
            project_name,
            wanted + resource_name[len(filename) :],
            request_context=request_context,
        )

    async def _choose(self, page: model.ProjectDetail, only: Version | None = None) -> Choice:
        """Return the selected files of *page*.

        With *only*, variants of other versions are not selected, and the rest is not to be used.
        """
        listing = Page(canonicalize_name(page.name), tuple(map(_page_file, page.files)))
        found = [release for release in releases(listing) if only in (None, release.version)]
        reads = asyncio.Semaphore(_CONCURRENT_READS)

        async def read(release: PageRelease) -> Metadata | VariantError:
            async with reads:
                try:
                    return await self._read(listing.project, release)
                except VariantError as error:
                    if error.may_pass:
                        raise errors.SourceRepositoryUnavailable(str(error)) from error
                    logger.warning(
                        "variants ignored: %s %s: %s", listing.project, release.version, error
                    )
                    return error

        judged = found[:VERSIONS] if self._machine.preferences.use_variants else []
        metadata = {
            release.version: result
            for release, result in zip(
                judged, await asyncio.gather(*map(read, judged)), strict=True
            )
        }

        chooser = Chooser(self._machine, partial(known_metadata, metadata), limit=VERSIONS)
        choice = await asyncio.to_thread(chooser.choose, listing, found)
        return replace(choice, offers=tuple(each for each in choice.offers if not each.refused))

    async def _read(self, project: str, release: PageRelease) -> Metadata:
        """Return the variant metadata of *release*; what has hashes is read once.

        Raises:
            VariantError: it is broken, or cannot be fetched.
        """
        document = release.document
        files = (document,) if document is not None else release.wheels
        key = tuple((file.filename, *sorted(file.hashes.items())) for file in files)
        if (metadata := self._metadata.get(key)) is not None:
            return metadata
        reader = ReleaseReader(
            [_release_file(file) for file in release.wheels if not _is_plain(file.filename)],
            None if document is None else _release_file(document),
            source=project,
        )
        while fetches := reader.wanted():
            answer = await self._answer(project, fetches[0])
            await asyncio.to_thread(reader.receive, fetches[0], answer)
        metadata = reader.result()
        if release.is_lasting:
            self._metadata.put(key, metadata)
        return metadata

    async def _answer(self, project: str, fetch: Fetch) -> FetchAnswer:
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
            return Failed(str(error) or type(error).__name__, may_pass=True)
        return Failed(f"{type(resource).__name__} is an unknown kind of resource")

    async def _response(self, url: str, fetch: Fetch) -> FetchAnswer:
        async with self._http_client.stream("GET", url, headers=fetch.headers) as response:
            body = bytearray()
            if response.status_code in _WITH_BODY:
                async for chunk in response.aiter_bytes():
                    body += chunk[: fetch.limit + 1 - len(body)]
                    if len(body) > fetch.limit:
                        break
        return variant_metadata.read_response(
            fetch, response.status_code, response.headers, io.BytesIO(body).read
        )


def _page_file(file: model.File) -> PageFile:
    yanked = "" if file.yanked is True else file.yanked or None
    return PageFile(file.filename, file.url, file.hashes, file.requires_python, yanked)


def _is_plain(filename: str) -> bool:
    """Return whether it is a file that installers without variants know."""
    return (
        not filename.endswith(wheel_labels.METADATA_SUFFIX)
        and wheel_labels.split_label(filename)[1] is None
    )


def _release_file(file: PageFile) -> ReleaseFile:
    return ReleaseFile(file.filename, file.url, file.hashes)


def _shown(offer: Offer, file: model.File, choice: Choice) -> model.File:
    """Return *file* of the source as a page has it."""
    reason = choice.yanked(offer, offer.filename)
    file = file if reason == offer.file.yanked else replace(file, yanked=reason)
    label = wheel_labels.split_label(file.filename)[1]
    if label is None:
        return file
    private = file.private_metadata | {"_variant_label": label}
    return replace(file, filename=offer.filename, private_metadata=private)
