"""User name and password for an index: from its URL, netrc or keyring, in that order.

As in pip and uv, but without prompts. `authentication` adds them to requests.
"""

from __future__ import annotations

import base64
import importlib
import netrc
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from .._errors import InvalidUrl
from .user_proxies import PORTS

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

    >>> from variants_index.http import split_credentials
    >>> split_credentials("https://me:secret@host.example/simple/")[0]
    'https://host.example/simple/'
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
