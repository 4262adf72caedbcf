"""The page of a project on an index: the links that installers read, and what people read.

It is a page of the simple API in HTML (PEP 503). Around the links it shows the project's versions
and variants, and a script in it finds the variant for a machine, without a server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .static_files import design

if TYPE_CHECKING:
    from .page import render

__all__ = ["design", "render"]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name == "render":  # loads a third of what an index that is up to date does
        from .page import render

        return render
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
