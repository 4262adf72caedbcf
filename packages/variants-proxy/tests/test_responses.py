"""Negotiation: which form of a page a client gets, and whether it has it already."""

import gzip

import pytest

from variants_proxy.headers import Document, accepted_formats, accepts_gzip

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
    [("", False), ("gzip", True), ("br, GZIP;q=0.5", True), ("gzip;q=0", False), ("*", True)],
)
def test_takes_gzip(header, expected):
    assert accepts_gzip(header) is expected


def test_forms():
    page = Document(b"text " * 1000, "text/html", "public", vary="Accept")
    status, plain, body = page.answer("", "", compress=True)
    assert (status, body) == (200, page.body)
    _, packed, body = page.answer("gzip", "", compress=True)
    assert gzip.decompress(body) == page.body
    assert packed["vary"] == "Accept, Accept-Encoding"
    assert plain["etag"] == packed["etag"]
    strong = plain["etag"].removeprefix("W/")
    for tag in (plain["etag"], strong, f'"x", {strong}', "*"):
        status, headers, body = page.answer("gzip", tag, compress=True)
        assert (status, body, headers["etag"]) == (304, b"", plain["etag"])
    assert page.answer("gzip", '"x"', compress=True)[0] == 200


@pytest.mark.parametrize(("body", "compress"), [(b"x", True), (b"text " * 1000, False)])
def test_not_compressed(body, compress):
    _, headers, sent = Document(body, "text/html", "public").answer("gzip", "", compress=compress)
    assert sent == body
    assert "content-encoding" not in headers
