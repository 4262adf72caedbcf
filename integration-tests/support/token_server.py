"""A stand-in for the two sides of trusted publishing: a CI system and an index that mints tokens.

As GitHub's ``ACTIONS_ID_TOKEN_REQUEST_URL`` and PyPI's ``/_/oidc/`` answer. Identity tokens are
without a signature: the index takes those that this CI system made.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from .loopback import serving

JOB_TOKEN = "job-token"
CLAIMS = {
    "sub": "repo:acme/rocket:environment:release",
    "repository": "acme/rocket",
    "job_workflow_ref": "acme/rocket/.github/workflows/release.yml@refs/tags/v1",
    "ref": "refs/tags/v1",
}


def _part(tree: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(tree).encode()).rstrip(b"=").decode()


def identity_token(audience: str, number: int = 0) -> str:
    """Return a JSON Web Token for *audience*."""
    return ".".join(
        (_part({"alg": "none"}), _part({**CLAIMS, "aud": audience, "jti": number}), "c2lnbmVk")
    )


@dataclass
class TokenServer:
    """Behaviour and record of one server.

    Attributes:
        url: without a slash at its end.
        audience: what the index wants identity tokens to be for.
        statuses: by path, the next statuses that are answered in place of a response.
        bodies: by path, a body that is answered in place of the right one.
        lifetime: seconds in the ``expires`` of upload tokens, None to leave it out.
        now: the clock of ``expires``.
        minted: upload tokens, in order.
        requests: method and path of every request.
        reuse: whether an identity token may be exchanged twice, which PyPI refuses.
    """

    url: str = ""
    audience: str = "pypi"
    statuses: dict[str, list[int]] = field(default_factory=dict)
    bodies: dict[str, bytes] = field(default_factory=dict)
    lifetime: float | None = None
    now: float = 0.0
    minted: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    reuse: bool = False
    _used: set[str] = field(default_factory=set)
    _issued: int = 0

    @property
    def github(self) -> dict[str, str]:
        """The variables of a job of GitHub Actions with ``id-token: write``."""
        return {
            "GITHUB_ACTIONS": "true",
            "ACTIONS_ID_TOKEN_REQUEST_URL": f"{self.url}/github?api-version=2",
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": JOB_TOKEN,
        }

    @property
    def gitlab(self) -> dict[str, str]:
        """The variables of a job of GitLab CI with ``id_tokens``."""
        name = f"{self.audience.upper()}_ID_TOKEN"
        return {"GITLAB_CI": "true", name: identity_token(self.audience)}

    def answer(self, method: str, target: str, authorization: str, body: bytes) -> tuple[int, Any]:
        """Return status and body (bytes, or what is sent as JSON) of a response."""
        path = urlsplit(target).path
        self.requests.append(f"{method} {path}")
        if self.statuses.get(path):
            return self.statuses[path].pop(0), {"message": "try again"}
        if path in self.bodies:
            return 200, self.bodies[path]
        if (method, path) == ("GET", "/github"):
            if authorization != f"bearer {JOB_TOKEN}":
                return 401, {}
            self._issued += 1
            (audience,) = parse_qs(urlsplit(target).query)["audience"]
            return 200, {"value": identity_token(audience, self._issued)}
        if (method, path) == ("GET", "/_/oidc/audience"):
            return 200, {"audience": self.audience}
        if (method, path) == ("POST", "/_/oidc/mint-token"):
            return self._mint(json.loads(body)["token"])
        return 404, {}

    def _mint(self, identity: str) -> tuple[int, Any]:
        payload = identity.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        problem = None
        if claims["aud"] != self.audience:
            problem = ("invalid-payload", "unexpected audience")
        elif identity in self._used and not self.reuse:
            problem = ("invalid-reuse-token", "Invalid token: already used")
        if problem is not None:
            errors = [{"code": problem[0], "description": problem[1]}]
            return 422, {"message": "Token request failed", "errors": errors}
        self._used.add(identity)
        self.minted.append(f"pypi-minted-{len(self.minted) + 1}")
        answer = {"success": True, "token": self.minted[-1]}
        if self.lifetime is not None:
            answer["expires"] = int(self.now + self.lifetime)
        return 200, answer


@contextmanager
def token_server() -> Iterator[TokenServer]:
    """Run a `TokenServer` on loopback."""
    state = TokenServer()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, content = state.answer(
                self.command, self.path, self.headers.get("Authorization", ""), body
            )
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _answer  # noqa: N815 - names of http.server

        def log_message(self, *args: object) -> None:
            pass

    with serving(Handler) as url:
        state.url = url
        yield state
