"""Publishing to an index with the legacy upload API: PyPI's ``/legacy/``, devpi, pypiserver, ….

**What is known before the first upload.** A form without a file shows whether the URL takes uploads
and the credentials are good. Whether the index takes ``*-variants.json`` cannot be seen that
way: pypiserver and devpi look at the file last, and a file with a wrong digest, which PyPI would
refuse, is kept by servers that do not compare digests. So the document itself is sent before
everything else, with the right digest, unless the project has such a file there already. If it is
refused, nothing was left behind; if it is taken, it is ignored by installers as long as no wheel
has one of its labels.

**Merging.** The document that is there is merged with, so a second batch does not lose the first
one's variants. An index that does not replace files says so at that point, before the wheels.
Uploads are not conditional, so of two publishers who merge at the same time one overwrites the
other. Each uploads its variant wheels first, or looks again after its document: labels of wheels
that the page lists and the document does not are read from those wheels and merged again, by
the last one.

**twine** sends the uploads and finds user name and password: options and variables, the upload
URL, ``.pypirc``, keyring, trusted publishing (PyPI and TestPyPI), a prompt on a terminal; its HTTP
library looks into netrc. Its check of metadata would refuse variant markers, so it gets metadata
that is read here.
"""

from __future__ import annotations

import hashlib
import html
import io
import logging
import os
import random
import re
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, redirect_stdout
from functools import partial
from http.client import responses
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, urlsplit, urlunsplit

import requests
from packaging.metadata import parse_email
from requests.utils import get_netrc_auth
from twine.auth import TOKEN_USERNAME, Resolver
from twine.exceptions import TwineException
from twine.package import PackageFile
from twine.settings import Settings
from twine.utils import EnvironmentFlag

from pep_variants import labels as wheel_labels
from pep_variants import limits, wheel_files
from pep_variants.errors import VariantError, printable, redacted
from variants_index import finder as package_finder
from variants_index import http
from variants_index.finder import Session
from variants_index.http import BadResponse, InvalidUrl, NotFound, PackageIndexError

from .._checks.live_index import check_live
from .._console import note
from .._indexing.update import same_meaning, write_merged
from .._indexing.wheelhouse import VariantFile, read_core_metadata, read_variant_file
from .errors import Conflict, PublishError
from .release_contents import conflict, entry_of, same_contents

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from packaging.utils import NormalizedName
    from packaging.version import Version

    from pep_variants.preferences import Sources
    from variants_catalog.catalogs import Finding
    from variants_index.pages import Page
    from variants_index.pages import PageFile as Listed

    from .release_contents import PublishedDistribution, Release

logger = logging.getLogger(__name__)

ROUNDS = 8
"""How often metadata is merged again because another publisher replaced it meanwhile."""

SETTLING = 5
"""How often a page is read again that does not show yet what the index accepted."""

RETRIES = 6
"""How often a request is sent again after a failure that may pass."""

_AGAIN = (408, 425, 429, 500, 502, 503, 504)
"""Statuses after which it is: others do not pass by waiting, and RFC 4918 forbids it of 507."""

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 60.0
PATIENCE = 600.0
"""The most seconds that a server may ask to wait with ``Retry-After``."""

# The simple API beside an upload API; for others "simple/" is appended, if there is such a page.
_PAGES = (
    (r"https://(?:upload\.)?(test\.)?pypi\.org/.*", r"https://\1pypi.org/simple/"),
    (r"(.*)/(?:legacy|upload)/?", r"\1/simple/"),
    # AWS CodeArtifact has pages of projects, and none that lists them.
    (r"(https://.*\.amazonaws\.com/.*?)/?", r"\1/simple/"),
)

SILENCE = 30.0
"""Seconds after which the user is told that there is no answer yet, and again."""

_LOGIN = " 407 "
"""In the words of http.client for what a proxy answers to CONNECT."""

_TIMEOUTS = (15.0, 600.0)
"""Seconds to connect, and for an answer after the last byte: servers copy gigabytes meanwhile."""

_BODY_BYTES = 8 * 1024
_BEFORE_LICENSE_FILES = ("1.0", "1.1", "1.2", "2.1", "2.2", "2.3")
_TAGS = re.compile(r"<(style|script|title)\b.*?</\1\s*>|<[^>]*>", re.DOTALL | re.IGNORECASE)


class _Credentials(Resolver):
    """User name and password as twine finds them; empty without a terminal to ask on."""

    def prompt(self, what: str, how: Callable[..., str]) -> str:
        """Ask for *what* on a terminal, unless netrc has it, which requests reads."""
        is_quiet = EnvironmentFlag.bool_from_env(os.environ.get("TWINE_NON_INTERACTIVE"))
        asks = sys.stdin.isatty() and sys.stderr.isatty() and not is_quiet
        return how(f"Enter your {what}: ") if asks and not get_netrc_auth(str(self.system)) else ""


def open_settings(
    *,
    repository_url: str | None = None,
    repository_name: str | None = None,
    username: str | None = None,
    password: str | None = None,
    **options: Any,  # noqa: ANN401 - as twine has them
) -> Settings:
    """Return twine's settings for an index; the arguments are as its own.

    Raises:
        PublishError: the URL or the name cannot be used.
    """
    try:
        if repository_url:
            repository_url, given = http.split_credentials(repository_url)
            if given is not None:
                username, password = username or given.username, password or given.password
            if password:
                username = username or TOKEN_USERNAME
        settings = Settings(
            repository_url=repository_url,
            repository_name=repository_name or "pypi",
            username=username or None,
            password=password or None,
            disable_progress_bar=not sys.stderr.isatty(),
            **options,
        )
        settings.check_repository_url()
    except KeyError:
        place = options.get("config_file", ".pypirc")
        raise PublishError(f"{place}: [{repository_name}] has no repository, its URL") from None
    except (TwineException, InvalidUrl) as error:
        raise PublishError(" ".join(str(error).split())) from None
    settings.auth = _Credentials(settings.repository_config, settings.auth.input)
    return settings


def package_of(file: PublishedDistribution) -> PackageFile:
    """Return *file* as twine uploads it, with the metadata that it has, whatever that says.

    Raises:
        PublishError: it is not the file any more that was checked.
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
        tags = {tag.interpreter for tag in wheel_files.parse_filename(file.filename).tags}
        kind, pythons = "bdist_wheel", ".".join(sorted(tags))
    package = PackageFile(str(item.path), None, metadata, pythons, kind)
    if package.sha2_digest != item.sha256:
        raise PublishError(
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
    if phrase and phrase.lower() != responses.get(response.status_code, "").lower():
        return phrase
    text = response.content[:_BODY_BYTES].decode("utf-8", "replace")
    if "html" in response.headers.get("Content-Type", ""):
        body = re.search(r"<pre>(.*?)</pre>", text, re.DOTALL)  # of pypiserver
        text = html.unescape(_TAGS.sub(" ", body[1] if body else text))
    return "" if text == "None" else text


def status_of(response: requests.Response, password: str = "") -> str:
    """Return status and reason, in the server's words, on one line and without secrets."""
    reason = _reason(response)
    headers = getattr(response.request, "headers", {})
    sent = str(headers.get("Authorization") or "").rpartition(" ")[2]
    for secret in filter(None, (password, quote(password), sent)):
        reason = reason.replace(secret, "****")
    reason = printable(" ".join(redacted(reason).split()))[:300]
    return f"status {response.status_code}{': ' if reason else ''}{reason}"


@contextmanager
def _saying(text: str) -> Iterator[None]:
    """Say *text* with the seconds that have passed whenever another `SILENCE` has."""
    done, begin = threading.Event(), time.monotonic()

    def say() -> None:
        while not done.wait(SILENCE):
            note(f"{text} after {time.monotonic() - begin:.0f} s")

    threading.Thread(target=say, daemon=True).start()
    try:
        yield
    finally:
        done.set()


def _words(error: BaseException) -> str:
    """Return the first cause of an error of requests: what the operating system or TLS says."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return printable(redacted(" ".join(text.split()))[:300])


def simple_url_of(upload_url: str, *, is_devpi: bool = False) -> tuple[str, bool]:
    """Return the URL of the simple API beside an upload API, and whether a rule says so.

    Args:
        upload_url: without credentials.
        is_devpi: it is that of a devpi server.
    """
    if is_devpi:
        return f"{upload_url.rstrip('/')}/+simple/", True
    for pattern, pages in _PAGES:
        if found := re.fullmatch(pattern, upload_url):
            return found.expand(pages), True
    return f"{upload_url.rstrip('/')}/simple/", False


class UploadApi:
    """An index with the legacy upload API, to publish to; see `transaction`.

    Attributes:
        place: the URL of the upload API, for messages.
    """

    commits_last = False

    def __init__(
        self,
        settings: Settings,
        sources: Sources,
        *,
        index_url: str | None = None,
    ) -> None:
        """Look for the credentials, check the access and find the pages.

        Args:
            settings: from `open_settings`.
            sources: certificates, proxy and trusted hosts for the pages.
            index_url: base URL of the simple API; None to derive it from the upload URL.

        Raises:
            PublishError: trusted publishing fails, the URL takes no uploads, or not with these
                credentials, or there are no pages.
        """
        self._url = str(settings.repository_config["repository"])
        self.place = redacted(self._url)
        # twine prints what it does, and its progress, to stdout; `_send` says what fails.
        self._output = io.StringIO() if settings.disable_progress_bar else sys.stderr
        logging.getLogger("twine").setLevel(logging.ERROR)
        try:
            with redirect_stdout(sys.stderr):
                self._repository = settings.create_repository()
        except (TwineException, requests.RequestException) as error:
            raise PublishError(
                f"{self.place}: no trusted publishing: {redacted(str(error))}"
            ) from None
        self._username, self._password = settings.username or "", settings.password or ""
        posts = self._repository.session
        if self._username and self._password:
            posts.auth = settings.auth.authenticator  # renews the token of trusted publishing
        posts.request = partial(posts.request, timeout=_TIMEOUTS)  # type: ignore[method-assign]
        url, is_certain = simple_url_of(self._url, is_devpi=self._is_devpi())
        if index_url:
            given = f"{index_url.rstrip('/')}/"
            url, is_certain = given, is_certain and url == given
        self._session = Session(sources)
        # The pages of PyPI are public, and an API token is refused there.
        if self._password and _same_host(url, self._url) and not url.endswith("pypi.org/simple/"):
            user = f"{quote(self._username, safe='')}:{quote(self._password, safe='')}"
            parts = urlsplit(url)
            self._session.add_index(urlunsplit(parts._replace(netloc=f"{user}@{parts.netloc}")))
        self._pages = self._session.add_index(url)
        if not is_certain:
            with _reading(), self._session.stream(self._pages):
                pass

    def close(self) -> None:
        """Close all connections."""
        self._repository.close()
        self._session.close()

    def page(self, project: NormalizedName) -> Page | None:
        """Return the page of *project*, None if the index does not have the project."""
        with _reading():
            try:
                return self._session.fetch_page(f"{self._pages}{project}/", project, same_host=True)
            except NotFound:
                return None

    def is_same(self, file: PublishedDistribution, listed: Listed) -> bool:
        """Return whether the index has the contents of *file*, by hash; else read what it has."""
        same = same_contents(file, listed.hashes)
        if same is None:
            note(f"{file.filename}: its page has no hash: downloading it to compare")
            digest, left = hashlib.sha256(), file.distribution.size
            with _reading(), self._session.stream(listed.url) as chunks:
                for chunk in chunks:
                    digest.update(chunk)
                    left -= len(chunk)
                    if left < 0:
                        break
            same = digest.hexdigest() == file.distribution.sha256
        return same

    def probe(self, releases: Sequence[Release], *, dry: bool = False) -> None:
        """Merge all metadata, and publish it where only that shows whether the index takes it."""
        accepted: set[NormalizedName] = set()
        for release in releases:
            if release.document is None:
                continue
            page, there, data = self._merged(release)
            if dry or (there is not None and there.data == data):
                continue
            files = page.files if page is not None else ()
            if any(file.filename.endswith(wheel_labels.METADATA_SUFFIX) for file in files):
                accepted.add(release.project)
            if there is not None or release.project not in accepted:
                self._publish(release)
                accepted.add(release.project)

    def upload(self, file: PublishedDistribution) -> None:
        """Upload *file*; after an answer that was lost, or a refusal, look whether it is there."""
        answer = self._upload(package_of(file), lambda: self._has(file))
        if answer is not None and not answer.ok and not self._has(file):
            status = status_of(answer, self._password)
            raise PublishError(f"{self.place} refuses {file.filename} ({status})")

    def commit(self, releases: Sequence[Release]) -> dict[str, bytes]:
        """Publish the merged metadata of *releases* where it is not yet as it should be."""
        return {
            release.document_name: self._publish(release)
            for release in releases
            if release.document is not None
        }

    def findings(self, project: NormalizedName, versions: Collection[Version]) -> list[Finding]:
        """Return what is wrong with the live page of *project*, of these versions.

        It is checked again if a file is not the one on the page: another publisher may have
        replaced metadata in the meantime.
        """
        releases = [(project, version) for version in versions]
        found: list[Finding] = []
        for number in range(SETTLING):
            found = check_live(f"{self._pages}{project}/", self._session, releases=releases)[1]
            if all(finding.code != "page-mismatch" for finding in found):
                break
            if number < SETTLING - 1:
                time.sleep(pause(number))
        return found

    def _is_devpi(self) -> bool:
        """Check access with a form without a file, which every server refuses and none keeps.

        Servers check the credentials first: 401 or 403 in place of 400. Pages of a devpi are
        elsewhere than those of others.
        """
        form = {":action": "file_upload", "protocol_version": "1", "filetype": "bdist_wheel"}
        parts = [(name, (None, value)) for name, value in form.items()]
        session = self._repository.session
        answer = self._send("", lambda: session.post(self._url, files=parts, allow_redirects=False))
        assert answer is not None
        return "X-Devpi-Server-Version" in answer.headers

    def _upload(
        self, package: PackageFile, arrived: Callable[[], bool] = lambda: False
    ) -> requests.Response | None:
        send = partial(self._repository.upload, package, max_redirects=1)
        return self._send(package.basefilename, send, arrived)

    def _send(
        self,
        what: str,
        post: Callable[[], requests.Response],
        arrived: Callable[[], bool] = lambda: False,
    ) -> requests.Response | None:
        """Return an answer that is final; None if an upload whose answer was lost has *arrived*."""
        where = f"{self.place}: {what}" if what else self.place
        for number in range(RETRIES + 1):
            asked = 0.0
            try:
                with redirect_stdout(self._output), _saying(f"{where}: no answer yet"):
                    response = post()
            except (requests.ConnectionError, requests.Timeout) as error:
                problem = _words(error)
                if isinstance(error, requests.exceptions.ProxyError) and _LOGIN in problem:
                    raise PublishError(f"{where}: {http.PROXY_LOGIN}") from None
                if isinstance(error, requests.exceptions.SSLError):
                    raise PublishError(f"{where}: {problem}: see --cert, --client-cert") from None
            except (TwineException, requests.RequestException, UnicodeError) as error:
                raise PublishError(f"{where}: {_words(error)}") from None
            else:
                if response.is_redirect:
                    target = redacted(str(response.headers["Location"]))
                    raise PublishError(
                        f"{self.place}: redirects to {target}: if that is the upload URL of the "
                        "index, publish to it"
                    )
                if response.status_code not in _AGAIN:
                    self._check_access(what, response)
                    return response
                problem = status_of(response, self._password)
                asked = package_finder.retry_after(cast("Any", response))
            if asked > PATIENCE:
                problem += f": the server asks to wait for {asked:.0f} seconds"
            if number == RETRIES or asked > PATIENCE:
                raise PublishError(f"{where}: {problem}: run the command again later")
            seconds = max(pause(number), asked)
            note(f"{where}: {problem}: again in {seconds:.1f} s")
            time.sleep(seconds)
            if arrived():
                return None
        raise AssertionError("the last attempt returns or raises")

    def _check_access(self, what: str, response: requests.Response) -> None:
        """Raise `PublishError` if credentials, URL or size are why an upload was refused."""
        status, answer = response.status_code, status_of(response, self._password)
        what = what or "uploads"
        if status == 413:
            size = int(response.request.headers.get("Content-Length", 0))
            raise PublishError(
                f"{self.place} does not take {what}, {size:,} bytes ({answer}): ask its "
                "administrators for a higher limit, or make the file smaller"
            )
        if status in (404, 405, 410, 501):
            raise PublishError(
                f"{self.place} takes no uploads ({answer}): give the upload URL of the index, "
                "such as https://upload.pypi.org/legacy/, not that of its pages"
            )
        if status == 407:
            raise PublishError(f"{self.place}: {http.PROXY_LOGIN}")
        if status in (401, 403):
            who = f"the user name {self._username!r}" if self._password else "no credentials"
            raise PublishError(
                f"{self.place} refuses {what} ({answer}) with {who}: are these the credentials "
                "for this index and project?"
            )

    def _publish(self, release: Release) -> bytes:
        """Bring the document of *release* and what the index has together; return the result."""
        for number in range(ROUNDS):
            page, there, data = self._merged(release)
            if there is not None and there.data == data:
                return data
            if number:
                note(f"{self.place}: another publisher replaced the metadata: merged again")
            self._put(release, data, there)
            if not self._settled(release, page):
                return data  # a cache between; verification comes back to it
            if number:
                time.sleep(pause(number))
        raise PublishError(
            f"{self.place}: {release.document_name} was replaced {ROUNDS} times by other "
            "publishers: run the command again when they are done"
        )

    def _merged(self, release: Release) -> tuple[Page | None, VariantFile | None, bytes]:
        """Return the page, the document that is there, and what it has to be.

        Raises:
            Conflict: the two contradict each other.
        """
        assert release.document is not None
        own = VariantFile(release.document, release.document_name)
        page, there = self._there(release)
        try:
            known = {*own.metadata.variants, *(there.metadata.variants if there else ())}
            lost = self._lost(release, page, known, own)
            logger.debug(
                "Merging the metadata of %s %s with that of %s and of %d wheels without it",
                release.project,
                release.version,
                "the index" if there else "no other publisher",
                len(lost),
            )
            data = write_merged([*([there] if there else []), own, *lost])
        except VariantError as problem:
            raise Conflict(
                f"{self.place}: the variants cannot be added to those of {release.project} "
                f"{release.version} that are there: {problem}: nothing was changed; what is "
                "published stays as it is: use another label, or a new version"
            ) from None
        if there and same_meaning(there.metadata, VariantFile(data, own.source).metadata):
            return page, there, there.data
        return page, there, data

    def _there(self, release: Release) -> tuple[Page | None, VariantFile | None]:
        """Return the page and the document on it, again if that was replaced in the meantime."""
        with _reading():
            for number in range(SETTLING):
                page = self.page(release.project)
                entry = entry_of(page, release.document_name)
                if entry is None:
                    break
                url, hashes = entry.url, entry.hashes
                try:
                    answer = self._session.fetch(url, limit=limits.DOCUMENT_BYTES, hashes=hashes)
                except (BadResponse, NotFound):
                    if number == SETTLING - 1:
                        raise
                    time.sleep(pause(number))
                else:
                    return page, VariantFile(answer.body, redacted(url))
        return page, None

    def _lost(
        self, release: Release, page: Page | None, known: set[str], own: VariantFile
    ) -> list[VariantFile]:
        """Return the metadata of wheels on *page* whose labels no document has, one per label."""
        found: dict[str, VariantFile] = {}
        for file in page.files if page is not None else ():
            label = wheel_labels.split_label(file.filename)[1]
            if label is None or label in found or own.metadata.label_of(label) in known:
                continue
            try:
                name = wheel_files.parse_filename(file.filename)
                if (name.name, name.version) != (release.project, release.version):
                    continue
                if own.metadata.label_of(label) != wheel_labels.NULL_LABEL:
                    variant = read_variant_file(file, self._session)
                    _ = variant.metadata
                    found[label] = variant
            except (PackageIndexError, VariantError) as problem:
                note(f"the variant {label}, which is there, is left out: {problem}")
        return list(found.values())

    def _put(self, release: Release, data: bytes, there: VariantFile | None) -> None:
        name, version = release.document_name, str(release.version)
        metadata: Any = {"metadata_version": "2.1", "name": release.project, "version": version}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            path.write_bytes(data)
            answer = self._upload(PackageFile(str(path), None, metadata, "", "variants_json"))
        assert answer is not None
        if answer.ok:
            return
        status = status_of(answer, self._password)
        if there is not None:
            raise PublishError(
                f"{self.place} has {name} already and does not replace it ({status}), so the "
                f"variants of this release cannot be added to {release.project} {version}: "
                "publish all variants of a version together, as a new version; or on an index "
                "that replaces it; or pages of your own, see variants index"
            )
        raise PublishError(
            f"{self.place} does not accept {name} ({status}): where the index makes this file "
            "itself, or installers are to read the wheels instead, publish with "
            "--without-metadata; or serve the directory as static files, see variants index"
        )

    def _settled(self, release: Release, before: Page | None) -> bool:
        """Wait until the page lists another document than *before*; return whether it does."""
        old = entry_of(before, release.document_name)
        for number in range(SETTLING):
            entry = entry_of(self.page(release.project), release.document_name)
            if entry is not None and (old is None or not old.hashes or entry != old):
                return True
            time.sleep(pause(number))
        return False

    def _has(self, file: PublishedDistribution) -> bool:
        """Return whether the page lists *file*.

        Raises:
            Conflict: the index has another one of that name.
        """
        listed = entry_of(self.page(file.distribution.project), file.filename)
        if listed is not None and not self.is_same(file, listed):
            raise conflict(self.place, [(file, listed)])
        return listed is not None


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except PackageIndexError as problem:
        raise PublishError(
            f"{problem}: the pages of the index show which files it has: if they are elsewhere, "
            "give the URL of its simple API with --index-url"
        ) from None


def _same_host(first: str, second: str) -> bool:
    one, other = urlsplit(first), urlsplit(second)
    return (one.scheme, one.hostname, one.port) == (other.scheme, other.hostname, other.port)
