"""Pages of a catalogue's places: how often they are asked for, and what their status means.

What a place has is left out with a line where it fails, and a catalogue names many pages of one
host: a command is not to wait for each of them as for an index of the user.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from urllib.parse import urlsplit

from pep_variants import limits

from .._errors import AccessDenied, NotFound, Unreachable

_ONCE_SECONDS = 60.0


class FailedPlaces:
    """Hosts of places that failed after all retries; their next pages are asked for once."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    @contextmanager
    def asking(self, url: str, retries: int) -> Iterator[int]:
        """Yield how often the page at *url* is to be asked for again, *retries* at most.

        Raises:
            NotFound: for status 403, with which object storage answers for what it lacks.
            PackageIndexError: as the caller does.
        """
        host = urlsplit(url).netloc
        failed = time.monotonic() < self._until.get(host, 0.0)
        try:
            yield 0 if failed else min(retries, limits.PLACE_RETRIES)
        except Unreachable:
            self._until[host] = time.monotonic() + _ONCE_SECONDS
            raise
        except AccessDenied as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
            raise NotFound(f"not found (HTTP status {error.status:d})", url=error.url) from None
        else:
            self._until.pop(host, None)
