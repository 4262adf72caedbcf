"""The page itself, as HTML."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from pep_variants import limits
from pep_variants.model.label import NULL_LABEL
from pep_variants.model.metadata import Metadata
from variants_index.pages import Page, html_link, html_metas, html_page

from ..console import counted
from .choice_data import choice_tree
from .releases import Release, ReleaseFile, Row, releases_of
from .static_files import resource
from .wording import date, needed, size, sizes


class Kind(NamedTuple):
    """How files without a label are called, and what they need."""

    title: str
    needs: str


PLACEHOLDER = "INDEX-URL"
"""Stands in commands for the URL of the index where that is not known."""

_KINDS = {
    "wheels": Kind("no variant", "nothing: for any installer"),
    "source": Kind("source", "is built on your machine"),
    "other": Kind("files", ""),
}
_FEW = 3
"""Files that are listed openly; more are folded."""

_STATUSES = {
    "archived": "This project is archived: no new versions are to be expected.",
    "deprecated": "This project is deprecated: its maintainers advise against using it.",
    "quarantined": "This project is quarantined: it may be harmful. Do not install it.",
}


def render(page: Page, documents: Mapping[str, bytes], *, index_url: str | None = None) -> bytes:
    """Return the page of a project in HTML (PEP 503). Equal arguments give equal bytes.

    Every file is one link, with the attributes of `variants_index.pages.html_page`; there are no
    other links. Where that would be more than readers of pages take (`limits.PAGE_BYTES`), the page
    has the links alone.

    Args:
        page: the files of the project, and its status.
        documents: its ``*-variants.json`` files by filename. What cannot be read costs the
            version its table of needs, and is said on the page.
        index_url: base URL of the index, for the commands that install; None if it is not known.
    """
    releases = releases_of(page, documents)
    data = choice_tree(page.project, releases) if _is_choice(releases) else None
    lines = [*_head(page), *_body(page, releases, index_url), *_script(data), ""]
    body = "\n".join(lines).encode()
    return body if len(body) <= limits.PAGE_BYTES else html_page(page)


def _is_choice(releases: Sequence[Release]) -> bool:
    return any(release.has_variants or release.problem for release in releases)


def _digest(text: str) -> str:
    """Return *text* as a source of a ``Content-Security-Policy``."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _head(page: Page) -> Iterator[str]:
    style = resource("style.css")
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(_program())}; "
        "base-uri 'none'; form-action 'none'"
    )
    yield "<!DOCTYPE html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">'
    yield html_metas(page)
    yield f"<title>{html.escape(page.project)}: files and variants</title>"
    yield f"<style>{style}</style></head>"


def _body(page: Page, releases: tuple[Release, ...], index_url: str | None) -> Iterator[str]:
    versions = [release for release in releases if release.version is not None]
    yield f"<body><header><h1>{html.escape(page.project)}</h1>"
    yield f"<p>{_summary(page, versions)}</p></header><main>"
    if page.status != "active":
        said = _STATUSES.get(page.status, f"The status of this project is {page.status}.")
        reason = f" Reason: {page.status_reason}" if page.status_reason else ""
        yield f'<p class="notice" role="note">{html.escape(said + reason)}</p>'
    if versions:
        yield from _commands(page, versions, index_url)
    if _is_choice(releases):
        yield resource("form.html")
    for place, release in enumerate(releases):
        yield from _release(place, release)
    yield "</main>"


def _script(data: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield the end of the page: the script and what it chooses from, if there is a choice."""
    if data is not None:
        # "<" ends data as little as it begins a tag; what is left is JSON as it was.
        text = json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
        yield f'<script type="application/json" id="data">{text}</script>'
        yield f"<script>{_program()}</script>"
    yield "</body></html>"


@cache
def _program() -> str:
    return "\n".join(map(resource, ("choice.js", "form.js")))


def _summary(page: Page, versions: list[Release]) -> str:
    parts = [counted(len(page.files), "file")]
    if versions:
        parts.insert(0, f"{counted(len(versions), 'version')}, newest {versions[0].version}")
    labels = {file.label for release in versions for file in release.files if file.label}
    if labels:
        parts.append(counted(len(labels), "variant"))
    return html.escape("; ".join(parts))


def _commands(page: Page, versions: list[Release], index_url: str | None) -> Iterator[str]:
    known = "index" if index_url else "index unknown"
    url = f'<span class="{known}">{html.escape(index_url or PLACEHOLDER)}</span>'
    place = f"--index-url {url} {html.escape(page.project)}"
    yield '<section class="box" aria-label="How to install">'
    if any(release.has_variants for release in versions):
        yield '<div class="commands">'
        yield "<div><p>pip, with <code>pip install pep-variants-shim</code> once:</p>"
        yield f"<pre>pip install {place}</pre></div>"
        yield "<div><p>uv, with <code>uv tool install uv-variants</code> once:</p>"
        yield f"<pre>uv-variants pip install {place}</pre></div></div>"
    else:
        yield f"<pre>pip install {place}</pre>"
    if index_url is None:
        yield (
            f'<p class="soft placeholder">{PLACEHOLDER} is the address of this page without '
            f"<code>{html.escape(page.project)}/</code>.</p>"
        )
    yield "</section>"


def _release(place: int, release: Release) -> Iterator[str]:
    name = "Other files" if release.version is None else str(release.version)
    ident = "other" if release.version is None else f"v{name}"
    state = " open" if place == 0 else ""
    about = html.escape(_about(release))
    yield f'<details class="release" id="{html.escape(ident)}" data-release="{place}"{state}>'
    yield f'<summary><h2>{html.escape(name)}</h2> <span class="soft">{about}</span></summary>'
    if release.problem:
        problem = f"The variant wheels of this version cannot be used: {release.problem}"
        yield f'<p class="notice" role="note">{html.escape(problem)}</p>'
    pythons = {item.file.requires_python for item in release.files}
    common = pythons.pop() if len(pythons) == 1 else None
    yield "<table><thead><tr><th>Variant</th><th>Needs</th><th>Files</th></tr></thead><tbody>"
    for row in release.rows:
        yield _row(row, _needs(release, row), common)
    if release.document is not None:
        yield (
            '<tr class="metadata"><th class="label" scope="row">metadata</th>'
            "<td>what the variants need, for installers</td>"
            f'<td class="files"><ul>{_item(ReleaseFile(release.document, None), common)}</ul></td>'
            "</tr>"
        )
    yield "</tbody></table></details>"


def _about(release: Release) -> str:
    days = sorted(filter(None, (date(item.file.upload_time) for item in release.files)))
    pythons = {item.file.requires_python for item in release.files}
    python = pythons.pop() if len(pythons) == 1 else None
    parts = [
        days[0] if days else "",
        counted(len(release.files), "file"),
        f"Python {python}" if python else "",
        "yanked" if release.is_yanked else "",
    ]
    return " · ".join(filter(None, parts))


def _needs(release: Release, row: Row) -> str:
    """Return what the files of *row* need, as HTML."""
    if row.label is None:
        return _KINDS[row.kind].needs
    if release.metadata is None or release.metadata.properties_of(row.label) is None:
        return "not known"
    if row.label == NULL_LABEL:
        return "nothing: fits every machine"
    phrases = needed(release.metadata, row.label)
    if not phrases:
        return "nothing that has to be detected"
    items = "".join(f"<li>{html.escape(text)}</li>" for text in phrases)
    return f"<ul>{items}</ul>{_properties(release.metadata, row.label)}"


def _properties(metadata: Metadata, label: str) -> str:
    """Return all properties of a variant, folded."""
    lines = [
        f"<code>{html.escape(' :: '.join((namespace, feature, ', '.join(values))))}</code>"
        for namespace, features in (metadata.properties_of(label) or {}).items()
        for feature, values in features.items()
    ]
    return f'<details class="properties"><summary>properties</summary>{"".join(lines)}</details>'


def _row(row: Row, needs: str, common: str | None) -> str:
    """Return *row* as HTML.

    Args:
        row: the files.
        needs: what they need, as HTML.
        common: the Python that all files of the version require.
    """
    shown = html.escape(row.label) if row.label is not None else _KINDS[row.kind].title
    data = f"label={html.escape(row.label)}" if row.label is not None else f"kind={row.kind}"
    listing = f"<ul>{''.join(_item(item, common) for item in row.files)}</ul>"
    if len(row.files) > _FEW:
        listing = f"<details><summary>{_overview(row.files)}</summary>{listing}</details>"
    return (
        f'<tr data-{data}><th class="label" scope="row">{shown}</th><td>{needs}</td>'
        f'<td class="files">{listing}</td></tr>'
    )


def _overview(files: Sequence[ReleaseFile]) -> str:
    found = sizes(item.file.size for item in files if item.file.size is not None)
    parts = [counted(len(files), "file"), found, ", ".join(_systems(files))]
    return html.escape(" · ".join(filter(None, parts)))


def _systems(files: Iterable[ReleaseFile]) -> list[str]:
    names = {"manylinux": "Linux", "musllinux": "Linux (musl)", "linux": "Linux",
             "macosx": "macOS", "win": "Windows", "any": "any system"}  # fmt: skip
    found = set()
    for item in files:
        for tag in item.tags.rpartition("-")[2].split("."):
            system = next((name for name in names if tag.startswith(name)), None)
            if system is not None:
                found.add(names[system])
    return sorted(found)


def _item(item: ReleaseFile, common: str | None) -> str:
    file = item.file
    notes = [
        size(file.size) if file.size is not None else "",
        date(file.upload_time),
        f"Python {file.requires_python}" if file.requires_python not in (None, common) else "",
        "attested" if file.provenance is not None else "",
    ]
    about = html.escape(" · ".join(filter(None, notes)))
    shown = f' <span class="soft">{about}</span>' if about else ""
    if file.yanked is None:
        return f"<li>{html_link(file)}{shown}</li>"
    reason = f": {file.yanked}" if file.yanked else ""
    return (
        f'<li class="yanked">{html_link(file)}{shown} '
        f'<span class="yanked-note">yanked{html.escape(reason)}</span></li>'
    )
