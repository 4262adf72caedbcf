"""What the shim answers, without HTTP: pages, files, decisions, each for one machine."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TypeVar

from packaging.version import Version

from pep_variants.collection import paused
from pep_variants.errors import MetadataError, VariantError
from pep_variants.explanation import notices, verdicts
from pep_variants.label import split_label
from pep_variants.markers import VariantContext
from pep_variants.metadata import Metadata
from pep_variants.platform import Platform, load_platform
from pep_variants.preferences import NON_VARIANT_LABEL
from resolvelib_variants.index.pages import (
    JSON,
    Page,
    PageFile,
    html_page,
    html_projects,
    json_page,
    json_projects,
)

from ..errors import InvalidKey, NoSuchFile, UpstreamError
from .answers import Answer, Form
from .choice import Choice, Decision, Release, choose, plain_releases, releases
from .entries import Entries
from .flights import Flights, each
from .key import decode
from .memory import Memory
from .metrics import Metrics
from .preparation import Preparation
from .settings import Settings, Upstream
from .showing import Client, Shown
from .upstreams import Found, Upstreams
from .urls import CHOSEN, PLAIN
from .wheels import (
    Passage,
    plain_passage,
)

logger = logging.getLogger(__name__)

_KINDS: dict[Form, str] = {"json": JSON, "html": "text/html; charset=utf-8"}
UNSURE_SECONDS = 5.0
"""For so long an answer is kept that came about without all that should have been asked."""
_MANY = 500

T = TypeVar("T")


@dataclass(frozen=True)
class Delivery:
    """How a client gets a file: one of three ways.

    Attributes:
        redirect: URL where it is, empty if the shim has to pass it on.
        passage: what is passed on.
        data: contents of a small file.
        upstream: whose it is.
        private: whether no shared cache may keep it.
        floating: whether it may be another file tomorrow.
    """

    upstream: Upstream
    private: bool
    floating: bool
    redirect: str = ""
    passage: Passage | None = None
    data: bytes | None = None


class Service:
    """The shim below HTTP."""

    def __init__(self, settings: Settings, upstreams: Upstreams, metrics: Metrics) -> None:
        self.settings = settings
        self._upstreams = upstreams
        self._metrics = metrics
        self._decode = lru_cache(maxsize=1024)(decode)
        self._platforms: dict[str, tuple[tuple[int, int], Platform]] = {}
        self._choices: Memory[tuple[str, str, str, str], Choice] = Memory(64 * 2**20)
        self._choosing: Flights[tuple[Choice, bool]] = Flights()
        self._preparation = Preparation(upstreams, settings.limits)
        self._entries = Entries(upstreams, self._preparation, settings.limits)

    # --- who asks

    def client(self, key: str) -> Client:
        """Return for whom *key* is.

        Raises:
            InvalidKey: it is none, or names a platform that is not known.
            VariantError: the platform file behind it cannot be read.
        """
        floating = key in self.settings.floating
        if floating:
            key = self.settings.floating[key]
        machine = self._decode(key)
        if not machine.name:
            return Client(machine, key, floating)
        path = self.settings.platforms.get(machine.name)
        if path is None:
            known = ", ".join(sorted(self.settings.platforms)) or "none"
            raise InvalidKey(f"no platform is called {machine.name!r} here; known are: {known}")
        platform, version = self._platform(path)
        # The file may change: what was chosen for its old contents is not for its new ones.
        return Client(replace(machine, platform=platform), f"{key}@{version}", floating)

    def _platform(self, path: Path) -> tuple[Platform, str]:
        try:
            stat = path.stat()
        except OSError:
            return load_platform(path), ""  # which says what is wrong
        state = (stat.st_mtime_ns, stat.st_size)
        known = self._platforms.get(str(path))
        if known is None or known[0] != state:
            known = self._platforms[str(path)] = (state, load_platform(path))
        return known[1], f"{state[0]:x}"

    # --- pages

    def upstream(self, name: str) -> Upstream:
        """Return the upstream of that name.

        Raises:
            NoSuchFile: there is none.
        """
        found = self.settings.upstream(name)
        if found is None:
            known = ", ".join(item.name for item in self.settings.upstreams)
            raise NoSuchFile(f"no index is called {name!r} here; there are: {known or 'none'}")
        return found

    async def shown(self, client: Client, upstream: Upstream | None, project: str) -> Shown | None:
        """Return what is shown of *project*, None if nobody has it.

        Args:
            client: for whom.
            upstream: whose; None for the first that has it. One that fails is not passed over:
                a name that is private there must not be looked up elsewhere.
            project: normalized name, empty for all of a find-links page.

        Raises:
            UpstreamError: an upstream fails.
        """
        asked = (
            [item for item in self.settings.upstreams if not item.explicit]
            if upstream is None
            else [upstream]
        )
        for item in asked:
            found = await self._upstreams.page(item, project)
            if found is not None:
                if await self._passes(client, item, project, found):
                    return Shown(item, project, found, None, not found.stale)
                choice, sure = await self.chosen(client, item, project, found)
                return Shown(item, project, found, choice, sure and not found.stale)
        return None

    async def _passes(self, client: Client, upstream: Upstream, project: str, found: Found) -> bool:
        """Return whether a page is for everybody as it is: there is nothing to choose from."""
        plain = found.listing.plain if found.listing is not None else None
        if (
            plain is None
            or found.private
            or client.machine.preferences.forced.get(project, NON_VARIANT_LABEL)
            != NON_VARIANT_LABEL
        ):
            return False
        return plain.newest is None or not await self._preparation.is_marked(
            upstream, plain.newest, thorough=False
        )

    async def chosen(
        self, client: Client, upstream: Upstream, project: str, found: Found
    ) -> tuple[Choice, bool]:
        """Return what is shown of a page, and whether all that should be asked was."""
        key = (upstream.name, project, found.digest, client.key)
        known = self._choices.get(key)
        if known is not None:
            return known, True

        async def work() -> tuple[Choice, bool]:
            page = found.page
            versions = releases(page)
            wanted = versions[: self.settings.limits.versions]
            metadata, sure = await self._metadata(upstream, wanted)
            wishes = client.machine.preferences
            chooses = wishes.use_variants and wishes.forced.get(project) != NON_VARIANT_LABEL
            marked = await self._preparation.marked(
                upstream,
                plain_releases(page, versions if chooses else ()),
                thorough=bool(versions),
            )

            def read(release: Release) -> Metadata:
                known = metadata[release.version]
                if isinstance(known, VariantError):
                    raise known
                return known

            try:
                with paused(len(page.files) > _MANY):
                    choice = choose(
                        page, versions, client.machine, read, limit=len(wanted), marked=marked
                    )
            except Exception:  # a fault of ours must cost the variants, never the install
                if client.machine.preferences.forced.get(project) is not None:
                    raise
                logger.exception("the variants of %s are ignored because of a fault", project)
                plain = replace(client.machine.preferences, use_variants=False)
                machine = replace(client.machine, preferences=plain)
                choice, sure = choose(page, (), machine, read, limit=0), False
            if sure:
                self._choices.put(key, choice, 200 + 300 * len(choice.offers))
            return choice, sure

        return await self._choosing.join(key, work)

    async def _metadata(
        self, upstream: Upstream, wanted: Sequence[Release]
    ) -> tuple[dict[Version, Metadata | VariantError], bool]:
        """Return the metadata of releases, and whether it will be the same when asked again."""

        async def one(release: Release) -> Metadata | VariantError:
            try:
                return await self._upstreams.metadata(upstream, release)
            except VariantError as error:
                self._metrics.count("broken_metadata")
                logger.warning(
                    "the variant wheels of %s %s are ignored: %s",
                    release.wheels[0].filename.partition("-")[0],
                    release.version,
                    error,
                )
                return error

        known = [self._upstreams.known_metadata(release) for release in wanted]
        if all(known):
            return {r.version: item for r, item in zip(wanted, known, strict=True) if item}, True
        found = await each(
            [partial(one, release) for release in wanted], self.settings.limits.parallel
        )
        sure = all(
            not isinstance(result, VariantError)
            and all(
                file.hashes
                for file in (release.wheels if release.document is None else (release.document,))
            )
            for release, result in zip(wanted, found, strict=True)
        )
        return {release.version: item for release, item in zip(wanted, found, strict=True)}, sure

    async def links(self, client: Client, upstream: Upstream) -> list[Shown]:
        """Return what is shown of every project of a find-links page.

        Raises:
            UpstreamError: the upstream fails.
        """
        projects = await self._upstreams.projects(upstream)
        shown = [await self.shown(client, upstream, project) for project in projects]
        return [item for item in shown if item is not None]

    async def project_list(self, upstream: Upstream | None, forms: Sequence[Form]) -> Answer:
        """Return the page that lists the projects of *upstream*, of all of them if it is None.

        Args:
            upstream: whose.
            forms: in which it may be.

        Raises:
            UpstreamError: one of them fails.
        """
        asked = (
            [item for item in self.settings.upstreams if not item.explicit]
            if upstream is None
            else [upstream]
        )
        names = sorted({name for item in asked for name in await self._upstreams.projects(item)})
        fresh = self.settings.fresh_seconds
        return Answer(
            json_projects(names) if forms[0] == "json" else html_projects(names),
            _KINDS[forms[0]],
            _cache_control(private=any(map(self._upstreams.is_private, asked)), seconds=int(fresh)),
            expires=time.monotonic() + fresh,
            vary="Accept",
            packs=self.settings.compress,
        )

    async def page(
        self, client: Client, shown: Sequence[Shown], prefix: str, forms: Sequence[Form]
    ) -> Answer:
        """Return the page that shows *shown*.

        Args:
            client: for whom.
            shown: one project, or all of a find-links page.
            prefix: from the page to ``/p/<key>/``, relative.
            forms: in which it may be, the preferred one first.
        """
        body, kind = self._as_it_is(shown, forms) or await self._written(
            client, shown, prefix, forms[0]
        )
        sure = all(item.sure for item in shown)
        fresh = self.settings.fresh_seconds
        now = time.monotonic()
        left = max(0.0, min((item.found.checked + fresh for item in shown), default=now) - now)
        lasts = left if sure else min(left, UNSURE_SECONDS)
        return Answer(
            body,
            kind,
            _cache_control(
                private=any(item.found.private for item in shown),
                seconds=0 if client.floating or not sure else int(fresh),
                stored=not client.floating,
            ),
            expires=now + lasts,
            vary="Accept",
            packs=self.settings.compress,
        )

    def _as_it_is(self, shown: Sequence[Shown], forms: Sequence[Form]) -> tuple[bytes, str] | None:
        """Return what the upstream wrote, and of what kind it is, if that may be handed on."""
        if len(shown) == 1 and shown[0].choice is None:
            listing = shown[0].found.listing
            if listing is not None and listing.plain and listing.plain.form in forms:
                return listing.body, listing.kind
        return None

    async def _written(
        self, client: Client, shown: Sequence[Shown], prefix: str, form: Form
    ) -> tuple[bytes, str]:
        entries: list[PageFile] = []
        for item in shown:
            if item.choice is None:
                entries += item.found.page.files
            else:
                entries += await self._entries.of(client, item, item.choice, prefix)
        files = tuple(entries)
        page = Page("", files)
        if len(shown) == 1:
            # Other locations of the project are for the shim to know, not for its clients.
            page = replace(shown[0].found.page, files=files, alternate_locations=(), tracks=())
        return json_page(page) if form == "json" else html_page(page), _KINDS[form]

    # --- files

    async def file(
        self, client: Client, upstream: Upstream, project: str, choice: str, filename: str
    ) -> Delivery:
        """Return how the client gets a file, or with ``.metadata`` its core metadata.

        Raises:
            NoSuchFile: the upstream has no such file.
            UpstreamError: it cannot be had.
            VariantError, UnusableFile: it cannot be put together.
        """
        wanted = filename.removesuffix(".metadata")
        is_metadata = wanted != filename
        found = await self._upstreams.page(upstream, project)
        if found is None:
            raise NoSuchFile(f"index {upstream.name} has no project {project}")
        floating = choice == CHOSEN
        file, context, decision = await self._resolved(
            client, upstream, project, found, choice, wanted
        )
        label = split_label(file.filename)[1]
        try:
            reduced = await self._preparation.reduced(upstream, file, context)
        except UpstreamError as error:
            if is_metadata or not self._is_direct(upstream, file):
                raise
            # The page promised no hash of it either: let the installer judge it.
            logger.warning("%s is not looked into: %s", file.filename, error)
            reduced = None
        delivery = Delivery(upstream, found.private, floating)
        if is_metadata:
            if (
                reduced is None
                and file.core_metadata is not None
                and self._is_direct(upstream, file)
            ):
                return replace(delivery, redirect=f"{file.url}.metadata")
            if not file.filename.endswith(".whl"):
                raise NoSuchFile(f"{filename}: only wheels have metadata beside them")
            data = reduced or await self._upstreams.core_metadata(upstream, file)
            return replace(delivery, data=data)
        if reduced is not None:
            promised = await self._promised(upstream, decision)
            passage = await self._preparation.prepared(
                upstream, file, label, context, reduced, promised
            )
            return replace(delivery, passage=passage)
        if self._is_direct(upstream, file):
            return replace(delivery, redirect=file.url)
        self._upstreams.check_place(upstream, file.url)
        session = self._upstreams.session(upstream)
        passage = await self._upstreams.run(lambda: plain_passage(session, file))
        return replace(delivery, passage=passage)

    def _is_direct(self, upstream: Upstream, file: PageFile) -> bool:
        return self._upstreams.is_direct(upstream, file.url)

    async def _resolved(
        self,
        client: Client,
        upstream: Upstream,
        project: str,
        found: Found,
        choice: str,
        plain: str,
    ) -> tuple[PageFile, VariantContext | None, Decision | None]:
        """Return the file behind a choice and a plain filename, and how it was judged."""
        shown, _ = await self.chosen(client, upstream, project, found)
        if choice == CHOSEN:
            offer = next((item for item in shown.offers if item.filename == plain), None)
            if offer is None:
                raise NoSuchFile(f"nothing is chosen for {plain}")
            decision = next((d for d in shown.decisions if plain in d.offers), None)
            return offer.file, offer.context, decision
        label = None if choice == PLAIN else choice
        file = next(
            (item for item in found.page.files if split_label(item.filename) == (plain, label)),
            None,
        )
        if file is None:
            raise NoSuchFile(
                f"index {upstream.name} has no {plain}"
                + (f" of variant {label}" if label is not None else "")
            )
        for decision in shown.decisions:
            if file in decision.release.wheels:
                for candidate in decision.offers.values():
                    if candidate.file is file:
                        return file, candidate.context, decision
                ranking = decision.selection.rankings.get(project)
                supported = ranking.supported(label) if ranking and label is not None else {}
                return file, VariantContext(label or "", supported), decision
        offer = next((item for item in shown.offers if item.file == file), None)
        if offer is None and label is not None:
            return file, VariantContext(label, {}), None
        return file, offer.context if offer is not None else None, None

    async def _promised(self, upstream: Upstream, decision: Decision | None) -> Metadata | None:
        if decision is None:
            return None
        try:
            return await self._upstreams.metadata(upstream, decision.release)
        except MetadataError:
            return None

    # --- decisions

    def decisions(self, shown: Shown) -> dict[str, object]:
        """Return what was decided of a project and why, as JSON data.

        ``versions`` is newest first; each has ``version``, ``files`` (label, or null for the
        non-variant wheel, by plain filename), ``variants`` (``label``, ``verdict`` and ``why``,
        the chosen one first), ``notices``, ``problems``, ``unknown`` labels and the ``providers``
        that the metadata wants (``requires`` and ``plugin-api``, by namespace).
        """
        return {
            "project": shown.project,
            "index": shown.upstream.name,
            "versions": [_decision_tree(each) for each in shown.choice.decisions]
            if shown.choice
            else [],
        }


def _decision_tree(decision: Decision) -> dict[str, object]:
    selection = decision.selection
    chosen = selection.chosen.label if selection.chosen else None
    rankings = list({id(item): item for item in selection.rankings.values()}.values())
    return {
        "version": str(decision.release.version),
        "files": {name: offer.label for name, offer in decision.offers.items()},
        "variants": [row._asdict() for ranking in rankings for row in verdicts(ranking, chosen)],
        "notices": [notice.text for ranking in rankings for notice in notices(ranking)],
        "problems": [str(problem) for problem in selection.problems.values()],
        "unknown": list(selection.unknown),
        "providers": {
            namespace: {"requires": list(provider.requires), "plugin-api": provider.plugin_api}
            for ranking in rankings
            for namespace, provider in ranking.metadata.providers.items()
            if provider.requires
        },
    }


def _cache_control(*, private: bool, seconds: int, stored: bool = True) -> str:
    if not stored:
        return "no-store"
    scope = "private" if private else "public"
    return f"{scope}, max-age={seconds}, stale-if-error=86400"
