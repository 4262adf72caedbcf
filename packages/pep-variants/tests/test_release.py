"""The variant metadata of a version, with answers made by hand."""

import hashlib
import io
import json
import re

import pytest
from release_files import NAME, a_wheel, document, wheel

from pep_variants._lazy_file import FIRST_PART, Part, Range
from pep_variants._release import (
    Absent,
    Failed,
    Fetch,
    LocalFile,
    NoRanges,
    ReleaseFile,
    ReleaseReader,
    Whole,
)
from pep_variants._release import read_response as read
from pep_variants.errors import MetadataError, VariantError
from pep_variants.limits import DOCUMENT_BYTES, INSPECTED_WHEEL_BYTES, INSPECTED_WHEELS

SOURCE = "https://index.example/simple/app/"


class Index:
    """The files of a version by name, and what was asked of them."""

    def __init__(self, files, *, listed=None, hashes=None):
        self.files = files
        self.asked = []
        self.hashes = hashes or {}
        self.listed = list(files) if listed is None else listed

    def reader(self, source=SOURCE):
        files = {
            name: ReleaseFile(
                name,
                f"https://files.example/{name}",
                {"sha256": self.hashes[name]} if name in self.hashes else {},
            )
            for name in self.listed
        }
        document = files.pop(NAME, None)
        names = [name for name in files if name.endswith(".whl")]
        return ReleaseReader([files[name] for name in names], document, source=source)

    def answer(self, fetch):
        name = fetch.file.filename
        self.asked.append((name, fetch.range))
        data = self.files.get(name)
        if data is None:
            return Absent("HTTP status 404")
        if not isinstance(data, bytes):
            return data
        if fetch.range is None:
            return Whole(data)
        start = len(data) - fetch.range.length if fetch.range.start is None else fetch.range.start
        start = max(0, start)
        return Part(data[start : start + fetch.range.length], start, len(data), "tag")

    def read(self, source=SOURCE):
        reader = self.reader(source)
        while fetches := reader.wanted():
            reader.receive(fetches[0], self.answer(fetches[0]))
        return reader


def test_the_file_on_the_index_is_used_alone():
    index = Index({a_wheel("a"): wheel(document("a")), NAME: document("a", "b")})
    reader = index.read()
    assert set(reader.result().variants) == {"a", "b"}
    assert reader.documents == {"": document("a", "b")}
    assert index.asked == [(NAME, None)]


def test_a_document_of_the_very_limit_is_verified():
    large = document("a").ljust(DOCUMENT_BYTES)
    with pytest.raises(MetadataError, match="does not match its sha256 hash"):
        Index({NAME: Whole(large)}, hashes={NAME: HASH}).read().result()


@pytest.mark.parametrize("listed", [False, True])
def test_without_it_one_wheel_of_each_label_is_read(listed):
    names = [a_wheel("b"), "app-1.0-py2-none-any-b.whl", a_wheel("a"), "app-1.0-py3-none-any.whl"]
    index = Index(
        {a_wheel(label): wheel(document(label), label) for label in "ab"},
        listed=[*names, NAME] if listed else names,
    )
    reader = index.read()
    assert set(reader.result().variants) == {"a", "b"}
    assert set(reader.documents) == {"a", "b"}
    ranges = [(a_wheel(label), Range(None, FIRST_PART)) for label in "ab"]
    assert index.asked == [(NAME, None)] * listed + ranges


def test_the_fetches_of_several_wheels_do_not_depend_on_each_other():
    index = Index(
        {a_wheel(label): wheel(document(label), label, padding=200_000) for label in "abc"}
    )
    reader = index.reader()
    rounds = []
    while fetches := reader.wanted():
        rounds.append(len(fetches))
        for fetch in reversed(fetches):
            reader.receive(fetch, index.answer(fetch))
    assert set(reader.result().variants) == {"a", "b", "c"}
    assert rounds == [3, 3]


@pytest.mark.parametrize("order", [1, -1])
def test_the_error_is_the_same_in_any_order(order):
    index = Index({a_wheel("a"): Failed("off"), a_wheel("b"): b"", a_wheel("c"): Failed("c")})
    reader = index.reader()
    for fetch in reader.wanted()[::order]:
        reader.receive(fetch, index.answer(fetch))
    assert not reader.wanted()
    late = io.BytesIO()
    reader.receive(fetch, Whole(late))
    assert late.closed
    with pytest.raises(MetadataError, match=r"-a\.whl: cannot be fetched: off"):
        reader.result()


A, B = a_wheel("a"), a_wheel("b")
GOOD = wheel(document("a"))
OTHER = json.loads(document("b"))
OTHER["providers"]["n"]["requires"] = ["other"]
HASH = hashlib.sha256(document("a")).hexdigest()
LABELS = [f"x{number}" for number in range(INSPECTED_WHEELS + 1)]

# The files, the words of the error, and the hashes, if any.
ERRORS = {
    # Wheels are not read in place of a document that is broken.
    "document": ({NAME: b"[]", A: GOOD}, "app-1.0-variants.json: ", None),
    "large document": ({NAME: bytes(DOCUMENT_BYTES + 1), A: GOOD}, "larger than 8 MiB", None),
    "document that fails": (
        {NAME: Failed("at https://me:secret@host/"), A: GOOD},
        "variants.json: cannot be fetched: at https://****@host/",
        None,
    ),
    "another document": (
        {NAME: Whole(document("b")), A: GOOD},
        "does not match its sha256 hash: expected",
        {NAME: HASH},
    ),
    "no document, and a wheel that fails": (
        {NAME: Absent("HTTP status 404"), A: Failed("no connection")},
        f"{SOURCE}: lists {NAME}, but it cannot be fetched (HTTP status 404); "
        f"https://files.example/{A}: cannot be fetched: no connection",
        None,
    ),
    "no variant.json": (
        {A: wheel(None)}, "is named a variant wheel, but has no variant.json", None,
    ),
    "another label": (
        {A: wheel(document("b"))},
        "the filename has label 'a', the metadata inside lists 'b'",
        None,
    ),
    "broken": ({A: wheel(b"{")}, "app-1.0.dist-info/variant.json: not valid JSON", None),
    "another project": (
        {A: GOOD.replace(b"app-1.0.dist", b"bpp-1.0.dist")}, "does not belong to app", None,
    ),
    "gone": ({A: Absent("HTTP status 403")}, "cannot be fetched: HTTP status 403", None),
    "contradiction": (
        {A: GOOD, B: wheel(json.dumps(OTHER).encode(), "b")}, "providers.n differs: ", None,
    ),
    "another wheel": ({A: Whole(GOOD)}, f"{A}: does not match its sha256 hash", {A: "00"}),
    "large wheel": (
        {A: Whole(bytes(INSPECTED_WHEEL_BYTES + 1))},
        f"larger than the {INSPECTED_WHEEL_BYTES} bytes that are downloaded",
        None,
    ),
    "many labels": (
        {a_wheel(label): wheel(document(label), label) for label in LABELS},
        "65 labels are too many to read the metadata from the wheels",
        None,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("files", "problem", "hashes"), ERRORS.values(), ids=ERRORS)
def test_errors(files, problem, hashes):
    index = Index(files, hashes=hashes)
    with pytest.raises(VariantError, match=re.escape(problem)):
        index.read().result()
    if NAME in files and not isinstance(files[NAME], Absent):
        assert index.asked == [(NAME, None)]
    if len(files) > INSPECTED_WHEELS:
        assert not index.asked
        fewer = Index(dict([*files.items()][1:])).read().result()
        assert len(fewer.variants) == INSPECTED_WHEELS


def test_a_wheel_that_the_user_named():
    with pytest.raises(VariantError, match=f"^https://files.example/{A}: is named a variant"):
        Index({A: wheel(None)}).read(source=None).result()


# Servers.


@pytest.mark.parametrize("answers", [[NoRanges.NEVER], [NoRanges.REFUSED] * 2, []])
@pytest.mark.parametrize("stream", [False, True])
def test_a_server_without_ranges(answers, stream):
    data = wheel(document("a"))
    index = Index({a_wheel("a"): data}, hashes={A: hashlib.sha256(data).hexdigest()})
    reader = index.reader()
    for answer in answers:
        reader.receive(reader.wanted()[0], answer)
    assert (reader.wanted()[0].range is None) is bool(answers)
    file = io.BytesIO(data)
    reader.receive(reader.wanted()[0], Whole(file if stream else data))
    assert set(reader.result().variants) == {"a"}
    assert file.closed is stream


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        (NoRanges.NEVER, "stopped answering range requests"),
        (Whole(b""), "stopped answering range requests"),
        (Part(b"x", 0, 1), "changes while it is read"),
        (Failed("no answer"), "cannot be fetched: no answer"),
    ],
)
def test_a_wheel_that_changes(second, problem):
    index = Index({a_wheel("a"): wheel(document("a"), padding=200_000)})
    reader = index.reader()
    reader.receive(reader.wanted()[0], index.answer(reader.wanted()[0]))
    reader.receive(reader.wanted()[0], second)
    with pytest.raises(MetadataError, match=problem):
        reader.result()


# Local files.


@pytest.mark.parametrize(
    ("page", "allowed"),
    [
        (None, True),
        ("file:///srv/links.html", True),
        ("FILE:///srv/links.html", True),
        ("/srv/links.html", True),
        ("http://index.example/simple/app/", False),
        ("https://me:secret@index.example/simple/app/?sig=secret", False),
    ],
)
@pytest.mark.parametrize("name", [a_wheel("a"), NAME])
def test_local_files_are_read_for_local_pages_only(page, allowed, name):
    """A page from a server names them with <base href="file:///">."""
    data = document("a") if name == NAME else wheel(document("a"))
    wheels = [ReleaseFile(a_wheel("a"), f"file:///srv/{a_wheel('a')}")]
    index_file = ReleaseFile(NAME, f"file:///srv/{NAME}") if name == NAME else None
    reader = ReleaseReader(wheels, index_file, source=page)
    if allowed:
        stream = io.BytesIO(data)
        reader.receive(reader.wanted()[0], LocalFile(stream))
        assert set(reader.result().variants) == {"a"}
        assert stream.closed
        return
    assert not reader.wanted()
    with pytest.raises(MetadataError, match=f"{name}: is a local file, but listed by") as caught:
        reader.result()
    assert "secret" not in str(caught.value)


# HTTP responses.

WHEEL = ReleaseFile(a_wheel("a"), "https://files.example/a.whl")


@pytest.mark.parametrize(
    ("wanted", "status", "headers", "body", "answer"),
    [
        (None, 200, {}, b"abc", Whole(b"abc")),
        (None, 404, {}, b"", Absent("HTTP status 404")),
        (Range(None, 2), 416, {}, b"", NoRanges.REFUSED),
        (None, 416, {}, b"", Failed("HTTP status 416")),
        # It serves ranges, but does not know those of the end.
        (Range(None, 2), 200, {"Accept-Ranges": "bytes"}, b"abc", NoRanges.REFUSED),
        (Range(0, 1), 200, {"Accept-Ranges": "bytes"}, b"abc", Whole(b"abc")),
        (Range(None, 2), 200, {"Accept-Ranges": "none"}, b"abc", Whole(b"abc")),
        (None, 206, {}, b"", Failed("HTTP status 206")),
        (Range(None, 2), 503, {}, b"", Failed("HTTP status 503", may_pass=True)),
        (Range(None, 2), 206, {}, b"bc", NoRanges.NEVER),
        (
            Range(None, 2),
            206,
            {"Content-Range": "bytes 1-2/3", "ETag": "x"},
            b"bc",
            Part(b"bc", 1, 3, "x"),
        ),
        (
            Range(None, 2),
            206,
            {"Content-Range": "bytes 1-2/3"},
            b"b",
            Failed("the server sends fewer bytes than it announces", may_pass=True),
        ),
        (
            Range(None, 2),
            206,
            {"Content-Range": "bytes 0-2/3"},
            b"abc",
            Failed("the server sends more than the range asked for"),
        ),
    ],
)
def test_responses(wanted, status, headers, body, answer):
    assert read(Fetch(WHEEL, wanted), status, headers, io.BytesIO(body).read) == answer


def test_requests():
    assert Fetch(WHEEL).headers == {"Accept-Encoding": "identity", "Cache-Control": "no-cache"}
    assert Fetch(WHEEL, Range(None, 5)).headers["Range"] == "bytes=-5"
    assert Fetch(WHEEL, Range(5, 5)).headers["Range"] == "bytes=5-9"
    sizes = []
    read(Fetch(WHEEL), 200, {}, lambda size: sizes.append(size) or b"")
    assert sizes == [INSPECTED_WHEEL_BYTES + 1]
