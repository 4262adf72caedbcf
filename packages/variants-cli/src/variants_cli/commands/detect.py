"""`variants detect`, as click reads it."""

from __future__ import annotations

from ..light import detect as light
from .arguments import light_command

detect = light_command(light.detect, light.PARAMETERS, "Show what this machine supports.")
