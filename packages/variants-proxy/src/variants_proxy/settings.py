"""Settings of a proxy. Everything else is in the URL of a request."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from packaging.version import Version

from pep_variants import limits
from pep_variants.errors import PluginFailed, redacted, shortened
from variants_index import http
from variants_index.http import Credentials

from .errors import InvalidSetting

__all__ = ["ClientSettings", "Limits", "Settings", "Upstream"]

INDEX_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
"""Valid names of indexes in URLs; uv's names of indexes match."""

Kind = Literal["simple", "find-links"]


@dataclass(frozen=True)
class Upstream:
    """One upstream index.

    Attributes:
        name: in URLs; unique.
        url: of the simple API's root, or of a page or directory with links to files: ``http``,
            ``https`` or ``file``. User name and password move to `credentials`.
        kind: root of the simple API, or page of links.
        credentials: sent if the index requires them; None for those of netrc and keyring.
        token: bearer token, sent in place of credentials; empty for none.
        explicit: only at ``/i/<name>/``, not in the merged index.

    >>> from variants_proxy.settings import Upstream
    >>> Upstream("pypi", "https://pypi.org/simple/").kind
    'simple'
    """

    name: str
    url: str
    kind: Kind = "simple"
    credentials: Credentials | None = None
    token: str = field(default="", repr=False)
    explicit: bool = False

    def __post_init__(self) -> None:
        """Validate, and split the credentials off the URL, so that messages cannot show them."""
        if not INDEX_NAME.fullmatch(self.name):
            raise InvalidSetting(
                f"{shortened(self.name)} is not a valid name of an index: "
                f"it must match {INDEX_NAME.pattern}"
            )
        if not self.url.startswith(("http://", "https://", "file:")):
            raise InvalidSetting(
                f"index {self.name}: the URL {redacted(self.url)} must begin with http://, "
                "https:// or file:"
            )
        url, found = http.split_credentials(self.url)
        url = url.partition("#")[0]  # what follows is sent to no server
        if self.kind == "simple" and not url.endswith("/"):
            url += "/"
        object.__setattr__(self, "url", url)
        if self.credentials is None:
            object.__setattr__(self, "credentials", found)


@dataclass(frozen=True)
class Limits:
    """Limits of the resources that each upstream uses.

    Attributes:
        page_bytes: maximum size of a project page, decompressed.
        projects_bytes: maximum size of the list of projects, decompressed.
        metadata_bytes: maximum size of a wheel's ``METADATA``.
        read_seconds: timeout for the next bytes of a response.
        retries: how often a request is sent again.
        patient: also after no answer in time.
        page_retries: the same of one for a page of a configured upstream.
        page_seconds: timeout for a page or small file.
        file_seconds: timeout for inspecting a wheel.
        connections: concurrent requests, and wheels streamed at the same time as many.
        workers: threads that parse pages and select variants.
        parallel: small files fetched concurrently for one page.
        versions: per project, newest first, whose variants are evaluated. Older ones have only
            their null variants and non-variant wheels.
        inspected: distinct METADATA files per project that are searched for variant markers,
            newest versions first. Pages have no hashes of further wheels, since they may change.
        inspected_to_install: the same for clients that do not need hashes, of METADATA files beside
            wheels. What is not inspected is rewritten, if need be, when it is requested.
        hashed: wheels with variant markers per project that are rewritten to know their hash,
            newest versions first. Pages have hashes of others once these were sent.
        hashed_versions: versions of `hashed`, besides those of a lock file: final releases before
            others.
        hashed_bytes: maximum size of a wheel for `hashed`.
        catalog_seconds: timeout for a page that the catalogue names; without it a project has the
            variants of the other ones.
        cache_bytes: pages and small files on disk.
        kept_page_bytes: upstream pages in memory.
        kept_choice_bytes: choices in memory.
    """

    page_bytes: int = limits.PAGE_BYTES
    projects_bytes: int = limits.PROJECTS_BYTES
    metadata_bytes: int = limits.CORE_METADATA_BYTES
    read_seconds: float = 15.0
    retries: int = 2
    patient: bool = True
    page_retries: int = 2
    page_seconds: float = 60.0
    file_seconds: float = 600.0
    connections: int = 32
    workers: int = 2
    parallel: int = 16
    versions: int = 200
    inspected: int = 500
    inspected_to_install: int = 20
    hashed: int = 50
    hashed_versions: int = 2
    hashed_bytes: int = 32 * 2**20
    catalog_seconds: float = 20.0
    cache_bytes: int = 1024 * 2**20
    kept_page_bytes: int = 32 * 2**20
    kept_choice_bytes: int = 16 * 2**20


@dataclass(frozen=True)
class Settings:
    """Settings of one proxy.

    Attributes:
        upstreams: in order of priority; the first one that has a project provides all its files.
        cache: directory of the cache; proxies may share it.
        platforms: machines by their name in URLs, beside the known ones: paths of platform files,
            or, as text, names and facts.
        hosts: accepted values of the ``Host`` header without port, besides loopback; ``*`` for
            all.
        limits: for each upstream.
        fresh_seconds: time for which files are found on a page without asking the upstream again.
        ca_bundle: file with trusted certificates, in place of the system's.
        client_cert: file with a client certificate and its key.
        insecure_hosts: hosts whose certificates are not verified.
        keyring: use the keyring for credentials.
        environ: environment variables: proxies, ``NETRC``, ``SSL_CERT_FILE``.
        failures: of plugins that the user allowed, by `provider_id`: pages of projects that need
            one of them are errors.
        requested: normalized names of projects that clients request from indexes, too. Their files
            in find-links places are evaluated together with those of the index.
        catalog: catalogue of existing builds: `DEFAULT_CATALOG`, a path or a URL; None for none.
        catalog_mirrors: beginnings of the catalogue's URLs, and what replaces them.
        pinned: normalized names of projects that the catalogue leaves alone: their index is given.
        hashes: SHA-256 of all files that may be taken of a project, by its normalized name: of the
            catalogue nothing else is taken, and nothing that is rewritten. Others may have any.
        serves_old: show the last page of an upstream that fails.
        allow_missing_sources: go on without what cannot be had for now; else pages fail.
        versions: of projects of which no other ones are asked for, by normalized name.
        catalog_environ: in place of `environ` for the catalogue and its places, None for the same.
        catalog_keyring: in place of `keyring` for them, None for the same.
        offline: ask nothing: pages are those of the cache, however old.
    """

    upstreams: tuple[Upstream, ...]
    cache: Path
    platforms: Mapping[str, Path | str] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    fresh_seconds: float = 60.0
    ca_bundle: Path | None = None
    client_cert: Path | None = None
    insecure_hosts: frozenset[str] = frozenset()
    keyring: bool = True
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    failures: Mapping[str, PluginFailed] = field(default_factory=dict)
    requested: frozenset[str] = frozenset()
    catalog: str | None = None
    catalog_mirrors: Mapping[str, str] = field(default_factory=dict)
    pinned: frozenset[str] = frozenset()
    hashes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    serves_old: bool = True
    allow_missing_sources: bool = False
    versions: Mapping[str, Collection[Version]] = field(default_factory=dict)
    catalog_environ: Mapping[str, str] | None = field(default=None, repr=False)
    catalog_keyring: bool | None = None
    offline: bool = False

    def __post_init__(self) -> None:
        """Check that names are unique in URLs."""
        names = [upstream.name for upstream in self.upstreams]
        for name in names:
            if names.count(name) > 1:
                raise InvalidSetting(f"two indexes have the name {name}")

    def asked(self, upstream: Upstream | None) -> tuple[Upstream, ...]:
        """Return the upstreams of a request: *upstream*, or if it is None all but explicit ones."""
        if upstream is not None:
            return (upstream,)
        return tuple(item for item in self.upstreams if not item.explicit)

    def upstream(self, name: str) -> Upstream | None:
        """Return the upstream called *name*, None if there is none."""
        return next((item for item in self.upstreams if item.name == name), None)


ShownHashes: TypeAlias = Literal["served", "none", "published"]
"""Hashes on pages, of the files of versions with variants: as they are served; none, so that uv
prefers no file for its hash, and what it writes is completed, see `ProjectPages.hashed`; or as
published, for requirements that others install, of which uv downloads nothing."""


@dataclass(frozen=True)
class ClientSettings:
    """Settings of a client for in-place pages, which no URL has room for.

    Attributes:
        key: platform key of its machine.
        locked: what a lock file has, by project and version: labels (`cu128`), of which each tag
            set gets the first that it has; or URLs of wheels (`…/.variant/cu128/torch-….whl`, with
            and without a label), which stand for their tags alone: so a lock file with one label
            for Linux and another for Windows stays as it is. A version with none of them is one
            that is to be chosen from, however many newer ones there are.
        exact: as of `Client`.
        hashes: for a lock file: pages have hashes of wheels with variant markers, which may take
            downloading them.
        shown_hashes: see `ShownHashes`.
        in_order: as of `Client`, normalized and sorted.
    """

    key: str
    locked: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    exact: Mapping[str, frozenset[Version]] = field(default_factory=dict)
    hashes: bool = True
    shown_hashes: ShownHashes = "served"
    in_order: tuple[str, ...] | None = None
