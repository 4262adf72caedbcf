"""The proxy's commands and their options, for other commands."""

from ._commands.cli import cli

__all__ = ["cli"]
