"""Pages of the catalogue's places, read with pip's network session and its parser of pages."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from pip._internal.models.link import Link

from pep_variants.errors import printable, redacted
from pep_variants.limits import CATALOG_BYTES

from .errors import logger
from .patience import impatient

Answer = TypeVar("Answer")

_THREADS = 8
"""Pages that are read at the same time; a project may have thirty of them."""

_RETRIES = 2

_REASON_LENGTH = 200


def read_pages(
    network: Any, urls: Sequence[str], seconds: float
) -> tuple[dict[str, list[Any]], dict[str, str]]:
    """Return the links of the pages at *urls*, and why a page has none, by URL.

    Args:
        network: pip's network session.
        urls: of the pages.
        seconds: how long all of them may take.
    """
    from pip._internal.index.collector import (
        _get_simple_response,
        _make_index_content,
        parse_links,
    )

    def read(url: str) -> list[Any]:
        response = _get_simple_response(url, session=network)
        return list(parse_links(_make_index_content(response)))

    # pip warns of these itself.
    secure = [url for url in urls if network.is_secure_origin(Link(url))]
    with impatient(network, retries=_RETRIES):  # in threads: only one could ask for a password
        answers = _in_threads(secure, read, seconds)
    pages = {url: found for url, found in answers.items() if not isinstance(found, Exception)}
    problems = {url: reason(e) for url, e in answers.items() if isinstance(e, Exception)}
    return pages, problems


def fetch_catalog(network: Any, url: str) -> bytes:
    """Return the contents of the catalogue at *url*, cut off after `CATALOG_BYTES`.

    Raises:
        OSError: it is from a host that pip does not trust, or cannot be fetched.
    """
    if not network.is_secure_origin(Link(url)):
        raise OSError("it decides where code comes from: use https, or --trusted-host")
    response = network.get(url, stream=True)
    try:
        response.raise_for_status()
        data: bytes = response.raw.read(CATALOG_BYTES + 1, decode_content=True)
        return data
    finally:
        response.close()


def reason(error: BaseException) -> str:
    """Return in one line why a page could not be read, the same for all pages of a host."""
    kind = getattr(error, "content_type", None)  # of an exception of pip without a message
    if kind:
        text = f"it is {kind}, no page of links"
    else:
        # Those of requests and urllib3 are about objects, attempts and the path of the page.
        root = error
        while (cause := root.__cause__ or root.__context__) is not None:
            root = cause
        text = getattr(root, "strerror", None) or str(root) or type(root).__name__
    text = printable(redacted(" ".join(text.partition(" for url: ")[0].split())))
    return text if len(text) <= _REASON_LENGTH else f"{text[:_REASON_LENGTH]}…"


def _in_threads(
    urls: Sequence[str], read: Callable[[str], Answer], seconds: float
) -> Mapping[str, Answer | Exception]:
    """Return what *read* returns or raises for each of *urls*.

    Those that take longer than *seconds* are abandoned; their threads do not keep the process from
    ending.
    """
    answers: dict[str, Answer | Exception] = {}
    waiting = deque(urls)

    def work() -> None:
        while True:
            try:
                url = waiting.popleft()
            except IndexError:
                return
            try:
                answers[url] = read(url)
            except Exception as error:  # of a place: others are read all the same
                logger.debug("The page %s cannot be read", url, exc_info=True)
                answers[url] = error

    threads = []
    try:
        for _ in range(min(_THREADS, len(urls))):
            thread = threading.Thread(target=work, name="pep-variants", daemon=True)
            thread.start()
            threads.append(thread)
    except RuntimeError:  # no thread can be started: the limit of a container, WebAssembly
        work()
    end = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0, end - time.monotonic()))
    waiting.clear()
    late = TimeoutError(f"no answer within {seconds:g} s")
    return {url: answers.get(url, late) for url in urls}
