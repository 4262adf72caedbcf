"""Options of uv-variants, which may stand anywhere among uv's, and the text of ``--help``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

from pep_variants.errors import PreferenceError
from pep_variants.options import OPTIONS

from ._command_line import parse
from ._uv_program import OWN_OPTIONS

OWN_COMMANDS = {
    "accelerators": "Lock builds for several accelerators in one uv.lock.",
    "doctor": "Say whether what is installed and locked fits this machine.",
    "catalog": "Turn the catalogue of existing builds on or off, or list it.",
    "config": "Print the index URL of a proxy, or write a uv.toml with it, for plain uv.",
}
"""Commands that uv does not have, and their help."""


class Options(NamedTuple):
    """The command line, split into our options and uv's arguments.

    Attributes:
        variants: values by the names of `pep_variants.internal.OPTIONS`, those that were given.
        uv_arguments: the others.
    """

    variants: Mapping[str, Any]
    uv_arguments: tuple[str, ...]


def read_options(arguments: Sequence[str], before: Sequence[str] = ()) -> Options:
    """Split our own options off *arguments*, wherever they stand among uv's own.

    What follows ``--`` or the command of ``uv run`` is for another program, and what ``config`` is
    given for that command.

    Args:
        arguments: of the command.
        before: words of uv's command that the name of this one stands for.

    Raises:
        PreferenceError: an option is unknown, lacks its value, or has one that is not valid.
    """
    if not any(text.startswith(OWN_OPTIONS) for text in arguments):
        return Options({}, tuple(arguments))
    known = {option.name: option for option in OPTIONS}
    found: dict[str, Any] = {}
    rest = [*before, *arguments]
    while True:
        invocation = parse(rest)
        end = rest.index("config") if invocation.command[:1] == ("config",) else invocation.end
        values = {item.start + 1 for item in invocation.given if not item.glued}
        own = (place for place in range(end) if rest[place].startswith(OWN_OPTIONS))
        position = next((place for place in own if place not in values), None)
        if position is None:
            return Options(found, tuple(rest[len(before) :]))
        name, equals, value = rest.pop(position)[2:].partition("=")
        option = known.get(name)
        if option is None:
            raise _unknown(name, known)
        if option.metavar and not equals:
            if position == len(rest):
                raise _without_value(name)
            value = rest.pop(position)
        if option.repeatable:
            found.setdefault(name, []).append(value)
        else:
            found[name] = value if option.metavar else True


def _unknown(name: str, known: Iterable[str]) -> Exception:
    close = get_close_matches(name[:80], known, 1)
    meant = f"did you mean --{close[0]}?" if close else "see uv-variants --help"
    return PreferenceError(f"--{name} is not an option of uv-variants; {meant}")


def _without_value(name: str) -> Exception:
    return PreferenceError(f"--{name} needs a value")


def meant_command(word: str) -> str | None:
    """Return our command that *word*, which uv does not know either, is most like."""
    return next(iter(get_close_matches(word[:80], OWN_COMMANDS, 1, 0.75)), None)


def option_rows(program: str) -> list[tuple[str, str]]:
    """Return our options, each with its help."""
    rows = [(f"--{each.name} {each.metavar}".strip(), each.help) for each in OPTIONS]
    rows.append(("-V, --version", f"Print the versions of {program} and of uv."))
    return [*rows, ("-h, --help", "Print this help, and that of uv.")]


def print_help(program: str) -> None:
    """Print our options and commands, which uv's help follows.

    Args:
        program: ``uv-variants``, or ``uvx-variants``, which has no commands.
    """
    from click import HelpFormatter  # which only the help takes

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
