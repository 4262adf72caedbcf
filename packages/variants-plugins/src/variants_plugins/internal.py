"""Names of variants_plugins that only the distributions of this project import.

They may change in any release. `make lint` refuses imports from any other inner module by another
distribution.
"""

from .sandbox import MEASURES

__all__ = ["MEASURES"]
