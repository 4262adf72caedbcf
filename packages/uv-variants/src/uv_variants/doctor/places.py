"""The files that count for a command, and the caches: where they are, what is wrong with them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pep_variants.files import read_text
from pep_variants.formats import toml
from pep_variants.limits import LOCK_TEXT_BYTES
from pep_variants.settings.cache_directory import cache_directory
from pep_variants.settings.places import places as variants_places
from variants_index.uv_files import configuration_files

from .. import uv_directories
from .findings import File, Problem

if TYPE_CHECKING:
    from ..place import Place

_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "SSL_CLIENT_CERT")
_SECONDS = 2.0
"""For which the size of one directory is counted."""


def settings_files(place: Place, lock: Path | None) -> tuple[list[File], list[Problem]]:
    """Return the TOML files that count for a command, and those that cannot be read.

    Args:
        place: of the command.
        lock: path of its lock file, None without one.
    """
    candidates = [
        (f"uv: {what}", path)
        for what, path in configuration_files(place.project.absolute(), place.environ)
    ]
    candidates += [
        (f"variants.toml: {found.role.value}", found.path)
        for found in variants_places(place.cwd, place.environ.get("VIRTUAL_ENV"))
    ]
    if lock is not None:
        candidates.append(("lock", lock))
    files, problems = [], []
    for what, path in candidates:
        if not os.path.lexists(path):
            continue
        files.append(File(what, str(path.absolute())))
        try:
            toml.loads(read_text(path, LOCK_TEXT_BYTES))
        except OSError as error:
            problems.append(Problem(f"{path}: {error.strerror or error}"))
        except (ValueError, RecursionError) as error:
            text = " ".join(str(error).split())
            problems.append(Problem(f"{path}: is not valid TOML: {text}"))
    return files, problems


def certificate_files(environ: Mapping[str, str]) -> tuple[list[File], list[Problem]]:
    """Return the certificates that variables name, and those that do not exist."""
    files, problems = [], []
    for name in _CERTIFICATES:
        value = environ.get(name)
        if value:
            files.append(File(name, value))
            if not Path(value).exists():
                problems.append(
                    Problem(f"{name}={value}: no such file: HTTPS fails", f"unset {name}")
                )
    return files, problems


def caches(place: Place, configured: object) -> list[File]:
    """Return the caches of uv and of this program with their sizes.

    Args:
        place: of the command.
        configured: ``cache-dir`` of uv's files.
    """
    uv = uv_directories.cache_directory(place.environ, None, configured, place.cwd).absolute()
    ours = cache_directory(place.environ, "")
    found = []
    for what, path in (
        ("uv", uv),
        ("uv with variants", uv_directories.variants_caches(uv)),
        ("uv-variants", ours),
    ):
        if path.is_dir():
            size, complete = _size(path)
            found.append(File(what, str(path), size, complete))
    return found


def _size(folder: Path) -> tuple[int, bool]:
    """Return how many bytes the files below *folder* have, and whether all were counted."""
    end = time.monotonic() + _SECONDS
    total = 0
    for size in _sizes(str(folder)):
        total += size
        if time.monotonic() > end:
            return total, False
    return total, True


def _sizes(folder: str) -> Iterator[int]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    if entry.is_dir(follow_symlinks=False):
                        yield from _sizes(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        yield entry.stat(follow_symlinks=False).st_size
                except OSError:
                    continue
    except OSError:
        return
