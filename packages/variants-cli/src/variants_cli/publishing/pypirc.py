"""Package indexes that uploads go to by name: ``.pypirc`` files and the names of PyPI.

As twine reads them (https://packaging.python.org/specifications/pypirc/): ``[distutils]`` lists
names in ``index-servers``, and the section of each has ``repository``, ``username``, ``password``,
``ca_cert`` and ``client_cert``. ``pypi`` and ``testpypi`` need no section.
"""

from __future__ import annotations

import configparser
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pep_variants.errors import shortened

from .errors import PublishError

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_FILE = "~/.pypirc"
URLS = {
    "pypi": "https://upload.pypi.org/legacy/",
    "testpypi": "https://test.pypi.org/legacy/",
}
"""Upload URLs of the names that every user has."""

MAX_BYTES = 1_000_000

_PYPI_HOSTS = frozenset({"upload.pypi.org", "test.pypi.org"})
# Closed for uploads in 2017; files of that time still name them.
_CLOSED = {"pypi.python.org": "pypi", "testpypi.python.org": "testpypi"}


class RepositoryError(PublishError):
    """A repository name or configuration file that does not lead to an upload URL."""


@dataclass(frozen=True)
class Repository:
    """One repository of a configuration file.

    Attributes:
        url: where uploads go; may hold user information.
        username: None where the file has none.
        password: None where the file has none; never shown.
        ca_cert: path of a bundle of certificate authorities.
        client_cert: path of a client certificate with its key.
        source: the file and section, for messages.
    """

    url: str
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_cert: str | None = None
    client_cert: str | None = None
    source: str = ""


def read_repository(name: str, config_file: str | None = None) -> Repository:
    """Return the repository *name*.

    Args:
        name: a section of the file, ``pypi`` or ``testpypi``.
        config_file: its path, ``~/.pypirc`` by default, which need not exist.

    Raises:
        RepositoryError: the name is unknown, or the file cannot be read. Lines of the file, which
            hold secrets, are never part of the message.
    """
    place = config_file or DEFAULT_FILE
    parser = _parsed(place, required=config_file is not None)
    section: Mapping[str, str] = parser[name] if parser.has_section(name) else {}
    url = section.get("repository") or URLS.get(name)
    if url is None:
        listed = parser.get("distutils", "index-servers", fallback="").split()
        if section or name in listed:
            raise RepositoryError(f"{place}: [{name}] has no repository: add its upload URL")
        known = sorted({*URLS, *listed, *_with_url(parser)})
        raise RepositoryError(
            f"{place} has no section [{shortened(name)[1:-1]}]: known are {', '.join(known)}; or "
            "name the upload URL with --repository-url"
        )
    # An obsolete section, which twine still reads.
    obsolete = parser["server-login"] if parser.has_section("server-login") else {}
    return Repository(
        normalized(url),
        section.get("username") or obsolete.get("username") or None,
        section.get("password") or obsolete.get("password") or None,
        section.get("ca_cert") or None,
        section.get("client_cert") or None,
        f"{place} [{name}]",
    )


def normalized(url: str) -> str:
    """Return an upload URL as it is used: PyPI's with https.

    Raises:
        RepositoryError: not a http or https URL with a host, or one that is closed for uploads.
    """
    url = url.strip()
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        host = None
        parts = urlsplit("")
    shown = shortened(url.rpartition("@")[2])
    if parts.scheme not in ("http", "https") or not host:
        raise RepositoryError(f"{shown} is not an upload URL: it starts with https:// and a host")
    if host in _CLOSED:
        name = _CLOSED[host]
        raise RepositoryError(f"{shown} is closed for uploads: use {URLS[name]}")
    return parts._replace(scheme="https").geturl() if host in _PYPI_HOSTS else url


def is_pypi(url: str) -> bool:
    """Return whether *url* is of PyPI or TestPyPI, which take API tokens only."""
    return urlsplit(url).hostname in _PYPI_HOSTS


def _with_url(parser: configparser.RawConfigParser) -> list[str]:
    return [name for name in parser.sections() if parser.has_option(name, "repository")]


def _parsed(place: str, *, required: bool) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser()
    path = Path(place).expanduser()
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        if required:
            raise RepositoryError(f"{place}: no such file (--config-file)") from None
        return parser
    except OSError as error:
        raise RepositoryError(f"{place}: {error.strerror or error}") from None
    if len(data) > MAX_BYTES:
        raise RepositoryError(f"{place}: larger than {MAX_BYTES:,} bytes")
    try:
        parser.read_string(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise RepositoryError(f"{place}: not UTF-8: save it in this encoding") from None
    except configparser.Error as error:
        # Its message quotes the line, which may hold a password.
        line = getattr(error, "lineno", None) or next(
            (number for number, _ in getattr(error, "errors", ())), None
        )
        at = f"line {line}: " if line else ""
        raise RepositoryError(
            f"{place}: {at}{_PROBLEMS.get(type(error), 'cannot be parsed')}; see "
            "https://packaging.python.org/specifications/pypirc/"
        ) from None
    return parser


_PROBLEMS: dict[type[configparser.Error], str] = {
    configparser.DuplicateOptionError: "a key is there twice",
    configparser.DuplicateSectionError: "a section is there twice",
    configparser.MissingSectionHeaderError: "a line before the first [section]",
}
