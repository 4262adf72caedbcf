"""Results of builds: written beside the wheels, so that the next run continues where this ended."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from pep_variants.errors import InvalidWheelFilename, VariantError
from pep_variants.files import replacing
from pep_variants.model.filename import parse_filename

from .build_plan import Plan
from .model import Variant
from .repairing import same_release

BUILT, PACKED, KEPT = "built", "packed", "kept"
"""What a run did: built the wheel, replaced the metadata of an existing one, or kept it."""

_CHUNK = 1024 * 1024


@dataclass(frozen=True)
class Built:
    """A finished wheel.

    Attributes:
        name: of the variant, see `Variant.name`.
        label: of the variant.
        wheel: its filename.
        sha256: of the file, hexadecimal.
        fingerprint: digest of everything that it was built from.
        metadata: digest of its variant metadata.
        contents: digest of the files that it installs, without dist-info.
        seconds: duration of the build.
        how: what this run did: `BUILT`, `PACKED` or `KEPT`.
    """

    name: str
    label: str
    wheel: str
    sha256: str
    fingerprint: str
    metadata: str
    contents: str
    seconds: float = 0.0
    how: str = BUILT


@dataclass(frozen=True)
class Failed:
    """A variant whose build failed: its name, and the error."""

    name: str
    error: VariantError


def read_result(plan: Plan, path: Path) -> Built | None:
    """Return the result in *path*, None if it is missing or the wheel has changed since."""
    try:
        built = Built(**json.loads(path.read_text(encoding="utf-8")))
        wheel = plan.place(Path(built.wheel).name)
        unchanged = file_digest(wheel) == built.sha256
    except (OSError, ValueError, TypeError):  # missing, or not written by us
        return None
    return built if unchanged else None


def write_result(path: Path, built: Built) -> None:
    """Write *built* to *path*, from where the next run reads it."""
    with replacing(path) as stream:
        stream.write(json.dumps(asdict(built), indent=2).encode())


def remove_former(plan: Plan, path: Path, wheel: Path) -> None:
    """Remove the wheel of the result in *path* if only its tags differ from those of *wheel*."""
    former = read_result(plan, path)
    if former is not None and former.wheel != wheel.name:
        other = plan.place(Path(former.wheel).name)
        if same_release(other, wheel):
            other.unlink()


def unrelated_wheels(
    output: Path, built: Sequence[Built], variants: Sequence[Variant]
) -> list[str]:
    """Return the names of wheels in *output* of the *built* release whose label no variant has."""
    releases = {(name.name, name.version) for name in (parse_filename(b.wheel) for b in built)}
    labels = {variant.label for variant in variants}
    found = []
    for path in sorted(output.glob("*.whl")):
        try:
            name = parse_filename(path.name)
        except InvalidWheelFilename:
            continue
        if name.label is not None and name.label not in labels:
            found += [path.name] if (name.name, name.version) in releases else []
    return found


def same_contents(built: Sequence[Built]) -> list[tuple[str, ...]]:
    """Return the groups of labels whose wheels for one Python and platform install the same."""
    groups: dict[tuple[str, str], list[str]] = {}
    for item in built:
        target = item.name.removeprefix(item.label)
        groups.setdefault((item.contents, target), []).append(item.label)
    return _several(groups.values())


def same_wheels(built: Sequence[Built]) -> list[tuple[str, ...]]:
    """Return the groups of names whose wheels have one filename, so that the last one remains."""
    groups: dict[str, list[str]] = {}
    for item in built:
        groups.setdefault(item.wheel, []).append(item.name)
    return _several(groups.values())


def _several(groups: Iterable[list[str]]) -> list[tuple[str, ...]]:
    found = dict.fromkeys(tuple(group) for group in groups if len(group) > 1)
    return list(found)


def fingerprint(parts: object) -> str:
    """Return a digest of *parts*, which JSON can represent."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def file_digest(path: Path) -> str:
    """Return the hexadecimal SHA-256 of a file."""
    with path.open("rb") as stream:
        return digest(stream)


def digest(stream: IO[bytes]) -> str:
    """Return the hexadecimal SHA-256 of the rest of *stream*."""
    found = hashlib.sha256()
    while chunk := stream.read(_CHUNK):
        found.update(chunk)
    return found.hexdigest()
