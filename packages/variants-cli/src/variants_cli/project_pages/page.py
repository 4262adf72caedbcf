"""The page itself, as HTML."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files as resources

from pep_variants.model.label import NULL_LABEL
from variants_index.pages import Page, html_link, html_metas

from ..console import counted
from .releases import Release, ReleaseFile, releases_of
from .wording import date, needed, size, sizes

PLACEHOLDER = "INDEX-URL"
"""Stands in commands for the URL of the index where that is not known."""

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
    other links.

    Args:
        page: the files of the project, and its status.
        documents: its ``*-variants.json`` files by filename. What cannot be read costs the
            version its table of needs, and is said on the page.
        index_url: base URL of the index, for the commands that install; None if it is not known.
    """
    releases = releases_of(page, documents)
    return "\n".join([*_head(page), *_body(page, releases, index_url), ""]).encode()


@cache
def _resource(name: str) -> str:
    return (resources(__package__) / name).read_text("utf-8").strip()


def _digest(text: str) -> str:
    """Return *text* as a source of a ``Content-Security-Policy``."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _head(page: Page) -> Iterator[str]:
    style = _resource("style.css")
    policy = f"default-src 'none'; style-src {_digest(style)}; base-uri 'none'; form-action 'none'"
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
    for place, release in enumerate(releases):
        yield from _release(release, is_open=place == 0)
    yield "</main></body></html>"


def _summary(page: Page, versions: list[Release]) -> str:
    parts = [counted(len(page.files), "file")]
    if versions:
        parts.insert(0, f"{counted(len(versions), 'version')}, newest {versions[0].version}")
    labels = {file.label for release in versions for file in release.files if file.label}
    if labels:
        parts.append(counted(len(labels), "variant"))
    return html.escape("; ".join(parts))


def _commands(page: Page, versions: list[Release], index_url: str | None) -> Iterator[str]:
    url = index_url or PLACEHOLDER
    place = f'--index-url <span class="index">{html.escape(url)}</span> {html.escape(page.project)}'
    yield '<section class="box" aria-label="How to install">'
    if any(release.has_variants for release in versions):
        yield "<p>pip, with <code>pip install pep-variants-shim</code> once:</p>"
        yield f"<pre>pip install {place}</pre>"
        yield "<p>uv, with <code>uv tool install uv-variants</code> once:</p>"
        yield f"<pre>uv-variants pip install {place}</pre>"
    else:
        yield f"<pre>pip install {place}</pre>"
    if index_url is None:
        yield (
            f'<p class="soft placeholder">{PLACEHOLDER} is the address of this page without '
            f"<code>{html.escape(page.project)}/</code>.</p>"
        )
    yield "</section>"


def _release(release: Release, *, is_open: bool) -> Iterator[str]:
    name = "Other files" if release.version is None else str(release.version)
    about = _about(release)
    yield (
        f'<details class="release" id="{html.escape(f"v{name}" if release.version else "other")}"'
        f"{' open' if is_open else ''}><summary><h2>{html.escape(name)}</h2>"
        f"{f' <span class=soft>{html.escape(about)}</span>' if about else ''}</summary>"
    )
    if release.problem:
        problem = f"The variant wheels of this version cannot be used: {release.problem}"
        yield f'<p class="notice" role="note">{html.escape(problem)}</p>'
    pythons = {item.file.requires_python for item in release.files}
    common = pythons.pop() if len(pythons) == 1 else None
    yield "<table><thead><tr><th>Variant</th><th>Needs</th><th>Files</th></tr></thead><tbody>"
    for label in release.labels():
        its = [item for item in release.files if item.label == label]
        yield from _row(label, _needs(release, label), its, common)
    plain = [item for item in release.files if item.label is None]
    wheels = [item for item in plain if item.tags]
    if wheels:
        yield from _row(None, "no variant", wheels, common, kind="wheels")
    if others := [item for item in plain if not item.tags]:
        kind = "source" if release.version is not None else "other"
        needs = "is built on your machine" if release.version is not None else ""
        yield from _row(None, needs, others, common, kind=kind)
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
    yanked = bool(release.files) and all(item.file.yanked is not None for item in release.files)
    wheels = len(release.files)
    parts = [
        days[0] if days else "",
        counted(wheels, "file"),
        f"Python {python}" if python else "",
        "yanked" if yanked else "",
    ]
    return " · ".join(filter(None, parts))


def _needs(release: Release, label: str) -> str:
    if release.metadata is None or release.metadata.properties_of(label) is None:
        return "not known"
    if label == NULL_LABEL:
        return "nothing: fits every machine"
    phrases = needed(release.metadata, label)
    if not phrases:
        return "nothing that has to be detected"
    return f"<ul>{''.join(f'<li>{html.escape(text)}</li>' for text in phrases)}</ul>"


def _row(
    label: str | None,
    needs: str,
    files: list[ReleaseFile],
    common: str | None,
    *,
    kind: str = "variant",
) -> Iterator[str]:
    """Yield the row of a variant.

    Args:
        label: of the variant, None for files without one.
        needs: what it needs, as HTML.
        files: its files.
        common: the Python that all files of the version require.
        kind: ``variant``, or what the files are.
    """
    names = {"wheels": "any installer", "source": "source", "other": "files"}
    shown = html.escape(label) if label is not None else names[kind]
    data = f' data-label="{html.escape(label)}"' if label is not None else f' data-kind="{kind}"'
    items = "".join(_item(item, common) for item in files)
    listing = f"<ul>{items}</ul>"
    if len(files) > _FEW:
        listing = f"<details><summary>{_overview(files)}</summary>{listing}</details>"
    yield (
        f'<tr{data}><th class="label" scope="row">{shown}</th><td>{needs}</td>'
        f'<td class="files">{listing}</td></tr>'
    )


def _overview(files: list[ReleaseFile]) -> str:
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
    told = html.escape(" · ".join(filter(None, notes)))
    shown = f' <span class="soft">{told}</span>' if told else ""
    if file.yanked is None:
        return f"<li>{html_link(file)}{shown}</li>"
    reason = f": {file.yanked}" if file.yanked else ""
    return (
        f'<li class="yanked">{html_link(file)}{shown} '
        f'<span class="yanked-note">yanked{html.escape(reason)}</span></li>'
    )
