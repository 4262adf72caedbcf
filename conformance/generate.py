"""Write the generated families of cases.

``python -m conformance.generate`` writes the files, ``--check`` says which of the stored files
differ from what it would write.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence

from .case import CASES
from .families import (
    FAMILIES,
    markers,
    merging,
    ordering,
    platforms,
    preferences,
    priorities,
    providers,
)
from .layout import text_of

_MODULES = (markers, merging, ordering, platforms, preferences, priorities, providers)
"""The modules whose import registers the families."""


def files() -> Iterator[tuple[str, str]]:
    """Yield path below ``cases`` and text of every generated file."""
    for item in FAMILIES:
        yield f"{item.path}.json", text_of(item.file())


def outdated() -> list[str]:
    """Return the paths of generated files that differ from what would be written.

    A file with a ``family`` that no function makes counts as well.
    """
    made = dict(files())
    found = [
        path
        for path, text in made.items()
        if not (CASES / path).is_file() or (CASES / path).read_text("utf-8") != text
    ]
    for path in sorted(CASES.rglob("*.json")):
        name = path.relative_to(CASES).as_posix()
        if name not in made and "family" in json.loads(path.read_text("utf-8")):
            found.append(name)
    return found


def main(arguments: Sequence[str]) -> int:
    """Write or check the generated files; return the exit status."""
    if "--check" in arguments:
        for path in outdated():
            print(f"{path}: differs from what 'python -m conformance.generate' writes")
        return 1 if outdated() else 0
    for path, text in files():
        (CASES / path).parent.mkdir(exist_ok=True)
        (CASES / path).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
