"""Installers that the corpus is run against: one module each, with a class that has `install`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Protocol

from ..cases import Command
from ..measure import Place, Run


class Client(Protocol):
    """An installer.

    Attributes:
        name: as in ``clients`` and ``exceptions`` of a case.
    """

    name: str

    def install(self, command: Command, place: Place, seconds: float) -> Run:
        """Run *command* at *place*: install into ``place.target``, or download wheels to it."""


def found(target: Path) -> dict[str, str]:
    """Return the projects installed below *target*, or whose wheels are in it.

    Returns:
        ``VERSION`` for a non-variant wheel, ``VERSION-LABEL`` for a variant, by project.
    """
    projects = {}
    for info in sorted(target.rglob("*.dist-info")):
        name, _, version = info.name.removesuffix(".dist-info").partition("-")
        label = ""
        if (info / "variant.json").exists():
            try:
                (label,) = json.loads((info / "variant.json").read_bytes())["variants"]
            except (KeyError, TypeError, ValueError):
                label = "?"
        projects[name] = f"{version}-{label}" if label else version
    for wheel in sorted(target.glob("*.whl")):
        parts = wheel.stem.split("-")
        labelled = len(parts) == 7 or (len(parts) == 6 and not parts[2][:1].isdigit())
        projects[parts[0]] = f"{parts[1]}-{parts[-1]}" if labelled else parts[1]
    for sdist in sorted(target.glob("*.tar.gz")):
        name, _, version = sdist.name.removesuffix(".tar.gz").rpartition("-")
        projects[name] = f"{version} (source)"
    return projects


def options(command: Command) -> list[str]:
    """Return the variant options of *command*."""
    return [
        part
        for name, values in command.options.items()
        for value in values or [""]
        for part in ([f"--{name}", value] if value else [f"--{name}"])
    ]
