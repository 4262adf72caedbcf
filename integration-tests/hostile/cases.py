"""Read cases: JSON files with an attack, the command of the user, and what must come of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("cases")
SCHEMA = Path(__file__).with_name("case.schema.json")


@dataclass(frozen=True)
class Case:
    """One attack.

    Attributes:
        id: name of the case and of its file.
        title: the attack in one sentence.
        attacker: who carries it out.
        servers: what each server answers, see `server`.
        run: arguments of `Command`.
        expect: see `verdict`.
        files: contents by path, below ``work/`` (the working directory) or ``home/``.
        modes: permissions of files or directories by path, in octal.
        clients: names of the clients it concerns; empty for all.
        slow: takes long by the clock, not by work.
    """

    id: str
    title: str
    attacker: str
    servers: Mapping[str, Any]
    run: Mapping[str, Any]
    expect: Mapping[str, Any]
    files: Mapping[str, Any] = field(default_factory=dict)
    modes: Mapping[str, str] = field(default_factory=dict)
    clients: tuple[str, ...] = ()
    slow: bool = False

    def filled(self, places: Mapping[str, str]) -> Case:
        """Return it with the placeholders ``{{NAME}}`` replaced by *places*.

        Placeholders are replaced in every string, keys of objects included.
        """
        parts = {name: getattr(self, name) for name in ("servers", "run", "expect", "files")}
        return replace(self, **_filled(parts, places))


@dataclass(frozen=True)
class Command:
    """What the user asks for (``run`` of a case), in words that every installer has.

    Attributes:
        install: requirements.
        index: URL of the index.
        extra_indexes: URLs of more indexes, of lower rank.
        trusted_hosts: hosts whose plain http the user accepts.
        arguments: arguments by name of the client, at the end of its command line.
        options: variant options without dashes, e.g. ``{"variant-allow-provider": ["p"]}``.
        variables: environment variables.
    """

    install: list[str]
    index: str
    extra_indexes: list[str] = field(default_factory=list)
    trusted_hosts: list[str] = field(default_factory=list)
    arguments: Mapping[str, list[str]] = field(default_factory=dict)
    options: Mapping[str, list[str]] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)


def read_cases() -> dict[str, Case]:
    """Return all cases by id, sorted."""
    cases = {}
    for path in sorted(FOLDER.glob("*.json")):
        tree = json.loads(path.read_text("utf-8"))
        del tree["$schema"]
        cases[path.stem] = Case(path.stem, **tree)
    return cases


def _filled(item: Any, places: Mapping[str, str]) -> Any:
    if isinstance(item, str):
        if "{{" in item:
            for name, value in places.items():
                item = item.replace(f"{{{{{name}}}}}", value)
        return item
    if isinstance(item, Mapping):
        return {_filled(key, places): _filled(value, places) for key, value in item.items()}
    if isinstance(item, list):
        return [_filled(part, places) for part in item]
    return item
