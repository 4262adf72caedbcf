"""The variant metadata of a version, with answers made by hand."""

import hashlib
import io
import json

import pytest
from release_files import NAME, a_wheel, document, wheel

from pep_variants.errors import MetadataError, VariantError
from pep_variants.limits import DOCUMENT_BYTES, INSPECTED_WHEEL_BYTES, INSPECTED_WHEELS
from pep_variants.release import (
    Absent,
    Failed,
    Fetch,
    LocalFile,
    NoRanges,
    ReleaseFile,
    ReleaseReader,
    Whole,
)
from pep_variants.release import read_response as read
from pep_variants.wheelfile.lazy_file import FIRST_PART, Part, Range

SOURCE = "https://index.example/simple/app/"


class Index:
    """The files of a version by name, and what was asked of them."""

    def __init__(self, files, *, listed=None, hashes=None):
        self.files = files
        self.asked = []
        self.hashes = hashes or {}
        self.listed = list(files) if listed is None else listed

    def file(self, name):
        digests = {"sha256": self.hashes[name]} if name in self.hashes else {}
        return ReleaseFile(name, f"https://files.example/{name}", digests)

    def reader(self, source=SOURCE):
        wheels = [self.file(name) for name in self.listed if name.endswith(".whl")]
        return ReleaseReader(
            wheels, self.file(NAME) if NAME in self.listed else None, source=source
        )

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

    def result(self):
        return self.read().result()

    def error(self):
        with pytest.raises(VariantError) as caught:
            self.result()
        return str(caught.value)


def digest(data):
    return hashlib.sha256(data).hexdigest()


def test_the_file_on_the_index_is_used_alone():
    index = Index({a_wheel("a"): wheel(document("a")), NAME: document("a", "b")})
    reader = index.read()
    assert set(reader.result().variants) == {"a", "b"}
    assert reader.documents == {"": document("a", "b")}
    assert index.asked == [(NAME, None)]


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
    with pytest.raises(MetadataError, match=r"-a\.whl: cannot be fetched: off"):
        reader.result()


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"[]", "app-1.0-variants.json: "),
        (bytes(DOCUMENT_BYTES + 1), "larger than 8 MiB"),
        (Failed("no answer in time"), "variants.json: cannot be fetched: no answer in time"),
        (Failed("at https://me:secret@host/"), "cannot be fetched: at https://****@host/"),
        (Whole(document("b")), "does not match its sha256 hash: expected"),
    ],
)
def test_wheels_are_not_read_in_place_of_a_broken_file(data, problem):
    index = Index(
        {a_wheel("a"): wheel(document("a")), NAME: data}, hashes={NAME: digest(document("a"))}
    )
    assert problem in index.error()
    assert index.asked == [(NAME, None)]


def test_why_a_wheel_was_read_is_in_the_error():
    index = Index({a_wheel("a"): Failed("no connection")}, listed=[a_wheel("a"), NAME])
    assert index.error() == (
        f"{SOURCE}: lists {NAME}, but it cannot be fetched (HTTP status 404); "
        f"https://files.example/{a_wheel('a')}: cannot be fetched: no connection"
    )


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (wheel(None), "is named a variant wheel, but has no variant.json"),
        (wheel(document("b")), "the filename has label 'a', the metadata inside lists 'b'"),
        (wheel(b"{"), "app-1.0.dist-info/variant.json: not valid JSON"),
        (wheel(document("a")).replace(b"app-1.0.dist", b"bpp-1.0.dist"), "does not belong to app"),
        (Absent("HTTP status 403"), "cannot be fetched: HTTP status 403"),
    ],
)
def test_a_broken_wheel(data, problem):
    assert problem in Index({a_wheel("a"): data}).error()


def test_wheels_that_contradict_each_other():
    tree = json.loads(document("b"))
    tree["providers"]["n"]["requires"] = ["other"]
    index = Index(
        {
            a_wheel("a"): wheel(document("a")),
            a_wheel("b"): wheel(json.dumps(tree).encode(), "b"),
        }
    )
    assert "providers.n differs: " in index.error()


def test_a_wheel_that_the_user_named():
    index = Index({a_wheel("a"): wheel(None)})
    with pytest.raises(MetadataError) as caught:
        index.read(source=None).result()
    assert str(caught.value).startswith(f"https://files.example/{a_wheel('a')}: is named")


@pytest.mark.parametrize("number", [INSPECTED_WHEELS, INSPECTED_WHEELS + 1])
def test_many_labels(number):
    labels = [f"x{i}" for i in range(number)]
    index = Index({a_wheel(label): wheel(document(label), label) for label in labels})
    if number <= INSPECTED_WHEELS:
        assert len(index.result().variants) == len(index.asked) == number
        return
    assert "65 labels are too many to read the metadata from the wheels" in index.error()
    assert not index.asked


# Servers.


@pytest.mark.parametrize("answers", [[NoRanges.NEVER], [NoRanges.REFUSED] * 2, []])
@pytest.mark.parametrize("stream", [False, True])
def test_a_server_without_ranges(answers, stream):
    data = wheel(document("a"))
    index = Index({a_wheel("a"): data}, hashes={a_wheel("a"): digest(data)})
    reader = index.reader()
    for answer in answers:
        reader.receive(reader.wanted()[0], answer)
    assert (reader.wanted()[0].range is None) is bool(answers)
    file = io.BytesIO(data)
    reader.receive(reader.wanted()[0], Whole(file if stream else data))
    assert set(reader.result().variants) == {"a"}
    assert file.closed is stream


def test_a_whole_wheel_is_verified():
    index = Index({a_wheel("a"): Whole(wheel(document("a")))}, hashes={a_wheel("a"): "00"})
    assert f"{a_wheel('a')}: does not match its sha256 hash" in index.error()


def test_a_wheel_that_is_too_large_to_download():
    index = Index({a_wheel("a"): Whole(bytes(INSPECTED_WHEEL_BYTES + 1))})
    assert f"larger than the {INSPECTED_WHEEL_BYTES} bytes that are downloaded" in index.error()


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


def test_a_late_answer_is_ignored():
    index = Index({a_wheel("a"): b"", a_wheel("b"): b""})
    reader = index.reader()
    first, second = reader.wanted()
    reader.receive(first, Whole(b""))
    stream = io.BytesIO()
    reader.receive(second, Whole(stream))
    assert stream.closed


# HTTP responses.

WHEEL = ReleaseFile(a_wheel("a"), "https://files.example/a.whl")


@pytest.mark.parametrize(
    ("wanted", "status", "headers", "body", "answer"),
    [
        (None, 200, {}, b"abc", Whole(b"abc")),
        (None, 404, {}, b"", Absent("HTTP status 404")),
        (Range(None, 2), 416, {}, b"", NoRanges.REFUSED),
        (None, 416, {}, b"", Failed("HTTP status 416")),
        (None, 206, {}, b"", Failed("HTTP status 206")),
        (Range(None, 2), 503, {}, b"", Failed("HTTP status 503")),
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
            Failed("the server sends fewer bytes than it announces"),
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


def test_at_most_the_limit_is_read():
    sizes = []
    read(Fetch(WHEEL), 200, {}, lambda size: sizes.append(size) or b"")
    assert sizes == [INSPECTED_WHEEL_BYTES + 1]


def test_request_headers():
    assert Fetch(WHEEL).headers == {"Accept-Encoding": "identity", "Cache-Control": "no-cache"}
    assert Fetch(WHEEL, Range(None, 5)).headers["Range"] == "bytes=-5"
    assert Fetch(WHEEL, Range(5, 5)).headers["Range"] == "bytes=5-9"
