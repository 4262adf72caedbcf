"""Links to folders, which a repository host shows with their README.md: on the site, that page.

A folder without a page keeps its name as text. MyST leaves such links as references that it cannot
find; links to other documents and files it resolves by itself. `docs/README.md` is part of
`docs/index.md` on the site, so links to it lead there.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from sphinx.addnodes import pending_xref

if TYPE_CHECKING:
    from docutils.nodes import document
    from sphinx.application import Sphinx


def lead_to_pages(app: Sphinx, doctree: document) -> None:
    """Point each link to a folder, or to its README.md, at the folder's page."""
    root = Path(app.srcdir).resolve()
    here = Path(app.env.doc2path(app.env.docname)).resolve().parent
    for link in list(doctree.findall(pending_xref)):
        if link["reftype"] != "myst":
            continue
        if link.get("refdomain") == "doc":
            target = PurePosixPath(link["reftarget"])
            if target.name == "README":
                link["reftarget"] = _page(app, target.parent) or link["reftarget"]
            continue
        place, _, anchor = link["reftarget"].partition("#")
        folder = (here / place).resolve()
        if not place or not folder.is_dir():
            continue  # MyST warns
        page = _page(app, PurePosixPath(folder.relative_to(root).as_posix()))
        if page is not None:
            link["refdomain"], link["reftarget"] = "doc", page
            link["reftargetid"] = anchor or None
        elif not anchor:  # with one, MyST warns
            link.replace_self(link.children)


def _page(app: Sphinx, folder: PurePosixPath) -> str | None:
    names = [(folder / name).as_posix() for name in ("README", "index")]
    return next((name for name in names if name in app.env.found_docs), None)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.connect("doctree-read", lead_to_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
