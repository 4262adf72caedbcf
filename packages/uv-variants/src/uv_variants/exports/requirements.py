"""requirements.txt: hashes of every label of a version."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from packaging.utils import canonicalize_name

from .redirects import Redirects, markers_of

_PINNED = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?:\[[^\]]*\])?"
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
    return list(
        dict.fromkeys(
            Pinned(canonicalize_name(match["name"]), match["version"]) for match in found if match
        )
    )


def without_redirects(text: str, redirects: Redirects) -> str:
    """Return *text* without the requirements that stand for another project.

    A comment is in their place. One with wheels of its own for other platforms gets their marker.

    Args:
        text: of a requirements file that uv wrote.
        redirects: what they are.
    """
    lines = text.splitlines(keepends=True)
    found = [_PINNED.fullmatch(_split(line)[0]) for line in lines]
    exported = markers_of(
        (canonicalize_name(match["name"]), _marker(match)) for match in found if match
    )
    written: list[str] = []
    leaving = False
    for line, match in zip(lines, found, strict=True):
        if match is None:
            # Hashes and comments of a requirement are indented.
            leaving = leaving and line.startswith("    ")
            written += [] if leaving else [line]
            continue
        redirect = redirects.find(canonicalize_name(match["name"]), match["version"])
        leaving = False
        if redirect is None:
            written.append(line)
            continue
        marker = redirects.remaining(
            redirect, _marker(match), exported, has_others=redirect.has_others
        )
        body, end = _split(line)
        leaving = marker is None
        if marker is None:
            written.append(f"# {redirect}{end}")
            continue
        if marker == _marker(match):
            written.append(line)
            continue
        rest = match["rest"]
        comment = _without_comment(rest)[1]
        start = body[: match.start("rest")]
        shown = f"  {comment}" if comment else ""
        written.append(f"{start} ; {marker}{shown}{match['continued'] or ''}{end}")
    return "".join(written)


def _marker(requirement: re.Match[str]) -> str:
    """Return the marker of a requirement, empty for none."""
    return _without_comment(requirement["rest"])[0].partition(";")[2].strip()


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
        added = (
            set(more(Pinned(canonicalize_name(match["name"]), match["version"])))
            if match is not None
            else set()
        )
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
        every = sorted(hashes | added)
        yield f"{requirement} \\{end}"
        for number, text in enumerate(every, 1):
            # uv lets other options of a requirement follow: none of them is known to this module.
            goes_on = number < len(every) or bool(continued)
            yield f"    --hash={text}{' ' + chr(92) if goes_on else ''}{end}"
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
