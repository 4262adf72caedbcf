"""Edits of METADATA beyond variants: another name or version, other dependencies.

Edits keep every other line byte for byte.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

from packaging.utils import canonicalize_name

from ..errors import InvalidWheel
from .core_metadata import METADATA_FILE, iter_fields

_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")


@dataclass(frozen=True)
class Edits:
    """What changes in a wheel apart from its variant metadata. False if nothing does.

    Attributes:
        name: new name of the project, None to keep it.
        drop_local: remove the local part of the version, as in ``2.9.0+cu126``.
        remove: dependencies to remove: names or patterns such as ``nvidia-*-cu12``.
        add: dependencies to add: ``Requires-Dist`` values, which may use variant markers.
    """

    name: str | None = None
    drop_local: bool = False
    remove: tuple[str, ...] = ()
    add: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.name or self.drop_local or self.remove or self.add)

    def renamed(self, name: str, version: str) -> tuple[str, str]:
        """Return the first two components of a wheel's filename or dist-info folder, edited."""
        if self.name is not None and canonicalize_name(self.name) != canonicalize_name(name):
            name = re.sub(r"[-_.]+", "_", self.name).lower()
        if self.drop_local:
            version = version.partition("+")[0]
        return name, version

    def edited(self, metadata: bytes, source: str) -> bytes:
        """Return *metadata* with the edits made.

        Args:
            metadata: contents of METADATA.
            source: path or URL of the wheel for messages.

        Raises:
            InvalidWheel: *metadata* is not UTF-8, or has no name or no version.
        """
        try:
            metadata.decode()
        except UnicodeDecodeError as error:
            raise InvalidWheel(f"{source}: {METADATA_FILE} is not valid: {error}") from None
        ending = b"\n"
        kept: list[bytes] = []
        place = -1  # after the last dependency
        names = set()
        body = 0
        for field in iter_fields(metadata):
            if not body and metadata.endswith(b"\r\n", field.start, field.end):
                ending = b"\r\n"
            body = field.end
            names.add(field.name)
            line = metadata[field.start : field.end]
            if not line.endswith((b"\n", b"\r")):
                line += ending
            if field.name == "requires-dist":
                place = len(kept)
                if self._removes(field.value):
                    continue
                place += 1
            elif field.name == "name" and self.name is not None:
                line = f"Name: {self.name}".encode() + ending
            elif field.name == "version" and self.drop_local:
                line = f"Version: {field.value.partition('+')[0]}".encode() + ending
            kept.append(line)
        if missing := {"name", "version"} - names:
            raise InvalidWheel(f"{source}: {METADATA_FILE} has no {' and no '.join(missing)}")
        place = len(kept) if place < 0 else place
        kept[place:place] = [f"Requires-Dist: {item}".encode() + ending for item in self.add]
        return b"".join(kept) + metadata[body:]

    def _removes(self, requirement: str) -> bool:
        match = _NAME.match(requirement)
        if match is None:
            return False
        name = canonicalize_name(match[1])
        return any(fnmatchcase(name, canonicalize_name(pattern)) for pattern in self.remove)
