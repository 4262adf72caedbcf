"""Lock files in the form of PEP 751 that uv reads: it takes no variants, and says nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pep_variants.files import read_text
from pep_variants.formats import toml
from pep_variants.limits import LOCK_TEXT_BYTES
from pep_variants.lock.wheels import labels_of

if TYPE_CHECKING:
    from ..invocation import Invocation
    from ..place import Place

READING = (("pip", "install"), ("pip", "sync"))
"""Commands that read such files."""

_NAME = re.compile(r"pylock(\.[^.]+)?\.toml")
_MOST = 5


def unread_variants(invocation: Invocation, place: Place) -> Iterator[str]:
    """Yield a line for each lock file of *invocation* whose variants uv does not take."""
    if invocation.command not in READING:
        return
    given = invocation.values("requirements")
    given += invocation.operands if invocation.command == ("pip", "sync") else ()
    for text in given:
        if _NAME.fullmatch(Path(text).name):
            names = _projects_with_variants(place.cwd / text)
            if names:
                more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
                yield (
                    f"{text}: uv takes no variants from it: it installs {', '.join(names[:_MOST])}"
                    f"{more} without, or fails; sync from uv.lock, export requirements instead, or "
                    "install the file with pip and pep-variants-shim"
                )


def _projects_with_variants(path: Path) -> list[str]:
    try:
        tree = toml.loads(read_text(path, LOCK_TEXT_BYTES))
    except (OSError, ValueError, RecursionError):
        return []  # for uv to report
    packages = tree.get("packages")
    return [
        str(package.get("name"))
        for package in (packages if isinstance(packages, list) else ())
        if isinstance(package, dict) and any(labels_of(package))
    ]
