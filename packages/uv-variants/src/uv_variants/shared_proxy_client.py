"""A shared proxy, asked for its choices as uv asks it for pages: with the key of the machine."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from .errors import ProxyFailed
from .proxy_client import TIMEOUT, DecisionClient
from .report import warn

if TYPE_CHECKING:
    import ssl


@dataclass(frozen=True)
class SharedProxyClient(DecisionClient):
    """A shared proxy, whose merged index is all that is asked.

    Attributes:
        base: URL of the proxy.
        key: platform key of the machine.
        token: of the proxy, empty without one.
        insecure_hosts: hosts whose certificates are not verified.
        needed: whether the command cannot go on without an answer; otherwise there is a warning.
        offline: whether nothing may be asked.
    """

    base: str
    key: str
    token: str = field(repr=False)
    insecure_hosts: tuple[str, ...] = ()
    needed: bool = False
    offline: bool = False

    @property
    def indexes(self) -> tuple[str, ...]:  # type: ignore[override]
        """The URL of the proxy."""
        return (self.base,)

    def _indexes_of(self, project: str) -> tuple[str, ...]:  # noqa: ARG002
        return () if self.offline else self.indexes

    def _decisions_path(self, index: str, project: str) -> str:
        return f"{index}/variants/{project}/"

    def _page_path(self, index: str, project: str) -> str:
        return f"{index}/simple/{project}/"

    @contextmanager
    def _requests(self) -> Iterator[Callable[[str], Any]]:
        import http.client
        from urllib.error import HTTPError
        from urllib.request import HTTPSHandler, Request, build_opener

        secret = base64.b64encode(f"{self.key}:{self.token}".encode()).decode()
        headers = {
            "Authorization": f"Basic {secret}",
            "Accept": "application/vnd.pypi.simple.v1+json, application/json;q=0.9",
            "User-Agent": "uv-variants",
        }
        secure = urlsplit(self.base).scheme == "https"
        opener = build_opener(*([HTTPSHandler(context=self._context())] if secure else []))

        def get(url: str) -> Any:  # noqa: ANN401
            try:
                with opener.open(Request(url, headers=headers), timeout=TIMEOUT) as answer:  # noqa: S310
                    return json.loads(answer.read())
            except HTTPError as error:
                with error:
                    if error.code == 404:
                        return None
                    raise

        try:
            yield get
        except (OSError, http.client.HTTPException, ValueError) as error:
            text = f"the shared proxy {self.base} does not say what variants it has: {error}"
            if self.needed:
                raise ProxyFailed(text) from error
            warn(f"{text}; installed variants are not compared with its choices")

    def _context(self) -> ssl.SSLContext:
        """Return the TLS settings: uv's own roots, unless a variable names others."""
        import os
        import ssl

        import certifi

        context = ssl.create_default_context()
        if not (os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")):
            context.load_verify_locations(certifi.where())
        parts = urlsplit(self.base)
        if {parts.hostname, parts.netloc} & {*self.insecure_hosts}:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context
