"""The variant metadata of one version: from its file on the index, else from its wheels.

The rule of PEP 825 ("Installing a package from an index", step 5), with its limits and messages,
for every client. Like h11, it does no I/O: `ReleaseReader` says what to fetch next and is given
the answers. An installer on ``urllib``:

    def variant_metadata(wheels, index_file, page_url):
        reader = ReleaseReader(wheels, index_file, source=page_url)
        while fetches := reader.wanted():
            fetch = fetches[0]  # all of them could be made at once
            request = Request(fetch.url, headers=fetch.headers)
            try:
                with urlopen(request, timeout=15) as response:
                    answer = read_response(
                        fetch, response.status, response.headers, response.read
                    )
            except HTTPError as error:
                answer = read_response(fetch, error.code, error.headers, error.read)
            except OSError as error:
                answer = Failed(str(error))
            reader.receive(fetch, answer)
        return reader.result()
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import partial

from .errors import MetadataError, VariantError, redacted
from .fetch import (
    Absent,
    Document,
    Fetch,
    FetchAnswer,
    LocalFile,
    Reading,
    ReleaseFile,
    Whole,
    opened,
    verify,
)
from .formats.merging import merge_all
from .formats.reader import read_metadata
from .limits import INSPECTED_WHEELS
from .model.filename import metadata_filename, parse_filename
from .model.label import split_label
from .model.metadata import Metadata
from .urls import is_local

_INDEX_FILE = ""
"""Key of the index's metadata file where those of the wheels are their labels."""


class ReleaseReader:
    """Finds the variant metadata of one version in one source, an index or a directory.

    A metadata file that the index lists is used alone: if it is broken, or its server is down,
    wheels are not read in its place. If its server does not have it, or not for this user, it
    counts as not listed. Without it, one wheel of each label is read, by ranges where its server
    serves them, and what they say is merged.

    Whatever is wrong is an error in `result`, and costs the version its variants. The error is
    the same in whichever order the answers come.
    """

    def __init__(
        self,
        wheels: Iterable[ReleaseFile],
        index_file: ReleaseFile | None,
        *,
        source: str | None,
    ) -> None:
        """Start.

        Args:
            wheels: the variant wheels of the version in the source. Of several with one label,
                the first is read.
            index_file: the ``{name}-{version}-variants.json`` that the source lists, None if it
                lists none.
            source: URL of the index page, or the directory, for messages; None for a single
                wheel that the user named.

        Raises:
            InvalidWheelFilename: a wheel's filename is not valid.
        """
        self._source = source
        self._wheels: dict[str, ReleaseFile] = {}
        for wheel in wheels:
            label = split_label(wheel.filename)[1]
            if label is not None:
                self._wheels.setdefault(label, wheel)
        self._index_file = index_file
        self._filename = "" if index_file is None else index_file.filename
        self._missing = ""
        self._error: VariantError | None = None
        self._readings: dict[str, Reading] = {}
        self._fetches: dict[str, Fetch | None] = {}
        self._documents: dict[str, Document] = {}
        if index_file is not None:
            self._begin({_INDEX_FILE: _index_file(index_file, self._check_place)})
        else:
            self._begin_wheels(f"lists variant wheels, but no {self._name()}")

    @property
    def documents(self) -> Mapping[str, bytes]:
        """The files that `result` was made of: of the index under an empty key, else by label."""
        return {key: data for key, (data, _) in self._documents.items()}

    def wanted(self) -> list[Fetch]:
        """Return the fetches whose answers are needed now; none when `result` is there.

        They do not depend on each other. A client that makes one at a time takes the first, and
        asks again after its answer: an error makes the others unnecessary.
        """
        return [fetch for fetch in self._fetches.values() if fetch is not None]

    def receive(self, fetch: Fetch, answer: FetchAnswer) -> None:
        """Take the *answer* to one of the fetches that are wanted.

        Answers to fetches that are not wanted any more are ignored.
        """
        for key, known in self._fetches.items():
            if known is fetch:
                self._advance(key, partial(self._readings[key].send, answer))
                return
        if isinstance(answer, LocalFile):
            answer.stream.close()
        elif isinstance(answer, Whole) and not isinstance(answer.data, bytes):
            answer.data.close()

    def result(self) -> Metadata:
        """Return the variant metadata of the version.

        Raises:
            VariantError: there is none, it cannot be fetched, it is broken, or wheels contradict
                each other.
            RuntimeError: fetches are still wanted.
        """
        if self._error is not None:
            raise self._error
        if self.wanted():
            raise RuntimeError("fetches are still wanted")
        metadata = [self._documents[key][1] for key in sorted(self._documents)]
        try:
            return merge_all(metadata)
        except VariantError as error:
            raise self._explained(error) from None

    def _begin(self, readings: Mapping[str, Reading]) -> None:
        self._readings = dict(readings)
        self._fetches = dict.fromkeys(self._readings)
        for key in tuple(self._readings):
            if key in self._readings:  # an error has ended those after it
                self._advance(key, partial(next, self._readings[key]))

    def _begin_wheels(self, missing: str) -> None:
        self._missing = missing
        if not self._wheels:
            self._error = MetadataError(self._source or "", "", f"{missing}, and no wheels")
            return
        if len(self._wheels) > INSPECTED_WHEELS:
            self._error = MetadataError(
                self._source or "",
                "",
                f"{missing}, and {len(self._wheels)} labels are too many to read the metadata "
                f"from the wheels (at most {INSPECTED_WHEELS})",
            )
            return
        from .release_wheels import wheel_file  # zip files are for the few that lack the file

        self._begin(
            {
                label: wheel_file(wheel, label, self._check_place)
                for label, wheel in sorted(self._wheels.items())
            }
        )

    def _advance(self, key: str, step: Callable[[], Fetch]) -> None:
        """Take a reading to its next fetch, or its end."""
        try:
            self._fetches[key] = step()
            return
        except StopIteration as end:
            self._documents[key] = end.value
            del self._fetches[key], self._readings[key]
        except _IndexFileAbsent as absent:
            self._fetches.clear()
            self._readings.clear()
            self._begin_wheels(f"lists {self._name()}, but it cannot be fetched ({absent.reason})")
        except VariantError as error:
            # Those before it may still fail, those after it do not matter any more.
            keys = list(self._fetches)
            for later in keys[keys.index(key) :]:
                del self._fetches[later]
                self._readings.pop(later).close()
            self._error = error if key == _INDEX_FILE else self._explained(error)

    def _explained(self, error: VariantError) -> VariantError:
        """Return *error* with why the metadata was read from wheels."""
        if self._source is None:
            return error
        return MetadataError(self._source, "", f"{self._missing}; {redacted(str(error))}")

    def _name(self) -> str:
        """Return the name of the metadata file, for messages."""
        for wheel in self._wheels.values():
            if not self._filename:
                parsed = parse_filename(wheel.filename)
                self._filename = metadata_filename(parsed.name, str(parsed.version))
        return self._filename

    def _check_place(self, file: ReleaseFile) -> None:
        """Check that a local file is listed by a local page, and not by a server.

        Raises:
            MetadataError: the page is from a server.
        """
        source = self._source or ""
        if is_local(file.url) and "://" in source and not is_local(source):
            raise MetadataError(
                file.url, "", f"is a local file, but listed by {redacted(source)}: not read"
            )


class _IndexFileAbsent(Exception):
    """The index's metadata file cannot be fetched."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def _index_file(file: ReleaseFile, check: Callable[[ReleaseFile], None]) -> Reading:
    check(file)
    answer = yield Fetch(file)
    if isinstance(answer, Absent):
        raise _IndexFileAbsent(redacted(answer.reason))
    with ExitStack() as stack:
        stream = opened(file, answer, stack)
        limit = Fetch(file).limit
        data = stream.read(limit + 1)
    if len(data) <= limit:  # else it was not read completely, and the reader says how large it is
        verify(file, io.BytesIO(data))
    return data, read_metadata(data, file.url)
