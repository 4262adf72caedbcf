"""The templates of pages: text of others is escaped, and on one line.

Pages need nothing from elsewhere, and forbid themselves everything but their own style
(Content-Security-Policy).
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from ..console import one_line
from .decision_tree import NO_VARIANT

if TYPE_CHECKING:
    from jinja2 import Environment


def rendered(name: str, **values: object) -> str:
    """Return the template *name* with *values*.

    Templates of HTML escape all text and have the style with their name as ``style``; those of
    Markdown have the filters ``text`` and ``code``.
    """
    environment = _environment()
    source = name.replace(".html", ".css")
    if source != name:
        style = template_text(source)
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        values |= {"style": style, "style_hash": f"'sha256-{digest}'"}
    return environment.get_template(name).render(values)


@cache
def template_text(name: str) -> str:
    """Return a file of the templates."""
    return (files(__package__) / "templates" / name).read_text("utf-8")


@cache
def _environment() -> Environment:
    # Imported here: most commands show no page.
    from jinja2 import Environment, FunctionLoader, pass_eval_context, select_autoescape
    from jinja2.nodes import EvalContext

    @pass_eval_context
    def final(context: EvalContext, value: object) -> object:
        return one_line(value) if context.autoescape and type(value) is str else value

    environment = Environment(
        loader=FunctionLoader(template_text),
        autoescape=select_autoescape(["html"]),
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=final,
    )
    environment.filters |= {"text": markdown_text, "code": markdown_code}
    return environment


# An underscore inside a word is one.
_SPECIAL = re.compile(r"([\\`*\[\]|~$]|(?<![a-zA-Z0-9])_|_(?![a-zA-Z0-9]))")
_FIRST = re.compile(r"^([-+]|\d+[.)](?= ))")
# GitHub makes links of addresses, mentions and numbers of issues.
_ENTITIES = {
    "&": "&amp;", "#": "&#35;", "<": "&lt;", ">": "&gt;", "@": "&#64;", "://": "&#58;//",
    "www.": "www&#46;",
}  # fmt: skip
_LINKS = re.compile("|".join(map(re.escape, _ENTITIES)))


def markdown_text(text: str) -> str:
    """Return *text* so that Markdown shows it as it is, on one line."""
    text = one_line(text)
    escaped = _SPECIAL.sub(r"\\\1", _LINKS.sub(lambda found: _ENTITIES[found[0]], text))
    # At the beginning of a line they would make a list or a heading.
    return _FIRST.sub(r"\\\1", escaped)


def markdown_code(text: str) -> str:
    """Return *text* as code; empty, and with characters that end code, as text."""
    text = one_line(text)
    if not text or text == NO_VARIANT or "`" in text or "|" in text:
        return markdown_text(text)
    return f"`{text}`"
