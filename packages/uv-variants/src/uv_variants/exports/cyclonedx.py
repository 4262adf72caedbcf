"""CycloneDX in JSON: variant wheels at their own URLs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pep_variants.errors import LockError
from variants_proxy.in_place_names import wheel_at

from .pylock import LockedVariants, locked_variants
from .release import IndexRelease, IndexWheel

_ALGORITHMS = {"sha256": "SHA-256", "sha384": "SHA-384", "sha512": "SHA-512"}


def is_cyclonedx(text: str) -> bool:
    """Return whether *text* is a CycloneDX document in JSON."""
    return text.startswith("{")


def with_real_references(
    text: str,
    release: Callable[[LockedVariants], IndexRelease],
    note: Callable[[LockedVariants, list[str]], None],
) -> str:
    """Return *text* with references to the files of the index; arguments as for pylock.toml.

    Raises:
        LockError: the text is not what uv writes.
    """
    try:
        tree = json.loads(text)
    except ValueError as error:
        raise LockError(f"uv's CycloneDX document: {error}") from None
    changed = [_component(item, release, note) for item in tree.get("components", [])]
    if not any(changed):
        return text
    end = text[len(text.rstrip("\n")) :]
    return json.dumps(tree, indent=2, ensure_ascii=False) + end


def _component(
    component: dict[str, Any],
    release: Callable[[LockedVariants], IndexRelease],
    note: Callable[[LockedVariants, list[str]], None],
) -> bool:
    """Change the references of a component; return whether there was something to change."""
    references = component.get("externalReferences", [])
    urls = [item.get("url", "") for item in references]
    locked = locked_variants(component["name"], component.get("version", ""), urls)
    if locked is None:
        return False
    listed, left_out = release(locked).with_dependencies_of(locked.wheels)
    if left_out:
        note(locked, left_out)
    component["externalReferences"] = [
        *(item for item in references if wheel_at(item.get("url", "")) is None),
        *(
            _reference(wheel)
            for wheel in listed
            if wheel.label is not None or wheel.plain not in locked.plain
        ),
    ]
    return True


def _reference(wheel: IndexWheel) -> dict[str, Any]:
    reference: dict[str, Any] = {"type": "distribution", "url": wheel.url}
    hashes = [{"alg": _ALGORITHMS[kind], "content": value} for kind, value in wheel.hashes.items()]
    return {**reference, "hashes": hashes} if hashes else reference
