"""Read cases: JSON files with an attack, the command of the user, and what must come of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("cases")
SCHEMA = Path(__file__).with_name("case.schema.json")
ATTACKERS = (
    "none",
    "index",
    "extra-index",
    "upstream",
    "redirect-target",
    "wheel-author",
    "checkout",
    "environment",
    "plugin",
)


@dataclass(frozen=True)
class Case:
    """One attack.

    Attributes:
        id: name of the case and of its file.
        title: the attack in one sentence.
        attacker: who carries it out, one of `ATTACKERS`.
        servers: what each server answers, see `server`.
        files: contents by path, below ``work/`` (the working directory) or ``home/``.
        modes: permissions of files or directories by path, in octal.
        run: the user's command, see `Command`.
        expect: see `verdict`.
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
        return Case(
            self.id,
            self.title,
            self.attacker,
            _filled(self.servers, places),
            _filled(self.run, places),
            _filled(self.expect, places),
            _filled(self.files, places),
            self.modes,
            self.clients,
            self.slow,
        )


@dataclass(frozen=True)
class Command:
    """What the user asks for, in words that every installer has.

    Attributes:
        requirements: what to install.
        index: URL of the index.
        extra_indexes: URLs of more indexes, of lower rank.
        find_links: URLs or paths.
        trusted_hosts: hosts whose plain http the user accepts.
        arguments: arguments by name of the client, at the end of its command line.
        options: variant options without dashes, e.g. ``{"variant-allow-provider": ["p"]}``.
        variables: environment variables.
    """

    requirements: tuple[str, ...]
    index: str
    extra_indexes: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    trusted_hosts: tuple[str, ...] = ()
    arguments: Mapping[str, list[str]] = field(default_factory=dict)
    options: Mapping[str, list[str]] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)


def command_of(case: Case) -> Command:
    """Return the command of *case*."""
    run = case.run
    return Command(
        tuple(run["install"]),
        run["index"],
        tuple(run.get("extra-indexes", ())),
        tuple(run.get("find-links", ())),
        tuple(run.get("trusted-hosts", ())),
        run.get("arguments", {}),
        run.get("options", {}),
        run.get("variables", {}),
    )


def read_case(path: Path) -> Case:
    """Return the case in the file *path*."""
    tree = json.loads(path.read_text("utf-8"))
    return Case(
        path.stem,
        tree["title"],
        tree["attacker"],
        tree["servers"],
        tree["run"],
        tree["expect"],
        tree.get("files", {}),
        tree.get("modes", {}),
        tuple(tree.get("clients", ())),
        tree.get("slow", False),
    )


def read_cases() -> dict[str, Case]:
    """Return all cases by id, sorted."""
    return {path.stem: read_case(path) for path in sorted(FOLDER.glob("*.json"))}


def _filled(item: Any, places: Mapping[str, str]) -> Any:
    if isinstance(item, str):
        if "{{" in item:
            for name, value in places.items():
                item = item.replace(f"{{{{{name}}}}}", value)
        return item
    if isinstance(item, Mapping):
        return {_filled(key, places): _filled(value, places) for key, value in item.items()}
    if isinstance(item, (list, tuple)):
        return [_filled(part, places) for part in item]
    return item
