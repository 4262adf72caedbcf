"""Constants on the pages of the Python API, with what is written below them where they are defined.

autodoc leaves out a constant that has no docstring in the module that it reads, and a public module
takes most of its constants from private ones.
"""

from __future__ import annotations

import ast
import re
from importlib import import_module
from inspect import getsource, isclass, isroutine
from pathlib import Path
from typing import TYPE_CHECKING

from sphinx.pycode import ModuleAnalyzer

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_LONGEST = 100
"""Characters of a value that a page shows."""
_MODULE = re.compile(r"automodule:: (\S+)")


def describe(app: Sphinx) -> None:
    """Give autodoc the docstrings of all public constants."""
    for page in Path(app.srcdir, "docs/reference").glob("api*.md"):
        for module in _MODULE.findall(page.read_text("utf-8")):
            analyzer = ModuleAnalyzer.for_module(module)
            found = analyzer.find_attr_docs()
            loaded = import_module(module)
            for name in loaded.__all__:
                value = getattr(loaded, name)
                if ("", name) not in found and not (isclass(value) or isroutine(value)):
                    tail = ["", ":meta hide-value:"] if len(repr(value)) > _LONGEST else []
                    found["", name] = [*docstring(module, name), *tail]


def docstring(module: str, name: str) -> list[str]:
    """Return the lines below the assignment of *name*, in *module* or where that has it from."""
    found = ModuleAnalyzer.for_module(module).find_attr_docs()
    if ("", name) in found:
        return found["", name]
    loaded = import_module(module)
    for node in ast.parse(getsource(loaded)).body:
        if isinstance(node, ast.ImportFrom) and any(item.name == name for item in node.names):
            package = (loaded.__spec__.parent if loaded.__spec__ else None) or ""
            parts = package.split(".")[: 1 - node.level or None] if node.level else []
            return docstring(".".join((*parts, node.module or "")), name)
    return [""]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.connect("builder-inited", describe)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
