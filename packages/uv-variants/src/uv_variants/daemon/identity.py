"""What the running code is, so that a command never talks to a daemon of other code."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator

_PACKAGES = (
    "uv_variants",
    "variants_proxy",
    "variants_index",
    "variants_plugins",
    "pep_variants",
)


def installation() -> str:
    """Return a short text for this installation of uv-variants, the same after an upgrade."""
    return hashlib.sha256(f"{sys.prefix}\0{sys.executable}".encode()).hexdigest()[:16]


def identity() -> str:
    """Return a text that changes when the code on disk does: upgraded, edited, or removed.

    It has times and sizes of the modules of our packages; no file is read.
    """
    found = [sys.version, *_states()]
    return hashlib.sha256(json.dumps(found).encode()).hexdigest()[:32]


def _states() -> Iterator[str]:
    for name in _PACKAGES:
        folder = _folder(name)
        if folder is None:
            yield name
            continue
        try:
            yield from sorted(_modules(folder))
        except OSError:
            yield f"{folder} cannot be read"


def _modules(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                status = entry.stat()
                yield f"{entry.path} {status.st_mtime_ns} {status.st_size}"
            elif "." not in entry.name and entry.name != "__pycache__" and entry.is_dir():
                yield from _modules(entry.path)


def _folder(name: str) -> str | None:
    """Return the directory of a package, which is not imported for that."""
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    if spec is None:
        from importlib.util import find_spec

        spec = find_spec(name)
    places = spec.submodule_search_locations if spec is not None else None
    return next(iter(places), None) if places else None
