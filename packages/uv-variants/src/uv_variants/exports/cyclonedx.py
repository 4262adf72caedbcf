"""CycloneDX in JSON: variant wheels at their own URLs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pep_variants.errors import LockError
from variants_proxy.in_place_names import wheel_at

from .pylock import LockedVariants, locked_variants
from .redirects import Redirects, markers_of
from .release import IndexRelease, IndexWheel

_MARKER = "uv:package:marker"
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
    tree = _read(text)
    changed = [_component(item, release, note) for item in tree.get("components", [])]
    return _written(text, tree) if any(changed) else text


def without_redirects(text: str, redirects: Redirects) -> str:
    """Return *text* without the wheels that stand for another project.

    A component without other files is left out; what depends on it depends on that project.

    Raises:
        LockError: the text is not what uv writes.
    """
    tree = _read(text)
    components = tree.get("components", [])
    exported = markers_of((item["name"], _marker(item)) for item in components)
    gone: set[str] = set()
    changed = False
    for component in components:
        urls = [item.get("url", "") for item in component.get("externalReferences", [])]
        locked = locked_variants(component["name"], component.get("version", ""), urls)
        found = None if locked is None else redirects.find(locked.name, locked.version)
        if found is None:
            continue
        kept = [url for url in urls if wheel_at(url) not in found.wheels]
        if len(kept) == len(urls):
            continue
        changed = True
        marker = redirects.remaining(found, _marker(component), exported, has_others=bool(kept))
        if marker is None:
            gone.add(component["bom-ref"])
            continue
        references = component["externalReferences"]
        component["externalReferences"] = [
            item for item in references if item.get("url", "") in kept
        ]
        others = [item for item in component.get("properties", []) if item.get("name") != _MARKER]
        if marker:
            component["properties"] = [*others, {"name": _MARKER, "value": marker}]
    if not changed:
        return text
    tree["components"] = [item for item in components if item.get("bom-ref") not in gone]
    tree["dependencies"] = _bypassed(tree.get("dependencies", []), gone)
    return _written(text, tree)


def _bypassed(dependencies: list[dict[str, Any]], gone: set[str]) -> list[dict[str, Any]]:
    """Return *dependencies* with those of the components *gone* in the place of these."""
    after = {item["ref"]: item.get("dependsOn", []) for item in dependencies}

    def reached(ref: str) -> list[str]:
        found: dict[str, None] = {}
        seen: set[str] = set()
        waiting = list(reversed(after[ref]))
        while waiting:
            each = waiting.pop()
            if each not in gone:
                found[each] = None
            elif each not in seen:
                seen.add(each)
                waiting += reversed(after.get(each, []))
        found.pop(ref, None)
        return list(found)

    return [
        {**item, "dependsOn": reached(item["ref"])} if gone & set(after[item["ref"]]) else item
        for item in dependencies
        if item["ref"] not in gone
    ]


def _marker(component: dict[str, Any]) -> str:
    """Return the marker of a component, empty for none."""
    properties = component.get("properties", [])
    return next((str(item["value"]) for item in properties if item.get("name") == _MARKER), "")


def _read(text: str) -> dict[str, Any]:
    try:
        tree: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise LockError(f"uv's CycloneDX document: {error}") from None
    return tree


def _written(text: str, tree: dict[str, Any]) -> str:
    """Return *tree* in the place of *text*."""
    return json.dumps(tree, indent=2, ensure_ascii=False) + text[len(text.rstrip("\n")) :]


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
