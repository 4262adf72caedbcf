"""Files of which only parts are there."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pep_variants import _lazy_file as parts
from pep_variants._lazy_file import (
    Part,
    PartialFile,
    RangeRefused,
    last_part,
    read_content_range,
)

DATA = bytes(range(256)) * 1000


class Problem(Exception):
    pass


class Server:
    """Gives parts of *data*, and remembers which."""

    def __init__(self, data=DATA, most=len(DATA)):
        self.data = data
        self.most = most
        self.asked = []

    def fetch(self, wanted):
        start, length = wanted.start, wanted.length
        self.asked.append((start, length))
        return Part(self.data[start : start + min(length, self.most)], start, len(self.data), "1")

    def file(self, tail=1000, fetch=None):
        known = Part(self.data[-tail:], len(self.data) - tail, len(self.data), "1")
        return PartialFile(known, fetch or self.fetch, Problem)


@pytest.mark.parametrize(
    ("value", "span"),
    [
        ("bytes 0-0/1", (0, 1, 1)),
        ("bytes 10-19/100", (10, 10, 100)),
        ("bytes 10-9/100", None),
        ("bytes 90-100/100", None),
        ("bytes 10-19/*", None),
        ("bytes 10-19/100, 30-39/100", None),
        ("bytes ٠-٩/١٠", None),
        (f"bytes 0-{10**20}/{10**21}", None),
    ],
)
def test_content_range(value, span):
    assert read_content_range(value) == span


@pytest.mark.parametrize("length", [1, 1000, len(DATA), len(DATA) + 1])
def test_the_last_part_of_a_server_that_refuses_to_count_from_the_end(length):
    server = Server()

    def ask(wanted):
        if wanted.start is None:
            raise RangeRefused
        return server.fetch(wanted)

    part = last_part(ask, length)
    assert part.data == DATA[-length:]
    assert part.start + len(part.data) == part.total == len(DATA)
    assert len(server.asked) == 2


def test_no_last_part_of_a_server_that_gives_none():
    def refuse(wanted):
        raise RangeRefused

    assert last_part(refuse, 10) is None
    assert last_part(lambda wanted: None, 10) is None
    with pytest.raises(Problem):  # one that gave the last part, and no other
        Server().file(fetch=refuse).read()


@given(
    st.lists(
        st.tuples(st.integers(0, len(DATA) + 100), st.integers(0, 70_000)), min_size=1, max_size=12
    ),
    st.sampled_from((1000, 50_000, len(DATA))),
)
def test_reads_like_a_file(places, most):
    with pytest.MonkeyPatch.context() as patch, Server(most=most).file() as file:
        patch.setattr(parts, "PARTIAL_PARTS", 10_000)
        whole = io.BytesIO(DATA)
        for start, length in places:
            assert file.seek(start) == whole.seek(start)
            assert file.read(length) == whole.read(length)
            assert file.tell() == max(start, min(start + length, len(DATA)))


def test_whence():
    with Server().file() as file:
        file.seek(-10, io.SEEK_END)
        assert file.seek(5, io.SEEK_CUR) == len(DATA) - 5
        assert file.read() == DATA[-5:]
        with pytest.raises(ValueError, match="negative position -1"):
            file.seek(-1)


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (None, "stopped answering range requests"),
        (Part(b"", 0, len(DATA), "1"), "stopped answering range requests"),
        (Part(b"x", 1, len(DATA), "1"), "stopped answering range requests"),
        (Part(b"x", 0, len(DATA), "2"), "changes while it is read"),
        (Part(b"x", 0, len(DATA) + 1, "1"), "changes while it is read"),
    ],
)
def test_another_part(found, problem):
    with (
        Server().file(fetch=lambda wanted: found) as file,
        pytest.raises(Problem, match=problem),
    ):
        file.read(10)


def test_so_many_parts(monkeypatch):
    monkeypatch.setattr(parts, "SMALLEST_PART", 10)
    server = Server()
    with server.file() as file:
        for number in range(parts.PARTIAL_PARTS - 1):
            file.seek(number * 100)
            file.read(5)
        file.seek(200_000)
        with pytest.raises(Problem, match="more than 32 ranges"):
            file.read(5)
    assert len(server.asked) == parts.PARTIAL_PARTS - 1


def test_so_many_bytes(monkeypatch):
    monkeypatch.setattr(parts, "PARTIAL_BYTES", 100_000)
    server = Server()
    with server.file() as file:
        file.read(50_000)
        with pytest.raises(Problem, match="or 100000 bytes"):
            file.read(50_000)
