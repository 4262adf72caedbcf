"""Pages of a simple index: HTML (PEP 503, 592, 658, 714) and JSON (PEP 691, 700).

Pure functions from what is known of the files to the text of one page, so that a page can be
written again without the others.
"""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

API_VERSION = "1.1"
GENERATOR = '<meta name="generator" content="variants index">'
"""Marks pages of ours; others are not removed."""


@dataclass(frozen=True)
class IndexFile:
    """One file of a project page.

    Attributes:
        filename: its name.
        url: link, relative to the page or absolute, escaped.
        sha256: hexadecimal.
        size: in bytes.
        requires_python: specifier, None if the file does not say.
        core_metadata: SHA-256 of the METADATA file at the URL plus ``.metadata``, None if there
            is no such file.
    """

    filename: str
    url: str
    sha256: str
    size: int
    requires_python: str | None = None
    core_metadata: str | None = None


def project_html(name: str, files: Sequence[IndexFile]) -> str:
    """Return the page of project *name*, files in the order given."""
    return _page(f"Links for {name}", [_file_link(file) for file in files])


def project_json(name: str, versions: Sequence[str], files: Sequence[IndexFile]) -> str:
    """Return the page of project *name* as JSON, files and versions in the order given."""
    tree = {
        "meta": {"api-version": API_VERSION},
        "name": name,
        "versions": list(versions),
        "files": [_file_tree(file) for file in files],
    }
    return json.dumps(tree, indent=1) + "\n"


def root_html(names: Sequence[str]) -> str:
    """Return the page that lists all projects."""
    return _page("Simple index", [_link(f"{name}/", name) for name in names])


def root_json(names: Sequence[str]) -> str:
    """Return the page that lists all projects as JSON."""
    tree = {
        "meta": {"api-version": API_VERSION},
        "projects": [{"name": name} for name in names],
    }
    return json.dumps(tree, indent=1) + "\n"


def _page(title: str, links: Sequence[str]) -> str:
    lines = [
        "<!DOCTYPE html>",
        "<html>",
        "<head>",
        '<meta charset="utf-8">',
        f'<meta name="pypi:repository-version" content="{API_VERSION}">',
        GENERATOR,
        f"<title>{html.escape(title)}</title>",
        "</head>",
        "<body>",
        f"<h1>{html.escape(title)}</h1>",
        *(f"{link}<br>" for link in links),
        "</body>",
        "</html>",
    ]
    return "\n".join(lines) + "\n"


def _link(url: str, text: str, **attributes: str | None) -> str:
    given = "".join(
        f' {name.replace("_", "-")}="{html.escape(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return f'<a href="{html.escape(url)}"{given}>{html.escape(text)}</a>'


def _file_link(file: IndexFile) -> str:
    return _link(
        f"{file.url}#sha256={file.sha256}",
        file.filename,
        data_requires_python=file.requires_python,
        data_core_metadata=file.core_metadata and f"sha256={file.core_metadata}",
    )


def _file_tree(file: IndexFile) -> dict[str, Any]:
    tree: dict[str, Any] = {
        "filename": file.filename,
        "url": file.url,
        "hashes": {"sha256": file.sha256},
        "size": file.size,
    }
    if file.requires_python is not None:
        tree["requires-python"] = file.requires_python
    if file.core_metadata is not None:
        tree["core-metadata"] = {"sha256": file.core_metadata}
    return tree
