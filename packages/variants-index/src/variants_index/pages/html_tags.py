"""Start tags of HTML pages, read in linear time and without keeping the page's text.

`html.parser` takes hours for pages made for it (``<a <a <a``), and its releases differ. This
tokenizer follows the tokenization states of HTML (https://html.spec.whatwg.org/#tokenization) as
far as they decide where a start tag begins and ends, and works on bytes: all supported encodings
are supersets of ASCII.
"""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from pep_variants.internal import limits

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

# Python's codecs include compressors and rot13, and a page may name any of them.
_SINGLE_BYTE = re.compile(
    r"iso-?8859-(?:[1-9]|1[013-6])|(?:windows-|cp)125[0-8]|koi8-[ru]|latin-?1"
)


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


def encoding_of(charset: str | None) -> str:
    """Return the Python codec for the *charset* of a page; UTF-8 unless a single-byte one is named.

    Unknown charsets are read as UTF-8: everything that matters on a page is ASCII.
    """
    name = (charset or "").lower()
    return name if _SINGLE_BYTE.fullmatch(name) else "utf-8"


def start_tags(  # noqa: C901
    body: bytes, encoding: str, names: Collection[str], attributes: Collection[str]
) -> Iterator[Tag]:
    """Yield the start tags of a page that have one of *names*.

    Args:
        body: the page.
        encoding: Python codec for attribute values; undecodable bytes become U+FFFD.
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
                key.decode(): None if value is None else decoded(value, encoding)
                for key, value in kept.items()
            }
            yield Tag(name.decode("ascii", "replace"), texts, place)
        elif name in _RAW_TEXT:
            closing = _RAW_TEXT[name].search(body, place)
            if closing is None:
                return
            place = closing.start()


def decoded(data: bytes, encoding: str) -> str:
    """Return *data* as text, with character references replaced."""
    text = data.decode(encoding, "replace")
    try:
        return html.unescape(text)
    except ValueError:  # a reference with thousands of digits
        return text
