"""Publishing to an index with the legacy upload API: PyPI's ``/legacy/``, devpi, pypiserver, ….

**What is known before the first upload.** A form without a file, which every server refuses and
none keeps, shows whether the URL takes uploads and the credentials are good: servers check those
first (401 or 403 in place of 400). Whether the index takes ``*-variants.json`` cannot be seen that
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

import hashlib
import time
from contextlib import closing
from typing import TYPE_CHECKING, TypeVar

from pep_variants.errors import VariantError
from pep_variants.model.filename import metadata_filename, parse_filename
from pep_variants.model.label import METADATA_SUFFIX, NULL_LABEL, split_label
from variants_index.errors import PackageIndexError

from ..indexing.merged import same_meaning, write_merged
from ..indexing.wheelhouse import VariantFile, read_variant_file
from .errors import Conflict, Exists, Refused, Unfinished
from .form_fields import distribution_fields, document_fields
from .index_pages import IndexPages, Presence, document_entry, presence_of
from .retries import Retries
from .simple_urls import simple_url_of
from .target import Committed
from .upload_client import FileContent, UploadClient

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from packaging.utils import NormalizedName

    from pep_variants.sources import Sources
    from variants_index.http.session import Session
    from variants_index.pages import Page

    from .answers import Answer
    from .credentials import Login
    from .target import Progress, Release, ReleaseFile

T = TypeVar("T")

ROUNDS = 8
"""How often metadata is merged again because another publisher replaced it meanwhile."""

SETTLING = 5
"""How often a page is read again that does not show yet what the index accepted."""


class UploadApi:
    """An index with the legacy upload API, as a `Target`.

    Attributes:
        place: the URL of the upload API, for messages.
    """

    commits_last = False
    parallel = 1  # indexes lock the project

    def __init__(
        self,
        url: str,
        login: Login,
        sources: Sources,
        environ: Mapping[str, str],
        *,
        index_url: str | None = None,
        retries: Retries | None = None,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Set up; nothing is requested.

        Args:
            url: of the upload API.
            login: credentials for it.
            sources: certificates, proxy and trusted hosts of the user.
            environ: environment variables.
            index_url: base URL of its simple API; None to derive it from *url*.
            retries: how often to try again.
            note: shows the user what is waited for.

        Raises:
            PublishError: *url* is not usable.
        """
        self._client = UploadClient(url, login, sources, environ)
        self.place = self._client.place
        self._login, self._sources, self._environ = login, sources, environ
        self._index_url = index_url
        self._retries = retries or Retries()
        self._note = note
        self._opened: IndexPages | None = None

    def close(self) -> None:
        """Close all connections."""
        self._client.close()
        if self._opened is not None:
            self._opened.close()

    def session(self) -> Session | None:
        """Return the session that reads the pages, None before the first request."""
        return self._opened.session if self._opened is not None else None

    def page_url(self, project: NormalizedName) -> str | None:
        """Return the URL of the page of *project*, None before the first request."""
        return self._opened.page_url(project) if self._opened is not None else None

    def listed(self, project: NormalizedName) -> dict[str, Mapping[str, str]]:
        """Return the hashes of the files on the page of *project*.

        The first call checks that the URL takes uploads, and the credentials.
        """
        page = self._pages().page(project)
        return {file.filename: file.hashes for file in page.files} if page is not None else {}

    def probe(self, releases: Sequence[Release], *, dry: bool = False) -> None:
        """Merge all metadata, and publish it where only that shows whether the index takes it."""
        pages = self._pages()
        accepted: set[NormalizedName] = set()
        for release in releases:
            if release.document is None:
                continue
            page = pages.page(release.project)
            there, data = self._merged(release, page)
            if dry or (there is not None and there.data == data):
                continue
            files = page.files if page is not None else ()
            if any(file.filename.endswith(METADATA_SUFFIX) for file in files):
                accepted.add(release.project)
            if there is not None or not accepted:
                self._publish(release)
                accepted.add(release.project)

    def upload(self, file: ReleaseFile, progress: Progress) -> None:
        """Upload *file*; after an answer that was lost, look whether it has arrived."""
        item = file.distribution
        fields = distribution_fields(file)
        sent = 0

        def count(size: int) -> None:
            nonlocal sent
            sent += size
            progress(size)

        def attempt(number: int) -> None:
            if number and self._presence(file) is Presence.SAME:
                return
            count(-sent)
            with closing(FileContent(item.path, item.size, item.sha256, count)) as content:
                answer = self._client.post(fields, file.filename, content)
            if answer.is_success:
                return
            if not answer.says_exists:
                raise self._refusal(file.filename, answer, item.size)
            presence = self._presence(file, settle=True)
            if presence is not Presence.SAME:
                raise Exists(f"{self.place} has {file.filename} already ({answer})")

        self._run(attempt)

    def commit(self, releases: Sequence[Release]) -> Committed:
        """Publish the merged metadata of *releases* where it is not yet as it should be."""
        documents: dict[str, str] = {}
        merged: set[str] = set()
        for release in releases:
            if release.document is None:
                continue
            name = metadata_filename(release.project, release.version)
            data = self._publish(release)
            documents[name] = hashlib.sha256(data).hexdigest()
            own = VariantFile(release.document, name).metadata.variants
            if VariantFile(data, name).metadata.variants.keys() - own.keys():
                merged.add(name)
        return Committed(documents, frozenset(merged))

    def _pages(self) -> IndexPages:
        if self._opened is not None:
            return self._opened
        answer = self._check_access()
        url, certain = simple_url_of(self._client.url, devpi=answer.devpi)
        if self._index_url is not None:
            url, certain = self._index_url, certain and url == self._index_url
        opened = IndexPages(url, self._client.url, self._login, self._sources, self._environ)
        if not certain:
            try:
                opened.check_root()
            except BaseException:
                opened.close()
                raise
        self._opened = opened
        return opened

    def _check_access(self) -> Answer:
        """Send a form without a file, which is refused in any case; see the module."""
        form = {":action": "file_upload", "protocol_version": "1", "filetype": "bdist_wheel"}
        answer = self._run(lambda _: self._client.post({**form}))
        if answer.denies_access or answer.is_elsewhere:
            raise self._refusal("uploads", answer)
        return answer

    def _publish(self, release: Release) -> bytes:
        """Bring the document of *release* and what the index has together; return the result."""
        pages = self._pages()
        for number in range(ROUNDS):
            page = pages.page(release.project)
            there, data = self._merged(release, page)
            if there is not None and there.data == data:
                return data
            if number:
                self._note(f"{self.place}: another publisher replaced the metadata: merged again")
            self._put(release, data, there)
            if not self._settled(release, page):
                return data  # a cache between; verification comes back to it
            if number:
                time.sleep(self._retries.pause(number))
        raise Unfinished(
            f"{self.place}: {metadata_filename(release.project, release.version)} was replaced "
            f"{ROUNDS} times by other publishers: run the command again when they are done"
        )

    def _merged(self, release: Release, page: Page | None) -> tuple[VariantFile | None, bytes]:
        """Return the document that is there, and what it has to be.

        Raises:
            Conflict: the two contradict each other.
        """
        assert release.document is not None
        name = metadata_filename(release.project, release.version)
        own = VariantFile(release.document, name)
        found = self._pages().document(page, release.project, release.version)
        there = VariantFile(found.data, found.source) if found is not None else None
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
        if there is not None and same_meaning(there.metadata, VariantFile(data, name).metadata):
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
                    found[label] = read_variant_file(file, self._pages().session)
                    _ = found[label].metadata
            except (PackageIndexError, VariantError) as problem:
                found.pop(label, None)
                self._note(f"the variant {label}, which is there, is left out: {problem}")
        return list(found.values())

    def _put(self, release: Release, data: bytes, there: VariantFile | None) -> None:
        name = metadata_filename(release.project, release.version)
        fields = document_fields(release.project, str(release.version), data)

        def attempt(_: int) -> None:
            answer = self._client.post(fields, name, data, "application/json")
            if answer.is_success:
                return
            if answer.denies_access or answer.is_elsewhere or answer.is_too_large:
                raise self._refusal(name, answer, len(data))
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

        self._run(attempt)

    def _settled(self, release: Release, before: Page | None) -> bool:
        """Wait until the page lists another document than *before*; return whether it does."""
        old = document_entry(before, release.project, release.version)
        for number in range(SETTLING):
            page = self._pages().page(release.project)
            entry = document_entry(page, release.project, release.version)
            if entry is not None and (old is None or not old.hashes or entry != old):
                return True
            time.sleep(self._retries.pause(number))
        return False

    def _presence(self, file: ReleaseFile, *, settle: bool = False) -> Presence:
        """Return whether the index has *file*.

        Args:
            file: to look for.
            settle: it is known to be there: wait for a page that lists it.

        Raises:
            Conflict: it has another one of that name.
        """
        item = file.distribution
        presence = Presence.UNKNOWN
        for number in range(SETTLING if settle else 1):
            if number:
                time.sleep(self._retries.pause(number))
            hashes = self.listed(item.project).get(file.filename)
            presence = presence_of(item.path, item.sha256, hashes)
            if presence is Presence.OTHER and hashes is not None:
                raise conflict(self.place, file, hashes)
            if presence is not Presence.ABSENT:
                break
        return presence

    def _refusal(self, what: str, answer: Answer, size: int = 0) -> Refused:
        if answer.is_too_large:
            return Refused(
                f"{self.place} does not take {what}, {size:,} bytes ({answer}): ask its "
                "administrators for a higher limit, or make the file smaller"
            )
        if answer.denies_access:
            return Refused(
                f"{self.place} refuses {what} ({answer}) with {self._login.source}: are these "
                "the credentials for this index and project?"
            )
        if answer.is_elsewhere:
            return Refused(
                f"{self.place} takes no uploads ({answer}): give the upload URL of the index, "
                "such as https://upload.pypi.org/legacy/, not that of its pages"
            )
        return Refused(f"{self.place} refuses {what} ({answer})")

    def _run(self, attempt: Callable[[int], T]) -> T:
        return self._retries.run(
            attempt, lambda problem, pause: self._note(f"{problem}: again in {pause:.1f} s")
        )


def conflict(place: str, file: ReleaseFile, hashes: Mapping[str, str]) -> Conflict:
    """Return the error of a target that has another file of the same name."""
    there = ", ".join(f"{name} {digest}" for name, digest in sorted(hashes.items()))
    return Conflict(
        f"{place} has another {file.filename}: {there} there, sha256 {file.distribution.sha256} "
        "here: a published file cannot change: publish the new one as another version, or with a "
        "build tag"
    )
