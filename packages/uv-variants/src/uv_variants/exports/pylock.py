"""pylock.toml (PEP 751): variant wheels at their own URLs, and the table ``variants-json``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any
from urllib.parse import unquote

from pep_variants.errors import LockError
from pep_variants.formats import toml
from pep_variants.lock.table import write_table
from pep_variants.lock.wheels import KEY
from variants_proxy.choice.in_place_names import FOLDER, wheel_at

from .origins import Part
from .release import IndexRelease, IndexWheel

_PACKAGE = re.compile(r"(?m)^\[\[packages\]\]$")
_NAME = re.compile(r"(?m)^name = .*$")
_VERSION = re.compile(r"(?m)^version = .*$")
_MARKER = re.compile(r"(?m)^marker = .*$")
_SDIST = re.compile(r"(?m)^sdist = .*\n")
_WHEELS = re.compile(r"(?m)^wheels = \[(?:[^\n]*\]$|\n(?:    [^\n]*\n)*\]$)")


@dataclass(frozen=True)
class LockedVariants:
    """A package of the lock file with variant wheels.

    Attributes:
        name, version: as in the file.
        index: URL of its index, without the last slash.
        wheels: label and plain filename of every wheel at a ``.variant`` URL.
        plain: filenames of the other wheels.
    """

    name: str
    version: str
    index: str
    wheels: tuple[tuple[str | None, str], ...]
    plain: tuple[str, ...]


def is_pylock(text: str) -> bool:
    """Return whether *text* is a ``pylock.toml`` of uv."""
    return re.search(r"(?m)^lock-version = ", text) is not None


def with_real_files(
    text: str,
    release: Callable[[LockedVariants], IndexRelease],
    note: Callable[[LockedVariants, list[str]], None],
    parts: Callable[[LockedVariants], Sequence[Part]] = lambda _: (),
) -> str:
    """Return *text* with the files of the index in place of those that uv was shown.

    Args:
        text: of a file that uv wrote.
        release: returns what the index has.
        note: gets the labels that are left out, because they have other dependencies.
        parts: returns the parts of a package, see `origins.parts`; each becomes a package.

    Raises:
        LockError: the text is not what uv writes.
    """
    tree, head, blocks = _read(text)
    written = head
    split: set[str] = set()
    for block, package in blocks:
        locked = _locked(package)
        found = () if locked is None else parts(locked)
        split.update(*((package["name"], part.name) for part in found))
        written += "".join(_with_name(block, package, part) for part in found if part.name)
        own = next((part for part in found if not part.name), None)
        if found and own is None:
            continue
        if locked is not None:
            block = _written(block, package, locked, release, note, as_locked=own is not None)
        if own is not None:
            block = _with_marker(block, own.marker(package.get("marker", "")))
        written += block
    _check(tree, toml.loads(written), split)
    return written


def _with_name(block: str, package: dict[str, Any], part: Part) -> str:
    """Return *block* for the wheels of *part*, under their publisher's name."""
    block = _NAME.sub(lambda _: f"name = {_string(part.name)}", block, count=1)
    block = _VERSION.sub(lambda _: f"version = {_string(part.version)}", block, count=1)
    block = _with_wheels(_SDIST.sub("", block), [_entry(wheel) for wheel in part.wheels])
    return _with_marker(block, part.marker(package.get("marker", "")))


def _read(text: str) -> tuple[dict[str, Any], str, list[tuple[str, dict[str, Any]]]]:
    """Return the tree of *text*, the text before the packages, and text and tree of each."""
    try:
        tree = toml.loads(text)
    except ValueError as error:
        raise LockError(f"uv's pylock.toml: {error}") from None
    packages = tree.get("packages", [])
    starts = [match.start() for match in _PACKAGE.finditer(text)]
    if len(starts) != len(packages):
        raise LockError("uv's pylock.toml: its packages are not written as tables")
    ends = [*starts[1:], len(text)]
    blocks = [text[start:end] for start, end in zip(starts, ends, strict=False)]
    return tree, text[: starts[0]] if starts else text, list(zip(blocks, packages, strict=True))


def _locked(package: dict[str, Any]) -> LockedVariants | None:
    urls = [wheel.get("url", "") for wheel in package.get("wheels", ())]
    found = {url: wheel_at(url) for url in urls}
    variants = {url: wheel for url, wheel in found.items() if wheel is not None}
    if not variants:
        return None
    page, _, _ = next(iter(variants)).partition(f"/{FOLDER}/")
    plain = tuple(unquote(url.rpartition("/")[2]) for url in found if url not in variants)
    return LockedVariants(
        package["name"],
        package.get("version", ""),
        page.rpartition("/")[0],
        tuple(variants.values()),
        plain,
    )


def _written(
    block: str,
    package: dict[str, Any],
    locked: LockedVariants,
    release: Callable[[LockedVariants], IndexRelease],
    note: Callable[[LockedVariants, list[str]], None],
    *,
    as_locked: bool,
) -> str:
    """Return *block* with the files of the index; with *as_locked* no others than those."""
    found = release(locked)
    wheels, left_out = found.with_dependencies_of(locked.wheels)
    wheels = [wheel for wheel in wheels if not wheel.origin]
    if as_locked:
        wheels = [wheel for wheel in wheels if (wheel.label, wheel.plain) in locked.wheels]
    elif left_out:
        note(locked, left_out)
    entries = {
        wheel.get("url", ""): line
        for line, wheel in zip(_entries_of(block), package["wheels"], strict=True)
        if wheel_at(wheel.get("url", "")) is None
    }
    for wheel in wheels:
        # Those at their own URL are as uv wrote them. Several labels of the catalogue may be one
        # file.
        if wheel.label is not None or wheel.plain not in locked.plain:
            entries.setdefault(wheel.url, _entry(wheel))
    if not entries and "sdist" not in package:
        raise LockError(f"{locked.name} {locked.version}: the index has no wheels of it any more")
    written = _with_wheels(block, list(entries.values()))
    labels = {
        wheel.label for wheel in wheels if wheel.label is not None and wheel.published is None
    }
    if not labels:
        return written
    body, gap = written.rstrip("\n"), written[len(written.rstrip("\n")) :]
    return f"{body}\n\n{_table(write_table(found.documents, labels))}{gap}"


def _with_wheels(block: str, entries: Sequence[str]) -> str:
    """Return *block* with *entries* as its wheels."""
    if not entries:
        return _WHEELS.sub("", block, count=1).replace("\n\n\n", "\n\n")
    text = (
        f"wheels = [{entries[0]}]"
        if len(entries) == 1
        else "wheels = [\n" + "".join(f"    {entry},\n" for entry in entries) + "]"
    )
    return _WHEELS.sub(lambda _: text, block, count=1)


def _with_marker(block: str, marker: str) -> str:
    """Return *block* with *marker*, where uv writes it; without one as it is."""
    if not marker:
        return block
    line = f"marker = {_string(marker)}"
    if _MARKER.search(block):
        return _MARKER.sub(lambda _: line, block, count=1)
    return _VERSION.sub(lambda match: f"{match[0]}\n{line}", block, count=1)


def _entries_of(block: str) -> Sequence[str]:
    """Return the inline tables of the wheels in *block*, as they are written."""
    match = _WHEELS.search(block)
    if match is None:
        raise LockError("uv's pylock.toml: the wheels of a package are not where they were")
    text = match[0]
    if "\n" not in text:
        return [text.removeprefix("wheels = [").removesuffix("]")]
    return [line.strip().removesuffix(",") for line in text.split("\n")[1:-1]]


def _entry(wheel: IndexWheel) -> str:
    """Return the inline table of a wheel, with its keys in uv's order."""
    parts = [f"url = {_string(wheel.url)}"]
    if (uploaded := _time(wheel.upload_time)) is not None:
        parts.append(f"upload-time = {uploaded}")
    if wheel.size is not None:
        parts.append(f"size = {wheel.size}")
    hashes = ", ".join(f"{kind} = {_string(value)}" for kind, value in wheel.hashes.items())
    parts.append(f"hashes = {{ {hashes} }}" if hashes else "hashes = {}")
    return f"{{ {', '.join(parts)} }}"


def _time(text: str | None) -> str | None:
    """Return a time of the index as uv writes it, None without one that is valid."""
    try:
        found = datetime.fromisoformat((text or "").replace("Z", "+00:00"))
    except ValueError:
        return None
    if found.tzinfo is None:
        return None
    return found.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # a basic string of TOML, but for DEL


def _table(table: dict[str, Any]) -> str:
    import tomli_w

    text = tomli_w.dumps({"packages": [{KEY: table}]})
    return text[text.index(f"[packages.{KEY}") :].rstrip("\n")


def _check(before: dict[str, Any], after: dict[str, Any], split: Collection[str]) -> None:
    """Raise `LockError` if something else was changed than files of variants, and *split* ones."""

    def rest(tree: dict[str, Any]) -> dict[str, Any]:
        packages = [
            {key: value for key, value in package.items() if key not in ("wheels", KEY)}
            for package in tree.get("packages", [])
            if package["name"] not in split
        ]
        return {**tree, "packages": packages}

    if rest(before) != rest(after):
        raise LockError("uv's pylock.toml: it is written in a way that is not known")
