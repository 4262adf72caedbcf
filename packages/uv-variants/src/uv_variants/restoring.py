"""What uv writes of the indexes it was given into files of the user's, taken out again.

`uv add` puts the indexes of the command line into ``pyproject.toml``, and those are the shim's.
Afterwards the file has its own indexes again, as they stood there, and those that the user gave.
`uv tool install` keeps them in the tool's receipt, where the real ones belong.

Before uv starts, what a file said is kept: should nobody be there afterwards to restore it, the
next command does.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from .address import RESERVED_URL
from .indexes import UserIndex, bare_url

_HEADER = re.compile(r"^(?:# )?\[\[tool\.uv\.index\]\]")
_ANY_HEADER = re.compile(r"^(?:# )?\[")
_SHIM_URL = re.compile(rf"{re.escape(RESERVED_URL)}/p/[^/\"]+/i/([^/\"]+)/(?:simple|links)/?")
_SCRIPT_END = "# ///"


class Restoring:
    """Keeps a file until uv is through with it.

    Attributes:
        path: of the file.
        note: where its contents are kept meanwhile.
    """

    def __init__(self, path: Path, cache: Path) -> None:
        self.path = path.absolute()
        name = hashlib.sha256(str(self.path).encode("utf-8", "surrogatepass")).hexdigest()[:32]
        self.note = cache / "restore" / f"{name}.json"

    def begin(self, given: Sequence[UserIndex]) -> None:
        """Keep what the file says, and the indexes that uv is to put into it."""
        text = _read(self.path)
        if text is None:
            return
        text, new = _with_replaced(text, given)
        kept = {"text": text, "given": [_block(index) for index in new]}
        self.note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace(self.note, json.dumps(kept))

    def end(self) -> None:
        """Restore the file, if there is anything of the shim in it."""
        kept = _read(self.note)
        text = _read(self.path)
        if text is not None and kept is not None and RESERVED_URL in text:
            try:
                tree = json.loads(kept)
                fixed = restored(tree["text"], text, tree["given"])
            except (ValueError, KeyError, TypeError):
                return
            _replace(self.path, fixed)
        with contextlib.suppress(OSError):
            self.note.unlink()


def restored(before: str, after: str, given: Sequence[str]) -> str:
    """Return *after* with the indexes of *before* in their places, and *given* before them.

    Args:
        before: contents of a file before uv changed it.
        after: contents now.
        given: index tables that uv was to put in, without the line that begins a table.
    """
    ending = "\r\n" if "\r\n" in after else "\n"
    lines = after.replace("\r\n", "\n").split("\n")
    script = any(line == "# /// script" for line in lines)
    kept, removed = _without_indexes(lines)
    _, groups = _without_indexes(before.replace("\r\n", "\n").split("\n"))
    new = _tables(given, script=script)
    for anchor, block in reversed(groups):
        place = _place(kept, anchor, script=script)
        kept[place:place] = block
    if new:
        first = next((place for place, line in enumerate(kept) if _HEADER.match(line)), None)
        if first is None:
            first = _place(kept, None, script=script)
            empty = "#" if script else ""
            new = new[:-1]
            if first and kept[first - 1] != empty:
                new = [empty, *new]
        kept[first:first] = new
    text = "\n".join(kept)
    if removed and removed[-1][0] is None and not new:  # they were the last thing in the file
        text = text.rstrip("\n") + "\n" * (len(before) - len(before.rstrip("\r\n")) > 0)
    return text.replace("\n", ending)


def real_urls(text: str, urls: Mapping[str, str]) -> str:
    """Return *text* with the URLs of the shim replaced by those behind them, by index name."""
    return _SHIM_URL.sub(lambda match: urls.get(match[1], match[0]), text)


def restore_receipts(folders: Iterable[Path], indexes: Mapping[str, UserIndex]) -> None:
    """Put the real indexes into the receipts of tools in *folders*."""
    urls = {name: bare_url(index.url) for name, index in indexes.items()}
    for folder in folders:
        path = folder / "uv-receipt.toml"
        text = _read(path)
        if text is not None and RESERVED_URL in text:
            _replace(path, real_urls(text, urls))


def _with_replaced(text: str, given: Sequence[UserIndex]) -> tuple[str, list[UserIndex]]:
    """Return *text* with the URLs of indexes that are given anew, and the given ones it lacks."""
    existing = list(_own_indexes(text))
    urls = {bare_url(url) for _, url in existing}
    names = {name: url for name, url in existing if name}
    new = []
    for index in given:
        url = bare_url(index.url)
        if index.name in names and url != bare_url(names[index.name]):
            text = text.replace(f'"{names[index.name]}"', f'"{url}"')
        elif index.name not in names and url not in urls:
            new.append(index)
    return text, new


def _own_indexes(text: str) -> Iterator[tuple[str, str]]:
    """Yield name and URL of the index tables in a file with that *text*."""
    lines = [line.removeprefix("# ") for line in text.splitlines()]
    for number, line in enumerate(lines):
        if not _HEADER.match(line):
            continue
        found = {"name": "", "url": ""}
        for row in lines[number + 1 :]:
            if row.startswith("["):
                break
            match = re.match(r"""\s*(name|url)\s*=\s*["']([^"']*)["']""", row)
            if match:
                found[match[1]] = match[2]
        yield found["name"], found["url"]


def _without_indexes(
    lines: Sequence[str],
) -> tuple[list[str], list[tuple[str | None, list[str]]]]:
    """Split index tables off: what is left, and each group of them with the header after it."""
    kept: list[str] = []
    groups: list[tuple[str | None, list[str]]] = []
    block: list[str] = []
    inside = False
    for line in lines:
        if _HEADER.match(line):
            inside = True
        elif inside and (_ANY_HEADER.match(line) or line == _SCRIPT_END):
            inside = False
            groups.append((line, block))
            block = []
        (block if inside else kept).append(line)
    if block:
        groups.append((None, block))
        if block[-1] == "":  # the end of the file's last line
            kept.append("")
    return kept, groups


def _place(lines: Sequence[str], anchor: str | None, *, script: bool) -> int:
    """Return where tables go that stood before the line *anchor*, or at the end."""
    if anchor is not None and anchor in lines:
        return lines.index(anchor)
    if script:
        places = [place for place, line in enumerate(lines) if line == _SCRIPT_END]
        return places[0] if places else len(lines)
    return len(lines) - 1 if lines and lines[-1] == "" else len(lines)


def _tables(given: Iterable[str], *, script: bool) -> list[str]:
    lines: list[str] = []
    for text in given:
        lines += ["[[tool.uv.index]]", *text.splitlines(), ""]
    return [f"# {line}".rstrip() for line in lines] if script else lines


def _block(index: UserIndex) -> str:
    rows = [f"name = {json.dumps(index.name)}"] if index.name else []
    rows.append(f"url = {json.dumps(bare_url(index.url))}")
    rows += ["default = true"] if index.default else []
    return "\n".join(rows)


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, ValueError):
        return None


def _replace(path: Path, text: str) -> None:
    """Write *text* to *path*, whole or not at all, with the permissions it has."""
    try:
        mode = path.stat().st_mode & 0o777
    except OSError:
        mode = 0o600
    handle, unfinished = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode("utf-8"))
        Path(unfinished).chmod(mode)
        Path(unfinished).replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            Path(unfinished).unlink()
        raise
