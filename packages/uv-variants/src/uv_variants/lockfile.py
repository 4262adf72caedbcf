"""uv.lock: the platform key in its URLs, and the projects and variants that it names.

*Pinned*: the URLs have the platform key of the machine that made the lock. All machines that use it
get the same files, with the same hashes.

*Floating*: the URLs have `HERE` in place of a key, which each proxy resolves to its own machine.
The lock has neither labels nor hashes of variant wheels; the proxy checks the upstream's hashes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from pep_variants.files import read_text
from pep_variants.limits import LOCK_TEXT_BYTES

from .daemon.address import RESERVED_URL

HERE = "here"
"""Name that stands for the platform key of the machine at hand."""


def lock_path(root: Path | None, script: Path | None) -> Path | None:
    """Return where the lock file of a project, or of a script, is; None without either."""
    if script is not None:
        return script.with_name(f"{script.name}.lock")
    return root / "uv.lock" if root is not None else None


def locked_key(path: Path | None, base: str, warn: Callable[[str], None]) -> str | None:
    """Return the platform key in the lock file at *path*.

    Args:
        path: of the lock file, None for commands without one; the file may not exist.
        base: URL of the proxy, without the last slash.
        warn: called with the error if the file cannot be read.

    Returns:
        The key, None without a lock file or URLs of this proxy in it.
    """
    if path is None:
        return None
    try:
        text = read_text(path, LOCK_TEXT_BYTES)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or "is not UTF-8"
        warn(f"{path}: {problem}: the platform key of the lock is not known")
        return None
    match = re.search(rf'"{re.escape(base)}/p/([^/"\s]+)/', text)
    return match[1] if match else None


def files_without_hash(text: str) -> int:
    """Return how many files of the proxy are in the lock file *text* without a hash."""
    entries = re.findall(rf'\{{ url = "{re.escape(RESERVED_URL)}/[^"\n]*"[^{{}}\n]*\}}', text)
    return sum("hash = " not in entry for entry in entries)


def locked_variants(text: str) -> tuple[str, ...]:
    """Return the projects (normalized names) with variants in the lock file *text*."""
    found = re.findall(r"/p/[^/\s\"]+/files/[^/\s\"]+/([a-z0-9-]+)/[0-9a-z_.~]+/", text)
    return tuple(dict.fromkeys(found))


def locked_versions(text: str) -> dict[str, set[str]]:
    """Return the versions of every project in the lock file *text*."""
    found: dict[str, set[str]] = {}
    for name, version in re.findall(
        r'(?m)^\[\[package\]\]\nname = "([^"]+)"\nversion = "([^"]+)"', text
    ):
        found.setdefault(name, set()).add(version)
    return found
