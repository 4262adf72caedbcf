"""Bodies of responses: compressed, trickling, endless, in pieces."""

import gzip
import itertools
import time
import tracemalloc
import zlib

import pytest

from pep_variants import limits
from support.raw_server import got, sending
from variants_index._cache import Store
from variants_index._errors import BadResponse, PackageIndexError, Unreachable

MIB = 2**20
HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"
PART = b"HTTP/1.1 206 Part\r\nContent-Range: bytes 0-999999/1000000\r\nContent-Length: 1000000\r\n"
PLAIN = b"body " * 1000
GZIPPED = gzip.compress(PLAIN)
EMPTY_BLOCKS = b"\x1f\x8b\x08" + bytes(7) + b"\x00\x00\x00\xff\xff" * 300_000  # RFC 1951, 3.2.4


@pytest.fixture
def fetched(session, tmp_path):
    """Return what a session makes of a body with a ``Content-Encoding``."""

    def fetched(coding, body, limit=MIB):
        head = b"%sContent-Encoding: %s\r\nCache-Control: max-age=9\r\nContent-Length: %d\r\n\r\n"
        with sending(lambda: [head % (HEAD, coding, len(body)), body]) as url:
            asking = session(f"{url}/", store=Store(tmp_path), retries=0)
            return asking.fetch(f"{url}/a", limit=limit).body

    return fetched


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        (b"gzip", GZIPPED),
        (b"X-GZIP", GZIPPED),
        (b"identity, gzip", GZIPPED),
        (b"utf-8", PLAIN),
        (b"gzip,aws-chunked", GZIPPED),
        (b"", PLAIN),
        (b"gzip", GZIPPED + b"\0" * 100),  # what follows is ignored, as browsers do
    ],
)
def test_compression(fetched, coding, body):
    assert fetched(coding, body) == PLAIN


@pytest.mark.parametrize(
    ("coding", "body", "message"),
    [
        (b"gzip, gzip", gzip.compress(GZIPPED), "is compressed as .*; gzip was asked for"),
        (b"br", PLAIN, "is compressed as .*; gzip was asked for"),
        (b"gzip", b"no gzip", "is not gzip data"),
        (b"gzip", GZIPPED[:-9], "the gzip data is cut off"),
        (b"gzip", b"\x1f\x8b", "the gzip data is cut off"),
        (b"gzip", EMPTY_BLOCKS, "larger than 1048576 bytes"),
    ],
)
def test_broken_compression(fetched, coding, body, message):
    with pytest.raises(BadResponse, match=message):
        fetched(coding, body)


@pytest.mark.parametrize("levels", [1, 3])
def test_a_bomb_takes_no_more_memory_than_the_limit(fetched, levels):
    compressor = zlib.compressobj(9, wbits=31)
    body = b"".join(compressor.compress(bytes(MIB)) for _ in range(40)) + compressor.flush()
    for _ in range(levels - 1):
        body = gzip.compress(body)
    tracemalloc.start()
    try:
        with pytest.raises(BadResponse):
            fetched(b", ".join([b"gzip"] * levels), body, limit=4 * MIB)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 12 * MIB


@pytest.mark.parametrize("status", [b"401 No", b"404 No", b"302 Found\r\nLocation: /b", b"500 No"])
def test_bodies_of_errors_are_not_read(session, status):
    head = HEAD.replace(b"200 OK", status) + b"Content-Encoding: gzip\r\n\r\n"
    body = gzip.compress(bytes(10 * MIB))
    with sending(lambda: itertools.chain([head], itertools.repeat(body))) as url:
        with pytest.raises(PackageIndexError):
            session(f"{url}/", retries=0).fetch(f"{url}/a", limit=MIB)


@pytest.mark.parametrize(
    ("first", "part", "pause", "way"),
    [
        (b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 1000, 0, "fetch"),
        (HEAD, b"A: b\r\n" * 1000, 0, "fetch"),
        (HEAD, b"A" * 10_000, 0, "fetch"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 1000, 0, "fetch"),
        # One that trickles is not asked again.
        (b"", b"x", 0.02, "fetch"),
        (HEAD + b"A: ", b"x", 0.02, "fetch"),
        (HEAD + b"\r\n", b"x", 0.02, "fetch"),
        (HEAD + b"\r\n", b"x", 0.02, "stream"),
        (PART + b"\r\n", b"x", 0.02, "part"),
    ],
)
def test_endless_responses(session, monkeypatch, first, part, pause, way):
    monkeypatch.setattr(limits, "SLOW_SECONDS", 0.1)
    monkeypatch.setattr(limits, "SMALL_PIECES", 1000)
    attempts = []

    def parts():
        attempts.append(first)
        yield first
        while True:
            time.sleep(pause)
            yield part

    with sending(parts) as url:
        asking = session(f"{url}/", timeout=0.3 if pause else 5)
        with pytest.raises(
            PackageIndexError, match="too many small pieces" if b"chunked" in first else ""
        ):
            got(asking, f"{url}/a", way)
        asking.close()
    assert len(attempts) == 1 or not pause


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (HEAD + b"\r\n", "no complete answer in time"),
        (HEAD.replace(b"200 OK", b"503 No") + b"Content-Length: 0\r\n\r\n", "503"),
    ],
)
def test_the_time_of_a_response_includes_retries(session, head, message):
    def parts():
        time.sleep(0.1)
        yield head
        while b"Length" not in head:
            time.sleep(0.01)
            yield b"x" * 1000

    with sending(parts) as url:
        asking = session(f"{url}/", retries=1000)
        with pytest.raises(Unreachable, match=message):
            asking.fetch(f"{url}/a", limit=100 * MIB, seconds=0.5)
        asking.close()
