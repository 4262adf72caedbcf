"""The proxy that a command uses: one of its own, or the one that keeps running for the user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from variants_proxy.listening import LOOPBACK

from .proxy_process import ProxyProcess
from .state_file import RunningProxy, read_state, state_path

if TYPE_CHECKING:
    from uv_variants.errors import ProxyFailed
    from uv_variants.indexes import UserIndex


class Connection(Protocol):
    """A proxy on loopback."""

    @property
    def port(self) -> int:
        """Port of loopback."""

    @property
    def token(self) -> str:
        """Password that clients have to send."""

    def failure(self) -> ProxyFailed | None:
        """Return why there is no proxy any more, None if there is one."""

    def refusals(self) -> list[str]:
        """Return the files that uv did not get, with the reason."""

    def noted_projects(self) -> list[str]:
        """Return the projects that uv asked for and that the proxy has notices about."""

    def stop(self) -> None:
        """End the proxy if it is the command's own."""


class SharedProxy:
    """The proxy that ``serve`` started, which other commands use as well.

    Its log does not say which client asked, so there are no refusals and no notices.
    """

    def __init__(self, running: RunningProxy) -> None:
        self.port = running.port
        self.token = running.token

    def failure(self) -> ProxyFailed | None:
        """Return None: uv reports itself what it did not get."""
        return None

    def refusals(self) -> list[str]:
        """Return nothing."""
        return []

    def noted_projects(self) -> list[str]:
        """Return nothing."""
        return []

    def stop(self) -> None:
        """Do nothing: the proxy keeps running."""


class ProxyChoice:
    """The choice between the two; a proxy of the command's own starts before it is made."""

    def __init__(self, environ: Mapping[str, str], *, at_once: bool) -> None:
        """Start a proxy, unless one runs for the user.

        Args:
            environ: environment variables of the user.
            at_once: start it now; otherwise when a client connects.
        """
        self._environ = environ
        self._running = read_state(state_path(environ))
        self._own = ProxyProcess(environ, at_once=at_once) if self._running is None else None

    def connect(self, settings: Mapping[str, Any], indexes: Mapping[str, UserIndex]) -> Connection:
        """Return the running proxy if it serves the same as one with *settings*, else a new one."""
        if self._running is not None and _serves_the_same(self._running, settings, indexes):
            return SharedProxy(self._running)
        self._own = self._own or ProxyProcess(self._environ, at_once=True)
        self._own.configure(settings)
        return self._own

    def stop(self) -> None:
        """End the command's own proxy, if it has been started."""
        if self._own is not None:
            self._own.stop()


def _serves_the_same(
    running: RunningProxy, settings: Mapping[str, Any], indexes: Mapping[str, UserIndex]
) -> bool:
    return (
        bool(running.token)  # one that is open to all is no HTTP proxy for other hosts
        and running.address == LOOPBACK
        and not settings["projects"]
        and not settings["floating"]
        and not settings["failures"]
        and not settings["requested"]
        and settings["platforms"].keys() <= set(running.platforms)
        and all(running.digests.get(name) == index.digest for name, index in indexes.items())
        and running.responds()
    )
