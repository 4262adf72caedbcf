"""Trusted publishing: a CI job's identity token is exchanged for an upload token.

PyPI's protocol (https://docs.pypi.org/trusted-publishers/internals/), as twine, uv and
gh-action-pypi-publish speak it: ``GET /_/oidc/audience`` says whom the identity token is to be
for, ``POST /_/oidc/mint-token`` gives an upload token of 15 minutes for it. The identity tokens of
GitHub Actions are fetched, those of GitLab CI are variables of the job; the library `id` knows
other systems.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import re
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import httpx

from pep_variants.errors import printable, redacted, shortened
from variants_index.http.credentials import Credentials
from variants_index.http.failures import BUSY, describe

from .errors import PublishError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

AUTO, ALWAYS, NEVER = MODES = ("auto", "always", "never")

RETRIES = 2
PAUSE = 1.0
TIMEOUT = 30.0
MAX_BYTES = 100_000
LIFETIME = 15 * 60
"""Seconds that an upload token is valid, where the index does not say."""

EARLY = 5 * 60
"""Seconds before its end when an upload token is replaced: the next file may take as long."""

_NOT_VARIABLE = re.compile(r"[^A-Z0-9_]|^[^A-Z_]")
_NOT_FOUND, _FORBIDDEN = 404, 403
_CLAIMS = (
    "sub",
    "repository",
    "job_workflow_ref",
    "project_path",
    "ci_config_ref_uri",
    "ref",
    "environment",
)


class TrustedPublishingError(PublishError):
    """No upload token; the message says which step failed and what to do."""


@dataclass(frozen=True)
class UploadToken:
    """A token that an index minted.

    Attributes:
        token: never shown.
        ends: when it becomes invalid, in seconds since the epoch.
    """

    token: str = field(repr=False)
    ends: float


def ci_job(environ: Mapping[str, str]) -> str | None:
    """Return the name of the CI system if this is a job of it that has an identity token."""
    if environ.get("GITHUB_ACTIONS") == "true":
        needed = ("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_URL")
        return "GitHub Actions" if all(map(environ.get, needed)) else None
    if environ.get("GITLAB_CI"):
        found = any(name.endswith("_ID_TOKEN") and value for name, value in environ.items())
        return "GitLab CI" if found else None
    return None


class TrustedPublisher:
    """Upload tokens of one index, replaced before they end; safe to use from several threads."""

    def __init__(
        self,
        url: str,
        environ: Mapping[str, str],
        client: Callable[[], httpx.Client],
        *,
        clock: Callable[[], float] = time.time,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """Set up.

        Args:
            url: upload URL of the index, without user information.
            environ: environment variables of the job.
            client: opens a client for requests to the index.
            clock: seconds since the epoch.
            pause: waits for seconds.

        Raises:
            TrustedPublishingError: the URL is neither https nor of this machine.
        """
        parts = urlsplit(url)
        if parts.scheme != "https" and not _is_loopback(parts.hostname or ""):
            raise TrustedPublishingError(
                f"{redacted(url)}: tokens are only sent by https: use an https:// URL"
            )
        self._origin = urlunsplit((parts.scheme, parts.netloc, "", "", ""))
        self._environ = environ
        self._client = client
        self._clock = clock
        self._pause = pause
        self._lock = threading.Lock()
        self._token: UploadToken | None = None

    @property
    def source(self) -> str:
        """Where the credentials are from, for messages."""
        return f"trusted publishing ({ci_job(self._environ) or 'identity token'})"

    def credentials(self) -> Credentials:
        """Return the upload token, a new one if the last one is about to end.

        Raises:
            TrustedPublishingError: there is none.
        """
        with self._lock:
            now = self._clock()
            if self._token is None or now + EARLY >= self._token.ends:
                try:
                    self._token = self._minted()
                except TrustedPublishingError:
                    # GitLab's identity token can be exchanged once; what is left still counts.
                    if self._token is None or now >= self._token.ends:
                        raise
            return Credentials("__token__", self._token.token)

    def _minted(self) -> UploadToken:
        with self._client() as client:
            answer = self._request(client, "GET", "/_/oidc/audience")
            audience = answer.get("audience")
            if not isinstance(audience, str) or not audience or len(audience) > 200:
                raise TrustedPublishingError(
                    f"{self._origin}/_/oidc/audience: no audience in the response"
                )
            identity = self._identity(audience)
            answer = self._request(client, "POST", "/_/oidc/mint-token", identity)
        token, ends = answer.get("token"), answer.get("expires")
        if not isinstance(token, str) or not _is_token(token):
            raise TrustedPublishingError(
                f"{self._origin}/_/oidc/mint-token: no token in the response"
            )
        self._mask(token)
        if not isinstance(ends, (int, float)) or isinstance(ends, bool):
            ends = self._clock() + LIFETIME
        return UploadToken(token, float(ends))

    def _identity(self, audience: str) -> str:
        """Return the identity token of this job."""
        if self._environ.get("GITLAB_CI") and not self._environ.get("GITHUB_ACTIONS"):
            # By the rule of the library `id`, which asks Google's metadata service first: GitLab's
            # own runners are machines of Google's cloud, and have another identity there.
            name = f"{_NOT_VARIABLE.sub('_', audience.upper())}_ID_TOKEN"
            found = self._environ.get(name)
            if not found:
                raise TrustedPublishingError(
                    f"the variable {name} is not set: add to the job in .gitlab-ci.yml: "
                    f"id_tokens: {{{name}: {{aud: {printable(audience)}}}}}"
                )
        else:
            found = self._detected(audience)
        if not _is_token(found):
            raise TrustedPublishingError("the identity token of this job is malformed")
        self._mask(found)
        return found

    def _detected(self, audience: str) -> str:
        try:
            import id as identity
        except ImportError:
            raise TrustedPublishingError(
                "trusted publishing needs the library id: pip install 'variants-cli[publish]'"
            ) from None
        try:
            found = identity.detect_credential(audience)
        except identity.IdentityError as error:
            raise TrustedPublishingError(
                f"no identity token: {_words(str(error))}: {self._remedy()}"
            ) from None
        except Exception as error:  # of urllib3, which the library uses
            raise TrustedPublishingError(
                f"no identity token: {type(error).__name__}: {_words(str(error))}"
            ) from None
        if not found:
            raise TrustedPublishingError(
                "no identity token: this is not a job of GitHub Actions or GitLab CI: give a token "
                "(UV_PUBLISH_TOKEN), or --trusted-publishing never"
            )
        return found

    def _remedy(self) -> str:
        if self._environ.get("GITHUB_EVENT_NAME") == "pull_request":
            return "pull requests of forks get none: publish from another event, such as a release"
        return "give the job in the workflow file permissions: {id-token: write}"

    def _request(
        self, client: httpx.Client, method: str, path: str, identity: str | None = None
    ) -> Mapping[str, Any]:
        """Return the JSON object of a response, trying again where that may help."""
        for attempt in range(RETRIES + 1):
            last = attempt == RETRIES
            try:
                status, body = _sent(client, method, f"{self._origin}{path}", identity)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                if last:
                    raise TrustedPublishingError(
                        f"{self._origin}{path}: {describe(error)}"
                    ) from None
            else:
                if status not in BUSY or last:
                    return self._checked(path, status, body, identity)
            self._pause(PAUSE * 3**attempt)
        raise AssertionError

    def _checked(
        self, path: str, status: int, body: bytes, identity: str | None
    ) -> Mapping[str, Any]:
        place = f"{self._origin}{path}"
        if identity is None and status == _NOT_FOUND:
            raise TrustedPublishingError(
                f"{self._origin} does not support trusted publishing ({path}: status 404): give a "
                "token (UV_PUBLISH_TOKEN)"
            )
        if identity is None and status == _FORBIDDEN:
            raise TrustedPublishingError(f"{self._origin} has trusted publishing disabled")
        try:
            tree = json.loads(body)
        except (ValueError, RecursionError):
            tree = None
        if not isinstance(tree, dict):
            raise TrustedPublishingError(f"{place}: status {status}, and no JSON object")
        if not httpx.codes.is_success(status):
            problem = f"{place}: refused with status {status}{_reasons(tree)}"
            if identity is not None:
                problem += (
                    f"; this job is {_claims(identity)}: compare the trusted publisher of the "
                    "project, see https://docs.pypi.org/trusted-publishers/troubleshooting/"
                )
            raise TrustedPublishingError(problem)
        return tree

    def _mask(self, secret: str) -> None:
        """Have GitHub hide *secret* wherever a log of this job has it."""
        if self._environ.get("GITHUB_ACTIONS"):
            print(f"::add-mask::{secret}", file=sys.stderr, flush=True)


def _sent(client: httpx.Client, method: str, url: str, identity: str | None) -> tuple[int, bytes]:
    with client.stream(
        method,
        url,
        json={"token": identity} if identity is not None else None,
        headers={"Accept": "application/json", "Accept-Encoding": "identity"},
        timeout=TIMEOUT,
        follow_redirects=False,
    ) as answer:
        body = b""
        for chunk in answer.iter_raw():
            body += chunk
            if len(body) > MAX_BYTES:
                return answer.status_code, b""
        return answer.status_code, body


def _reasons(tree: Mapping[str, Any]) -> str:
    errors = tree.get("errors")
    found = [
        f"{_words(str(error.get('code')))}: {_words(str(error.get('description')))}"
        for error in (errors if isinstance(errors, list) else [])[:5]
        if isinstance(error, dict)
    ]
    if not found and isinstance(tree.get("message"), str):
        found = [_words(tree["message"])]
    return f" ({'; '.join(found)})" if found else ""


def _claims(identity: str) -> str:
    """Return what an identity token says of its job; it is no secret without the signature."""
    try:
        payload = identity.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (ValueError, IndexError, RecursionError):
        return "unknown"
    if not isinstance(claims, dict):
        return "unknown"
    known = (f"{name} {shortened(claims[name], 120)}" for name in _CLAIMS if claims.get(name))
    return printable(", ".join(known)) or "unknown"


def _words(text: str) -> str:
    return printable(" ".join(redacted(text[:300]).split()))


def _is_token(text: str) -> bool:
    # Anything else could be a command of its own in the log of GitHub Actions.
    return 0 < len(text) <= 50_000 and text.isascii() and text.isprintable() and " " not in text


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
