"""HTML pages of the simple API (PEP 503, 592, 658, 714, 740, 792), and pages of links.

`html.parser` takes hours for pages made for it (``<a <a <a``), and its releases differ. The
tokenizer here takes linear time, and does not keep the text of the page. It follows the
tokenization states of HTML (https://html.spec.whatwg.org/#tokenization) as far as they decide where
a start tag begins and ends, and works on bytes. Pages are read as UTF-8, whatever charset they
name: everything that matters on a page is ASCII.
"""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from pep_variants import labels as wheel_labels
from pep_variants import limits

from ._page import (
    Links,
    Page,
    PageFile,
    check_number,
    check_parts,
    check_version,
    is_filename,
    too_many_values,
)

# Comment, other declaration, end tag or processing instruction, start tag (closed at once).
_MARKUP = re.compile(rb"<(?:(!--)|([!/?])|([A-Za-z][^\s/>]*)(>?))")
# The end of the tag, or an attribute: name, then its value in one of three spellings.
_ATTRIBUTE = re.compile(
    rb"[\s/]*(?:(>)|([^\s/>][^\s/>=]*)"
    rb"(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>\"'][^\s>]*)|(?=>)))?)"
)
_RAW_TEXT = {
    name: re.compile(rb"</" + name + rb"[\s/>]", re.IGNORECASE)
    for name in (b"script", b"style", b"textarea", b"title")
}
_ATTRIBUTES = (
    "content", "data-core-metadata", "data-dist-info-metadata", "data-provenance",
    "data-requires-python", "data-upload-time", "data-yanked", "href", "name",
)  # fmt: skip
_HASH = re.compile(r"(?:^|&)(sha512|sha384|sha256|sha224|sha1|md5)=([0-9a-fA-F]+)(?:&|$)")


class TooManyTags(ValueError):
    """More tags, attributes and character references than `limits.PAGE_VALUES`."""


@dataclass(frozen=True, slots=True)
class Tag:
    """A start tag.

    Attributes:
        name: lower-case.
        attributes: values by lower-case name, None for an attribute without a value. Of equal
            names the first counts.
        end: where the text after the tag begins, as an index into the page.
    """

    name: str
    attributes: dict[str, str | None]
    end: int


def start_tags(  # noqa: C901
    body: bytes, names: Collection[str], attributes: Collection[str]
) -> Iterator[Tag]:
    """Yield the start tags of a page that have one of *names*.

    Args:
        body: the page.
        names: lower-case names of the tags to return.
        attributes: lower-case names of the attributes to return.

    Raises:
        TooManyTags: the page has more than `limits.PAGE_VALUES` values.
    """
    wanted_tags = {name.encode() for name in names}
    wanted_attributes = {name.encode() for name in attributes}
    values = 0
    place = 0
    while (markup := _MARKUP.search(body, place)) is not None:
        values += 1
        if values > limits.PAGE_VALUES:
            raise TooManyTags
        place = markup.end()
        name = markup[3]
        if name is None:
            # "<!-->" is a whole comment.
            end = body.find(b"-->" if markup[1] else b">", place - 2 if markup[1] else place)
            if end < 0:
                return
            place = end + (3 if markup[1] else 1)
            continue
        name = name.lower()
        kept: dict[bytes, bytes | None] = {}
        is_wanted = name in wanted_tags
        if not markup[4]:
            while True:
                found = _ATTRIBUTE.match(body, place)
                if found is None:
                    return  # the page ends inside a tag
                place = found.end()
                if found[1]:
                    break
                values += 1
                if values > limits.PAGE_VALUES:
                    raise TooManyTags
                if is_wanted:
                    key = found[2].lower()
                    if key in wanted_attributes and key not in kept:
                        value = found[found.lastindex or 2] if found.lastindex != 2 else None
                        kept[key] = value
                        if value is not None:
                            values += 4 * value.count(b"&")  # what they cost, measured
        if is_wanted:
            if values > limits.PAGE_VALUES:
                raise TooManyTags
            texts = {
                key.decode(): None if value is None else decoded(value)
                for key, value in kept.items()
            }
            yield Tag(name.decode("ascii", "replace"), texts, place)
        elif name in _RAW_TEXT:
            closing = _RAW_TEXT[name].search(body, place)
            if closing is None:
                return
            place = closing.start()


def decoded(data: bytes) -> str:
    """Return *data* as text, with character references replaced."""
    text = data.decode("utf-8", "replace")
    try:
        return html.unescape(text)
    except ValueError:  # a reference with thousands of digits
        return text


def read_html_page(body: bytes, url: str, project: str) -> Page:
    """Read the page of *project*, or any page with links to files; raises InvalidPage."""
    links = Links(url, _html_base(body) if b"<base" in body.lower() else None)
    metas: dict[str, str] = {}
    files: list[PageFile] = []
    try:
        for tag in start_tags(body, ("a", "meta"), _ATTRIBUTES):
            attributes = tag.attributes
            if tag.name == "meta":
                name, content = attributes.get("name"), attributes.get("content")
                if name and content:
                    metas.setdefault(name, content)
            elif attributes.get("href") and (file := _html_file(attributes, links)) is not None:
                files.append(file)
                check_number(files, url)
    except TooManyTags:
        raise too_many_values(url) from None
    check_parts(files, url)
    check_version(metas.get("pypi:repository-version", "1.0"), url)
    return Page(
        project,
        tuple(files),
        status=metas.get("pypi:project-status", "active"),
        status_reason=metas.get("pypi:project-status-reason"),
    )


def read_html_projects(body: bytes, url: str) -> Iterator[str]:
    """Yield the names in a list of projects, as they are; raises InvalidPage."""
    try:
        for tag in start_tags(body, ("a",), ()):
            # The text of the link, up to the next tag.
            text = body[tag.end : tag.end + limits.FILENAME_CHARACTERS].partition(b"<")[0]
            yield decoded(text).strip("/ \t\r\n")
    except TooManyTags:
        raise too_many_values(url) from None


def _html_base(body: bytes) -> str | None:
    """Return what the first ``<base>`` says, wherever it stands, None without one."""
    try:
        tag = next(start_tags(body, ("base",), ("href",)), None)
    except TooManyTags:
        return None  # reading the page fails for the same reason
    return tag.attributes.get("href") if tag else None


def _html_file(attributes: Mapping[str, str | None], links: Links) -> PageFile | None:
    address, _, fragment = (attributes["href"] or "").strip().partition("#")
    address = address.rstrip()  # URLs are stripped when they are read back
    url = links.join(address)
    if url is None:
        return None
    filename = wheel_labels.filename_of_url(url)
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
    )
