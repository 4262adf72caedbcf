"""Editing METADATA: another name or version, other dependencies (core metadata, PEP 643).

Edits leave every other line byte for byte as it was.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from pep_variants.errors import InvalidWheel

if TYPE_CHECKING:
    from collections.abc import Iterator

METADATA_FILE = "METADATA"

_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")


@dataclass(frozen=True)
class Edits:
    """What changes in a wheel beside its variant.

    Attributes:
        name: new name of the project, None to keep it.
        drop_local: the version loses its local part, as in ``2.9.0+cu126``.
        remove: dependencies to take out: names or patterns such as ``nvidia-*-cu12``.
        add: dependencies to put in: ``Requires-Dist`` values, which may use variant markers.
    """

    name: str | None = None
    drop_local: bool = False
    remove: tuple[str, ...] = ()
    add: tuple[str, ...] = ()

    @property
    def of_metadata(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.name or self.drop_local or self.remove or self.add)

    def renamed(self, name: str, version: str) -> tuple[str, str]:
        """Return the first two components of a wheel's filename or dist-info folder, edited."""
        if self.name is not None and canonicalize_name(self.name) != canonicalize_name(name):
            name = re.sub(r"[-_.]+", "_", self.name).lower()
        if self.drop_local:
            version = version.partition("+")[0]
        return name, version

    def edited(self, data: bytes, source: str) -> bytes:
        """Return the METADATA file *data* with the edits made.

        Raises:
            InvalidWheel: it has no name or no version, or is no UTF-8; *source* names the wheel.
        """
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise InvalidWheel(f"{source}: {METADATA_FILE} is not valid: {error}") from None
        headers, body = _split(text)
        ending = "\r\n" if headers and headers[0].endswith("\r\n") else "\n"
        kept: list[str] = []
        place: int | None = None
        seen = set()
        for header in headers:
            key, _, value = header.partition(":")
            key = key.lower()
            seen.add(key)
            if key == "requires-dist":
                place = len(kept)
                if self._removes(value):
                    continue
                place += 1
            elif key == "name" and self.name is not None:
                header = f"Name: {self.name}{ending}"
            elif key == "version" and self.drop_local:
                header = f"Version: {value.strip().partition('+')[0]}{ending}"
            kept.append(header)
        if missing := {"name", "version"} - seen:
            raise InvalidWheel(f"{source}: {METADATA_FILE} has no {' and no '.join(missing)}")
        place = len(kept) if place is None else place
        kept[place:place] = [f"Requires-Dist: {item}{ending}" for item in self.add]
        return ("".join(kept) + body).encode()

    def _removes(self, requirement: str) -> bool:
        match = _NAME.match(requirement)
        if match is None:
            return False
        name = canonicalize_name(match[1])
        return any(fnmatchcase(name, canonicalize_name(pattern)) for pattern in self.remove)


def requirements_of(data: bytes) -> Iterator[str]:
    """Yield the ``Requires-Dist`` values of the METADATA file *data*."""
    for header in _split(data.decode("utf-8", "replace"))[0]:
        key, _, value = header.partition(":")
        if key.lower() == "requires-dist":
            yield " ".join(value.split())


def _split(text: str) -> tuple[list[str], str]:
    """Return the headers of *text*, each with its continuation lines, and all that follows."""
    headers: list[str] = []
    position = 0
    for line in re.findall(r".*?(?:\r\n|\n|\r|\Z)", text):
        if not line.strip():
            break
        if line[0] in " \t" and headers:
            headers[-1] += line
        else:
            headers.append(line)
        position += len(line)
    if headers and not headers[-1].endswith(("\n", "\r")):
        headers[-1] += "\n"
    return headers, text[position:]
