"""pylock.toml (PEP 751): variant wheels at their own URLs, and the table ``variants-json``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any
from urllib.parse import unquote

from pep_variants.errors import LockError
from pep_variants.formats import toml
from pep_variants.lock.table import write_table
from pep_variants.lock.wheels import KEY
from variants_proxy.in_place_names import FOLDER, wheel_at

from .release import IndexRelease, IndexWheel

_PACKAGE = re.compile(r"(?m)^\[\[packages\]\]$")
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
) -> str:
    """Return *text* with the files of the index in place of those that uv was shown.

    Args:
        text: of a file that uv wrote.
        release: returns what the index has.
        note: gets the labels that are left out, because they have other dependencies.

    Raises:
        LockError: the text is not what uv writes.
    """
    try:
        tree = toml.loads(text)
    except ValueError as error:
        raise LockError(f"uv's pylock.toml: {error}") from None
    packages = tree.get("packages", [])
    starts = [match.start() for match in _PACKAGE.finditer(text)]
    if len(starts) != len(packages):
        raise LockError("uv's pylock.toml: its packages are not written as tables")
    parts = [text[: starts[0]] if starts else text]
    for number, package in enumerate(packages):
        end = starts[number + 1] if number + 1 < len(starts) else len(text)
        block = text[starts[number] : end]
        locked = _locked(package)
        parts.append(block if locked is None else _written(block, package, locked, release, note))
    written = "".join(parts)
    _check(tree, toml.loads(written))
    return written


def _locked(package: dict[str, Any]) -> LockedVariants | None:
    urls = [wheel.get("url", "") for wheel in package.get("wheels", ())]
    return locked_variants(package["name"], package.get("version", ""), urls)


def locked_variants(name: str, version: str, urls: Iterable[str]) -> LockedVariants | None:
    """Return the variants among the wheels at *urls*, None if there are none."""
    found = {url: wheel_at(url) for url in urls}
    variants = {url: wheel for url, wheel in found.items() if wheel is not None}
    if not variants:
        return None
    page, _, _ = next(iter(variants)).partition(f"/{FOLDER}/")
    plain = tuple(unquote(url.rpartition("/")[2]) for url in found if url not in variants)
    index = page.rpartition("/")[0]
    return LockedVariants(name, version, index, tuple(variants.values()), plain)


def _written(
    block: str,
    package: dict[str, Any],
    locked: LockedVariants,
    release: Callable[[LockedVariants], IndexRelease],
    note: Callable[[LockedVariants, list[str]], None],
) -> str:
    found = release(locked)
    wheels, left_out = found.with_dependencies_of(locked.wheels)
    if left_out:
        note(locked, left_out)
    entries = [
        _entry(wheel)
        for wheel in wheels
        # Those at their own URL are as uv wrote them.
        if wheel.label is not None or wheel.plain not in locked.plain
    ]
    kept = [
        line
        for line, wheel in zip(_entries_of(block), package["wheels"], strict=True)
        if wheel_at(wheel.get("url", "")) is None
    ]
    entries = [*kept, *entries]
    if not entries:
        raise LockError(f"{locked.name} {locked.version}: the index has no wheels of it any more")
    text = (
        f"wheels = [{entries[0]}]"
        if len(entries) == 1
        else "wheels = [\n" + "".join(f"    {entry},\n" for entry in entries) + "]"
    )
    written = _WHEELS.sub(lambda _: text, block, count=1)
    labels = {wheel.label for wheel in wheels if wheel.label is not None}
    if not labels:
        return written
    body, gap = written.rstrip("\n"), written[len(written.rstrip("\n")) :]
    return f"{body}\n\n{_table(write_table(found.documents, labels))}{gap}"


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


def _check(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Raise `LockError` if something else than files of variants was changed."""

    def rest(tree: dict[str, Any]) -> dict[str, Any]:
        packages = [
            {key: value for key, value in package.items() if key not in ("wheels", KEY)}
            for package in tree.get("packages", [])
        ]
        return {**tree, "packages": packages}

    if rest(before) != rest(after):
        raise LockError("uv's pylock.toml: it is written in a way that is not known")
