"""Lock files in the form of PEP 751 that uv reads: it takes no variants, and says nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.pylock import is_valid_pylock_path

from pep_variants.internal import LOCK_TEXT_BYTES, labels_of, lists_variants, read_text, toml

if TYPE_CHECKING:
    from ..invocation import Invocation
    from ..place import Place


def unread_variants(invocation: Invocation, place: Place) -> Iterator[str]:
    """Yield a line for each lock file of *invocation* whose variants uv does not take."""
    if invocation.command not in (("pip", "install"), ("pip", "sync")):
        return
    given = invocation.values("requirements")
    given += invocation.operands if invocation.command == ("pip", "sync") else ()
    for text in given:
        path = place.cwd / text
        try:
            if not is_valid_pylock_path(Path(text)):
                continue
            tree = toml.loads(read_text(path, LOCK_TEXT_BYTES))
        except (OSError, ValueError, RecursionError):
            continue  # for uv to report
        if lists_variants(tree):
            first = next(item for item in tree["packages"] if any(labels_of(item)))
            yield (
                f"{text}: uv takes no variants from it: it installs {first.get('name')} without, "
                "or fails; sync from uv.lock, export requirements instead, or install the file "
                "with pip and pep-variants-shim"
            )
