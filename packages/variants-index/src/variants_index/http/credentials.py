"""User name and password for an index: from its URL, netrc or keyring, in that order.

As in pip and uv, but without prompts. They are added to requests here, by origin: redirects cannot
send them to another host, and messages do not see them.
"""

from __future__ import annotations

import base64
import importlib
import netrc
import os
import shutil
import subprocess
import threading
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit, urlunsplit

import httpx

from ..errors import InvalidUrl
from .user_proxies import PORTS

if TYPE_CHECKING:
    from collections.abc import Mapping


TIMEOUT = 10.0
"""Seconds that the keyring command may take: it may wait for input."""


@dataclass(frozen=True)
class Credentials:
    """User name and password.

    Attributes:
        username: may be empty, as in ``https://:token@host``.
        password: never shown.
    """

    username: str
    password: str = field(repr=False)

    @property
    def authorization(self) -> str:
        """The header of requests (RFC 7617)."""
        return f"Basic {base64.b64encode(f'{self.username}:{self.password}'.encode()).decode()}"


def split_credentials(url: str) -> tuple[str, Credentials | None]:
    """Return *url* without its user information, and the credentials in it.

    Raises:
        InvalidUrl: *url* cannot be parsed.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise InvalidUrl(f"{url.rpartition('@')[2][:200]!r} is not a valid URL: {error}") from None
    user, separator, host = parts.netloc.rpartition("@")
    if not separator:
        return url, None
    username, _, password = user.partition(":")
    return urlunsplit(parts._replace(netloc=host)), Credentials(
        unquote(username), unquote(password)
    )


def find_credentials(
    url: str,
    environ: Mapping[str, str],
    *,
    username: str | None = None,
    keyring: bool = True,
    configured: bool = True,
) -> Credentials | None:
    """Return the credentials for *url*, None without any.

    netrc has no ports. Its logins are used for hosts on default ports, and for the host and port of
    a configured index; its ``default`` entry for the latter only.

    Args:
        url: of the index, or of a file on the same host.
        environ: environment variables; ``NETRC`` names the netrc file.
        username: of the URL, if only the password is missing.
        keyring: also ask the keyring: the library if it is installed here, else the command.
        configured: whether host and port are of a configured index, not of a link.
    """
    stripped, given = split_credentials(url)
    if given is not None and given.password:
        return given
    username = (given.username if given else username) or None
    found = _from_netrc(stripped, environ, username, configured=configured)
    if found is None and keyring:
        found = _from_keyring(stripped, environ, username)
    return found or given


def _from_netrc(
    url: str, environ: Mapping[str, str], username: str | None, *, configured: bool
) -> Credentials | None:
    parts = urlsplit(url)
    host = parts.hostname
    if not host or not (configured or parts.port in (None, PORTS.get(parts.scheme))):
        return None
    if environ.get("NETRC"):
        paths = [Path(environ["NETRC"])]
    else:
        try:
            home = Path(environ.get("HOME") or environ.get("USERPROFILE") or Path.home())
        except RuntimeError:  # neither HOME nor an entry in passwd
            return None
        paths = [home / ".netrc", home / "_netrc"]
    for path in paths:
        try:
            known = netrc.netrc(str(path))
            entry = known.authenticators(host) if configured else known.hosts.get(host)
        except (OSError, netrc.NetrcParseError, UnicodeDecodeError):
            continue  # a broken netrc file is not an error of an install
        if entry is not None and (username is None or username == entry[0]):
            return Credentials(entry[0] or "", entry[2] or "")
    return None


def _from_keyring(url: str, environ: Mapping[str, str], username: str | None) -> Credentials | None:
    """Return the credentials of the keyring for the URL, else for the host, as pip does."""
    host = urlsplit(url).netloc
    for service in (url, host):
        found = _library(service, username)
        if found is None:
            found = _command(service, username, environ)
        if found is not None:
            return found
    return None


def _library(service: str, username: str | None) -> Credentials | None:
    try:
        library = importlib.import_module("keyring")
        found = library.get_credential(service, username)
    except Exception:  # not installed, or without a backend: both are common
        return None
    if found is None or not found.password:
        return None
    return Credentials(found.username or username or "", found.password)


def _command(service: str, username: str | None, environ: Mapping[str, str]) -> Credentials | None:
    command = shutil.which("keyring", path=environ.get("PATH", os.defpath))
    if command is None or username is None or service.startswith("-") or username.startswith("-"):
        return None  # the command needs a user name
    try:
        done = subprocess.run(
            [command, "get", service, username],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env=dict(environ),
            timeout=TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    password = done.stdout.decode("utf-8", "replace").rstrip("\r\n")
    return Credentials(username, password) if done.returncode == 0 and password else None


_UNAUTHORIZED = 401

OWN_CREDENTIALS = "pep_variants.credentials"
"""Extension of a request: the credentials in its own URL, for this request only."""

Origin = tuple[str, str, int | None]


def origin_of(url: httpx.URL) -> Origin:
    """Return the origin of *url*: scheme, host and port (RFC 6454), None for the default one."""
    return url.scheme, url.host, url.port


@dataclass
class _Login:
    """What is known of the user's login at an origin.

    Attributes:
        service: URL of the index as the user configured it, which keyrings have; empty for links.
        credentials: None without any.
        token: in place of credentials.
        netrc_read, keyring_asked: whether that was done.
    """

    service: str = ""
    credentials: Credentials | None = None
    token: str = ""
    netrc_read: bool = False
    keyring_asked: bool = False


class AuthTransport(httpx.BaseTransport):
    """Adds credentials: from index URLs and netrc to the first request, from keyring after a 401.

    Links do not change them. As in pip, a link that has credentials is requested with these if the
    user configured none; unlike in pip, no other request is.
    """

    def __init__(
        self, below: httpx.BaseTransport, environ: Mapping[str, str], *, keyring: bool = True
    ) -> None:
        self._below = below
        self._environ = environ
        self._keyring = keyring
        self._lock = threading.Lock()
        self._logins: defaultdict[Origin, _Login] = defaultdict(_Login)

    def add_token(self, url: str, token: str) -> None:
        """Use a bearer token (RFC 6750) for the host of *url*, in place of credentials."""
        with self._lock:
            self._logins[origin_of(httpx.URL(url))].token = token

    def is_authenticated(self, url: str) -> bool:
        """Return whether credentials are sent to the host of *url*."""
        with self._lock:
            login = self._logins[origin_of(httpx.URL(url))]
            return bool(login.token) or login.credentials is not None

    def add_index(self, url: str) -> str:
        """Use the credentials in the URL of an index for its host; return it without them."""
        plain, credentials = split_credentials(url)
        try:
            origin = origin_of(httpx.URL(plain))
        except httpx.InvalidURL:
            return plain
        with self._lock:
            login = self._logins[origin]
            login.service = login.service or plain
            login.credentials = login.credentials or credentials
        return plain

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send *request* with known credentials, and after a 401 with those of the keyring."""
        with self._lock:
            login = self._logins[origin_of(request.url)]
            if login.token:
                authorization = f"Bearer {login.token}"
            else:
                known = login.credentials
                if not (login.netrc_read or (known and known.password)):
                    login.netrc_read = True
                    self._find(login, request, keyring=False)
                credentials = login.credentials or request.extensions.get(OWN_CREDENTIALS)
                authorization = credentials.authorization if credentials else ""
        response = self._below.handle_request(_authorized(request, authorization))
        if response.status_code != _UNAUTHORIZED or not self._keyring or login.token:
            return response
        with self._lock:
            if not login.keyring_asked:
                login.keyring_asked = True
                self._find(login, request, keyring=True)
            found = login.credentials
        if found is None or found.authorization == authorization:
            return response
        response.close()  # unread: it may be of any size
        return self._below.handle_request(_authorized(request, found.authorization))

    def close(self) -> None:
        """Close what is below."""
        self._below.close()

    def _find(self, login: _Login, request: httpx.Request, *, keyring: bool) -> None:
        found = find_credentials(
            login.service or str(request.url.copy_with(query=None)),
            self._environ,
            username=login.credentials.username if login.credentials else None,
            keyring=keyring,
            configured=bool(login.service),
        )
        login.credentials = found or login.credentials


def _authorized(request: httpx.Request, authorization: str) -> httpx.Request:
    """Return a copy of *request* with the header, if it is not empty."""
    if not authorization:
        return request
    headers = request.headers.copy()
    headers["Authorization"] = authorization
    return httpx.Request(
        request.method,
        request.url,
        headers=headers,
        stream=request.stream,
        extensions=request.extensions,
    )
