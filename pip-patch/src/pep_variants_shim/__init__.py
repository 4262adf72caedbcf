"""Makes the pip of this environment aware of wheel variants.

`watch` adds a meta path finder that waits for pip. It is called at the start of an interpreter
whose command line has ``pip`` in it (``pep_variants_shim_start``), by `pep_variants_shim.__main__`,
by a pip with this built in, and by programs that import pip and whose command line does not say so.
Imports nothing but `sys`, never imports pip, never raises.

``PEP_VARIANTS_SHIM=0`` (or ``false``, ``no``, ``off``) keeps pip as it is. It counts with
``python -I`` and ``-E``, too, unlike other variables: it can only switch the shim off.
"""

import sys

BUILT_IN = __name__.startswith("pip.")
"""Whether this is built into a patched pip."""

LOCAL = "+variants."
"""Prefix of the local version of a patched pip."""

ADVICE = (
    "wheel variants are ignored in this run. Please report this line to the pep-variants project; "
    "PEP_VARIANTS_SHIM=0 switches variants off"
)
"""What to do about a fault of the shim."""

OWN = ("pep-variants-shim", "pip-variants")
"""Distributions with this package, of which an environment has one."""

_OFF = ("0", "false", "f", "no", "n", "off")  # as pip reads its own variables


class PipWatch:
    """Meta path finder that finds nothing; `PatchFinder` replaces it when pip is imported."""

    _failed = False

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:  # noqa: ARG002
        """Find nothing."""
        # "pip._internal" too: pip's runner for subprocesses has a finder for "pip" before this one.
        # Two comparisons are the fastest test; every import of every program makes them.
        if (name == "pip" or name == "pip._internal") and not self._failed:
            try:
                import os

                if os.environ.get("PEP_VARIANTS_SHIM", "").lower() in _OFF:
                    return
                from ._hook import PatchFinder

                sys.meta_path[sys.meta_path.index(self)] = PatchFinder()
            except Exception as error:  # a fault of the shim must not break pip
                self._failed = True  # said once
                if sys.stderr is not None:
                    kind = type(error).__name__
                    print(f"pep-variants-shim: {kind}: {error}: {ADVICE}", file=sys.stderr)


def watch() -> None:
    """Add the finder. Safe to call twice."""
    # The package "pip" itself is not patched.
    if "pip._internal" not in sys.modules and not any(type(f) is PipWatch for f in sys.meta_path):
        sys.meta_path.insert(0, PipWatch())
