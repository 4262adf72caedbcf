"""Where plugin packages are installed from: the same places as everything else.

The client knows the user's settings and fills `Sources` with them; nothing else is read, neither
pip's nor uv's configuration files. URLs may carry credentials. They go to the installer as
environment variables, which other users cannot see as they see command lines, and nowhere else:
not into messages, not into the `repr`, not into names or contents of cached files.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ._urls import is_local, local_path
from .errors import redacted, without_userinfo

FIRST_INDEX = "first-index"
BEST_MATCH = "unsafe-best-match"

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:", re.IGNORECASE)


@dataclass(frozen=True, repr=False)
class Sources:
    """The user's settings for getting packages.

    Attributes:
        index_url: the index, PyPI by default. A local path is made a ``file:`` URL.
        extra_index_urls: further indexes.
        find_links: directories, files or pages with links to wheels.
        no_index: do not use any index, only `find_links`.
        index_strategy: which of several indexes counts: uv's ``first-index`` (only the first that
            has the project, extra ones first; protects against dependency confusion),
            ``unsafe-first-match`` or ``unsafe-best-match`` (all together, what pip does).
        trusted_hosts: hosts, with or without port, whose certificate is not checked.
        cert: path of a bundle of certificate authorities.
        client_cert: path of a client certificate with its key.
        proxy: URL of a proxy for all requests.
        timeout: seconds to wait for a connection or for data; pip has fractions, uv does not.
        keyring: ask the ``keyring`` command for credentials.
    """

    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    no_index: bool = False
    index_strategy: str = FIRST_INDEX
    trusted_hosts: tuple[str, ...] = ()
    cert: str | None = None
    client_cert: str | None = None
    proxy: str | None = None
    timeout: float | None = None
    keyring: bool = False

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Sources:
        """Return the sources in pip's ``PIP_…`` variables, for clients without their own settings.

        Several indexes count together then, as they do for pip.
        """

        def flag(name: str) -> bool:
            return environ.get(name, "").lower() in ("1", "true", "yes", "on", "y", "t")

        timeout = environ.get("PIP_DEFAULT_TIMEOUT") or environ.get("PIP_TIMEOUT") or ""
        return cls(
            index_url=environ.get("PIP_INDEX_URL") or None,
            extra_index_urls=tuple(environ.get("PIP_EXTRA_INDEX_URL", "").split()),
            find_links=tuple(environ.get("PIP_FIND_LINKS", "").split()),
            no_index=flag("PIP_NO_INDEX"),
            index_strategy=BEST_MATCH,
            trusted_hosts=tuple(environ.get("PIP_TRUSTED_HOST", "").split()),
            cert=environ.get("PIP_CERT") or None,
            client_cert=environ.get("PIP_CLIENT_CERT") or None,
            proxy=environ.get("PIP_PROXY") or None,
            timeout=_seconds(timeout),
            keyring=environ.get("PIP_KEYRING_PROVIDER") in ("subprocess", "import"),
        )

    def __repr__(self) -> str:
        parts = (f"{name}={value!r}" for name, value in vars(self).items() if value)
        return self.redact(f"{type(self).__name__}({', '.join(parts)})")

    @property
    def indexes(self) -> tuple[str, ...]:
        """URLs of the indexes that are used, the main one first unless it is the default one."""
        if self.no_index:
            return ()
        main = (self.index_url,) if self.index_url else ()
        return tuple(map(_url, (*main, *self.extra_index_urls)))

    @property
    def links(self) -> tuple[str, ...]:
        """URLs of `find_links`."""
        return tuple(map(_url, self.find_links))

    def for_pip(self) -> dict[str, str]:
        """Return the environment variables that tell pip all of this, and nothing else."""
        variables = {"PIP_CONFIG_FILE": os.devnull}
        if self.no_index:
            variables["PIP_NO_INDEX"] = "1"
        else:
            variables["PIP_INDEX_URL"] = _url(self.index_url) if self.index_url else ""
            variables["PIP_EXTRA_INDEX_URL"] = _listed(self.extra_index_urls)
        variables["PIP_FIND_LINKS"] = _listed(self.find_links)
        variables["PIP_TRUSTED_HOST"] = " ".join(self.trusted_hosts)
        variables["PIP_CERT"] = self.cert or ""
        variables["PIP_CLIENT_CERT"] = self.client_cert or ""
        variables["PIP_PROXY"] = self.proxy or ""
        variables["PIP_DEFAULT_TIMEOUT"] = str(self.timeout or "")
        variables["PIP_KEYRING_PROVIDER"] = "subprocess" if self.keyring else ""
        return {name: value for name, value in variables.items() if value}

    def for_uv(self) -> dict[str, str]:
        """Return the environment variables that tell uv all of this but `no_index`.

        uv has an option for that one only.
        """
        variables = {"UV_NO_CONFIG": "1", "UV_INDEX_STRATEGY": self.index_strategy}
        if not self.no_index:
            variables["UV_INDEX_URL"] = _url(self.index_url) if self.index_url else ""
            variables["UV_EXTRA_INDEX_URL"] = _listed(self.extra_index_urls)
        variables["UV_FIND_LINKS"] = _listed(self.find_links, ",")
        # uv ends at an IPv6 address, which it takes for a host and a port; that one is verified.
        hosts = [host for host in self.trusted_hosts if host.count(":") < 2]
        variables["UV_INSECURE_HOST"] = " ".join(hosts)
        # pip takes a directory of certificates as well.
        directory = self.cert is not None and Path(self.cert).is_dir()
        variables["SSL_CERT_DIR" if directory else "SSL_CERT_FILE"] = self.cert or ""
        variables["SSL_CLIENT_CERT"] = self.client_cert or ""
        for name in ("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY"):
            variables[name] = variables[name.lower()] = _proxy(self.proxy or "")
        # A whole number of seconds, at least one: anything else ends uv.
        variables["UV_HTTP_TIMEOUT"] = str(math.ceil(self.timeout)) if self.timeout else ""
        variables["UV_KEYRING_PROVIDER"] = "subprocess" if self.keyring else ""
        return {name: value for name, value in variables.items() if value}

    def identity(self, projects: Iterable[str]) -> list[object]:
        """Return all that decides which files are found, as JSON data without credentials.

        Local files that may be wheels of *projects* (normalized names) take part with size and
        time, so that a rebuilt wheel is another source. What an index has cannot take part.
        """
        return [
            [without_userinfo(url) for url in self.indexes],
            [without_userinfo(url) for url in self.links],
            self.no_index,
            self.index_strategy,
            sorted(self.trusted_hosts),
            self.cert,
            [local_files(url, projects) for url in self.links],
        ]

    def redact(self, text: str) -> str:
        """Return *text* without any credentials of these sources, nor of other URLs in it."""
        for url in (*self.indexes, *self.find_links, self.proxy or ""):
            try:
                parts = urlsplit(url)
                secret = parts.password or parts.username
            except ValueError:  # not a valid URL, so nothing is sent to it
                continue
            for form in {secret, unquote(secret)} if secret else ():
                if len(form) > 3:  # shorter ones are not secrets, and occur in many words
                    text = text.replace(form, "****")
        return redacted(text)


def local_files(url: str, projects: Iterable[str]) -> list[list[object]]:
    """Return name, size and modification time of the wheels of *projects* at a ``file:`` URL.

    The URL names a wheel or a directory of them. Other URLs, and what cannot be read, give
    nothing.
    """
    if not is_local(url):
        return []
    path = local_path(url)
    names = set(projects)
    try:
        files = path.iterdir() if path.is_dir() else (path,)
        return sorted(
            [file.name, file.stat().st_size, file.stat().st_mtime_ns]
            for file in files
            if file.suffix == ".whl"
            and re.sub(r"[-_.]+", "-", file.name.partition("-")[0]).lower() in names
        )
    except OSError:
        return []


def _url(place: str) -> str:
    """Return *place* as a URL; in particular without spaces, which separate lists."""
    if not _SCHEME.match(place):
        return Path(place).absolute().as_uri()
    return place.strip().replace(" ", "%20")


def _seconds(text: str) -> float | None:
    """Return a positive, finite number of seconds, None for other texts."""
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 0 < seconds < math.inf else None


def _proxy(place: str) -> str:
    """Return *place* with the scheme that pip assumes."""
    return place if not place or "://" in place else f"http://{place}"


def _listed(places: Iterable[str], separator: str = " ") -> str:
    urls = map(_url, places)
    return separator.join(url.replace(",", "%2C") if separator == "," else url for url in urls)
