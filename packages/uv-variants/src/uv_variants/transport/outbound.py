"""The user's own way to other hosts: proxies of the environment, and trusted certificates."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from variants_index.http.user_proxies import UserProxy, proxy_for


@dataclass(frozen=True)
class Outbound:
    """How a session reaches hosts.

    Attributes:
        environ: the user's proxy and TLS variables.
        roots: file with the certificates that uv would trust, see `Authority.files`.
        insecure_hosts: hosts whose certificates are not verified, with or without port.
    """

    environ: Mapping[str, str] = field(repr=False)  # proxies may have passwords
    roots: Path
    insecure_hosts: frozenset[str] = frozenset()

    def proxy(self, scheme: str, host: str) -> UserProxy | None:
        """Return the user's proxy for *host*, None without one.

        Raises:
            InvalidProxy: the variable's value cannot be used.
        """
        return proxy_for(scheme, host, self.environ)

    def tls(self, host: str, port: int) -> ssl.SSLContext:
        """Return the context for a connection to *host*.

        Raises:
            OSError: a file with certificates cannot be read (`ssl.SSLError` if not understood).
        """
        verified = not {host, f"{host}:{port}"} & self.insecure_hosts
        return _context(str(self.roots), self.environ.get("SSL_CLIENT_CERT") or None, verified)


@lru_cache(maxsize=16)
def _context(roots: str, client: str | None, verified: bool) -> ssl.SSLContext:
    # Bundles are named by their content: the same path never means other certificates.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if verified:
        context.load_verify_locations(roots)
    else:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if client:
        context.load_cert_chain(client)
    return context
