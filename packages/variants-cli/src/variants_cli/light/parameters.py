"""Parameters of commands, as data."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, NamedTuple

from pep_variants.choose.options import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping


class Kind(enum.Enum):
    """What the value of a parameter is, and the type that the command gets."""

    FLAG = "no value: bool"
    TEXT = "any text: str"
    MACHINE = "a machine, which shells complete: str"
    FILE = "a file that exists: Path"
    NEW_FILE = "a file to write: Path"


class Parameter(NamedTuple):
    """An option, or an argument.

    Attributes:
        name: of the keyword argument of the command.
        spellings: of the option, none for an argument.
        kind: of the value.
        help: for ``--help``.
        metavar: placeholder of the value in ``--help``.
        several: may be given several times; the command gets a list, of an argument a tuple.
    """

    name: str
    spellings: tuple[str, ...] = ()
    kind: Kind = Kind.TEXT
    help: str = ""
    metavar: str = ""
    several: bool = False


JSON = Parameter("as_json", ("--json",), Kind.FLAG, "Print JSON for programs.")

PLUGIN_OPTIONS = (
    "variant-on-plugin-error",
    "variant-plugin-variable",
    "variant-plugin-sandbox",
)
"""Those of the options of every client that say how allowed provider plugins run."""


def preference_parameters(
    *names: str, aliases: Mapping[str, str] | None = None
) -> tuple[Parameter, ...]:
    """Return the options *names* of `OPTIONS`, which all clients have, in the order there.

    Args:
        names: which.
        aliases: shorter names by name.
    """
    return tuple(
        Parameter(
            option.name.replace("-", "_"),
            (
                *([f"--{aliases[option.name]}"] if aliases and option.name in aliases else ()),
                f"--{option.name}",
            ),
            Kind.FLAG if not option.metavar
            else Kind.MACHINE if option.metavar == "MACHINE" else Kind.TEXT,
            option.help,
            option.metavar,
            option.repeatable,
        )
        for option in OPTIONS
        if option.name in names
    )  # fmt: skip


def option_values(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by the names of `OPTIONS`."""
    return {name.replace("_", "-"): value for name, value in arguments.items()}
