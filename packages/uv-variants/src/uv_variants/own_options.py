"""Options of uv-variants, which come before uv's arguments, and the text of ``--help``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

OWN_COMMANDS = {
    "doctor": "say whether what is installed and locked fits this machine",
    "catalog": "turn the catalogue of existing builds on or off, or list it",
    "config": "print the index URL of a proxy, or write a uv.toml with it, for plain uv",
}
"""Commands that uv does not have, and their help."""

_PREFIXES = ("--variant", "--no-vari")


class Options(NamedTuple):
    """The command line, split into our options and uv's arguments.

    Attributes:
        variants: values by the names of `pep_variants.internal.OPTIONS`, those that were given.
        uv_arguments: the arguments that follow.
    """

    variants: Mapping[str, Any]
    uv_arguments: tuple[str, ...]


def read_options(arguments: Sequence[str]) -> Options:
    """Split our own options off the front of *arguments*.

    Raises:
        PreferenceError: an option is unknown, lacks its value, or has one that is not valid.
    """
    if not arguments or not arguments[0].startswith(_PREFIXES):
        return Options({}, tuple(arguments))
    from pep_variants.internal import OPTIONS, PreferenceError

    known = {option.name: option for option in OPTIONS}
    found: dict[str, Any] = {}
    position = 0
    while position < len(arguments) and arguments[position].startswith(_PREFIXES):
        name, equals, value = arguments[position][2:].partition("=")
        option = known.get(name)
        if option is None:
            listed = ", ".join(f"--{each}" for each in sorted(known))
            raise PreferenceError(
                f"--{name} is not an option of uv-variants; its options are {listed}"
            )
        position += 1
        if option.metavar and not equals:
            if position == len(arguments):
                raise PreferenceError(f"--{name} needs a value")
            value = arguments[position]
            position += 1
        if option.repeatable:
            found.setdefault(name, []).append(value)
        else:
            found[name] = value if option.metavar else True
    return Options(found, tuple(arguments[position:]))


def print_help(program: str) -> None:
    """Print our options and commands, which uv's help follows.

    Args:
        program: ``uv-variants``, or ``uvx-variants``, which has no commands.
    """
    from pep_variants.internal import OPTIONS

    place = "any uv command" if program == "uv-variants" else "the arguments of uvx"
    print(f"uv with wheel variants. Options of {program}, before {place}:\n")
    rows = [(f"--{each.name} {each.metavar}".strip(), each.help) for each in OPTIONS]
    rows.append(("-V, --version", f"Print the versions of {program} and of uv."))
    width = max(len(left) for left, _ in rows)
    for left, text in rows:
        print(f"  {left:<{width}}  {text}")
    if program == "uv-variants":
        print("\nCommands of uv-variants (each has --help):\n")
        for name, text in OWN_COMMANDS.items():
            print(f"  {name:<{width}}  {text}")
        print("\nuvx-variants runs tools, as uvx does.\n\nHelp of uv:\n", flush=True)
    else:
        print("\nHelp of uvx:\n", flush=True)
