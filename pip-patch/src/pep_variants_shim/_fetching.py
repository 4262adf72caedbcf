"""Requests with pip's network session: metadata of versions, and pages of the catalogue.

The session has pip's proxies, certificates and credentials. How long it waits is limited here: pip
could do without what is fetched.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from types import SimpleNamespace
from typing import Any
from urllib.parse import urljoin, urlsplit

from pip._internal.exceptions import PipError
from pip._internal.models.link import Link
from pip._vendor.requests.exceptions import SSLError, TooManyRedirects
from pip._vendor.urllib3.exceptions import HTTPError

from pep_variants import limits, safe_files
from pep_variants import metadata as variant_metadata
from pep_variants.errors import printable, redacted
from pep_variants.metadata import Absent, Failed, Fetch, FetchAnswer, LocalFile

from ._errors import logger

PATIENCE = 4
"""How many times pip's ``--timeout`` all of the metadata of a version may take: one minute.

pip's ``--timeout`` limits the time between two bytes. A slow server, or one that sends
``Retry-After`` again and again, could delay the metadata for hours.
"""

_TIMEOUT = 15
"""pip's default of ``--timeout``, in seconds."""


def time_limit(timeout: float | None) -> float:
    """Return the limit in seconds where pip's ``--timeout`` is *timeout*."""
    return PATIENCE * (timeout or _TIMEOUT)


@contextmanager
def impatient(network: Any, *, retries: int = 0, seconds: float | None = None) -> Iterator[None]:
    """Let pip's *network* session ask for no passwords, retry less often, and wait shorter.

    Args:
        network: pip's session.
        retries: at most, after an answer that says to try again; a host that refuses connections
            is not asked again.
        seconds: to wait for an answer, None for pip's own time.
    """
    adapters = [item for item in network.adapters.values() if hasattr(item, "max_retries")]
    before = [adapter.max_retries for adapter in adapters]
    timeout, prompting = network.timeout, network.auth.prompting
    try:
        for adapter in adapters:
            given = adapter.max_retries
            total = min(retries, given.total or 0)
            read = False if retries == 0 else given.read
            adapter.max_retries = given.new(total=total, connect=0, read=read)
        if seconds is not None:
            network.timeout = min(timeout or seconds, seconds)
        network.auth.prompting = False
        yield
    finally:
        for adapter, given in zip(adapters, before, strict=True):
            adapter.max_retries = given
        network.timeout, network.auth.prompting = timeout, prompting


def answer(network: Any, fetch: Fetch) -> FetchAnswer:
    """Make a request with pip's network session, or open a local file."""
    link: Any = fetch.file.origin
    if link.is_file:
        try:
            return LocalFile(safe_files.open_regular(link.file_path))
        except FileNotFoundError:
            return Absent("there is no such file")
        except OSError as error:
            return Failed(error.strerror or str(error), may_pass=True)
    try:
        response = network.get(fetch.url, headers=fetch.headers, stream=True, hooks=_HOOKS)
        try:
            return variant_metadata.read_response(
                fetch, response.status_code, response.headers, response.raw.read
            )
        finally:
            response.close()
    # Errors of requests are OSErrors; those of urllib3, for bodies that break off, are not.
    except (OSError, ValueError, PipError, HTTPError) as error:
        return Failed(reason(error), _may_pass(error))


def _may_pass(error: BaseException) -> bool:
    """Whether a request that failed with *error* may succeed later.

    pip 26.3 raises errors of its own for those of requests that are of the connection.
    """
    if isinstance(error, PipError) and isinstance(error.__context__, OSError):
        error = error.__context__
    return not isinstance(error, (ValueError, PipError, SSLError, TooManyRedirects))


def _only_http(response: Any, **_: Any) -> None:
    """Do not follow a redirect to a file; pip itself does not from 26.3 on."""
    location = response.headers.get("location")
    if location and urlsplit(urljoin(response.url, location)).scheme not in ("http", "https"):
        del response.headers["location"]


_HOOKS = {"response": _only_http}

_CONNECTIONS = 8
"""Pages that are read at the same time; a project may have thirty of them."""

_MISSING = (403, 404, 410)
"""Object storage answers 403 for what it lacks."""
_REASON_LENGTH = 200


def read_pages(
    network: Any, urls: Sequence[str], seconds: float, failed: set[str]
) -> tuple[dict[str, list[Any]], dict[str, str], set[str]]:
    """Return the links of the pages at *urls*, why a page has none, and those that are missing.

    The first two are by URL, and so are the last.

    Args:
        network: pip's network session.
        urls: of the pages.
        seconds: how long all of them may take.
        failed: hosts whose pages failed in this command, asked once; those of this call are added.
    """
    from pip._internal.index.collector import (
        _get_simple_response,
        _make_index_content,
        parse_links,
    )

    pages: dict[str, list[Any]] = {}
    problems: dict[str, str] = {}
    missing: set[str] = set()

    session: Any = SimpleNamespace(
        get=partial(network.get, hooks=_HOOKS), head=partial(network.head, hooks=_HOOKS)
    )

    def read(url: str) -> None:
        try:
            response = _get_simple_response(url, session=session)
            pages[url] = list(parse_links(_make_index_content(response)))
        except Exception as error:  # of a place: others are read all the same
            logger.debug("The page %s cannot be read", url, exc_info=True)
            problems[url] = reason(error)
            if getattr(getattr(error, "response", None), "status_code", None) in _MISSING:
                missing.add(url)

    # pip warns of the others itself.
    secure = [url for url in urls if network.is_secure_origin(Link(url))]
    once = [url for url in secure if urlsplit(url).netloc in failed]
    often = [url for url in secure if url not in once]
    for retries, asked in ((limits.PLACE_RETRIES, often), (0, once)):
        with impatient(network, retries=retries):  # in threads: only one could ask for a password
            side_by_side(read, asked, seconds)
    pages = dict(pages)
    late = f"no answer within {seconds:g} s"
    problems = {url: problems.get(url, late) for url in secure if url not in pages}
    failed |= {urlsplit(url).netloc for url in problems.keys() - missing}
    return pages, problems, missing


def side_by_side(read: Callable[[str], object], names: Iterable[str], seconds: float) -> None:
    """Call *read* with each of *names* at the same time, and wait for them for *seconds*.

    Those that take too long are abandoned, and do not keep the process from ending; errors are
    lost.
    """
    slots = threading.Semaphore(_CONNECTIONS)

    def run(name: str) -> None:
        with slots, suppress(Exception):
            read(name)

    end = time.monotonic() + seconds
    threads = []
    for name in names:
        thread = threading.Thread(target=run, args=(name,), name="pep-variants", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the limit of a container, WebAssembly
            run(name)
        else:
            threads.append(thread)
    for thread in threads:
        thread.join(max(0, end - time.monotonic()))


def fetch_catalog(network: Any, url: str) -> bytes:
    """Return the contents of the catalogue at *url*, cut off after `CATALOG_BYTES`.

    Raises:
        OSError: it is from a host that pip does not trust, or cannot be fetched.
    """
    if not network.is_secure_origin(Link(url)):
        raise OSError("it decides where code comes from: use https, or --trusted-host")
    response = network.get(url, stream=True, hooks=_HOOKS)
    try:
        response.raise_for_status()
        data: bytes = response.raw.read(limits.CATALOG_BYTES + 1, decode_content=True)
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
