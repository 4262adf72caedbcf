"""Check that a module of more than 400 or fewer than 30 lines says why.

The reason is a comment in the first 30 lines of the module:

    # Size: one table, which is read as a whole.

`__init__.py` and `__main__.py` may be short.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = (
    "packages/*/src",
    "resolver-ext/src",
    "pip-patch/src",
    "pip-patch/patched",
    "conformance",
    "integration-tests/benchmarks",
    "integration-tests/fuzz",
    "integration-tests/hostile",
    "integration-tests/lint",
    "integration-tests/support",
)
MAXIMUM, MINIMUM = 400, 30
"""Lines of a module."""
REASON = re.compile(r"^# Size: \S", re.MULTILINE)


def modules() -> Iterator[Path]:
    """Yield the modules the rule is for, relative to the root of the repository."""
    for pattern in SOURCES:
        for folder in sorted(ROOT.glob(pattern)):
            for path in sorted(folder.rglob("*.py")):
                yield path.relative_to(ROOT)


def problem(path: Path, text: str) -> str | None:
    """Return what is wrong with the size of the module at *path*, or None."""
    lines = text.splitlines()
    if REASON.search("\n".join(lines[:MINIMUM])):
        return None
    if len(lines) > MAXIMUM:
        return f"{len(lines)} lines, more than {MAXIMUM}: split it"
    if len(lines) < MINIMUM and path.name not in ("__init__.py", "__main__.py"):
        return f"{len(lines)} lines, fewer than {MINIMUM}: merge it into the module it belongs to"
    return None


def main() -> int:
    """Print a line for every module without a reason; return the exit code."""
    failed = False
    for path in modules():
        if found := problem(path, (ROOT / path).read_text("utf-8")):
            print(f"{path.as_posix()}: {found}, or say why in a comment `# Size: …` at its top")
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
