"""Words that a shell completes in addition to uv's: our options and commands."""

from __future__ import annotations

from dataclasses import dataclass

from pep_variants.choose.options import OPTIONS
from pep_variants.detect.known_machines import KNOWN_MACHINES

from ..own_options import FLOATING, OWN_COMMANDS, OWN_OPTIONS, PINNED

_VALUES = {
    "variant-lock": (PINNED, FLOATING),
    "variant-on-plugin-error": ("abort", "skip"),
    "variant-platform": tuple(machine.name for machine in KNOWN_MACHINES),
    "variant-plugin-sandbox": ("auto", "off"),
}


@dataclass(frozen=True)
class Word:
    """An option or command.

    Attributes:
        text: as it is typed; options with dashes.
        help: one sentence, without the last full stop.
        metavar: placeholder of an option's value, empty without one.
        values: what the value may be, besides a path if it `is_file`; empty if that is not limited.
        repeatable: may be given several times.
    """

    text: str
    help: str
    metavar: str = ""
    values: tuple[str, ...] = ()
    repeatable: bool = False

    @property
    def name(self) -> str:
        """The name without dashes."""
        return self.text.lstrip("-")

    @property
    def is_file(self) -> bool:
        """Whether the value may be a path."""
        return self.metavar in ("FILE", "MACHINE")


def own_options() -> list[Word]:
    """Return our options, which both programs have."""
    found = [
        Word(
            f"--{option.name}",
            option.help.removesuffix("."),
            option.metavar,
            _VALUES.get(option.name, ()),
            option.repeatable,
        )
        for option in OPTIONS
    ]
    found += [
        Word(f"--{name}", text.removesuffix("."), metavar, _VALUES.get(name, ()))
        for name, metavar, _, text in OWN_OPTIONS
    ]
    return found


def own_commands() -> list[Word]:
    """Return the commands of ``uv-variants``; ``uvx-variants`` has none."""
    return [Word(name, text) for name, text in OWN_COMMANDS.items()]
