"""`variants doctor --verify`: whether the files of this project and of pip are as installed.

Every file is compared with the hash in RECORD of its distribution, the two start files with their
contents as well, which are the same in every release. Compiled files in ``__pycache__`` have no
hashes in RECORD and are not compared.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from pep_variants import wheel_files
from pep_variants.errors import VariantError
from pep_variants.wheel_files import Row
from variants_index.doctor import Findings, Part, Problem

START_FILES = {
    "pep_variants_shim.pth": b"import pep_variants_shim_start\n",
    "pep_variants_shim.start": b"pep_variants_shim_start:start\n",
}
"""What runs when Python starts, by the name in site-packages."""

_OURS = re.compile(
    r"(pep|pip|uv|resolvelib)[-_]variants|variants[-_](catalog|cli|index|plugins|proxy)"
)
_COMPILED = re.compile(r"(^|/)__pycache__/[^/]*\.pyc$")
_ALGORITHMS = ("sha256", "sha384", "sha512")
_MAX_START_FILE = 1 << 20
_CHUNK = 1 << 20


def virtual_environment_paths(given: Path | None) -> list[str]:
    """Return the package folders of a virtual environment, empty if it is none.

    Its Python is not started, as that runs the start files which are to be verified.

    Args:
        given: its folder or its interpreter, None for the active one.
    """
    path = given or Path(os.environ.get("VIRTUAL_ENV") or sys.prefix)
    folder = path if path.is_dir() else path.parent.parent
    if not (folder / "pyvenv.cfg").is_file():
        return []
    patterns = ("lib*/python*/site-packages", "lib*/pypy*/site-packages", "Lib/site-packages")
    return [str(found) for pattern in patterns for found in sorted(folder.glob(pattern))]


def verify(paths: Iterable[str]) -> Findings:
    """Return what differs from RECORD, and what is in no RECORD, in the package folders *paths*."""
    rows: list[tuple[str, str]] = []
    problems: list[Problem] = []
    trees: list[dict[str, Any]] = []
    for folder in map(Path, dict.fromkeys(map(os.path.realpath, paths))):
        known, roots = set[str](), set[str]()
        for distribution in distributions(path=[str(folder)]):
            record = list(_record(distribution))
            known.update(os.path.normpath(folder / row.path) for row in record)
            project = canonicalize_name(wheel_files.metadata_field(distribution, "Name") or "")
            if project != "pip" and not _OURS.fullmatch(project.removesuffix("-shim")):
                continue
            roots.update(row.path.split("/")[0] for row in record)
            version = wheel_files.metadata_field(distribution, "Version") or ""
            name = f"{project} {version}"
            found = list(_differences(folder, record, name, is_pip=project == "pip"))
            problems += found
            text = f"{len(record)} files of RECORD, {len(found) or 'none'} changed or missing"
            if any(row.path.startswith(("__editable__", "_editable_impl_")) for row in record):
                text += "; its code is in a checkout, which is not compared"
            rows.append((name, f"{text}, in {folder}"))
            tree = {"project": project, "version": version, "folder": str(folder)}
            trees.append({**tree, "files": len(record)})
        problems += _unlisted(folder, roots - {"", ".", ".."}, known)
    rows = rows or [("nothing", "no distribution of this project, and no pip")]
    return Findings({"files": Part(tuple(rows), tuple(problems), trees)})


def _record(distribution: Distribution) -> Iterator[Row]:
    """Yield the rows of RECORD but compiled files, none if it is missing or not valid."""
    try:
        data = (distribution.read_text(wheel_files.RECORD_FILE) or "").encode()
        rows = wheel_files.read_record(data, wheel_files.RECORD_FILE)
    except (VariantError, UnicodeError):
        return
    yield from (row for row in rows if row.path and not _COMPILED.search(row.path))


def _differences(
    folder: Path, record: Collection[Row], name: str, *, is_pip: bool
) -> Iterator[Problem]:
    """Yield the files of the distribution *name* that are not as *record* lists them."""
    if not record:
        # Distributors of systems leave it out of their pip.
        text = f"{name} in {folder} has no valid RECORD, so its files cannot be compared"
        yield Problem("changed-file", text, fails=not is_pip)
    for row in record:
        path = Path(os.path.normpath(folder / row.path))
        algorithm, _, digest = row.digest.partition("=")
        shipped = START_FILES.get(row.path)
        if not path.is_file():
            yield Problem("changed-file", f"{path} of {name} is missing")
        elif shipped is not None and _start(path) != shipped:
            text = f"{path} of {name} runs at each start of Python, and is not {shipped!r}"
            yield Problem("changed-file", text)
        elif path.name not in (wheel_files.RECORD_FILE, *wheel_files.SIGNATURE_FILES) or algorithm:
            if algorithm not in _ALGORITHMS:
                yield Problem("changed-file", f"{path} of {name} has no SHA-2 hash in RECORD")
            elif _digest(path, algorithm) != digest:
                yield Problem("changed-file", f"{path} of {name} differs from its hash in RECORD")


def _unlisted(folder: Path, roots: Collection[str], known: Collection[str]) -> Iterator[Problem]:
    """Yield files in no RECORD: named as ours, in a folder of *roots*, or starting our code."""
    for top in sorted(folder.iterdir() if folder.is_dir() else ()):
        starts = top.suffix in (".pth", ".start") and b"pep_variants" in _start(top)
        named = _OURS.match(top.name) and top.suffix != ".dist-info"
        if not (starts or named or top.name in roots):
            continue
        for path in sorted(top.rglob("*")) if top.is_dir() else (top,):
            relative = path.relative_to(folder).as_posix()
            folder_of_files = path.is_dir() and not path.is_symlink()
            if folder_of_files or str(path) in known or _COMPILED.search(relative):
                continue
            yield Problem("unlisted-file", f"{path} is in no RECORD")


def _start(path: Path) -> bytes:
    """Return the contents of a start file, as far as they can be one of ours."""
    try:
        with path.open("rb") as file:
            return file.read(_MAX_START_FILE)
    except OSError:
        return b""


def _digest(path: Path, algorithm: str) -> str:
    """Return the digest of a file as RECORD has it, empty if the file cannot be read."""
    found = hashlib.new(algorithm)
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                found.update(chunk)
    except OSError:
        return ""
    return base64.urlsafe_b64encode(found.digest()).rstrip(b"=").decode()
