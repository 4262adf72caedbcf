"""Pages of the simple API: HTML (PEP 503, 592, 658, 714) and JSON (PEP 691, 700, 740, 792).

Pure functions between bytes and data. An index is a stranger: what is wrong with one file costs
that file or that attribute, what is wrong with the page is an error.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from packaging.utils import canonicalize_name

from pep_variants.errors import redacted, shortened

from .errors import InvalidPage

API_VERSION = "1.1"
"""What pages written here declare (PEP 700)."""

JSON = "application/vnd.pypi.simple.v1+json"
HTML = "application/vnd.pypi.simple.v1+html"

ACCEPT = f"{JSON}, {HTML};q=0.2, text/html;q=0.01"
"""``Accept`` header of a request for a page."""

GENERATOR = "pep-variants"
"""What pages written here name as their generator, so that a writer knows its own again."""

# A link that is absolute, or at least its path is, with nothing in it that would change.
_SEGMENT = r"[\w%~+@=-][\w%~+@=.-]*"
_PLAIN_LINK = re.compile(rf"(https?://[a-z0-9.:-]+)?(/(?:{_SEGMENT}(?:/{_SEGMENT})*/?)?)", re.ASCII)
_HASH = re.compile(r"(?:^|&)(sha512|sha384|sha256|sha224|sha1|md5)=([0-9a-fA-F]+)(?:&|$)")


@dataclass(frozen=True, slots=True)  # pages have thousands
class PageFile:
    """One file of a page.

    Attributes:
        filename: its name, one path component.
        url: where it is. Absolute, without fragment, in pages that were read; in pages that are
            to be written it may be relative to the page.
        hashes: hexadecimal digests by the algorithm's name; empty if the index gives none.
        requires_python: version specifier, unparsed, None if there is none.
        yanked: reason, empty if none was given; None for a file that is not yanked (PEP 592).
        size: in bytes (PEP 700), None if unknown.
        upload_time: ISO 8601 as the index spells it (PEP 700), None if unknown.
        core_metadata: hashes of the METADATA file at the URL plus ``.metadata`` (PEP 658, 714),
            empty if it is there without any; None if it is not there.
        provenance: URL of attestations (PEP 740), None if there are none.
        gpg_sig: whether there is a signature at the URL plus ``.asc``; None if not said.
    """

    filename: str
    url: str
    hashes: Mapping[str, str] = field(default_factory=dict)
    requires_python: str | None = None
    yanked: str | None = None
    size: int | None = None
    upload_time: str | None = None
    core_metadata: Mapping[str, str] | None = None
    provenance: str | None = None
    gpg_sig: bool | None = None


@dataclass(frozen=True)
class Page:
    """What an index says of one project.

    Attributes:
        project: normalized name.
        files: in the order of the page.
        versions: all versions of the project (PEP 700), None if the page does not list them.
        status: project status (PEP 792): active, archived, quarantined, deprecated.
        status_reason: why it has that status, None if not said.
        alternate_locations: URLs of the same project elsewhere (PEP 708).
        tracks: URLs of the project that this one extends (PEP 708).
    """

    project: str
    files: tuple[PageFile, ...]
    versions: tuple[str, ...] | None = None
    status: str = "active"
    status_reason: str | None = None
    alternate_locations: tuple[str, ...] = ()
    tracks: tuple[str, ...] = ()


def read_page(body: bytes, content_type: str, url: str, project: str = "") -> Page:
    """Read a project page, or any HTML page with links to files (find-links, directory listings).

    Args:
        body: of the answer, decompressed.
        content_type: header of the answer; what is not JSON is read as HTML.
        url: where it was found in the end, after redirects: what links are relative to.
        project: name of the project that was asked for.

    Raises:
        InvalidPage: it is no page, or of a version of the API that is not known.
    """
    name = canonicalize_name(project)
    kind, _, parameters = content_type.partition(";")
    kind = kind.strip().lower()
    if kind == JSON or kind.endswith(("/json", "+json")):
        return _read_json(body, url, name)
    match = re.search(r"charset=[\"']?([\w.:-]+)", parameters)
    return _read_html(body, url, name, match[1] if match else None)


# --- reading JSON


def _read_json(body: bytes, url: str, project: str) -> Page:
    try:
        tree = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidPage(f"{redacted(url)}: is no JSON ({error})") from None
    meta = tree.get("meta") if isinstance(tree, dict) else None
    if not isinstance(meta, dict) or not isinstance(tree.get("files"), list):
        raise InvalidPage(f"{redacted(url)}: is no project page of the simple API (PEP 691)")
    _check_version(meta.get("api-version"), url)
    base = _Base(url)
    files = [file for entry in tree["files"] if (file := _json_file(entry, base))]
    state = tree.get("project-status")
    state = state if isinstance(state, dict) else {}
    return Page(
        project,
        tuple(files),
        _texts(tree["versions"]) if "versions" in tree else None,
        status=_text(state.get("status")) or "active",
        status_reason=_text(state.get("reason")),
        alternate_locations=_texts(tree.get("alternate-locations")),
        tracks=_texts(meta.get("tracks")),
    )


def _json_file(entry: object, base: _Base) -> PageFile | None:
    if not isinstance(entry, dict):
        return None
    filename = entry.get("filename")
    address = entry.get("url")
    if not isinstance(filename, str) or not isinstance(address, str) or not _is_name(filename):
        return None
    url = base.join(address)
    if url is None:
        return None
    # The names of PEP 714 first, then what indexes said before.
    core_metadata = None
    for key in ("core-metadata", "data-dist-info-metadata", "dist-info-metadata"):
        if key in entry:
            value = entry[key]
            core_metadata = {} if value is True else _hashes(value) if value else None
            break
    yanked = entry.get("yanked", False)
    size = entry.get("size")
    provenance = _text(entry.get("provenance"))
    gpg_sig = entry.get("gpg-sig")
    return PageFile(
        filename,
        url,
        _hashes(entry.get("hashes")),
        _text(entry.get("requires-python")),
        yanked if isinstance(yanked, str) else "" if yanked else None,
        size if type(size) is int and size >= 0 else None,  # not True
        _text(entry.get("upload-time")),
        core_metadata,
        provenance and base.join(provenance),
        gpg_sig if isinstance(gpg_sig, bool) else None,
    )


def _hashes(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {
        name: digest.lower()
        for name, digest in value.items()
        if isinstance(digest, str) and digest.isalnum()
    }


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _texts(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if _text(item)) if isinstance(value, list) else ()


# --- reading HTML


class _Links(HTMLParser):
    """Collects the links of a page.

    Attributes:
        base: what ``<base>`` says, None without one.
        metas: content of every ``<meta>`` by its name.
        links: attributes of every ``<a>`` with a target.
    """

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.base: str | None = None
        self.metas: dict[str, str] = {}
        self.links: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take notice of the three tags that matter."""
        if tag == "a":
            # The first of two equal attributes counts, as in browsers.
            attributes = dict(reversed(attrs))
            if attributes.get("href"):
                self.links.append(attributes)
        elif tag == "base" and self.base is None:
            self.base = dict(attrs).get("href")
        elif tag == "meta":
            attributes = dict(attrs)
            name, content = attributes.get("name"), attributes.get("content")
            if name and content:
                self.metas.setdefault(name, content)


def _read_html(body: bytes, url: str, project: str, charset: str | None) -> Page:
    try:
        text = body.decode(charset or "utf-8", "replace")
    except LookupError:
        text = body.decode("utf-8", "replace")
    parser = _Links()
    try:
        # Not closed: a tag that does not end before the page does is none, and `close` would look
        # for its end again and again, for hours in pages that are made for it.
        parser.feed(text)
    except (ValueError, AssertionError, RecursionError) as error:
        raise InvalidPage(f"{redacted(url)}: cannot be read as HTML ({error})") from None
    _check_version(parser.metas.get("pypi:repository-version", "1.0"), url)
    base = _Base(urljoin(url, parser.base) if parser.base else url)
    return Page(
        project,
        tuple(file for attributes in parser.links if (file := _html_file(attributes, base))),
        status=parser.metas.get("pypi:project-status", "active"),
        status_reason=parser.metas.get("pypi:project-status-reason"),
    )


def _html_file(attributes: Mapping[str, str | None], base: _Base) -> PageFile | None:
    address, _, fragment = (attributes["href"] or "").strip().partition("#")
    url = base.join(address)
    if url is None:
        return None
    filename = unquote(urlsplit(url).path.rpartition("/")[2])
    if not _is_name(filename):
        return None
    digest = _HASH.search(fragment)
    core_metadata = None
    for key in ("data-core-metadata", "data-dist-info-metadata"):
        if key in attributes:
            value = attributes[key] or ""
            match = _HASH.search(value)
            if match:
                core_metadata = {match[1]: match[2].lower()}
            elif value.lower() != "false":
                core_metadata = {}
            break
    provenance = attributes.get("data-provenance")
    gpg_sig = attributes.get("data-gpg-sig")
    return PageFile(
        filename,
        url,
        {digest[1]: digest[2].lower()} if digest else {},
        attributes.get("data-requires-python") or None,
        (attributes["data-yanked"] or "") if "data-yanked" in attributes else None,
        # No PEP has it in HTML, but mirrors do, and uv reads it.
        upload_time=attributes.get("data-upload-time") or None,
        core_metadata=core_metadata,
        provenance=provenance and base.join(provenance),
        gpg_sig=None if gpg_sig is None else gpg_sig.lower() == "true",
    )


class _Base:
    """What links of a page are relative to."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._schemes = ("http", "https", "file") if url.startswith("file:") else ("http", "https")
        # Of thousands of links nearly all begin alike: what has been found good once need not be
        # taken apart again. The origin of the page itself is under the empty prefix.
        self._good: dict[str, str] = {}

    def join(self, address: str) -> str | None:
        """Return the absolute URL of *address*, None for one that nobody should open."""
        plain = _PLAIN_LINK.fullmatch(address)
        if plain is None:
            return self._joined(address)
        prefix, path = plain[1] or "", plain[2]
        origin = self._good.get(prefix)
        if origin is None:
            url = self._joined(address)
            if url is not None and url.endswith(path):
                self._good[prefix] = url[: -len(path)]
            return url
        return origin + path

    def _joined(self, address: str) -> str | None:
        try:
            url = urljoin(self._url, address).partition("#")[0]
            parts = urlsplit(url)
            _ = parts.port
        except ValueError:
            return None
        if parts.scheme not in self._schemes or (parts.scheme != "file" and not parts.hostname):
            return None
        return url


def _is_name(filename: str) -> bool:
    return (
        bool(filename) and filename not in (".", "..") and not re.search(r"[/\\\0\r\n]", filename)
    )


def _check_version(version: object, url: str) -> None:
    major = version.partition(".")[0].strip() if isinstance(version, str) else ""
    if major != "1":
        raise InvalidPage(
            f"{redacted(url)}: is of version {shortened(version)} of the simple API; "
            f"only 1.x is known"
        )


# --- writing


def json_page(page: Page) -> bytes:
    """Return *page* as JSON (PEP 691). Equal pages give equal bytes."""
    tree: dict[str, Any] = {
        "meta": {"api-version": API_VERSION},
        "name": page.project,
        "files": [_file_tree(file) for file in page.files],
    }
    if page.versions is not None:
        tree["versions"] = list(page.versions)
    if page.tracks:
        tree["meta"]["tracks"] = list(page.tracks)
    if page.alternate_locations:
        tree["alternate-locations"] = list(page.alternate_locations)
    if page.status != "active":
        tree["project-status"] = {"status": page.status}
        if page.status_reason:
            tree["project-status"]["reason"] = page.status_reason
    return json.dumps(tree, separators=(",", ":")).encode()


def _file_tree(file: PageFile) -> dict[str, Any]:
    tree: dict[str, Any] = {
        "filename": file.filename,
        "url": file.url,
        "hashes": dict(file.hashes),
    }
    if file.requires_python is not None:
        tree["requires-python"] = file.requires_python
    if file.yanked is not None:
        tree["yanked"] = file.yanked or True
    if file.size is not None:
        tree["size"] = file.size
    if file.upload_time is not None:
        tree["upload-time"] = file.upload_time
    if file.core_metadata is not None:
        tree["core-metadata"] = dict(file.core_metadata) or True
    if file.provenance is not None:
        tree["provenance"] = file.provenance
    if file.gpg_sig is not None:
        tree["gpg-sig"] = file.gpg_sig
    return tree


def html_page(page: Page) -> bytes:
    """Return *page* as HTML (PEP 503). Equal pages give equal bytes."""
    metas = ""
    if page.status != "active":
        metas = _meta("pypi:project-status", page.status)
        if page.status_reason:
            metas += _meta("pypi:project-status-reason", page.status_reason)
    return _document(f"Links for {page.project}", [_file_link(file) for file in page.files], metas)


def _file_link(file: PageFile) -> str:
    attributes = {"requires-python": file.requires_python, "yanked": file.yanked}
    if file.core_metadata is not None:
        attributes["core-metadata"] = _digest(file.core_metadata) or "true"
    attributes["provenance"] = file.provenance
    if file.gpg_sig is not None:
        attributes["gpg-sig"] = "true" if file.gpg_sig else "false"
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
    tree = {
        "meta": {"api-version": API_VERSION},
        "projects": [{"name": name} for name in names],
    }
    return json.dumps(tree, separators=(",", ":")).encode()


def html_projects(names: Sequence[str]) -> bytes:
    """Return the page that lists the projects of an index as HTML."""
    return _document("Simple index", [_link(f"{name}/", name, {}) for name in names])


def _document(title: str, links: Sequence[str], metas: str = "") -> bytes:
    lines = [
        "<!DOCTYPE html>",
        '<html><head><meta charset="utf-8">',
        _meta("pypi:repository-version", API_VERSION) + _meta("generator", GENERATOR) + metas,
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
