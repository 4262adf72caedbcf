"""Views of projects: which files of an upstream's page a client gets, selected once."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import Version

from pep_variants import labels as wheel_labels
from pep_variants import markers, wheel_files
from pep_variants import preferences as user_preferences
from pep_variants.errors import InvalidMarker, InvalidWheel, PluginFailed
from variants_catalog import catalogs
from variants_index.pages import Page

from .._choice.catalog_choice import locked_names, with_published
from .._choice.choice import Chooser, LockedVersion, OtherSource, target_of
from .._choice.offers import NO_AGREEMENT, Agreed, Choice, ProjectView
from .._choice.reports import held_back, is_notable
from .._clients import Client, NotedProjects
from .._sharing import LRUCache, SingleFlight, gather_limited
from .._upstream.catalog_pages import CatalogPages
from .._upstream.release_metadata import MetadataReader, known_metadata
from .._upstream.releases import (
    FetchedPage,
    PageRelease,
    known_variants,
    plain_releases,
    published,
    releases,
    versions_of,
    wheel_version,
)
from .._upstream.upstream_pages import UpstreamPages
from .._upstream.upstreams import Upstreams
from .._upstream.wheels import Wheels, is_cheap
from ..errors import PassingFailure, UpstreamError
from ..settings import Upstream
from .plain_pages import PlainPages

if TYPE_CHECKING:
    from variants_catalog.entries import CatalogProject

logger = logging.getLogger(__name__)

_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")


class ProjectViews:
    """Selects the files of projects for clients."""

    def __init__(
        self,
        upstreams: Upstreams,
        pages: UpstreamPages,
        source: CatalogPages,
        wheels: Wheels,
        noted: NotedProjects,
        plain: PlainPages,
    ) -> None:
        self._settings = upstreams.settings
        self._upstreams = upstreams
        self._pages = pages
        self.source = source
        self.metadata = MetadataReader(upstreams)
        self._wheels = wheels
        self._noted = noted
        self._plain = plain
        self._choices: LRUCache[tuple[str, str, str, str], Choice] = LRUCache(
            upstreams.limits.kept_choice_bytes
        )
        self._choosing: SingleFlight[tuple[Choice, bool]] = SingleFlight()

    async def view(
        self, client: Client, upstream: Upstream | None, project: str
    ) -> ProjectView | None:
        """Return the view of *project*, None if no upstream has it.

        Args:
            client: of the request.
            upstream: index; None for the first one that has the project. One that fails is not
                skipped: a private name must not be looked up elsewhere.
            project: normalized name, empty for all of a find-links page.

        Raises:
            PassingFailure: something that the choice depends on cannot be had for now.
            UpstreamError: an upstream fails.
        """
        for item in self._settings.asked(upstream):
            try:
                found = await self.source.get_project_page(item, project, client)
            except UpstreamError as error:
                if error.status != HTTPStatus.GONE or upstream is not None:
                    raise
                continue  # as installers do; one index alone says it itself
            if found is not None:
                if await self._plain.passes(client, item, project, found):
                    return ProjectView(item, project, found, None, not found.stale)
                choice, sure = await self.chosen(client, item, project, found)
                found = await self._missed(client, found)
                for text in self._passing(project, found, choice):
                    raise PassingFailure(text, 503)
                return ProjectView(item, project, found, choice, sure and not found.stale)
        return None

    async def _missed(self, client: Client, found: FetchedPage) -> FetchedPage:
        """Return *found* without what cannot be had, and would not fit the machine anyway."""
        entry, machine = found.entry, client.machine
        if entry is None or not found.unavailable:
            return found
        read = partial(known_metadata, {})
        detect = Chooser(machine, read, limit=0, failures=self._settings.failures).platform
        items = await self._upstreams.compute(
            lambda: catalogs.missed_here(entry, found.unavailable, detect, machine.preferences)
        )
        return replace(found, unavailable=tuple(items))

    def _passing(self, project: str, found: FetchedPage, choice: Choice) -> Iterator[str]:
        """Yield what *choice* lacks that cannot be had for now, unless that is allowed."""
        if self._settings.allow_missing_sources:
            return
        asked = self._settings.versions.get(project)
        for item in found.unavailable:
            if item.may_pass and (asked is None or item.about(asked) is not None):
                yield str(item)
        for decision in choice.decisions:
            if asked is None or Version(decision.release.version.public) in asked:
                problems = decision.selection.problems.values()
                yield from (str(problem) for problem in problems if problem.may_pass)

    async def chosen(
        self,
        client: Client,
        upstream: Upstream,
        project: str,
        found: FetchedPage,
        *,
        alone: bool = False,
    ) -> tuple[Choice, bool]:
        """Return the choice of files, and whether everything it depends on could be read.

        Args:
            client: of the request.
            upstream: of the page.
            project: normalized name.
            found: its page.
            alone: do not look at what is chosen for other projects.
        """
        agreed = NO_AGREEMENT if alone else await self._agreed(client, upstream, project, found)
        others = await self._pages.other_sources(upstream, project)
        digests = "-".join((found.digest, *(other.digest for _, other in others), *agreed.labels))
        key = (upstream.name, project, digests, client.key)
        known = self._choices.get(key)
        if known is not None:
            return known, True

        async def work() -> tuple[Choice, bool]:
            choice, sure = await self._choice(client, upstream, project, found, others, agreed)
            # Of a publisher's file only this proxy knows the label.
            if found.is_described or await self._upstreams.compute(
                lambda: is_notable(choice, project)
            ):
                self._noted.add(client, project)
            if sure:
                self._choices.put(key, choice, 200 + 300 * len(choice.offers))
            return choice, sure

        return await self._choosing.join(key, work)

    async def _choice(
        self,
        client: Client,
        upstream: Upstream,
        project: str,
        found: FetchedPage,
        others: Sequence[tuple[Upstream, FetchedPage]],
        agreed: Agreed,
    ) -> tuple[Choice, bool]:
        """Choose, see `chosen`, with the pages of *others* and what is *agreed*."""
        compute = self._upstreams.budget(upstream).compute
        page, preferences = found.page, client.machine.preferences
        forced = preferences.forced.get(project)
        chooses = preferences.use_variants and forced != user_preferences.NON_VARIANT_LABEL

        def read_versions() -> tuple[list[PageRelease], tuple[PageRelease, ...]]:
            theirs = (releases(other.page) for _, other in others)
            also = {release.version for some in theirs for release in some}
            every = versions_of(page)
            versions = [each for each in every if each.has_variants or each.version in also]
            return versions, plain_releases(every, versions if chooses else ())

        versions, plain_versions = await compute(read_versions)
        locked = locked_names(client.locked.get(project, {}), page)
        exact = client.exact.get(project, frozenset())
        # A lock file may have older versions than those that are evaluated otherwise.
        evaluated = {each.version for each in versions[: self._settings.limits.versions]}
        evaluated.update(locked, (Version(each.public) for each in exact))
        versions.sort(key=lambda each: each.version not in evaluated)
        wanted = [each for each in versions if each.version in evaluated]
        metadata, sure = await self.metadata.read_all(upstream, wanted)
        others_found = [await self._other_source(*other, wanted) for other in others]
        marked = await self._wheels.marked(
            upstream, plain_versions, thorough=any(map(_has_own_variants, versions))
        )
        unhashed, refused = await self._unhashed(upstream, project, page, wanted)
        read = partial(known_metadata, metadata)

        chooser = Chooser(
            client.machine,
            read,
            limit=len(wanted),
            marked=marked,
            failures=self._settings.failures,
            others=[other for other, _ in others_found],
            is_last=upstream.kind != "find-links",
            portable=client.portable,
            locked={v: LockedVersion(items) for v, items in locked.items()},
            exact=exact,
            agreed=agreed,
            unhashed=unhashed,
        )

        def choose_files() -> Choice:
            choice = chooser.choose(page, versions)
            # Others without a look at each file.
            if found.is_described:
                choice = with_published(choice, target_of(client.machine))
            if client.puts_first(project, by_default=found.puts_build_first):
                choice = replace(choice, held=held_back(choice, project, client.machine.python))
            offers = (
                replace(offer, refused=offer.refused or offer.file.filename in refused)
                for offer in choice.offers
            )
            # What goes into a lock file has the hash of the rewritten wheel there.
            return choice if client.hashes or not refused else replace(choice, offers=(*offers,))

        try:
            return await compute(choose_files), sure and all(is_sure for _, is_sure in others_found)
        except (UpstreamError, PluginFailed):
            raise
        except Exception:  # a bug here must cost the variants, not the installation
            if forced is not None:
                raise
            logger.exception("%s: variants are ignored because of an internal error", project)
            machine = replace(client.machine, preferences=replace(preferences, use_variants=False))
            return await compute(lambda: Chooser(machine, read, limit=0).choose(page, ())), False

    async def _agreed(
        self, client: Client, upstream: Upstream, project: str, found: FetchedPage
    ) -> Agreed:
        """Return what *project* should have because of another one, as torchvision does of torch.

        Pages are made one project at a time. So it is the label that the user or a lock gives the
        other one, or that is chosen for it where the project depends on it.
        """
        entry = found.entry
        forced = client.machine.preferences.forced
        if entry is None or not entry.coherent or project in forced:
            return NO_AGREEMENT
        for name in entry.coherent:
            if name in forced:
                label = forced[name]
                return (
                    NO_AGREEMENT
                    if label == user_preferences.NON_VARIANT_LABEL
                    else Agreed((label,), name)
                )
        for name in entry.coherent:
            if name in client.exact:
                labels = await self._labels(client, upstream, name, locked=False)
                if labels:
                    return Agreed(labels, name)
        for name in entry.coherent:
            if name in client.locked and (labels := await self._labels(client, upstream, name)):
                return Agreed(labels, name)
        needed = await self._required(upstream, found, entry)
        for name in entry.coherent:
            if name in needed:
                labels = await self._labels(client, upstream, name, locked=False)
                if labels:
                    return Agreed(labels, name)
        return NO_AGREEMENT

    async def _labels(
        self, client: Client, upstream: Upstream, project: str, *, locked: bool = True
    ) -> tuple[str, ...]:
        """Return the labels that a lock has of a project, or those chosen for its versions."""
        try:
            found = await self.source.get_project_page(upstream, project, client)
        except UpstreamError:
            found = None  # a request for its page says why
        labels: list[str | None] = []
        if found is not None and locked:
            for items in locked_names(client.locked[project], found.page).values():
                version = LockedVersion(items)
                labels += [*version.labels, *version.names.values()]
        elif found is not None:
            choice, _ = await self.chosen(client, upstream, project, found, alone=True)
            exact = [decision for decision in choice.decisions if decision.exact]
            best = (each.selection.chosen for each in exact or choice.decisions)
            labels += [file.label for file in best if file is not None]
            # One version without a build for the accelerator says nothing of those that have one.
            labels = [each for each in labels if each != wheel_labels.NULL_LABEL] or labels
        return tuple(dict.fromkeys(label for label in labels if label is not None))

    async def _required(
        self, upstream: Upstream, found: FetchedPage, entry: CatalogProject
    ) -> frozenset[str]:
        """Return what the newest version with publishers' files requires, without extras."""
        files = [
            (version, file)
            for file in found.page.files
            if (version := wheel_version(file.filename)) is not None
        ]
        newest = max((version for version, file in files if published(file)), default=None)
        # All its wheels require the same projects: the cheapest is read, some have gigabytes.
        wheels = sorted(
            (file for version, file in files if version == newest),
            key=lambda file: (not is_cheap(file), file.size or math.inf, file.filename),
        )
        if not wheels or not (is_cheap(wheels[0]) or not await self.source.leads(entry)):
            return frozenset()
        try:
            values = wheel_files.requirements_of(await self._wheels.read(upstream, wheels[0]))
        except (UpstreamError, InvalidWheel):
            return frozenset()
        matches = (_NAME.match(value) for value in values if not _is_optional(value))
        return frozenset(canonicalize_name(match[1]) for match in matches if match is not None)

    async def _unhashed(
        self, upstream: Upstream, project: str, page: Page, wanted: Iterable[PageRelease]
    ) -> tuple[frozenset[str], frozenset[str]]:
        """Return the wheels that have none of the hashes which the user gives, and those to refuse.

        Wheels with variant markers are rewritten, which gives them another hash. It is not known
        before they are read; so they count where a hash is given that no file of the page has.
        Where there is none such, those that have a given hash lose it.
        """
        given = self._settings.hashes.get(project, frozenset())
        own = {file.filename for file in page.files if file.hashes.get("sha256") in given}
        rewritten = given - {file.hashes.get("sha256", "") for file in page.files}
        some = [release for release in wanted if any(f.filename in own for f in release.wheels)]
        files = {f.filename: f for each in some for f in each.wheels if "sha256" in f.hashes}
        read = [f for f in page.files if f.filename in own or (rewritten and f.filename in files)]
        wheels = [file for file in read if file.filename.endswith(".whl")]
        found = await gather_limited(
            [partial(self._wheels.is_marked, upstream, file, thorough=True) for file in wheels],
            self._settings.limits.parallel,
        )
        marked = {file.filename for file, is_marked in zip(wheels, found, strict=True) if is_marked}
        if rewritten:
            return frozenset(files.keys() - marked - own), frozenset()
        return frozenset(files.keys() - own), frozenset(own & marked)

    async def _other_source(
        self, upstream: Upstream, found: FetchedPage, wanted: Sequence[PageRelease]
    ) -> tuple[OtherSource, bool]:
        """Return the wheels of another upstream, and whether all their metadata could be read."""
        also = {release.version for release in wanted}
        there = await self._upstreams.budget(upstream).compute(lambda: releases(found.page, also))
        theirs = [release for release in there if release.version in also]
        metadata, sure = await self.metadata.read_all(upstream, theirs)
        by_version = {release.version: release for release in theirs}
        return OtherSource(upstream.name, by_version, partial(known_metadata, metadata)), sure

    async def links(self, client: Client, upstream: Upstream) -> list[ProjectView]:
        """Return the views of all projects of a find-links page.

        Raises:
            UpstreamError: the upstream fails.
        """
        projects = await self._pages.projects(upstream)
        shown = [await self.view(client, upstream, project) for project in projects]
        return [item for item in shown if item is not None]


def _is_optional(requirement: str) -> bool:
    """Return whether a ``Requires-Dist`` value is for an extra, or cannot be read."""
    try:
        return markers.is_for_extra(requirement)
    except InvalidMarker:
        return True


def _has_own_variants(release: PageRelease) -> bool:
    """Return whether the index, not the catalogue, has variants of a version."""
    return release.has_variants and known_variants(release.wheels) is None
