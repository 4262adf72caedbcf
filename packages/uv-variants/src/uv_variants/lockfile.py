"""Lock files: for whom one was made, which is a part of the URLs in it.

*Pinned*: the platform key of the machine that made the lock is in its URLs. Everybody who uses the
lock uses that key: the same files, with the same hashes, on every machine.

*Floating*: in the key's place is `HERE`, and every shim knows for itself what that means. The lock
has neither labels nor hashes of variant wheels; the shim checks them against the upstream's.
"""

from __future__ import annotations

import re
from pathlib import Path

HERE = "here"
"""Floating name of this machine."""


def lock_path(root: Path | None, script: Path | None) -> Path | None:
    """Return where the lock file of a project, or of a script, is; None without either."""
    if script is not None:
        return script.with_name(f"{script.name}.lock")
    return root / "uv.lock" if root is not None else None


def locked_key(path: Path | None, base: str) -> str | None:
    """Return the platform key in the lock file at *path*.

    Args:
        path: of the lock file; there may be none.
        base: URL of the shim, without the last slash.

    Returns:
        The key, None if there is no lock file or nothing in it comes from this shim.
    """
    if path is None:
        return None
    try:
        text = path.read_text("utf-8")
    except (OSError, ValueError):
        return None
    match = re.search(rf'"{re.escape(base)}/p/([^/"\s]+)/', text)
    return match[1] if match else None


def locked_variants(text: str) -> tuple[str, ...]:
    """Return the projects (normalized names) of which a lock file with that *text* has variants."""
    found = re.findall(r"/p/[^/\s\"]+/files/[^/\s\"]+/([a-z0-9-]+)/[0-9a-z_.~]+/", text)
    return tuple(dict.fromkeys(found))


def locked_versions(text: str) -> dict[str, set[str]]:
    """Return the versions of every project in a lock file with that *text*."""
    found: dict[str, set[str]] = {}
    for name, version in re.findall(
        r'(?m)^\[\[package\]\]\nname = "([^"]+)"\nversion = "([^"]+)"', text
    ):
        found.setdefault(name, set()).add(version)
    return found
