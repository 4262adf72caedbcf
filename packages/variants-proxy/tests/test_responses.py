"""Negotiation: which form of an answer a client gets, and whether it has it already."""

import gzip

import pytest

from variants_proxy.upstream.responses import CachedResponse, accepted_formats, accepts_gzip

PAGE = "application/vnd.pypi.simple.v1"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", "html"), ("*/*", "html"), ("text/html", "html"), (f"{PAGE}+json", "json"),
        (f"{PAGE}+json, {PAGE}+html;q=0.2, text/html;q=0.01", "json html"),
        (f"{PAGE}+json;q=0.1, text/html", "html json"), (f"{PAGE}+json;q=0", "html"),
        (f"{PAGE}+html, {PAGE}+json", "json html"),
        (f"{PAGE}+json, text/html;q=0", "json"),
        (f"{PAGE}.latest+json", "html"), ("application/vnd.pypi.simple.latest+json", "json"),
        (f"{PAGE}+json;q=x", "html"), ("application/json", "html"),
        (f"{PAGE.upper()}+JSON", "json"),
    ],
)  # fmt: skip
def test_accepted_forms(accept, expected):
    assert accepted_formats(accept) == tuple(expected.split())


@pytest.mark.parametrize(
    ("header", "expected"),
    [(b"", False), (b"gzip", True), (b"br, GZIP;q=0.5", True), (b"gzip;q=0", False), (b"*", True)],
)
def test_takes_gzip(header, expected):
    assert accepts_gzip(header) is expected


def test_forms():
    answer = CachedResponse(b"text " * 1000, "text/html", "public", vary="Accept")
    status, plain, body = answer.response(b"", b"")
    assert (status, body) == (200, answer.body)
    _, packed, body = answer.response(b"gzip", b"")
    assert gzip.decompress(body) == answer.body
    tags = dict(plain)[b"etag"], dict(packed)[b"etag"]
    assert tags[0] != tags[1]
    assert dict(packed)[b"vary"] == b"Accept, Accept-Encoding"
    for tag in (*tags, b"W/" + tags[1], b'"x", ' + tags[0], b"*"):
        assert answer.response(b"gzip", tag)[0] == 304
    assert answer.response(b"gzip", b'"x"')[0] == 200


def test_small_ones_are_not_compressed():
    _, headers, body = CachedResponse(b"x", "text/html", "public").response(b"gzip", b"")
    assert body == b"x"
    assert b"content-encoding" not in dict(headers)


def test_nothing_is_compressed_where_that_is_not_worth_it():
    answer = CachedResponse(b"text " * 1000, "text/html", "public", packs=False)
    _, headers, body = answer.response(b"gzip", b"")
    assert body == answer.body
    assert b"content-encoding" not in dict(headers)
