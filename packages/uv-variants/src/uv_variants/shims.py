"""The shim that a command uses: one of its own, or one that runs for the user anyway."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from .process import Shim
from .state import Running, read_state, state_path

if TYPE_CHECKING:
    from .errors import ShimFailed
    from .indexes import UserIndex


class Reachable(Protocol):
    """A shim at a port of loopback, for who knows its token."""

    @property
    def port(self) -> int:
        """Port of loopback."""

    @property
    def token(self) -> str:
        """What it wants to be told."""

    def failure(self) -> ShimFailed | None:
        """Return why it is gone, None if it is there."""

    def stop(self) -> None:
        """Let go of it."""


class Borrowed:
    """A shim that was there before and stays."""

    def __init__(self, running: Running) -> None:
        self._running = running

    @property
    def port(self) -> int:
        """Port of loopback."""
        return self._running.port

    @property
    def token(self) -> str:
        """What it wants to be told."""
        return self._running.token

    def failure(self) -> ShimFailed | None:
        """Return None: uv says itself what it did not get."""
        return None

    def stop(self) -> None:
        """Leave it as it is."""


class Opening:
    """The choice between the two. A new one gets ready while it is not known what it will do."""

    def __init__(self, environ: Mapping[str, str], *, at_once: bool) -> None:
        """Start a new one, unless one runs for the user.

        Args:
            environ: environment variables of the user.
            at_once: it is going to be needed; otherwise it starts when somebody connects.
        """
        self._environ = environ
        self._running = read_state(state_path(environ))
        self._new = Shim(environ, at_once=at_once) if self._running is None else None

    def open(self, told: Mapping[str, Any], indexes: Mapping[str, UserIndex]) -> Reachable:
        """Return the running one if it does all that is *told*, else a new one."""
        if self._running is not None and _does(self._running, told, indexes):
            return Borrowed(self._running)
        self._new = self._new or Shim(self._environ, at_once=True)
        self._new.tell(told)
        return self._new

    def stop(self) -> None:
        """Nothing has come of it."""
        if self._new is not None:
            self._new.stop()


def _does(running: Running, told: Mapping[str, Any], indexes: Mapping[str, UserIndex]) -> bool:
    return (
        bool(running.token)  # only such a one is a proxy, too
        and running.address == "127.0.0.1"
        and not told["only"]
        and not told["floating"]
        and told["platforms"].keys() <= set(running.platforms)
        and all(running.digests.get(name) == index.digest for name, index in indexes.items())
        and running.answers()
    )
