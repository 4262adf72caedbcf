"""Starts the shim in an interpreter where it is not installed, see `patches.runner`.

Run as a file: nothing else of the shim can be imported before. Where the shim is installed as well,
it has started already, and stays active.
"""

import os
import sys
from importlib.machinery import PathFinder

_NAME = "pep_variants_shim"
_PLACE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120


class _ShimFinder:
    """Finds the package of this file, and nothing else in the same folder."""

    @staticmethod
    def find_spec(fullname, path=None, target=None):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN205, ARG004
        return PathFinder.find_spec(fullname, [_PLACE]) if fullname == _NAME else None


if _NAME not in sys.modules:
    sys.meta_path.append(_ShimFinder)
    try:
        from pep_variants_shim import watch

        watch()
    except Exception:  # a fault of the shim must not break pip
        if sys.flags.verbose:
            import traceback

            traceback.print_exc()
