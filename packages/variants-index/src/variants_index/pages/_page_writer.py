"""Writing pages of the simple API, JSON or HTML. Equal pages give equal bytes."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ._page import API_VERSION, Page, PageFile

GENERATOR = "pep-variants"
"""The generator that HTML pages name; a writer recognizes its own pages by it."""


def json_page(page: Page) -> bytes:
    """Return *page* as JSON (PEP 691). Equal pages give equal bytes.

    It declares the version of the API whose required keys it has: an index that gives HTML, or
    version 1.0, says neither all versions nor sizes.
    """
    is_complete = page.versions is not None and all(file.size is not None for file in page.files)
    tree: dict[str, Any] = {
        "meta": {"api-version": API_VERSION if is_complete else "1.0"},
        "name": page.project,
        "files": list(map(_json_file, page.files)),
    }
    if page.versions is not None:
        tree["versions"] = list(page.versions)
    if page.status != "active" or page.status_reason:
        tree["project-status"] = {"status": page.status}
        if page.status_reason:
            tree["project-status"]["reason"] = page.status_reason
    return json.dumps(tree, separators=(",", ":")).encode()


def _json_file(file: PageFile) -> dict[str, Any]:
    values = {
        "filename": file.filename,
        "url": file.url,
        "hashes": dict(file.hashes),
        "requires-python": file.requires_python,
        # Without a reason, or a hash, only whether it is so.
        "yanked": True if file.yanked == "" else file.yanked,
        "size": file.size,
        "upload-time": file.upload_time,
        "core-metadata": None if file.core_metadata is None else dict(file.core_metadata) or True,
        "provenance": file.provenance,
    }
    return {name: value for name, value in values.items() if value is not None}


def html_page(page: Page) -> bytes:
    """Return *page* as HTML (PEP 503). Equal pages give equal bytes.

    >>> from variants_index.pages import Page, PageFile, html_page
    >>> file = PageFile("tool-1.0-py3-none-any.whl", "tool-1.0-py3-none-any.whl")
    >>> html_page(Page("tool", (file,))).decode().splitlines()[-2]
    '<a href="tool-1.0-py3-none-any.whl">tool-1.0-py3-none-any.whl</a><br>'
    """
    metas = _METAS
    if page.status != "active":
        metas += _meta("pypi:project-status", page.status)
        if page.status_reason:
            metas += _meta("pypi:project-status-reason", page.status_reason)
    return _document(f"Links for {page.project}", map(_file_link, page.files), metas)


def _file_link(file: PageFile) -> str:
    """Return *file* as the link that installers read, with its ``data-`` attributes."""
    attributes = {"requires-python": file.requires_python, "yanked": file.yanked}
    if file.core_metadata is not None:
        attributes["core-metadata"] = _digest(file.core_metadata) or "true"
    # No PEP has it in HTML; mirrors do, and uv reads it.
    attributes["upload-time"] = file.upload_time
    attributes["provenance"] = file.provenance
    digest = _digest(file.hashes)
    return _link(f"{file.url}#{digest}" if digest else file.url, file.filename, attributes)


def _digest(hashes: Mapping[str, str]) -> str:
    """Return the one hash that a page of HTML has room for; SHA-256, if it is known."""
    if not hashes:
        return ""
    name = "sha256" if "sha256" in hashes else next(iter(hashes))
    return f"{name}={hashes[name]}"


def json_projects(names: Sequence[str]) -> bytes:
    """Return the page that lists the projects of an index as JSON."""
    # An object for each of a million names would take 200 MB.
    entries = ",".join(f'{{"name":{json.dumps(name)}}}' for name in names)
    return f'{{"meta":{{"api-version":"{API_VERSION}"}},"projects":[{entries}]}}'.encode()


def html_projects(names: Sequence[str]) -> bytes:
    """Return the page that lists the projects of an index as HTML."""
    return _document("Simple index", (_link(f"{name}/", name, {}) for name in names), _METAS)


def _document(title: str, links: Iterable[str], metas: str) -> bytes:
    lines = [
        "<!DOCTYPE html>",
        '<html><head><meta charset="utf-8">',
        metas,
        f"<title>{html.escape(title)}</title></head><body>",
        f"<h1>{html.escape(title)}</h1>",
        *(f"{link}<br>" for link in links),
        "</body></html>",
    ]
    return ("\n".join(lines) + "\n").encode()


def _meta(name: str, content: str) -> str:
    return f'<meta name="{html.escape(name)}" content="{html.escape(content)}">'


def _link(url: str, text: str, attributes: Mapping[str, str | None]) -> str:
    given = "".join(
        f' data-{name}="{html.escape(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return f'<a href="{html.escape(url)}"{given}>{html.escape(text)}</a>'


_METAS = _meta("pypi:repository-version", API_VERSION) + _meta("generator", GENERATOR)
