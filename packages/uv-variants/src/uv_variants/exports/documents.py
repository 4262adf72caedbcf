"""The texts that uv writes, with the files of the index in place of those that uv was shown.

In requirements a version has the hashes of every label. In pylock.toml (PEP 751) it has the wheels
of every label at their own URLs, and the table ``variants-json``. All else stays as uv wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from packaging.utils import canonicalize_name

from pep_variants.internal import KEY, LockError, filename_of, toml, write_table
from variants_proxy.internal import FOLDER, wheel_at

from .exported_files import IndexRelease, IndexWheel, Part, Shown

_PINNED = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?P<extras>\[[^\]]*\]|)"
    r"==(?P<version>[^\s;#\\]+)\s*(?:;\s*(?P<marker>[^\\#]*?))?(?:\s+(?P<comment>#.*?))?(?: \\)?"
)
_HASH = re.compile(r"    --hash=(?P<hash>[a-z0-9]+:[0-9a-f]+)(?: \\)?")
_PACKAGE = re.compile(r"(?m)^\[\[packages\]\]$")


class Pinned(NamedTuple):
    """A requirement of a file.

    Attributes:
        name: normalized name.
        version: as it is in the file.
    """

    name: str
    version: str


def pinned_requirements(text: str) -> list[Pinned]:
    """Return the requirements with a version in *text*, each once."""
    found = (_PINNED.fullmatch(line) for line in text.splitlines())
    return list(dict.fromkeys(_pinned(match) for match in found if match))


def with_hashes(
    text: str,
    parts: Callable[[Pinned], Sequence[Part]],
    hashes: Callable[[Pinned], set[str]] | None,
) -> str:
    """Return requirements with the names that publishers gave files, and the hashes of all labels.

    Args:
        text: of a requirements file that uv wrote.
        parts: returns the parts of a requirement, see `ExportedFiles.parts`.
        hashes: returns further hashes (``sha256:…``) of its own files, None for no hashes at all.
    """
    blocks: list[list[str]] = []
    for line in text.splitlines(keepends=True):
        if blocks and line.startswith("    "):  # hashes and comments of a requirement
            blocks[-1].append(line)
        else:
            blocks.append([line])
    return "".join(line for block in blocks for line in _requirement(block, parts, hashes))


def _requirement(
    block: Sequence[str],
    parts: Callable[[Pinned], Sequence[Part]],
    hashes: Callable[[Pinned], set[str]] | None,
) -> Iterator[str]:
    """Yield the lines of a requirement, *block*, for every part of it."""
    end = block[0][len(block[0].rstrip("\r\n")) :]
    match = _PINNED.fullmatch(block[0].rstrip("\r\n"))
    pinned = _pinned(match) if match is not None else None
    found = parts(pinned) if pinned is not None else ()
    own = any(not part.name for part in found) or not found
    more = hashes(pinned) if hashes is not None and pinned is not None and own else set()
    if match is None or pinned is None or not (found or more):
        yield from block
        return
    read = [_HASH.fullmatch(line.rstrip("\r\n")) for line in block[1:]]
    given = {each["hash"] for each in read if each is not None}
    others = [line for line, each in zip(block[1:], read, strict=True) if each is None]
    for part in found or (Part("", pinned.version, True),):
        name, version = (part.name, part.version) if part.name else (match["name"], pinned.version)
        listed = given | more
        if part.name:
            digests = set[str]().union(*(wheel.digests for wheel in part.wheels))
            listed = digests if hashes is not None else set()
        marker = part.marker(match["marker"] or "")
        line = f"{name}{match['extras']}=={version}" + (f" ; {marker}" if marker else "")
        comment = match["comment"] or ""
        if not listed:
            yield f"{line}  {comment}{end}" if comment else f"{line}{end}"
        else:
            yield " \\".join((line, *(f"{end}    --hash={each}" for each in sorted(listed)))) + end
            yield from [f"    {comment}{end}"] if comment else ()
        yield from others


def _pinned(match: re.Match[str]) -> Pinned:
    return Pinned(canonicalize_name(match["name"]), match["version"])


class LockedVariants(NamedTuple):
    """A package of a lock file with wheels that the proxy serves.

    Attributes:
        name, version: as in the file.
        source: URL of its index, without the last slash.
        wheels: label and plain filename of every wheel at a ``.variant`` URL.
    """

    name: str
    version: str
    source: str
    wheels: Sequence[Shown]


def is_pylock(text: str) -> bool:
    """Return whether *text* is a ``pylock.toml`` of uv."""
    return re.search(r"(?m)^lock-version = ", text) is not None


def with_real_files(
    text: str,
    release: Callable[[LockedVariants], tuple[IndexRelease, Sequence[IndexWheel]]],
    parts: Callable[[LockedVariants], Sequence[Part]],
) -> str:
    """Return a ``pylock.toml`` with the files of the index in place of those that uv was shown.

    Args:
        text: of a file that uv wrote.
        release: returns what the index has, see `ExportedFiles.locked`.
        parts: returns the parts of a package, see `ExportedFiles.parts`; each becomes a package.

    Raises:
        LockError: the text is not what uv writes.
    """
    import tomli_w

    try:
        packages = toml.loads(text).get("packages", [])
    except ValueError as error:
        raise LockError(f"uv's pylock.toml: {error}") from None
    starts = [match.start() for match in _PACKAGE.finditer(text)]
    if len(starts) != len(packages):
        raise LockError("uv's pylock.toml: its packages are not written as tables")
    written = text[: starts[0]] if starts else text
    for package, start, end in zip(packages, starts, [*starts[1:], len(text)], strict=True):
        block, locked = text[start:end], _locked(package)
        if locked is not None:
            tables = list(_tables(package, locked, release, parts(locked)))
            gap = block[len(block.rstrip("\n")) :]
            block = tomli_w.dumps({"packages": tables}).rstrip("\n") + gap
        written += block
    return written


def _locked(package: dict[str, Any]) -> LockedVariants | None:
    found = {url: wheel_at(url) for wheel in package.get("wheels", ()) if (url := wheel.get("url"))}
    wheels = {url: wheel for url, wheel in found.items() if wheel is not None}
    if not wheels:
        return None
    page = next(iter(wheels)).partition(f"/{FOLDER}/")[0]
    source, version = page.rpartition("/")[0], package.get("version", "")
    return LockedVariants(package["name"], version, source, tuple(wheels.values()))


def _tables(
    package: dict[str, Any],
    locked: LockedVariants,
    release: Callable[[LockedVariants], tuple[IndexRelease, Sequence[IndexWheel]]],
    parts: Sequence[Part],
) -> Iterator[dict[str, Any]]:
    """Yield the tables of *package*: one, or that of every part of it."""
    for part in parts:
        if part.name:
            names = {"name": part.name, "version": part.version}
            found = {**package, **names, "wheels": list(map(_table, part.wheels))}
            found.pop("sdist", None)
            yield _with_marker(found, part)
    own = next((part for part in parts if not part.name), None)
    if parts and own is None:
        return
    known, wheels = release(locked)
    if own is not None:  # no others than those that are locked
        wheels = [wheel for wheel in wheels if wheel.shown in locked.wheels]
    # Those at their own URL are as uv wrote them. Several labels of the catalogue may be one file.
    kept = [wheel for wheel in package["wheels"] if wheel_at(wheel.get("url", "")) is None]
    plain = {filename_of(wheel) for wheel in kept}
    entries = {wheel.get("url", ""): wheel for wheel in kept}
    for wheel in wheels:
        if wheel.label is not None or wheel.plain not in plain:
            entries.setdefault(wheel.url, _table(wheel))
    if not entries and "sdist" not in package:
        raise LockError(f"{locked.name} {locked.version}: the index has no wheels of it any more")
    labels = {wheel.label for wheel in wheels if wheel.label and wheel.published is None}
    table = {key: value for key, value in package.items() if key != "wheels"}
    table |= {"wheels": list(entries.values())} if entries else {}
    table |= {KEY: write_table(known.documents, labels)} if labels else {}
    yield table if own is None else _with_marker(table, own)


def _with_marker(table: dict[str, Any], part: Part) -> dict[str, Any]:
    marker = part.marker(table.get("marker", ""))
    return {**table, "marker": marker} if marker else table


def _table(wheel: IndexWheel) -> dict[str, Any]:
    """Return the table of a wheel."""
    table: dict[str, Any] = {"url": wheel.url}
    try:
        uploaded = datetime.fromisoformat((wheel.upload_time or "").replace("Z", "+00:00"))
    except ValueError:
        uploaded = None
    if uploaded is not None and uploaded.tzinfo is not None:
        table["upload-time"] = uploaded
    if wheel.size is not None:
        table["size"] = wheel.size
    return {**table, "hashes": dict(wheel.hashes)}
