"""Write the generated families of cases: ``python -m conformance.generate``.

``--check`` says which of the stored files differ from what it would write.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from .case import CASES
from .families import FAMILIES

WIDTH = 100


def files() -> dict[str, str]:
    """Return the text of every generated file by its path below ``cases``."""
    return {f"{item.path}.json": text_of(item.file()) + "\n" for item in FAMILIES}


def outdated() -> list[str]:
    """Return the paths of generated files that differ from what would be written.

    A file with a ``family`` that no function makes counts as well.
    """
    made = files()
    stored = {
        path.relative_to(CASES).as_posix(): text
        for path in sorted(CASES.rglob("*.json"))
        if "family" in json.loads(text := path.read_text("utf-8"))
    }
    return [path for path in {**made, **stored} if made.get(path) != stored.get(path)]


def text_of(value: Any, indent: int = 0, before: int = 0) -> str:  # noqa: ANN401
    """Return *value* as JSON text, on one line what fits there, as in the files of the corpus.

    It starts *before* characters into a line that is indented by *indent*.
    """
    flat = json.dumps(value, ensure_ascii=False)
    # The names of cases and files stand on lines of their own, short or not.
    is_case = isinstance(value, dict) and "expect" in value
    if (
        not isinstance(value, dict | list)
        or not value
        or (before + len(flat) < WIDTH and not is_case)
    ):
        return flat
    inner = indent + 2
    if isinstance(value, dict):
        items = []
        for key, item in value.items():
            name = f"{json.dumps(key, ensure_ascii=False)}: "
            items.append(name + text_of(item, inner, inner + len(name)))
    else:
        items = [text_of(item, inner, inner) for item in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    lines = ",\n".join(" " * inner + item for item in items)
    return f"{opening}\n{lines}\n{' ' * indent}{closing}"


def main() -> int:
    """Write or check the generated files; return the exit status."""
    if "--check" in sys.argv:
        for path in outdated():
            print(f"{path}: differs from what 'python -m conformance.generate' writes")
        return 1 if outdated() else 0
    for path, text in files().items():
        (CASES / path).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
