"""Programs that uv starts run in the user's own environment, as with uv."""

from .started_program import program_run

__all__ = ["program_run"]
