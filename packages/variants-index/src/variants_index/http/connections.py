"""Connections of a session: allowed addresses, limited heads, a least speed.

A network backend of `httpcore`: the layer that knows the address and sees every byte.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterable
from typing import Any

import httpcore

from pep_variants import limits

from .addresses import AddressPolicy, ForbiddenAddress


class TooSlow(httpcore.ReadTimeout):
    """A server that sends less than `limits.LEAST_BYTES_PER_SECOND`; it is not retried."""


class GuardedStream(httpcore.NetworkStream):
    """A connection that fails if the server sends too slowly, or too much before the response."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream
        self._begin()

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read as `httpcore.NetworkStream.read` does.

        Raises:
            TooSlow: the average speed since the request is too low.
            httpcore.RemoteProtocolError: the response does not begin (endless interim responses).
        """
        start = time.monotonic()
        data = self._stream.read(max_bytes, timeout)
        self._waited += time.monotonic() - start
        self._received += len(data)
        # The user's timeout applies to the first byte.
        allowed = limits.SLOW_SECONDS + (timeout or 0)
        if self._waited > allowed and self._received < self._waited * limits.LEAST_BYTES_PER_SECOND:
            raise TooSlow(
                f"less than {limits.LEAST_BYTES_PER_SECOND} bytes per second for "
                f"{self._waited:.0f} seconds"
            )
        if self._before_response and self._received > limits.HEAD_BYTES:
            raise httpcore.RemoteProtocolError(
                f"more than {limits.HEAD_BYTES:,} bytes before the response begins"
            )
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write a request; the next bytes are the head of its response."""
        self._begin()
        self._stream.write(buffer, timeout)

    def response_began(self) -> None:
        """Record that the head of the response was received."""
        self._before_response = False

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        """Return the connection with TLS, guarded as well."""
        return GuardedStream(self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - httpcore's signature
        """Return information on the connection, as httpcore does."""
        return self._stream.get_extra_info(info)

    def _begin(self) -> None:
        self._before_response = True
        self._waited = 0.0
        self._received = 0


class GuardedBackend(httpcore.NetworkBackend):
    """Connects to addresses that the policy allows."""

    def __init__(self, policy: AddressPolicy | None) -> None:
        """Set up; without *policy*, for the user's proxy, any address is allowed."""
        self._policy = policy
        self._backend = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first address of *host* that is allowed and answers.

        Raises:
            ForbiddenAddress: none of its addresses is allowed.
            httpcore.ConnectError, httpcore.ConnectTimeout: it cannot be reached.
        """
        problem: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in self._addresses(host, port):
            try:
                if self._policy is not None:
                    self._policy.check(host, port, address)
                stream = self._backend.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (ForbiddenAddress, httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                problem = error
            else:
                if self._policy is not None:
                    self._policy.connected(host, address)
                return GuardedStream(stream)
        raise problem

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    @staticmethod
    def _addresses(host: str, port: int) -> list[str]:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:  # UnicodeError: a label of more than 63 characters
            raise httpcore.ConnectError(str(error)) from None
        return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))
