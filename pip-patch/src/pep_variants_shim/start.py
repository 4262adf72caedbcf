"""What every interpreter start pays for: a finder that waits for pip, and nothing else.

Called from ``pep_variants_shim.pth``, and on Python 3.15 and newer from
``pep_variants_shim.start`` (PEP 829). Imports nothing but `sys`, never imports pip, never raises.
"""

import sys


class PipWatch:
    """Meta path finder that finds nothing, but installs the patches when pip is imported."""

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN201, ARG002, D102
        # "pip._internal" too: pip's own runner for subprocesses answers for "pip" before us.
        if name == "pip" or name == "pip._internal":  # noqa: PLR1714 - a tuple costs every import
            try:
                sys.meta_path.remove(self)
                from . import hook

                hook.install()
            except Exception:  # pip must start, whatever happens to us
                if sys.flags.verbose:
                    import traceback

                    traceback.print_exc()


def watch() -> None:
    """Wait for pip. Safe to call twice."""
    if "pip" not in sys.modules and not any(type(f) is PipWatch for f in sys.meta_path):
        sys.meta_path.insert(0, PipWatch())
