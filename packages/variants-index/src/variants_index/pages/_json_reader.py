"""JSON pages of the simple API (PEP 691, 700, 714, 740, 792)."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from pep_variants import limits

from .._errors import InvalidPage
from ._page import (
    Links,
    Page,
    PageFile,
    check_number,
    check_parts,
    check_version,
    is_filename,
    text_of,
    texts_of,
    too_many_values,
)

_SCANNED_NAME = re.compile(rb'"name"[ \t\r\n]*:[ \t\r\n]*"([^"\\]{1,255})"')
_SCANNED_LIST = re.compile(rb'"projects"[ \t\r\n]*:[ \t\r\n]*\[')
_SCANNED_VERSION = re.compile(rb'"api-version"[ \t\r\n]*:[ \t\r\n]*"([0-9.]{1,20})"')


def read_json_page(body: bytes, url: str, project: str) -> Page:
    """Read the page of *project*; raises InvalidPage."""
    tree = _json_tree(body, url)
    links = Links(url)
    files: list[PageFile] = []
    for entry in tree["files"]:
        if (file := _json_file(entry, links, files[-1] if files else None)) is not None:
            files.append(file)
            check_number(files, url)
    check_parts(files, url)
    state = tree.get("project-status")
    state = state if isinstance(state, dict) else {}
    return Page(
        project,
        tuple(files),
        texts_of(tree["versions"]) if "versions" in tree else None,
        status=text_of(state.get("status")) or "active",
        status_reason=text_of(state.get("reason")),
    )


def read_json_projects(body: bytes, url: str) -> Iterator[str]:
    """Yield the names in a list of projects, as they are; raises InvalidPage.

    PyPI's list has 30 MiB, so no tree of objects is made. Names with escapes are skipped, and a
    ``name`` elsewhere in the file is taken for a project: the names are only listed.
    """
    version = _SCANNED_VERSION.search(body)
    start = _SCANNED_LIST.search(body)
    if version is None or start is None:
        raise _not_a_page(url, "projects")
    check_version(version[1].decode(), url)
    for number, found in enumerate(_SCANNED_NAME.finditer(body)):
        if number == limits.PROJECTS:
            raise InvalidPage(
                f"lists more than {limits.PROJECTS:,} projects, the most that are read", url=url
            )
        yield found[1].decode("utf-8", "replace")


def _not_a_page(url: str, key: str) -> InvalidPage:
    return InvalidPage(f"is not a page of the simple API (PEP 691) with {key!r}", url=url)


def _json_tree(body: bytes, url: str) -> dict[str, Any]:
    """Return the page as an object with a list of files."""
    if limits.json_values(body) > limits.PAGE_VALUES:
        raise too_many_values(url)
    try:
        text = body.decode("utf-8-sig")
        # One character beyond U+FFFF makes all of them take four bytes.
        if sys.getsizeof(text) > 2 * limits.PAGE_BYTES + 1000:
            raise InvalidPage(
                f"takes more than {2 * limits.PAGE_BYTES:,} bytes as text, the most that are read",
                url=url,
            )
        tree = json.loads(text)
        del text
    except (ValueError, RecursionError) as error:
        raise InvalidPage(f"is not JSON ({error})", url=url) from None
    meta = tree.get("meta") if isinstance(tree, dict) else None
    if not isinstance(meta, dict) or not isinstance(tree.get("files"), list):
        raise _not_a_page(url, "files")
    check_version(meta.get("api-version"), url)
    return tree  # type: ignore[no-any-return] # it is a dict, see above


def _json_file(entry: object, links: Links, previous: PageFile | None) -> PageFile | None:
    """Return the file of *entry*, None if it is not valid; *previous* is the one before it."""
    if not isinstance(entry, dict):
        return None
    filename = entry.get("filename")
    address = entry.get("url")
    if not isinstance(filename, str) or not isinstance(address, str) or not is_filename(filename):
        return None
    url = links.join(address)
    if url is None:
        return None
    # The names of PEP 714 first, then what indexes said before.
    core_metadata: Mapping[str, str] | None = None
    for key in ("core-metadata", "data-dist-info-metadata", "dist-info-metadata"):
        value = entry.get(key)
        if value is not None:  # `{}` tells of a file without its hash, to installers as well
            core_metadata = _hashes(value) if value or isinstance(value, dict) else None
            break
    if previous is not None and core_metadata == previous.core_metadata:
        # Most wheels of a version have the same METADATA: a fourth of the memory of large pages.
        core_metadata = previous.core_metadata
    yanked = entry.get("yanked")
    size = entry.get("size")
    provenance = text_of(entry.get("provenance"))
    return PageFile(
        filename,
        url,
        _hashes(entry.get("hashes")),
        text_of(entry.get("requires-python")),
        (yanked if isinstance(yanked, str) else "") if yanked else None,  # an empty text is false
        size if type(size) is int and size >= 0 else None,  # not True
        text_of(entry.get("upload-time")),
        core_metadata,
        provenance and links.join(provenance),
    )


def _hashes(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    for digest in value.values():
        if not isinstance(digest, str) or not digest.isalnum() or digest != digest.lower():
            break
    else:
        return value  # nearly always
    return {
        name: digest.lower()
        for name, digest in value.items()
        if isinstance(digest, str) and digest.isalnum()
    }
