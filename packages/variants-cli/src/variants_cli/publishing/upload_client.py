"""Requests to an upload API by twine: log-ins, certificates, forms, attestations, progress.

twine finds user name and password: options and variables, the upload URL, ``.pypirc``, keyring,
trusted publishing (PyPI and TestPyPI), a prompt on a terminal; its HTTP library looks into netrc.
Its check of metadata would refuse variant markers, so it gets metadata that is read here.
"""

from __future__ import annotations

import html
import io
import logging
import os
import random
import re
import sys
import time
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

import requests
import twine.auth
import twine.utils
from packaging.metadata import parse_email
from requests.utils import get_netrc_auth
from twine.exceptions import NonInteractive, TwineException
from twine.package import PackageFile
from twine.repository import Repository
from twine.settings import Settings

from pep_variants.errors import printable, redacted
from pep_variants.model.filename import parse_filename
from variants_index.errors import InvalidUrl
from variants_index.http.credentials import split_credentials
from variants_index.http.failures import BUSY, retry_after

from .errors import Changed, PublishError, Refused, Unavailable
from .release import read_core_metadata

if TYPE_CHECKING:
    from collections.abc import Callable

    from .release import ReleaseFile

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 60.0
PATIENCE = 600.0
"""The most seconds that a server may ask to wait with ``Retry-After``."""

_TIMEOUTS = (15.0, 600.0)
"""Seconds to connect, and for an answer after the last byte: servers copy gigabytes meanwhile."""

_BODY_BYTES = 8 * 1024
_BEFORE_LICENSE_FILES = ("1.0", "1.1", "1.2", "2.1", "2.2", "2.3")
_TAGS = re.compile(r"<(style|script|title)\b.*?</\1\s*>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_EXISTS = re.compile(r"already (?:exists?\b|been taken)|duplicate", re.IGNORECASE)
_PHRASES = {status.phrase.lower() for status in HTTPStatus}


@dataclass(frozen=True)
class Answer:
    """An answer that is final.

    Attributes:
        status: HTTP status.
        reason: in the server's words, on one line, without credentials; empty if it gave none.
        is_devpi: the server is a devpi, whose pages are elsewhere than those of others.
    """

    status: int
    reason: str
    is_devpi: bool = False

    @property
    def is_success(self) -> bool:
        """Whether the file was accepted, or was there before with the same contents."""
        return 200 <= self.status < 300

    @property
    def says_exists(self) -> bool:
        """Whether it was refused because the index has a file of that name."""
        exists = _EXISTS.search(self.reason) is not None
        return self.status == 409 or (400 <= self.status < 500 and exists)

    @property
    def is_about_access(self) -> bool:
        """Whether the credentials, the URL or the size of the file are why it was refused."""
        return self.status in (401, 403, 404, 405, 407, 410, 413, 501)

    def __str__(self) -> str:
        return f"status {self.status}: {self.reason}" if self.reason else f"status {self.status}"


def open_settings(
    *,
    repository_url: str | None = None,
    repository: str = "pypi",
    config_file: str = twine.utils.DEFAULT_CONFIG_FILE,
    username: str | None = None,
    password: str | None = None,
    cert: str | None = None,
    client_cert: str | None = None,
) -> Settings:
    """Return twine's settings for an index; the arguments are as its options.

    Raises:
        PublishError: the URL or the name cannot be used.
    """
    try:
        if repository_url:
            repository_url, given = split_credentials(repository_url)
            username = username or (given and given.username) or None
            password = password or (given and given.password) or None
            if password and not username:
                username = twine.auth.TOKEN_USERNAME
        settings = Settings(
            repository_url=repository_url,
            repository_name=repository,
            config_file=config_file,
            username=username,
            password=password,
            cacert=cert or os.environ.get("SSL_CERT_FILE"),
            client_cert=client_cert,
            non_interactive=True,
        )
        settings.check_repository_url()
    except KeyError:
        raise PublishError(f"{config_file}: [{repository}] has no repository, its URL") from None
    except (TwineException, InvalidUrl) as error:
        raise PublishError(" ".join(str(error).split())) from None
    return settings


class UploadClient:
    """Sends files to one index.

    Attributes:
        url: of the upload API, without credentials.
        place: the same for messages.
        username: as twine found it, None without credentials.
        password: never shown.
    """

    def __init__(
        self, settings: Settings, *, retries: int = 6, note: Callable[[str], None] = lambda _: None
    ) -> None:
        """Look for the credentials; ask for them on a terminal.

        Args:
            settings: from `open_settings`.
            retries: how often a request is sent again.
            note: shows the user what is waited for, and what twine says.

        Raises:
            PublishError: trusted publishing fails.
        """
        self.url = str(settings.repository_config["repository"])
        self.place = redacted(self.url)
        self._note, self._retries = note, retries
        logging.getLogger("twine").setLevel(logging.ERROR)  # `_send` says what fails
        self._is_terminal = sys.stderr.isatty()
        asks = self._is_terminal and sys.stdin.isatty()
        is_quiet = os.environ.get("TWINE_NON_INTERACTIVE", "").lower() in ("1", "true", "yes", "on")
        if asks and not is_quiet and get_netrc_auth(self.url) is None:
            settings.auth = twine.auth.Resolver(settings.repository_config, settings.auth.input)
        self.username = self.password = None
        try:
            with redirect_stdout(sys.stderr):
                self.username, self.password = settings.auth.username, settings.auth.password
        except NonInteractive:
            pass  # netrc, or an index that wants no credentials
        except (TwineException, requests.RequestException) as error:
            raise PublishError(
                f"{self.place}: no trusted publishing: {redacted(str(error))}"
            ) from None
        self._repository = Repository(
            self.url, self.username, self.password, disable_progress_bar=not self._is_terminal
        )
        session = self._repository.session
        if self.username and self.password:
            session.auth = settings.auth.authenticator  # renews the token of trusted publishing
        session.request = partial(session.request, timeout=_TIMEOUTS)  # type: ignore[method-assign]
        self._repository.set_certificate_authority(settings.cacert)
        self._repository.set_client_certificate(settings.client_cert)

    def close(self) -> None:
        """Close all connections."""
        self._repository.close()

    def check_access(self) -> Answer:
        """Send a form without a file, which every server refuses and none keeps.

        Servers check the credentials first: 401 or 403 in place of 400.

        Raises:
            Refused: the URL takes no uploads, or not with these credentials.
            Unavailable: see `upload`.
        """
        form = {":action": "file_upload", "protocol_version": "1", "filetype": "bdist_wheel"}
        parts = [(name, (None, value)) for name, value in form.items()]
        session = self._repository.session
        answer = self._send("", lambda: session.post(self.url, files=parts, allow_redirects=False))
        assert answer is not None
        if answer.is_about_access:
            raise self.refusal("uploads", answer)
        return answer

    def upload(
        self, package: PackageFile, arrived: Callable[[], bool] = lambda: False
    ) -> Answer | None:
        """Upload *package*; return the answer, None if an upload without one has arrived.

        Args:
            package: file, metadata and attestations.
            arrived: looks whether the index has the file, before it is sent again.

        Raises:
            Refused: the server redirects to elsewhere, or its certificate is not accepted.
            Unavailable: no answer after all retries, or one that asks to come back later.
        """
        send = partial(self._repository.upload, package, max_redirects=1)
        return self._send(package.basefilename, send, arrived)

    def refusal(self, what: str, answer: Answer, size: int = 0) -> Refused:
        """Return the error of an upload that was refused: what it is about, and what to do."""
        if answer.status == 413:
            return Refused(
                f"{self.place} does not take {what}, {size:,} bytes ({answer}): ask its "
                "administrators for a higher limit, or make the file smaller"
            )
        if answer.status in (401, 403, 407):
            who = f"the user name {self.username!r}" if self.password else "no credentials"
            return Refused(
                f"{self.place} refuses {what} ({answer}) with {who}: are these the credentials "
                "for this index and project?"
            )
        if answer.is_about_access:
            return Refused(
                f"{self.place} takes no uploads ({answer}): give the upload URL of the index, "
                "such as https://upload.pypi.org/legacy/, not that of its pages"
            )
        return Refused(f"{self.place} refuses {what} ({answer})")

    def _send(
        self,
        what: str,
        post: Callable[[], requests.Response],
        arrived: Callable[[], bool] = lambda: False,
    ) -> Answer | None:
        where = ": ".join(filter(None, (self.place, what)))
        for number in range(self._retries + 1):
            if number and arrived():
                return None
            asked = 0.0
            try:
                # twine prints what it does, and its progress, to stdout.
                with redirect_stdout(sys.stderr if self._is_terminal else io.StringIO()):
                    response = post()
            except (TwineException, requests.exceptions.SSLError) as error:
                raise Refused(f"{where}: {_words(error)}: see --cert and --client-cert") from None
            except (requests.ConnectionError, requests.Timeout) as error:
                problem = _words(error)
            except (requests.RequestException, UnicodeError) as error:
                raise Refused(f"{where}: {_words(error)}") from None
            else:
                answer = self._answer(response)
                if answer.status not in BUSY:
                    return answer
                problem, asked = str(answer), retry_after(cast("Any", response))
            if asked > PATIENCE:
                problem += f": the server asks to wait for {asked:.0f} seconds"
            if number == self._retries or asked > PATIENCE:
                tried = f"tried {number + 1} times" if number else "tried once"
                raise Unavailable(f"{where}: {problem}; {tried}: run the command again later")
            seconds = max(pause(number), asked)
            self._note(f"{where}: {problem}: again in {seconds:.1f} s")
            time.sleep(seconds)
        raise AssertionError("the last attempt returns or raises")

    def _answer(self, response: requests.Response) -> Answer:
        if response.is_redirect:
            target = redacted(str(response.headers["Location"]))
            raise Refused(
                f"{self.place}: redirects to {target}: if that is the upload URL of the index, "
                "publish to it"
            )
        reason = _reason(response)
        if self.password:
            reason = reason.replace(self.password, "****")
        reason = printable(" ".join(redacted(reason).split()))
        reason = reason if len(reason) <= 300 else f"{reason[:299]}…"
        return Answer(response.status_code, reason, "X-Devpi-Server-Version" in response.headers)


def package_of(file: ReleaseFile) -> PackageFile:
    """Return *file* as twine uploads it, with the metadata that it has, whatever that says.

    Raises:
        Changed: it is not the file any more that was checked.
        VariantError: it is not usable.
        OSError: it cannot be read.
    """
    item = file.distribution
    metadata = parse_email(read_core_metadata(item))[0]
    if metadata.get("metadata_version") in _BEFORE_LICENSE_FILES:
        # setuptools wrote License-File with a metadata version that does not have it.
        metadata.pop("license_files", None)
    metadata.setdefault("requires_python", "")  # GitLab requires the field
    kind, pythons = "sdist", "source"
    if item.is_wheel:
        tags = {tag.interpreter for tag in parse_filename(file.filename).tags}
        kind, pythons = "bdist_wheel", ".".join(sorted(tags))
    package = PackageFile(str(item.path), None, metadata, pythons, kind)
    if package.sha2_digest != item.sha256:
        raise Changed(
            f"{item.path}: was changed while it was published: sha256 was {item.sha256}, is "
            f"{package.sha2_digest}: run the command again"
        )
    if file.attestations:
        package.add_attestations([str(path) for path in file.attestations])
    return package


def pause(number: int) -> float:
    """Return the seconds to wait after attempt *number*, counted from 0; never twice the same.

    Two publishers that were refused at the same moment come back at different ones.
    """
    whole = min(FIRST_PAUSE * 2.0**number, LONGEST_PAUSE)
    return whole * (0.75 + random.random() / 2)  # noqa: S311


def _reason(response: requests.Response) -> str:
    """Return why a server refused, wherever it says so.

    PyPI and devpi: in the reason phrase of the status line; others in the body.
    """
    phrase = response.reason or ""
    if phrase and phrase.lower() not in _PHRASES:
        return phrase
    text = response.content[:_BODY_BYTES].decode("utf-8", "replace")
    if "html" in response.headers.get("Content-Type", ""):
        body = re.search(r"<pre>(.*?)</pre>", text, re.DOTALL)  # of pypiserver
        text = html.unescape(_TAGS.sub(" ", body[1] if body else text))
    return "" if text == "None" else text
    return text


def _words(error: BaseException) -> str:
    """Return the first cause of an error of requests: what the operating system or TLS says."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return printable(redacted(" ".join(text.split()))[:300])
