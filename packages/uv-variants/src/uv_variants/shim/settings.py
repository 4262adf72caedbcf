"""What a shim is told when it starts. Everything else is in the URL of a request."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pep_variants.errors import redacted, shortened
from resolvelib_variants.index.credentials import Credentials, split_credentials

from ..errors import InvalidSetting

INDEX_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
"""What an index may be called in a URL; uv's names of indexes are."""

Kind = Literal["simple", "find-links"]


@dataclass(frozen=True)
class Upstream:
    """One real index.

    Attributes:
        name: what it is called in URLs; unique.
        url: of the simple API's root, or of a page (or directory) with links to files. ``http``,
            ``https`` or ``file``. User name and password in it are split off into
            `credentials`.
        kind: whether `url` is a root or a page of links.
        credentials: what the index is told if it asks; None to look for them in netrc and
            keyring then.
        token: sent as a bearer token in place of credentials; empty for none.
        explicit: only used under its own name (``/i/<name>/``), never in the merged index.
    """

    name: str
    url: str
    kind: Kind = "simple"
    credentials: Credentials | None = None
    token: str = field(default="", repr=False)
    explicit: bool = False

    def __post_init__(self) -> None:
        """Check, and take the credentials out of the URL, so that nobody can show them."""
        if not INDEX_NAME.fullmatch(self.name):
            raise InvalidSetting(
                f"{shortened(self.name)} is no name for an index: "
                f"it must match {INDEX_NAME.pattern}"
            )
        if not self.url.startswith(("http://", "https://", "file:")):
            raise InvalidSetting(
                f"index {self.name}: {redacted(self.url)} is none of http://, https:// and file:"
            )
        url, found = split_credentials(self.url)
        if self.kind == "simple" and not url.endswith("/"):
            url += "/"
        object.__setattr__(self, "url", url)
        if self.credentials is None:
            object.__setattr__(self, "credentials", found)


@dataclass(frozen=True)
class Limits:
    """How much an upstream may ask of the shim.

    Attributes:
        page_bytes: largest project page, decompressed.
        metadata_bytes: largest ``METADATA`` of a wheel.
        connect_seconds: to reach an upstream.
        read_seconds: that an upstream may be silent.
        page_seconds: that a page may take altogether.
        redirects: that are followed.
        connections: to all upstreams at the same time.
        parallel: small files that are fetched at the same time for one page.
        versions: per project, newest first, whose variants are looked at. What is beyond is
            served with its null and non-variant wheels alone.
        inspected: different METADATA of a project that is looked into for variant markers, newest
            versions first. Of wheels beyond, pages say no hash, because it may change.
        hashed: wheels of a project with variant markers that are read, newest versions first, only
            to know the hash of what they become; of others pages say no hash until they have
            passed once.
        hashed_bytes: size of the largest of these.
        cache_bytes: kept on disk of pages and small files of upstreams.
        answer_bytes: finished answers kept in memory.
    """

    page_bytes: int = 128 * 2**20
    metadata_bytes: int = 16 * 2**20
    connect_seconds: float = 10.0
    read_seconds: float = 30.0
    page_seconds: float = 120.0
    redirects: int = 10
    connections: int = 64
    parallel: int = 16
    versions: int = 200
    inspected: int = 500
    hashed: int = 50
    hashed_bytes: int = 32 * 2**20
    cache_bytes: int = 1024 * 2**20
    answer_bytes: int = 64 * 2**20


@dataclass(frozen=True)
class Settings:
    """A shim to be.

    Attributes:
        upstreams: in the order in which they are asked; the first one that has a project has
            all of it.
        cache: directory for what was fetched; several shims may share it.
        platforms: platform files by the name that stands for them in URLs.
        floating: names that stand for a platform key, and may stand for another one tomorrow
            (``here`` for this machine, say). Under such a name files have neither label nor hash,
            so that a lock file made there fits every machine; nothing may cache the answers.
        hosts: values of the ``Host`` header, without port, that are answered; loopback always
            is. ``*`` for all.
        limits: of what upstreams may do.
        fresh_seconds: for which a page of an upstream is not asked for again.
        ca_bundle: file with certificates to trust, in place of the system's.
        client_cert: file with a client certificate and its key.
        insecure_hosts: whose certificates are not verified.
        keyring: ask the keyring for credentials.
        environ: environment variables: proxies, ``NETRC``, ``SSL_CERT_FILE``.
        compress: compress answers, which is not worth the time for clients on the same machine.
        access_log: write one line of JSON for each request to the logger ``uv_variants.access``.
    """

    upstreams: tuple[Upstream, ...]
    cache: Path
    platforms: Mapping[str, Path] = field(default_factory=dict)
    floating: Mapping[str, str] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    fresh_seconds: float = 60.0
    ca_bundle: Path | None = None
    client_cert: Path | None = None
    insecure_hosts: frozenset[str] = frozenset()
    keyring: bool = True
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    compress: bool = True
    access_log: bool = False

    def __post_init__(self) -> None:
        """Check what could not be told apart in a URL."""
        names = [upstream.name for upstream in self.upstreams]
        for name in names:
            if names.count(name) > 1:
                raise InvalidSetting(f"there are two indexes called {name}")
        for name in self.platforms.keys() & self.floating.keys():
            raise InvalidSetting(f"{name} is a platform file and a floating name")

    def upstream(self, name: str) -> Upstream | None:
        """Return the upstream of that name, None if there is none."""
        return next((item for item in self.upstreams if item.name == name), None)
