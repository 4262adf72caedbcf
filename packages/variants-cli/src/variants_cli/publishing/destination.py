"""Where a release is uploaded: the URLs, the credentials and the certificates of one index."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx

from pep_variants.sources import Sources
from variants_index.errors import InvalidUrl
from variants_index.http.credentials import split_credentials
from variants_index.http.transport import tls_context
from variants_index.http.user_proxies import proxy_for

from .credentials import Ask, Given, Login, given_options, given_variables, login_for
from .pypirc import Repository, RepositoryError, normalized, read_repository
from .simple_urls import simple_url_of
from .trusted_publishing import AUTO

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True)
class UploadOptions:
    """What the user says about the index; None for what is not said.

    Attributes:
        repository_url: upload URL, may hold user information.
        repository: name of an index, see `pypirc`.
        config_file: path of the configuration file with the names.
        index_url: of the project pages.
        username: user name.
        password: password; never shown.
        token: API token; never shown.
        trusted_publishing: ``auto``, ``always`` or ``never``.
        cert: path of a bundle of certificate authorities.
        client_cert: path of a client certificate with its key.
    """

    repository_url: str | None = None
    repository: str | None = None
    config_file: str | None = None
    index_url: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    trusted_publishing: str = AUTO
    cert: str | None = None
    client_cert: str | None = None


@dataclass(frozen=True)
class Destination:
    """An index with an upload API.

    Attributes:
        upload_url: without user information.
        index_url: of the project pages, with a slash at its end; may hold user information. If
            the user does not say it, it follows from the upload URL, see `simple_urls`.
        login: the credentials, to be asked for before each request.
        cert: path of a bundle of certificate authorities, None for the system's.
        client_cert: path of a client certificate with its key.
        guessed: whether `index_url` follows from the upload URL.
    """

    upload_url: str
    index_url: str = field(repr=False)
    login: Login
    cert: str | None = None
    client_cert: str | None = None
    guessed: bool = True

    def client(self, environ: Mapping[str, str]) -> httpx.Client:
        """Return a client for requests to the index, without credentials."""
        return open_client(self.upload_url, environ, self.cert, self.client_cert)


def destination_of(
    options: UploadOptions,
    environ: Mapping[str, str],
    *,
    note: Callable[[str], None],
    ask: Ask | None = None,
) -> Destination | None:
    """Return where to upload, None if neither options nor variables say.

    An option goes before a variable, a URL before a name: ``--repository-url``, ``--repository``,
    ``TWINE_REPOSITORY_URL``, ``UV_PUBLISH_URL``, ``TWINE_REPOSITORY``.

    Args:
        options: what the user says.
        environ: environment variables.
        note: shows the user why trusted publishing is not used.
        ask: asks on a terminal, None without one.

    Raises:
        RepositoryError: the URL or the name cannot be used.
        CredentialsError: credentials are missing or contradict each other.
        TrustedPublishingError: trusted publishing was asked for, and gives no token.
    """
    found = _repository(options, environ)
    if found is None:
        return None
    if environ.get("TWINE_NON_INTERACTIVE", "").lower() in ("1", "true", "yes", "on"):
        ask = None
    try:
        url, in_url = split_credentials(found.url)
    except InvalidUrl as error:
        raise RepositoryError(str(error)) from None
    index_url = _index_url(options, environ)
    cert = options.cert or environ.get("TWINE_CERT") or found.ca_cert
    client_cert = options.client_cert or found.client_cert
    login = login_for(
        url,
        (
            given_options(options.username, options.password, options.token),
            given_variables(environ),
        ),
        (
            Given("the upload URL", in_url.username or None, in_url.password or None)
            if in_url is not None
            else Given("the upload URL"),
            Given(found.source, found.username, found.password),
        ),
        environ,
        trusted_publishing=options.trusted_publishing,
        client=lambda: open_client(url, environ, cert, client_cert),
        ask=ask,
        note=note,
    )
    return Destination(
        url, index_url or simple_url_of(url).url, login, cert, client_cert, guessed=not index_url
    )


def open_client(
    url: str, environ: Mapping[str, str], cert: str | None, client_cert: str | None
) -> httpx.Client:
    """Return a client for *url*, with the proxies and certificates of the user.

    Raises:
        RepositoryError: a certificate cannot be read.
    """
    parts = urlsplit(url)
    proxy = proxy_for(parts.scheme, (parts.hostname or "").lower(), environ)
    try:
        context = tls_context(Sources(cert=cert, client_cert=client_cert), environ)
    except OSError as error:
        raise RepositoryError(
            f"{cert or client_cert}: the certificate cannot be read: {error.strerror or error}"
        ) from None
    return httpx.Client(
        verify=context, proxy=proxy.url if proxy is not None else None, trust_env=False
    )


def _repository(options: UploadOptions, environ: Mapping[str, str]) -> Repository | None:
    if options.repository_url and options.repository:
        raise RepositoryError("--repository-url and --repository exclude each other")
    if options.repository_url:
        return Repository(normalized(options.repository_url), source="--repository-url")
    if options.repository:
        return read_repository(options.repository, options.config_file)
    for name in ("TWINE_REPOSITORY_URL", "UV_PUBLISH_URL"):
        if environ.get(name):
            return Repository(normalized(environ[name]), source=name)
    if environ.get("TWINE_REPOSITORY"):
        return read_repository(environ["TWINE_REPOSITORY"], options.config_file)
    return None


def _index_url(options: UploadOptions, environ: Mapping[str, str]) -> str | None:
    found = options.index_url or environ.get("UV_PUBLISH_CHECK_URL")
    return f"{normalized(found).rstrip('/')}/" if found else None
