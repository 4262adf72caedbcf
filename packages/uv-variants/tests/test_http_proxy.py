"""Which requests the HTTP proxy answers, and what the application sees of them."""

from __future__ import annotations

import asyncio
import base64

import pytest

from uv_variants.daemon.http_proxy import HttpProxyMiddleware, Rules

KNOWN = "Basic " + base64.b64encode(b"uv:token").decode()


def ask(target, headers=None, rules=None):
    """Return the status, and the scope that the application saw."""
    seen = []
    sent = []

    async def application(scope, receive, send):
        seen.append(scope)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": target,
        "raw_path": target.encode(),
        "headers": [(k.lower().encode(), v.encode()) for k, v in (headers or {}).items()],
    }
    middleware = HttpProxyMiddleware(
        application, rules or Rules("token", {"gpu": frozenset({"torch"})})
    )
    asyncio.run(middleware(scope, receive, send))
    return sent[0]["status"], seen[0] if seen else None


@pytest.mark.parametrize(
    ("target", "headers", "status"),
    [
        ("/health", {}, 200),
        ("/p/k/simple/", {}, 401),
        ("/p/k/simple/", {"Authorization": "Basic dXY6"}, 401),
        ("/p/k/simple/", {"Proxy-Authorization": KNOWN}, 401),
        ("/p/k/simple/", {"Authorization": KNOWN}, 200),
        ("/p/k/simple/", {"Authorization": "Bearer token"}, 200),
        ("http://uv-variants.invalid/p/k/simple/", {}, 407),
        ("http://uv-variants.invalid/p/k/simple/", {"Authorization": KNOWN}, 407),
        ("http://uv-variants.invalid/p/k/simple/", {"Proxy-Authorization": KNOWN}, 200),
        ("/p/k/simple/", {"Host": "uv-variants.invalid"}, 407),
        ("/p/k/simple/", {"Host": "uv-variants.invalid", "Proxy-Authorization": KNOWN}, 200),
        # The token is enough for the indexes; other hosts need `forward`.
        ("http://other.example/", {"Proxy-Authorization": KNOWN}, 403),
        ("http://other.example/", {}, 407),
        ("http://other.example/health", {}, 407),
    ],
)
def test_the_token(target, headers, status):
    assert ask(target, headers)[0] == status


def test_no_token_answers_all_clients():
    assert ask("/p/k/simple/", rules=Rules())[0] == 200
    assert ask("http://other.example/", rules=Rules())[0] == 403


def test_the_application_sees_a_request_of_its_own():
    _, scope = ask(
        "http://uv-variants.invalid/p/k/i/a%20b/simple/?query",
        {"Host": "uv-variants.invalid", "Proxy-Authorization": KNOWN, "Accept": "x"},
    )
    assert scope["path"] == "/p/k/i/a b/simple/"
    assert scope["raw_path"] == b"/p/k/i/a%20b/simple/"
    assert scope["headers"] == [(b"accept", b"x"), (b"host", b"localhost")]


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/p/k/i/gpu/simple/torch/", 200),
        ("/p/k/i/gpu/simple/torch", 200),
        ("/p/k/i/gpu/simple/other/", 404),
        ("/p/k/i/gpu/variants/other/", 200),
        ("/p/k/i/pypi/simple/other/", 200),
    ],
)
def test_explicit_indexes(target, status):
    assert ask(target, {"Authorization": KNOWN})[0] == status
