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
"""

from __future__ import annotations

import re
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit, urlunsplit

from twine.package import PackageFile

from pep_variants.errors import VariantError, redacted
from pep_variants.limits import DOCUMENT_BYTES
from pep_variants.model.filename import parse_filename
from pep_variants.model.label import METADATA_SUFFIX, NULL_LABEL, split_label
from pep_variants.sources import Sources
from variants_index.errors import NotFound, PackageIndexError
from variants_index.http.session import Session

from ..indexing.merged import same_meaning, write_merged
from ..indexing.wheelhouse import VariantFile, read_variant_file
from .errors import Conflict, Exists, Refused, Unavailable, Unfinished
from .release import conflict, same_contents
from .upload_client import package_of, pause

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from packaging.utils import NormalizedName

    from variants_index.pages import Page, PageFile

    from .release import Release, ReleaseFile
    from .upload_client import UploadClient

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
