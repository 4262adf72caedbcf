"""Makes the pip of this environment aware of wheel variants.

Every interpreter start pays for this module, and for nothing else: it puts a finder there that
waits for pip. Called from ``pep_variants_shim.pth``, and on Python 3.15 and newer from
``pep_variants_shim.start`` (PEP 829); a pip with this built in calls it itself. Imports nothing but
`sys`, never imports pip, never raises.
"""

import sys

BUILT_IN = __name__.startswith("pip.")
"""This is part of a pip, which was built with it inside, not a guest beside any pip."""

LOCAL = "+variants."
"""How the version of such a pip goes on after that of the pip it was built from."""


class PipWatch:
    """Meta path finder that finds nothing, but makes way for the patches when pip is imported."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:  # noqa: ARG002
        """Find nothing."""
        # "pip._internal" too: pip's own runner for subprocesses answers for "pip" before us.
        # Two comparisons are the cheapest, and every import of every program pays for them.
        if name == "pip" or name == "pip._internal":
            try:
                from .hook import PatchFinder

                sys.meta_path[sys.meta_path.index(self)] = PatchFinder()
            except Exception:  # pip must start, whatever happens to us
                if sys.flags.verbose:
                    import traceback

                    traceback.print_exc()


def watch() -> None:
    """Wait for pip. Safe to call twice."""
    # pip itself has nothing that is patched.
    if "pip._internal" not in sys.modules and not any(type(f) is PipWatch for f in sys.meta_path):
        sys.meta_path.insert(0, PipWatch())
