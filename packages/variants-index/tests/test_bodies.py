"""Bodies of answers: compressed, trickling, endless, in pieces."""

import gzip
import itertools
import os
import time
import tracemalloc
import zlib

import pytest

from pep_variants import limits
from pep_variants.sources import Sources
from support.raw_server import got, sending
from variants_index.cache import Store
from variants_index.errors import BadResponse, PackageIndexError, Unreachable
from variants_index.http.session import Session

MIB = 2**20
HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"
PLAIN = b"body " * 1000


def session(url, *, store=None, timeout=5, retries=0):
    environ = {"HOME": os.devnull, "PATH": os.defpath}
    sources = Sources(index_url=f"{url}/simple/", timeout=timeout)
    return Session(sources, environ=environ, store=store, retries=retries, first_pause=0.01)


def answered(body, headers=b"", *, limit=MIB, store=None):
    """Return what a session makes of an answer with these bytes."""

    def parts():
        yield HEAD + headers + b"Content-Length: %d\r\n\r\n" % len(body)
        yield body

    with sending(parts) as url:
        asking = session(url, store=store)
        try:
            return asking.fetch(f"{url}/a", limit=limit).body
        finally:
            asking.close()


class TestCompression:
    @pytest.mark.parametrize(
        ("coding", "body"),
        [
            (b"gzip", gzip.compress(PLAIN)),
            (b"X-GZIP", gzip.compress(PLAIN)),
            (b"identity, gzip", gzip.compress(PLAIN)),
            (b"utf-8", PLAIN),
            (b"gzip,aws-chunked", gzip.compress(PLAIN)),
            (b"", PLAIN),
            # What follows the data is ignored, as browsers do.
            (b"gzip", gzip.compress(PLAIN) + b"\0" * 100),
        ],
    )
    def test_one_coding(self, coding, body, tmp_path):
        header = b"Content-Encoding: %s\r\nCache-Control: max-age=9\r\n" % coding
        assert answered(body, header, store=Store(tmp_path)) == PLAIN

    @pytest.mark.parametrize(
        "header",
        [
            b"Content-Encoding: gzip, gzip, gzip\r\n",
            b"Content-Encoding: br\r\n",
            b"Content-Encoding: gzip, utf-8, x-gzip\r\n",
        ],
    )
    def test_others_are_refused(self, header):
        body = PLAIN
        for _ in range(3):
            body = gzip.compress(body)
        with pytest.raises(BadResponse, match=r"is compressed as .*; gzip was asked for"):
            answered(body, header)

    @pytest.mark.parametrize("body", [b"no gzip", gzip.compress(PLAIN)[:-9], b"\x1f\x8b"])
    def test_broken(self, body):
        with pytest.raises(BadResponse, match=r"is not gzip data|the gzip data is cut off"):
            answered(body, b"Content-Encoding: gzip\r\n")

    @pytest.mark.parametrize("levels", [1, 3])
    def test_a_bomb_takes_no_more_memory_than_the_limit(self, levels, tmp_path):
        compressor = zlib.compressobj(9, wbits=31)
        body = b"".join(compressor.compress(bytes(MIB)) for _ in range(40)) + compressor.flush()
        for _ in range(levels - 1):
            body = gzip.compress(body)
        coding = b"Content-Encoding: %s\r\n" % b", ".join([b"gzip"] * levels)
        tracemalloc.start()
        try:
            with pytest.raises(BadResponse):
                answered(body, coding, limit=4 * MIB, store=Store(tmp_path))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 12 * MIB

    def test_many_bytes_that_decompress_to_nothing_are_too_large_too(self):
        # Stored blocks of zero bytes (RFC 1951, 3.2.4).
        body = b"\x1f\x8b\x08" + bytes(7) + b"\x00\x00\x00\xff\xff" * 300_000
        with pytest.raises(BadResponse, match="larger than 1048576 bytes"):
            answered(body, b"Content-Encoding: gzip\r\n")

    def test_bodies_of_errors_are_not_read(self):
        body = gzip.compress(bytes(10 * MIB))
        for status in (b"401 No", b"404 No", b"302 Found\r\nLocation: /b", b"500 No"):
            head = HEAD.replace(b"200 OK", status) + b"Content-Encoding: gzip\r\n\r\n"

            def parts(head=head):
                yield head
                yield from itertools.repeat(body)

            with sending(parts) as url, pytest.raises(PackageIndexError):
                session(url).fetch(f"{url}/a", limit=MIB)


@pytest.fixture
def impatient(monkeypatch):
    """Servers may be slow for a tenth of a second, after their first byte."""
    monkeypatch.setattr(limits, "SLOW_SECONDS", 0.1)


def trickle(head):
    def parts():
        yield head
        while True:
            time.sleep(0.02)
            yield b"x"

    return parts


class TestTime:
    @pytest.mark.parametrize(
        ("head", "ways"),
        [
            (b"", ["fetch"]),
            (HEAD + b"A: ", ["fetch"]),
            (HEAD + b"\r\n", ["fetch", "stream"]),
            (
                HEAD.replace(b"200 OK", b"206 Part")
                + b"Content-Range: bytes 0-999999/1000000\r\nContent-Length: 1000000\r\n\r\n",
                ["part"],
            ),
        ],
        ids=["nothing", "header", "body", "part"],
    )
    def test_a_trickle_is_given_up(self, impatient, head, ways):
        with sending(trickle(head)) as url:
            asking = session(url, timeout=0.3, retries=4)
            for way in ways:
                start = time.monotonic()
                with pytest.raises(PackageIndexError):
                    got(asking, f"{url}/a", way)
                # Without five attempts; the machine may be busy.
                assert time.monotonic() - start < 10
            asking.close()

    def test_the_time_of_an_answer_includes_retries(self):
        def parts():
            time.sleep(0.2)
            yield HEAD.replace(b"200 OK", b"503 No") + b"Content-Length: 0\r\n\r\n"

        with sending(parts) as url:
            asking = session(url, retries=1000)
            start = time.monotonic()
            with pytest.raises(Unreachable):
                asking.fetch(f"{url}/a", limit=MIB, seconds=0.5)
            assert time.monotonic() - start < 10
            asking.close()

    def test_a_steady_stream_is_in_time_or_not(self):
        def parts():
            yield HEAD + b"\r\n"
            while True:
                time.sleep(0.01)
                yield b"x" * 1000

        with sending(parts) as url:
            asking = session(url)
            with pytest.raises(Unreachable, match="no complete answer in time"):
                asking.fetch(f"{url}/a", limit=100 * MIB, seconds=0.5)
            asking.close()


class TestShape:
    @pytest.mark.parametrize(
        "part",
        [
            b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 1000,
        ],
    )
    def test_endless_interim_responses(self, part):
        with sending(lambda: itertools.repeat(part)) as url:
            asking = session(url)
            with pytest.raises(PackageIndexError):
                asking.fetch(f"{url}/a", limit=MIB)
            asking.close()

    @pytest.mark.parametrize("part", [b"A: b\r\n" * 1000, b"A" * 10_000])
    def test_endless_heads(self, part):
        def parts():
            yield HEAD
            yield from itertools.repeat(part)

        with sending(parts) as url:
            asking = session(url)
            with pytest.raises(PackageIndexError):
                asking.fetch(f"{url}/a", limit=MIB)
            asking.close()

    def test_a_body_in_chunks_of_one_byte(self, monkeypatch):
        monkeypatch.setattr(limits, "SMALL_PIECES", 1000)

        def parts():
            yield HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
            yield from itertools.repeat(b"1\r\nx\r\n" * 1000)

        with sending(parts) as url:
            asking = session(url)
            for _ in range(2):
                with pytest.raises(BadResponse, match="too many small pieces"):
                    asking.fetch(f"{url}/a", limit=100 * MIB)
            asking.close()
