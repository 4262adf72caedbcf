"""The entry point of the `variants` command."""

from __future__ import annotations

import signal
import sys
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

import click

from pep_variants.errors import (
    EXIT_CODE,
    VariantError,
    fault_report,
    file_problem,
    listed,
    shortened,
)

from ._console import fail, printable

__all__ = ["cli", "main"]

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

FAILURE = 1
USAGE = 2
INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM

COMMANDS = {
    "doctor": "Show why a build was chosen here, and what is wrong.",
    "detect": "Show what this machine supports.",
    "platforms": "List known machines, or print the platform file of one.",
    "rank": "Rank the variants of a version.",
    "explain": "Show all variants on an index, and why each is chosen or not.",
    "check": "List installed packages that have a better variant.",
    "resolve": "Resolve requirements over indexes, variants included.",
    "inspect": "Show label, properties and providers of a wheel.",
    "make": "Turn plain wheels into variant wheels.",
    "unmake": "Turn variant wheels back into plain ones.",
    "matrix": "Show, plan or build the variants of a build matrix.",
    "index": "Turn a directory of wheels into a package index.",
    "validate": "Check wheels, metadata, directories and live indexes.",
    "publish": "Upload wheels and metadata.",
    "storage": "Show and change what is published on storage.",
    "catalog": "List, show, check and enable builds that exist as variants.",
    "trust": "Approve the variants.toml of a project directory.",
}
"""Description of each command, in the order of ``--help``; each is in a module of `commands`."""

_MODULES = {"check": "doctor", "unmake": "make"}
"""Modules of the commands that share one with another command."""


class _Commands(click.Group):
    """Imports the module of a command when it is called: some load large libraries."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"._commands.{_MODULES.get(cmd_name, cmd_name)}", __package__)
        command: click.Command = getattr(module, cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            close = [repr(each) for each in get_close_matches(name[:80], COMMANDS)]
            meant = f" Did you mean {listed(close)}?" if close else ""
            ctx.fail(f"No such command {shortened(name)}.{meant}")
        return super().resolve_command(ctx, args)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write nothing: the commands say it, and all fits on a screen of 24 lines."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=True,
    options_metavar="[-v]",
    subcommand_metavar="COMMAND [ARGS]...",
)
@click.option("-v", "--verbose", is_flag=True, hidden=True, help="Log each decision on stderr.")
@click.version_option(
    None, "-V", "--version", package_name="variants-cli", message="%(prog)s %(version)s"
)
@click.pass_context
def cli(context: click.Context, verbose: bool) -> None:
    """Wheel variants (PEP 817, PEP 825): make, publish, check and choose them.

    `variants COMMAND --help` describes the options of a command.
    """
    if verbose:
        from pep_variants import selection as wheel_selection

        wheel_selection.log_decisions("variants")
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command and exit.

    Exit codes are 0 for success, 1 for failure, 2 for wrong usage, 70 for a bug in this
    command, 130 and 143 after an interrupt and SIGTERM. An error in the user's input is one line
    on stderr; a bug also shows its traceback, for a report.

    Args:
        arguments: without the name of the program; None for those of the process.
    """
    # Raises SystemExit, so that partly written files are removed.
    signal.signal(signal.SIGTERM, _terminate)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = cli.main(arguments, prog_name="variants", standalone_mode=False)
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "variants"
        fail(f"{error.format_message().rstrip('.')} (see {path} --help)")
        sys.exit(USAGE)
    except click.ClickException as error:
        fail(error.format_message())
        for line in getattr(error, "details", ()):
            click.echo(f"  {printable(line)}", err=True)
        sys.exit(FAILURE)
    except VariantError as error:
        fail(str(error))
        sys.exit(FAILURE)
    except OSError as error:
        fail(file_problem(error))
        sys.exit(FAILURE)
    except (click.Abort, KeyboardInterrupt) as error:
        # Click also turns EOFError into Abort, although it is not an interrupt.
        if isinstance(error.__cause__, EOFError):
            _report(error.__cause__)
        fail("interrupted")
        sys.exit(INTERRUPTED)
    except Exception as error:
        _report(error)
    sys.exit(code or 0)


def _report(fault: Exception) -> NoReturn:
    """Print the report of a bug, and exit."""
    click.echo(fault_report("variants", fault), err=True)
    sys.exit(EXIT_CODE)


def _terminate(_number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(TERMINATED)
