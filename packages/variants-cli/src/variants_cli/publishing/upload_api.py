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

import html
import io
import logging
import os
import random
import re
import sys
import tempfile
import time
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, urlsplit, urlunsplit

import requests
import twine.auth
import twine.utils
from packaging.metadata import parse_email
from requests.utils import get_netrc_auth
from twine.exceptions import NonInteractive, TwineException
from twine.package import PackageFile
from twine.repository import Repository
from twine.settings import Settings

from pep_variants.errors import VariantError, printable, redacted
from pep_variants.limits import DOCUMENT_BYTES
from pep_variants.model.filename import parse_filename
from pep_variants.model.label import METADATA_SUFFIX, NULL_LABEL, split_label
from pep_variants.sources import Sources
from variants_index.errors import InvalidUrl, NotFound, PackageIndexError
from variants_index.http.credentials import split_credentials
from variants_index.http.failures import BUSY, retry_after
from variants_index.http.session import Session

from ..indexing.update import same_meaning, write_merged
from ..indexing.wheelhouse import VariantFile, read_variant_file
from .errors import Changed, Conflict, Exists, PublishError, Refused, Unavailable, Unfinished
from .release import conflict, read_core_metadata, same_contents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from packaging.utils import NormalizedName

    from variants_index.pages import Page, PageFile

    from .release import Release, ReleaseFile

ROUNDS = 8
"""How often metadata is merged again because another publisher replaced it meanwhile."""

SETTLING = 5
"""How often a page is read again that does not show yet what the index accepted."""

# The simple API beside an upload API, where it is known.
_PAGES = (
    (r"https://(?:upload\.)?pypi\.org/.*", "https://pypi.org/simple/"),
    (r"https://test\.pypi\.org/.*", "https://test.pypi.org/simple/"),
    (
        r"https://python\.cloudsmith\.io/(.*?)/?",
        r"https://dl.cloudsmith.io/basic/\1/python/simple/",
    ),
    # Warehouse; Azure Artifacts.
    (r"(.*)/(?:legacy|upload)/?", r"\1/simple/"),
    # GitLab; Gitea and Forgejo; Artifactory; Nexus.
    (r"(.*(?:/packages/pypi|/api/packages/[^/]+/pypi|/api/pypi/[^/]+))/?", r"\1/simple/"),
    (r"(.*/repository/[^/]+)/?", r"\1/simple/"),
    # Google Artifact Registry; AWS CodeArtifact.
    (r"(https://[^/]+(?:-python\.pkg\.dev|\.amazonaws\.com)/.*?)/?", r"\1/simple/"),
)

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
    parallel = 1  # indexes lock the project

    def __init__(
        self,
        client: UploadClient,
        sources: Sources,
        *,
        index_url: str | None = None,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Set up; nothing is requested.

        Args:
            client: sends the uploads.
            sources: certificates, proxy and trusted hosts for the pages.
            index_url: base URL of the simple API; None to derive it from the upload URL.
            note: shows the user what is waited for.
        """
        self.place = client.place
        self._client, self._sources, self._note = client, sources, note
        self._index_url = index_url
        self._session: Session | None = None
        self._pages = ""

    def close(self) -> None:
        """Close all connections."""
        self._client.close()
        if self._session is not None:
            self._session.close()

    def session(self) -> Session | None:
        """Return the session that reads the pages, None before the first request."""
        return self._session

    def page_url(self, project: NormalizedName) -> str | None:
        """Return the URL of the page of *project*, None before the first request."""
        return f"{self._pages}{project}/" if self._pages else None

    def listed(self, project: NormalizedName) -> dict[str, Mapping[str, str]]:
        """Return the hashes of the files on the page of *project*.

        The first call checks that the URL takes uploads, and the credentials.
        """
        page = self._page(project)
        return {file.filename: file.hashes for file in page.files} if page is not None else {}

    def probe(self, releases: Sequence[Release], *, dry: bool = False) -> None:
        """Merge all metadata, and publish it where only that shows whether the index takes it."""
        accepted: set[NormalizedName] = set()
        for release in releases:
            if release.document is None:
                continue
            page = self._page(release.project)
            there, data = self._merged(release, page)
            if dry or (there is not None and there.data == data):
                continue
            files = page.files if page is not None else ()
            if any(file.filename.endswith(METADATA_SUFFIX) for file in files):
                accepted.add(release.project)
            if there is not None or release.project not in accepted:
                self._publish(release)
                accepted.add(release.project)

    def upload(self, file: ReleaseFile) -> None:
        """Upload *file*; after an answer that was lost, look whether it has arrived."""
        answer = self._client.upload(package_of(file), lambda: self._has(file))
        if answer is None or answer.is_success:
            return
        if not answer.says_exists:
            raise self._client.refusal(file.filename, answer, file.distribution.size)
        if not self._has(file, SETTLING):
            raise Exists(f"{self.place} has {file.filename} already ({answer})")

    def commit(self, releases: Sequence[Release]) -> dict[str, bytes]:
        """Publish the merged metadata of *releases* where it is not yet as it should be."""
        return {
            release.document_name: self._publish(release)
            for release in releases
            if release.document is not None
        }

    def _open(self) -> Session:
        if self._session is not None:
            return self._session
        client = self._client
        url, is_certain = simple_url_of(client.url, is_devpi=client.check_access().is_devpi)
        if self._index_url is not None:
            is_certain = is_certain and url == self._index_url
            url = self._index_url
        session = Session(self._sources)
        # The pages of PyPI are public, and an API token is refused there.
        if client.password and _same_host(url, client.url) and not url.endswith("pypi.org/simple/"):
            user = f"{quote(client.username or '', safe='')}:{quote(client.password, safe='')}"
            parts = urlsplit(url)
            session.add_index(urlunsplit(parts._replace(netloc=f"{user}@{parts.netloc}")))
        url = session.add_index(url)
        if not is_certain:
            with _reading(), session.stream(url):
                pass
        self._session, self._pages = session, url
        return session

    def _page(self, project: NormalizedName) -> Page | None:
        """Return the page of *project*, None if the index does not have the project."""
        session = self._open()
        with _reading():
            try:
                return session.fetch_page(f"{self._pages}{project}/", project, same_host=True)
            except NotFound:
                return None

    def _publish(self, release: Release) -> bytes:
        """Bring the document of *release* and what the index has together; return the result."""
        for number in range(ROUNDS):
            page = self._page(release.project)
            there, data = self._merged(release, page)
            if there is not None and there.data == data:
                return data
            if number:
                self._note(f"{self.place}: another publisher replaced the metadata: merged again")
            self._put(release, data, there)
            if not self._settled(release, page):
                return data  # a cache between; verification comes back to it
            if number:
                time.sleep(pause(number))
        raise Unfinished(
            f"{self.place}: {release.document_name} was replaced {ROUNDS} times by other "
            "publishers: run the command again when they are done"
        )

    def _merged(self, release: Release, page: Page | None) -> tuple[VariantFile | None, bytes]:
        """Return the document that is there, and what it has to be.

        Raises:
            Conflict: the two contradict each other.
        """
        assert release.document is not None
        own, there = VariantFile(release.document, release.document_name), None
        entry = _document_entry(release, page)
        if entry is not None:
            with _reading():
                answer = self._open().fetch(
                    entry.url, limit=DOCUMENT_BYTES, hashes=entry.hashes, revalidate=True
                )
            there = VariantFile(answer.body, redacted(entry.url))
        try:
            known = {*own.metadata.variants, *(there.metadata.variants if there else ())}
            lost = self._lost(release, page, known, own)
            data = write_merged([*([there] if there else []), own, *lost])
        except VariantError as problem:
            raise Conflict(
                f"{self.place}: the variants cannot be added to those of {release.project} "
                f"{release.version} that are there: {problem}: nothing was changed; what is "
                "published stays as it is: use another label, or a new version"
            ) from None
        if there and same_meaning(there.metadata, VariantFile(data, own.source).metadata):
            return there, there.data
        return there, data

    def _lost(
        self, release: Release, page: Page | None, known: set[str], own: VariantFile
    ) -> list[VariantFile]:
        """Return the metadata of wheels on *page* whose labels no document has, one per label."""
        found: dict[str, VariantFile] = {}
        for file in page.files if page is not None else ():
            label = split_label(file.filename)[1]
            if label is None or label in found or own.metadata.label_of(label) in known:
                continue
            try:
                name = parse_filename(file.filename)
                if (name.name, name.version) != (release.project, release.version):
                    continue
                if own.metadata.label_of(label) != NULL_LABEL:
                    variant = read_variant_file(file, self._open())
                    _ = variant.metadata
                    found[label] = variant
            except (PackageIndexError, VariantError) as problem:
                self._note(f"the variant {label}, which is there, is left out: {problem}")
        return list(found.values())

    def _put(self, release: Release, data: bytes, there: VariantFile | None) -> None:
        name = release.document_name
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            path.write_bytes(data)
            package = PackageFile(
                str(path),
                None,
                {
                    "metadata_version": "2.1",
                    "name": release.project,
                    "version": str(release.version),
                },
                "",
                "variants_json",
            )
            answer = self._client.upload(package)
        assert answer is not None
        if answer.is_success:
            return
        if answer.is_about_access:
            raise self._client.refusal(name, answer, len(data))
        if there is not None or answer.says_exists:
            raise Refused(
                f"{self.place} has {name} already and does not replace it ({answer}), so the "
                f"variants of this release cannot be added to {release.project} "
                f"{release.version}: publish all variants of a version together, as a new "
                "version; or on an index that replaces it; or pages of your own, see variants "
                "index"
            )
        raise Refused(
            f"{self.place} does not accept {name} ({answer}): where the index makes this file "
            "itself, or installers are to read the wheels instead, publish with "
            "--without-metadata; or serve the directory as static files, see variants index"
        )

    def _settled(self, release: Release, before: Page | None) -> bool:
        """Wait until the page lists another document than *before*; return whether it does."""
        old = _document_entry(release, before)
        for number in range(SETTLING):
            entry = _document_entry(release, self._page(release.project))
            if entry is not None and (old is None or not old.hashes or entry != old):
                return True
            time.sleep(pause(number))
        return False

    def _has(self, file: ReleaseFile, tries: int = 1) -> bool:
        """Return whether the page lists *file*; read it so often while it lists none of its name.

        Raises:
            Conflict: the index has another one of that name.
        """
        for number in range(tries):
            if number:
                time.sleep(pause(number))
            hashes = self.listed(file.distribution.project).get(file.filename)
            if hashes is not None:
                same = same_contents(file, hashes)
                if same is False:
                    raise conflict(self.place, [(file, hashes)])
                return bool(same)
        return False


def _document_entry(release: Release, page: Page | None) -> PageFile | None:
    """Return the entry of the ``*-variants.json`` of *release*, None without one."""
    files = page.files if page is not None else ()
    return next((file for file in files if file.filename == release.document_name), None)


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except PackageIndexError as problem:
        raise Unavailable(
            f"{problem}: the pages of the index show which files it has: if they are elsewhere, "
            "give the URL of its simple API with --index-url"
        ) from None


def _same_host(first: str, second: str) -> bool:
    one, other = urlsplit(first), urlsplit(second)
    return (one.scheme, one.hostname, one.port) == (other.scheme, other.hostname, other.port)
