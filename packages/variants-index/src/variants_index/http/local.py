"""Reading ``file:`` URLs, with the errors of URLs on servers."""

from __future__ import annotations

from typing import IO

from pep_variants.urls import local_path

from ..errors import BadResponse, NotFound, Unreachable


def open_local(url: str) -> IO[bytes]:
    """Open the file at *url*.

    Raises:
        NotFound: there is no such file.
        Unreachable: it cannot be opened.
    """
    path = local_path(url)
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise NotFound(f"{path}: there is no such file") from None
    except OSError as error:
        raise Unreachable(f"{path}: {error.strerror or error}") from None


def read_local(url: str, limit: int) -> bytes:
    """Return the contents of the file at *url*.

    Raises:
        NotFound, Unreachable: as `open_local`.
        BadResponse: it is larger than *limit* bytes.
    """
    with open_local(url) as file:
        body = file.read(limit + 1)
    if len(body) > limit:
        raise BadResponse(f"{local_path(url)}: is larger than {limit} bytes, the most that is read")
    return body
