"""The daemon's own requests, at the port that is uv's HTTP proxy: an ASGI application.

=============================  ====================================================================
``GET /health?nonce=…``        proof that the daemon knows its secret; needs no authorization
``POST /session``              opens a session; the answer does not end before the session does
``GET /session/ID/report``     refusals, and projects with notices or without choices
``DELETE /session/ID``         ends a session
``GET /status``                for ``uv-variants status``
``POST /stop``                 no new sessions; the daemon ends after the last one
``/p/…``                       the session's index proxy, with id and token as in proxy variables
=============================  ====================================================================

All others need the secret as bearer token.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

from pep_variants.errors import VariantError
from pep_variants.limits import LOCK_BYTES
from uv_variants.errors import UvVariantsError
from variants_proxy.errors import ProxyError
from variants_proxy.headers import SECURITY_HEADERS

from .sessions import ID, OpenSession, Sessions, TooManySessions
from .tokens import is_equal, proof

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_HOSTS = ("localhost", "127.0.0.1", "[::1]")


class _Answer(Exception):
    """The answer to a request that is not served."""

    def __init__(self, status: int, text: str) -> None:
        self.status = status
        super().__init__(text)


class Control:
    """The ASGI application."""

    def __init__(
        self,
        secret: str,
        sessions: Sessions,
        opened: Callable[[str, Any], Awaitable[OpenSession]],
        status: Callable[[], Awaitable[dict[str, Any]]],
        stop: Callable[[], None],
        is_ending: Callable[[], bool],
    ) -> None:
        """Set up.

        Args:
            secret: of the daemon.
            sessions: of the daemon.
            opened: opens the session with an id and a tree of settings.
            status: describes the daemon.
            stop: ends the daemon after the last session.
            is_ending: whether it takes no more sessions.
        """
        self._secret = secret
        self._sessions = sessions
        self._opened = opened
        self._status = status
        self._stop = stop
        self._is_ending = is_ending

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        try:
            await self._answer(scope, receive, send)
        except _Answer as answer:
            await _send(send, answer.status, f"{answer}\n".encode(), b"text/plain; charset=utf-8")

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if name not in _HOSTS:  # a page in a browser must not reach this under another name
            raise _Answer(421, "this is the daemon of uv-variants")
        method, path = scope["method"], scope["path"]
        if (method, path) == ("GET", "/health"):
            nonce = parse_qs(scope["query_string"].decode("latin-1")).get("nonce", [""])[0]
            found = {"status": "ok"}
            if ID.fullmatch(nonce):
                found["proof"] = proof(self._secret, nonce)
            await _send_json(send, found)
            return
        authorization = headers.get(b"authorization", b"").decode("latin-1")
        if path.startswith("/p/"):
            session = self._session_of(authorization)
            if session is None:
                raise _Answer(401, "there is no such session")
            kept = [item for item in scope["headers"] if item[0] != b"authorization"]
            application = self._sessions.own_application(session)
            await application({**scope, "headers": kept}, receive, send)
            return
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() != "bearer" or not is_equal(given.strip(), self._secret):
            raise _Answer(401, "this is the daemon of uv-variants: see uv-variants status")
        await self._controlled(method, path, scope, receive, send)

    async def _controlled(
        self, method: str, path: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        parts = path.strip("/").split("/")
        if (method, path) == ("POST", "/session"):
            await self._hold(receive, send)
        elif (method, path) == ("GET", "/status"):
            await _send_json(send, await self._status())
        elif (method, path) == ("POST", "/stop"):
            self._stop()
            await _send_json(send, {"sessions": len(self._sessions)})
        elif method == "GET" and len(parts) == 3 and (parts[0], parts[2]) == ("session", "report"):
            session = self._sessions.by_id(parts[1])
            if session is None:
                raise _Answer(404, "there is no such session")
            await _send_json(send, session.report())
        elif method == "DELETE" and len(parts) == 2 and parts[0] == "session":
            self._sessions.end(parts[1])
            await _send_json(send, {})
        else:
            raise _Answer(404, f"{method} {scope['path']}: no such request")

    async def _hold(self, receive: Receive, send: Send) -> None:
        """Open a session, and end it when the client closes the connection."""
        body = await _body(receive)
        if self._is_ending():
            raise _Answer(503, "the daemon is about to end")
        try:
            tree = json.loads(body)
            name = tree["id"]
            if not isinstance(name, str) or not ID.fullmatch(name):
                raise ValueError("the id is not valid")
            session = await self._opened(name, tree["settings"])
        except TooManySessions:
            raise _Answer(429, "the daemon has too many sessions") from None
        except (UvVariantsError, ProxyError, VariantError) as error:
            raise _Answer(409, str(error)) from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _Answer(400, f"the settings are not valid: {error}") from None
        session.connections += 1
        try:
            text = json.dumps({"id": session.id, "ca_file": str(session.bundle)}).encode()
            await send(_start(200, b"application/json"))
            await send({"type": "http.response.body", "body": text, "more_body": True})
            while (await receive())["type"] != "http.disconnect":
                pass
        finally:
            session.connections -= 1
            if not session.connections:
                self._sessions.end(session.id)

    def _session_of(self, authorization: str) -> OpenSession | None:
        scheme, _, value = authorization.partition(" ")
        if scheme.lower() != "basic":
            return None
        try:
            name, _, token = base64.b64decode(value.strip(), validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return None
        return self._sessions.find(name, token)


async def _body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Answer(400, "the request ended early")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > LOCK_BYTES:
            raise _Answer(413, "the settings are too long")
        if not message.get("more_body", False):
            return b"".join(parts)


def _start(status: int, kind: bytes, *more: tuple[bytes, bytes]) -> dict[str, Any]:
    headers = [(b"content-type", kind), (b"cache-control", b"no-store"), *more, *SECURITY_HEADERS]
    return {"type": "http.response.start", "status": status, "headers": headers}


async def _send(send: Send, status: int, body: bytes, kind: bytes) -> None:
    await send(_start(status, kind, (b"content-length", str(len(body)).encode())))
    await send({"type": "http.response.body", "body": body})


async def _send_json(send: Send, tree: object) -> None:
    await _send(send, 200, json.dumps(tree).encode(), b"application/json")
