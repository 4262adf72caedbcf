"""Trying again after failures that pass, with pauses that double and jitter.

The pause is at least what ``Retry-After`` asks for (RFC 9110, section 10.2.3).
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from .errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Temporary(Exception):
    """A failure after which the same request may succeed.

    Attributes:
        asked: seconds that the server asks to wait, 0 if it does not say.
    """

    def __init__(self, message: str, asked: float = 0.0) -> None:
        self.asked = asked
        super().__init__(message)


@dataclass(frozen=True)
class Retries:
    """How often, and how long in between.

    Attributes:
        retries: the most attempts after the first one.
        first_pause: seconds before the second attempt; doubles with each.
        longest_pause: the most seconds that it grows to.
        patience: the most seconds that a server may ask to wait.
    """

    retries: int = 6
    first_pause: float = 0.5
    longest_pause: float = 60.0
    patience: float = 600.0

    def run(
        self,
        attempt: Callable[[int], T],
        waiting: Callable[[str, float], None],
        sleep: Callable[[float], None] = time.sleep,
    ) -> T:
        """Return what *attempt* returns, after as many attempts as it takes.

        Args:
            attempt: called with the number of attempts before; raises `Temporary` to be repeated.
            waiting: called with the problem and the seconds before each pause.
            sleep: waits.

        Raises:
            Unavailable: the last attempt failed as well, or the server asks for a longer pause.
        """
        for number in range(self.retries + 1):
            try:
                return attempt(number)
            except Temporary as problem:
                if number == self.retries:
                    tried = f"tried {number + 1} times" if number else "tried once"
                    raise Unavailable(f"{problem}; {tried}: run the command again later") from None
                if problem.asked > self.patience:
                    raise Unavailable(
                        f"{problem}: the server asks to wait for {problem.asked:.0f} seconds: run "
                        "the command again then"
                    ) from None
                pause = max(self.pause(number), problem.asked)
                waiting(str(problem), pause)
                sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    def pause(self, number: int) -> float:
        """Return the seconds to wait after attempt *number*, counted from 0; never twice the same.

        Two publishers that were refused at the same moment come back at different ones.
        """
        whole = min(self.first_pause * 2.0**number, self.longest_pause)
        return whole * (0.75 + random.random() / 2)  # noqa: S311
