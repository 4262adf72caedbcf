"""Runs at each start of Python in an environment with pep-variants-shim, and waits for pip.

``pep_variants_shim.pth`` imports this module; on Python 3.15 and newer, ``pep_variants_shim.start``
calls `start` (PEP 829). Where the command line of the interpreter has no ``pip`` in it nothing else
is imported. Where it has, one import hook is added, see `pep_variants_shim.watch`.
"""

import sys


def start() -> None:
    """Have the pip of this process patched, if its command line is about pip. Never raises."""
    if "pip" in str(sys.orig_argv[1:]).lower():
        try:
            from pep_variants_shim import watch

            watch()
        except Exception:  # an installation that was killed must not break Python
            return


start()
