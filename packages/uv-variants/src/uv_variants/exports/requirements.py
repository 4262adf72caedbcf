"""requirements.txt: hashes of every label of a version, and the names that publishers gave it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from packaging.utils import canonicalize_name

from .origins import Part

_PINNED = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?P<extras>\[[^\]]*\]|)"
    r"==(?P<version>[^\s;#\\]+)(?P<rest>[^\\]*?)(?P<continued> \\)?"
)
_HASH = re.compile(r"    --hash=(?P<hash>[a-z0-9]+:[0-9a-f]+)(?P<continued> \\)?")


@dataclass(frozen=True)
class Pinned:
    """A requirement of the file.

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


def with_origins(text: str, parts: Callable[[Pinned], Sequence[Part]], *, hashes: bool) -> str:
    """Return *text* with the publishers' names and hashes of what they have under another name.

    Args:
        text: of a requirements file that uv wrote.
        parts: returns the parts of a requirement, see `origins.parts`.
        hashes: whether requirements have hashes.
    """
    blocks: list[list[str]] = []
    for line in text.splitlines(keepends=True):
        if blocks and line.startswith("    "):  # hashes and comments of a requirement
            blocks[-1].append(line)
        else:
            blocks.append([line])
    written: list[str] = []
    for block in blocks:
        match = _PINNED.fullmatch(_split(block[0])[0])
        found = parts(_pinned(match)) if match is not None else ()
        if match is None or not found:
            written += block
            continue
        for part in found:
            written += _part(block, match, part, hashes=hashes)
    return "".join(written)


def _part(block: Sequence[str], match: re.Match[str], part: Part, *, hashes: bool) -> list[str]:
    """Return the lines of a requirement, *block*, for one part of it."""
    body, end = _split(block[0])
    requirement, comment = _without_comment(match["rest"])
    given = requirement.partition(";")[2].strip()
    start = body[: match.start("rest")]
    if part.name:
        start = f"{part.name}{match['extras']}=={part.version}"
    marker = part.marker(given)
    line = f"{start} ; {marker}" if marker else start
    given_hashes = [line for line in block[1:] if _HASH.fullmatch(_split(line)[0])]
    others = [line for line in block[1:] if line not in given_hashes]
    if part.name and hashes:
        found = {f"{kind}:{value}" for wheel in part.wheels for kind, value in wheel.hashes.items()}
        given_hashes = _hash_lines(sorted(found), end)
    line = f"{line}  {comment}" if comment else line
    return [f"{line} \\{end}" if given_hashes else f"{line}{end}", *given_hashes, *others]


def _hash_lines(hashes: Sequence[str], end: str, *, goes_on: bool = False) -> list[str]:
    """Return the lines of *hashes*; another line follows if it *goes_on*."""
    return [
        f"    --hash={text}{' ' + chr(92) if goes_on or number < len(hashes) else ''}{end}"
        for number, text in enumerate(hashes, 1)
    ]


def _pinned(match: re.Match[str]) -> Pinned:
    return Pinned(canonicalize_name(match["name"]), match["version"])


def with_hashes(text: str, more: Callable[[Pinned], Iterable[str]]) -> str:
    """Return *text* with more hashes, sorted as uv sorts them.

    Args:
        text: of a requirements file that uv wrote.
        more: returns further hashes (``sha256:…``) of a requirement.
    """
    return "".join(_lines(text.splitlines(keepends=True), more))


def _lines(lines: list[str], more: Callable[[Pinned], Iterable[str]]) -> Iterator[str]:
    position = 0
    while position < len(lines):
        line = lines[position]
        body, end = _split(line)
        position += 1
        match = _PINNED.fullmatch(body)
        added = set(more(_pinned(match))) if match is not None else set()
        if match is None or not added:
            yield line
            continue
        hashes: set[str] = set()
        continued = match["continued"]
        while continued and position < len(lines):
            found = _HASH.fullmatch(_split(lines[position])[0])
            if found is None:
                break
            hashes.add(found["hash"])
            continued = found["continued"]
            position += 1
        requirement, comment = _without_comment(body.removesuffix(" \\"))
        yield f"{requirement} \\{end}"
        # uv lets other options of a requirement follow: none of them is known to this module.
        yield from _hash_lines(sorted(hashes | added), end, goes_on=bool(continued))
        if comment:
            yield f"    {comment}{end}"


def _split(line: str) -> tuple[str, str]:
    """Return a line and its end."""
    body = line.rstrip("\r\n")
    return body, line[len(body) :]


def _without_comment(requirement: str) -> tuple[str, str]:
    """Return a requirement, and the comment behind it (of ``--annotation-style line``)."""
    match = re.search(r"\s+(#.*)$", requirement)
    return (requirement[: match.start()], match[1]) if match else (requirement, "")
