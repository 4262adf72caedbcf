"""The credentials of an upload: found once, and used for everything that is uploaded.

In the order that users of twine and uv expect, the first password counts:

1. ``--token``, ``--password``;
2. ``TWINE_PASSWORD``, else ``UV_PUBLISH_TOKEN`` or ``UV_PUBLISH_PASSWORD``;
3. the upload URL;
4. ``.pypirc``, for a repository that is named;
5. netrc, then keyring;
6. trusted publishing, in a CI job that has an identity token;
7. a prompt, on a terminal.

The user name is the first one in this order, too; a token has its own. Without any, the upload is
anonymous, which PyPI does not take.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from pep_variants.errors import redacted
from variants_index.http.credentials import Credentials, find_credentials

from .errors import PublishError
from .pypirc import is_pypi
from .trusted_publishing import ALWAYS, NEVER, TrustedPublisher, TrustedPublishingError, ci_job

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import httpx

TOKEN_USERNAME = "__token__"  # noqa: S105 - a name
"""The user name of API tokens."""


class CredentialsError(PublishError):
    """Credentials that contradict each other, cannot be used, or are missing."""


class Login(Protocol):
    """Credentials over the time of an upload: tokens of trusted publishing end after minutes."""

    @property
    def source(self) -> str:
        """Where they are from, for messages; never a secret."""

    def credentials(self) -> Credentials | None:
        """Return what the next request is sent with, None for an anonymous one.

        Raises:
            PublishError: they ended and there are no new ones.
        """


@dataclass(frozen=True)
class FixedLogin:
    """Credentials that do not change, or none.

    Attributes:
        fixed: what every request is sent with.
        source: where they are from, for messages.
    """

    fixed: Credentials | None
    source: str

    def credentials(self) -> Credentials | None:
        """Return `fixed`."""
        return self.fixed


@dataclass(frozen=True)
class Given:
    """User name and password from one place, each None if it is not there.

    Attributes:
        source: the place, for messages.
        username: None if it is not there.
        password: never shown.
        is_token: whether the password is an API token.
    """

    source: str
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    is_token: bool = False


class Ask(Protocol):
    """A prompt on a terminal."""

    def __call__(self, text: str, *, hidden: bool) -> str:
        """Return what the user types, which is not shown if *hidden*."""


def given_options(username: str | None, password: str | None, token: str | None) -> Given:
    """Return what the options say.

    Raises:
        CredentialsError: there are a token and a password, or another user name.
    """
    if token and password:
        raise CredentialsError("--token and --password exclude each other")
    if token and username not in (None, "", TOKEN_USERNAME):
        raise CredentialsError(f"--token has the user name {TOKEN_USERNAME}: leave out --username")
    what = "--token" if token else "--password"
    return Given(what, username or None, _clean(token or password, what), bool(token))


def given_variables(environ: Mapping[str, str]) -> Given:
    """Return what the variables of twine say, else those of uv.

    Raises:
        CredentialsError: uv's contradict each other.
    """
    twine = Given(
        "TWINE_PASSWORD",
        environ.get("TWINE_USERNAME") or None,
        _clean(environ.get("TWINE_PASSWORD"), "TWINE_PASSWORD"),
    )
    if twine.password:
        return twine
    username = environ.get("UV_PUBLISH_USERNAME") or None
    password, token = environ.get("UV_PUBLISH_PASSWORD"), environ.get("UV_PUBLISH_TOKEN")
    if token and password:
        raise CredentialsError(
            "UV_PUBLISH_TOKEN and UV_PUBLISH_PASSWORD are both set: unset one of them"
        )
    if token and username not in (None, TOKEN_USERNAME):
        raise CredentialsError(
            f"UV_PUBLISH_TOKEN has the user name {TOKEN_USERNAME}: unset UV_PUBLISH_USERNAME"
        )
    if token or password:
        what = "UV_PUBLISH_TOKEN" if token else "UV_PUBLISH_PASSWORD"
        return Given(what, username, _clean(token or password, what), bool(token))
    return twine if twine.username else Given("UV_PUBLISH_USERNAME", username)


def login_for(
    url: str,
    given: Sequence[Given],
    configured: Sequence[Given],
    environ: Mapping[str, str],
    *,
    trusted_publishing: str,
    client: Callable[[], httpx.Client],
    note: Callable[[str], None],
    ask: Ask | None = None,
) -> Login:
    """Return the credentials for uploads to *url*.

    Args:
        url: of uploads, without user information.
        given: what the options say, then the variables.
        configured: what the upload URL says, then the configuration file.
        environ: environment variables.
        trusted_publishing: ``auto``, ``always`` or ``never``.
        client: opens a client for requests to the index.
        note: shows the user why trusted publishing is not used.
        ask: asks on a terminal, None without one.

    Raises:
        CredentialsError: they are missing for PyPI, or contradict ``always``.
        TrustedPublishingError: ``always``, and there is no token.
    """
    explicit = next((entry for entry in (*given, *configured) if entry.password), None)
    if trusted_publishing == ALWAYS:
        if explicit is not None:
            raise CredentialsError(
                f"--trusted-publishing always does not go with {explicit.source}: remove one"
            )
        publisher = TrustedPublisher(url, environ, client)
        publisher.credentials()
        return publisher
    # PyPI has API tokens only, whatever name an old configuration file has: as in twine.
    named = given if is_pypi(url) else (*given, *configured)
    username = next(
        (entry.username for entry in named if entry.username),
        TOKEN_USERNAME if is_pypi(url) else None,
    )
    if explicit is not None and explicit.password:
        name = TOKEN_USERNAME if explicit.is_token else username or TOKEN_USERNAME
        return FixedLogin(Credentials(name, explicit.password), explicit.source)
    found = find_credentials(url, environ, username=username)
    if found is not None and found.password:
        return FixedLogin(found, "netrc or keyring")
    if trusted_publishing != NEVER and username in (None, TOKEN_USERNAME) and ci_job(environ):
        publisher = TrustedPublisher(url, environ, client)
        try:
            publisher.credentials()
        except TrustedPublishingError as error:
            note(f"no trusted publishing: {error}")
        else:
            return publisher
    asked = _asked(url, username, ask) if ask is not None else None
    if asked is not None:
        return FixedLogin(asked, "the prompt")
    if username not in (None, TOKEN_USERNAME):
        raise CredentialsError(f"{redacted(url)}: no password for the user {username}: {_WAYS}")
    if is_pypi(url):
        raise CredentialsError(f"{redacted(url)}: no API token: {_ways(environ)}")
    return FixedLogin(None, "no credentials")


_WAYS = (
    "set TWINE_PASSWORD or UV_PUBLISH_TOKEN, add it to ~/.pypirc (--repository NAME), netrc or "
    "keyring"
)


def _ways(environ: Mapping[str, str]) -> str:
    empty = [
        name for name in ("TWINE_PASSWORD", "UV_PUBLISH_TOKEN") if environ.get(name, "-") == ""
    ]
    if empty:  # a secret that does not exist is an empty variable in most CI systems
        return f"{empty[0]} is set but empty: is the secret that it is from there?"
    if environ.get("GITHUB_ACTIONS") == "true":
        return f"{_WAYS}; or give the job the permission id-token: write for trusted publishing"
    if environ.get("GITLAB_CI"):
        return f"{_WAYS}; or give the job id_tokens: PYPI_ID_TOKEN for trusted publishing"
    return _WAYS


def _asked(url: str, username: str | None, ask: Ask) -> Credentials | None:
    if is_pypi(url) or username == TOKEN_USERNAME:
        password = ask(f"API token for {redacted(url)}", hidden=True)
        username = TOKEN_USERNAME
    else:
        if username is None:
            username = ask(
                f"User name for {redacted(url)} ({TOKEN_USERNAME} for a token, empty for none)",
                hidden=False,
            ).strip()
        if not username:
            return None
        password = ask(f"Password of {username}", hidden=True)
    cleaned = _clean(password, "what was typed")
    return Credentials(username, cleaned) if cleaned else None


def _clean(password: str | None, source: str) -> str | None:
    """Return *password* without the end of a line, which secrets of CI systems often have."""
    password = (password or "").strip("\r\n")
    if not password:
        return None
    # Among them the ^V of a Windows console: it pastes nothing, and types this character.
    if not password.isprintable():
        raise CredentialsError(f"the password of {source} has characters that are not printable")
    return password
