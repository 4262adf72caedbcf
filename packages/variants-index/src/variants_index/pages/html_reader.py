"""HTML pages of the simple API (PEP 503, 592, 658, 708, 714, 740, 792), and pages of links."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pep_variants.internal import filename_of_url, limits

from .html_tags import TooManyTags, decoded, encoding_of, start_tags
from .links import Links
from .page import (
    Page,
    PageFile,
    check_number,
    check_version,
    is_filename,
    texts_of,
    too_many_values,
)

_ATTRIBUTES = (
    "content", "data-core-metadata", "data-dist-info-metadata", "data-gpg-sig", "data-provenance",
    "data-requires-python", "data-upload-time", "data-yanked", "href", "name",
)  # fmt: skip
_HASH = re.compile(r"(?:^|&)(sha512|sha384|sha256|sha224|sha1|md5)=([0-9a-fA-F]+)(?:&|$)")


def read_html_page(body: bytes, url: str, project: str, content_type: str) -> Page:
    """Read the page of *project*, or any page with links to files; raises InvalidPage."""
    encoding = _encoding(content_type)
    links = Links(url, _html_base(body, encoding) if b"<base" in body.lower() else None)
    metas: dict[str, str] = {}
    places: dict[str, list[str]] = {"pypi:alternate-locations": [], "pypi:tracks": []}
    files: list[PageFile] = []
    try:
        for tag in start_tags(body, encoding, ("a", "meta"), _ATTRIBUTES):
            attributes = tag.attributes
            if tag.name == "meta":
                name, content = attributes.get("name"), attributes.get("content")
                if name and content:
                    metas.setdefault(name, content)
                    if name in places:
                        places[name].append(content)
            elif attributes.get("href") and (file := _html_file(attributes, links)) is not None:
                files.append(file)
                check_number(files, url)
    except TooManyTags:
        raise too_many_values(url) from None
    check_version(metas.get("pypi:repository-version", "1.0"), url)
    return Page(
        project,
        tuple(files),
        status=metas.get("pypi:project-status", "active"),
        status_reason=metas.get("pypi:project-status-reason"),
        alternate_locations=texts_of(places["pypi:alternate-locations"]),
        tracks=texts_of(places["pypi:tracks"]),
    )


def read_html_projects(body: bytes, url: str, content_type: str) -> Iterator[str]:
    """Yield the names in a list of projects, as they are; raises InvalidPage."""
    encoding = _encoding(content_type)
    try:
        for tag in start_tags(body, encoding, ("a",), ()):
            # The text of the link, up to the next tag.
            text = body[tag.end : tag.end + limits.FILENAME_CHARACTERS].partition(b"<")[0]
            yield decoded(text, encoding).strip("/ \t\r\n")
    except TooManyTags:
        raise too_many_values(url) from None


def _encoding(content_type: str) -> str:
    parameters = content_type.partition(";")[2]
    match = re.search(r"charset=[\"']?([\w.:-]{1,40})", parameters, re.IGNORECASE)
    return encoding_of(match[1] if match else None)


def _html_base(body: bytes, encoding: str) -> str | None:
    """Return what the first ``<base>`` says, wherever it stands, None without one."""
    try:
        tag = next(start_tags(body, encoding, ("base",), ("href",)), None)
    except TooManyTags:
        return None  # reading the page fails for the same reason
    return tag.attributes.get("href") if tag else None


def _html_file(attributes: Mapping[str, str | None], links: Links) -> PageFile | None:
    address, _, fragment = (attributes["href"] or "").strip().partition("#")
    address = address.rstrip()  # URLs are stripped when they are read back
    url = links.join(address)
    if url is None:
        return None
    filename = filename_of_url(url)
    if not is_filename(filename):
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
        provenance=provenance and links.join(provenance),
        gpg_sig=None if gpg_sig is None else gpg_sig.lower() == "true",
    )
