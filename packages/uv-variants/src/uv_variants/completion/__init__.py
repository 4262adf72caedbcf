"""Completion in shells: uv's own scripts, for our programs, with our options and commands."""

from .command import complete_shell

__all__ = ["complete_shell"]
