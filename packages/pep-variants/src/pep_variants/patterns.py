"""Regular expressions that are compiled when they are first used.

To compile one takes 0.1 to 0.5 ms, and most commands use few: those of variant markers alone took
6 million instructions of every pip that met a variant.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

__all__ = ["pattern"]

if TYPE_CHECKING:
    from re import compile as pattern
else:

    class pattern:  # noqa: N801 - stands where `re.compile` would
        """A pattern with the methods and attributes of a compiled one."""

        def __init__(self, text: str, flags: int = 0) -> None:
            self.pattern = text
            self._flags = flags

        def __getattr__(self, name: str) -> object:
            found = getattr(re.compile(self.pattern, self._flags), name)
            setattr(self, name, found)  # the next time it is found at once
            return found
