"""Names of variants_plugins that only the distributions of this project import.

They may change in any release. `make lint` refuses imports from any other inner module by another
distribution. They are imported on first access, as the public names are.
"""

# ruff: noqa: F403 - for type checkers; __getattr__ gives the names of _NAMES alone

from typing import TYPE_CHECKING

from pep_variants.internal import lazy_name

if TYPE_CHECKING:
    from .answer import *
    from .sandbox import *

_NAMES = {
    "answer": "one_line",
    "sandbox": "MEASURES",
}


def __getattr__(name: str) -> object:
    return lazy_name(__name__, _NAMES, name)
