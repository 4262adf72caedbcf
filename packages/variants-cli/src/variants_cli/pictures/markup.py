"""Elements of HTML, whose text is escaped by the standard library."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from .wording import clean


def add(parent: ET.Element, tag: str, text: str = "", cls: str = "") -> ET.Element:
    """Append an element to *parent* and return it.

    Args:
        parent: of the element.
        tag: name of the element.
        text: its text, from any source; on one line, without control characters.
        cls: its classes.
    """
    element = ET.SubElement(parent, tag)
    if text:
        element.text = clean(text)
    if cls:
        element.set("class", cls)
    return element


def text_of(element: ET.Element) -> str:
    """Return *element* as HTML.

    Text and attributes are escaped; only elements without content have no end tag.
    """
    return ET.tostring(element, encoding="unicode", method="html")
