"""Circuit breaker: a server that keeps failing gets no requests for a while."""

from __future__ import annotations

import time
from collections.abc import Callable

FAILURES = 5
"""Consecutive failures that open the circuit."""

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
"""Seconds of the first pause, which doubles with each failed trial, and of the longest one."""


class CircuitOpen(Exception):
    """The circuit is open: no request may be sent now.

    Attributes:
        seconds: until the next trial.
        failures: consecutive ones.
        cause: error of the last one.
    """

    def __init__(self, seconds: float, failures: int, cause: Exception) -> None:
        self.seconds = seconds
        self.failures = failures
        self.cause = cause
        super().__init__(str(cause))


class CircuitBreaker:
    """The circuit of one server.

    After `FAILURES` consecutive failures it is open: `admit` raises. After a pause it admits one
    trial; if that fails, the pause doubles. Not thread-safe.

    Attributes:
        failures: consecutive ones, trials included.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.failures = 0
        self._clock = clock
        self._cause: Exception | None = None
        self._pause = 0.0
        self._until = 0.0
        self._period = 0  # failures of requests that began before the pause do not count

    @property
    def is_open(self) -> bool:
        """Whether only trials are admitted."""
        return self._cause is not None and self._pause > 0

    def admit(self) -> int:
        """Return the period to pass to `failed` for a request that is sent now.

        Raises:
            CircuitOpen: no request may be sent.
        """
        if self.is_open:
            assert self._cause is not None
            left = self._until - self._clock()
            if left > 0:
                raise CircuitOpen(left, self.failures, self._cause)
            # If this trial never reports a result, the next one follows after another pause.
            self._until = self._clock() + self._pause
            self._period += 1
        return self._period

    def succeeded(self) -> None:
        """Count a response, whatever its status."""
        self.failures = 0
        self._cause = None
        self._pause = 0.0

    def failed(self, period: int, cause: Exception) -> None:
        """Count a failure of a request that was admitted in *period*."""
        if period != self._period:
            return
        self.failures += 1
        self._cause = cause
        if self.failures >= FAILURES:
            self._pause = min(2 * self._pause or FIRST_PAUSE, LONGEST_PAUSE)
            self._until = self._clock() + self._pause
            self._period += 1
