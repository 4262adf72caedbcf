"""Options of uv-variants, which come before uv's arguments, and the text of ``--help``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

OWN_COMMANDS = {
    "doctor": "Say whether what is installed and locked fits this machine.",
    "catalog": "Turn the catalogue of existing builds on or off, or list it.",
    "config": "Print the index URL of a proxy, or write a uv.toml with it, for plain uv.",
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
            from difflib import get_close_matches

            close = get_close_matches(name[:80], known, 1)
            meant = f"did you mean --{close[0]}?" if close else "see uv-variants --help"
            raise PreferenceError(f"--{name} is not an option of uv-variants; {meant}")
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


def option_rows(program: str) -> list[tuple[str, str]]:
    """Return our options, each with its help."""
    from pep_variants.internal import OPTIONS

    rows = [(f"--{each.name} {each.metavar}".strip(), each.help) for each in OPTIONS]
    rows.append(("-V, --version", f"Print the versions of {program} and of uv."))
    return [*rows, ("-h, --help", "Print this help, and that of uv.")]


def print_help(program: str) -> None:
    """Print our options and commands, which uv's help follows.

    Args:
        program: ``uv-variants``, or ``uvx-variants``, which has no commands.
    """
    from click import HelpFormatter

    is_uvx = program == "uvx-variants"
    formatter = HelpFormatter(max_width=100)
    formatter.write_usage(program, f"[OPTIONS] {'TOOL' if is_uvx else 'COMMAND'} [ARGS]...")
    formatter.write_paragraph()
    with formatter.indentation():
        other = "" if is_uvx else " uvx-variants runs tools, as uvx does."
        formatter.write_text(f"{'uvx' if is_uvx else 'uv'} with wheel variants.{other}")
    with formatter.section("Options"):
        formatter.write_dl(option_rows(program))
    if not is_uvx:
        with formatter.section("Commands besides uv's"):
            formatter.write_dl(list(OWN_COMMANDS.items()))
    print(f"{formatter.getvalue()}\nHelp of {'uvx' if is_uvx else 'uv'}:\n", flush=True)
