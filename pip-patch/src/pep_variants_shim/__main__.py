"""``python -m pep_variants_shim``, the command ``pip-variants``: pip with the patches.

Runs the pip of this environment in this process, with all its commands and options. Needs no file
that runs when Python starts.
"""

from __future__ import annotations

import sys

from . import watch


def main() -> int:
    """Run pip; return the exit code."""
    watch()
    try:
        from pip._internal.cli.main import main as run
    except ModuleNotFoundError as error:
        if error.name != "pip":
            raise
        print(
            f"error: {sys.prefix} has no pip: {sys.executable} -m ensurepip installs one",
            file=sys.stderr,
        )
        return 1
    code: int = run()
    return code


if __name__ == "__main__":
    sys.exit(main())
