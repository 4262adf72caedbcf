"""Requirements files: labels that their comments name count as options of the command.

pip without the shim reads the same files: to it they are comments.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from .._guard import Original, replace
from .._session import current_session


def patch_files(module: ModuleType) -> None:
    """Read the comments of every file of requirements and constraints."""

    @replace(module, "preprocess")
    def preprocess(original: Original, content: str) -> Any:
        session = current_session()
        if session is not None and "--variant" in content:
            session.options.add_listed(content)
        return original(content)
