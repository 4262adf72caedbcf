"""`variants rank`, as click reads it."""

from __future__ import annotations

from ..light import rank as light
from .arguments import light_command

rank = light_command(light.rank, light.PARAMETERS, "Rank the variants of a version.")
