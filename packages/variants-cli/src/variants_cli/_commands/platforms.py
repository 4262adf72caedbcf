"""`variants platforms`: lists the known machines, and prints platform files of them."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pep_variants import machines, safe_files
from pep_variants.errors import shortened
from pep_variants.machines import KnownMachine

from .._console import created_by, print_json, print_table
from .._detection import platform_tree
from .arguments import NEW_FILE, json_option

if TYPE_CHECKING:
    from collections.abc import Iterable

_NONE = "no accelerator"
_PATTERN = "*?["


_FACTS = {
    **{name: word.title for name, (_, word) in machines.WORDS.items()},
    machines.CPU: "CPU: x86-64-v3, armv8.2-a, or archspec's name: zen4",
}
_EPILOG = "\b\nFacts:\n" + "\n".join(f"  {name:<8}{title}" for name, title in _FACTS.items())


@click.command(epilog=_EPILOG)
@click.argument("machine", required=False)
@json_option
@click.option(
    "-o", "--output", metavar="FILE", type=NEW_FILE,
    help="Write the platform file there; an existing file is replaced.",
)  # fmt: skip
def platforms(machine: str | None, as_json: bool, output: Path | None) -> None:
    """List known machines, or print the platform file of one.

    MACHINE is a name or a pattern of names ('h100-*'), or facts: cuda=12.8,sm=9.0,cpu=zen4. Every
    option that takes a platform file takes names and facts as well; facts after a name replace
    some of its own: h100-zen4,cuda=13.0.

    Several GPUs: sm=8.6+9.0.

    Example: variants platforms h100-zen4 -o platform.toml
    """
    if machine is None or any(mark in machine for mark in _PATTERN):
        if output is not None:
            raise click.UsageError("--output needs one machine: variants platforms NAME -o FILE")
        found = [
            known
            for known in machines.KNOWN_MACHINES
            if machine is None or fnmatchcase(known.name, machine)
        ]
        if not found:
            raise click.ClickException(
                f"no known machine matches {shortened(machine)}: variants platforms lists them"
            )
        _list(found, as_json=as_json)
        return
    text = machines.machine_text(machine, created_by())
    if output is not None:
        with safe_files.replacing(output) as stream:
            stream.write(text.encode())
    if as_json:
        print_json({"namespaces": platform_tree(machines.load_machine(machine))})
    elif output is None:
        click.echo(text, nl=False)


def _list(rows: Iterable[KnownMachine], *, as_json: bool) -> None:
    if as_json:
        tree = [
            {
                "name": known.name,
                "group": _group(known),
                "facts": {
                    name: list(values) for name, values in machines.parse_facts(known.facts).items()
                },
                "title": known.title,
            }
            for known in rows
        ]
        print_json({"platforms": tree})
        return
    by_group: dict[str, list[KnownMachine]] = {}
    for known in rows:
        by_group.setdefault(_group(known), []).append(known)
    for number, (group, members) in enumerate(by_group.items()):
        if number:
            click.echo()
        click.echo(f"{group}:")
        print_table(("", "", ""), [(each.name, each.facts, each.title) for each in members])


def _group(known: KnownMachine) -> str:
    for name in machines.parse_facts(known.facts):
        if name in machines.WORDS:
            return machines.BUILTIN_NAMESPACES[machines.WORDS[name][0]].vendor.device
    return _NONE
