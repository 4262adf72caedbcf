"""The commands that are over before click is loaded: most of what they take is starting.

Importing click takes 90 million instructions (23 ms) beside what such a command needs. Their
parameters are data (`parameters`): `command_line` reads plain command lines by them, and click all
others, help and errors included, with the command that `commands` makes of the same data.
"""

COMMANDS = ("detect", "rank")
"""Modules of this package, each with the command as a function of its name and `PARAMETERS`."""
