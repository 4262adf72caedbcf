"""The files of this package that pages are made of, and which design they come to.

Apart from the page itself: an index that is up to date asks for the design alone.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import version
from importlib.resources import files


@cache
def design() -> str:
    """Return what tells pages of this release from those that another one wrote."""
    text = "\n".join(map(resource, ("style.css", "form.html", "choice.js", "form.js")))
    return f"{version('variants-cli')} {hashlib.sha256(text.encode()).hexdigest()[:16]}"


@cache
def resource(name: str) -> str:
    """Return a file of this package, without indentation and whole lines of comment."""
    text = (files(__package__) / name).read_text("utf-8")
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))
