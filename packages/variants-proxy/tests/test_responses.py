"""Negotiation: which form of a page a client gets, and whether it has it already."""

import pytest

from variants_proxy.headers import Document, accepted_formats

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


def test_validators():
    page = Document(b"text", "text/html", "public", vary="Accept")
    status, headers, body = page.answer("")
    assert (status, body, headers["vary"]) == (200, page.body, "Accept")
    tag = headers["etag"]
    for known in (tag, f"W/{tag}", f'"x", {tag}', "*"):
        status, headers, body = page.answer(known)
        assert (status, body, headers["etag"]) == (304, b"", tag)
    assert page.answer('"x"')[0] == 200
