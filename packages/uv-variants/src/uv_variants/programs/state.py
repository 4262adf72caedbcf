"""The user's values of environment variables that uv gets with others."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from .startup.sitecustomize import STATE

_LOCALE = "LC_CTYPE"
"""Python sets it when it starts in the C locale, in its own environment too."""


def changed_names(own: Mapping[str, str], user: Mapping[str, str]) -> set[str]:
    """Return the names of the variables that are not the same in both."""
    return {name for name in {*own, *user} if own.get(name) != user.get(name)}


def state_of(own: Mapping[str, str], user: Mapping[str, str]) -> str:
    """Return the value of `STATE` with which *own* becomes *user* again.

    Both are environment variables; what uv adds to *own* stays.
    """
    names = {*changed_names(own, user), _LOCALE} - {STATE}
    return ";".join(_item(name, user.get(name)) for name in sorted(names))


def user_environ(environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return *environ* of this process without the variable that Python itself has added."""
    if _LOCALE not in environ or not sys.platform.startswith("linux"):
        return environ
    try:
        with open("/proc/self/environ", "rb") as file:  # noqa: PTH123 - not a file of the user's
            at_start = file.read()
    except OSError:
        return environ
    if f"\0{_LOCALE}=".encode() in b"\0" + at_start:
        return environ
    return {name: value for name, value in environ.items() if name != _LOCALE}


def _item(name: str, value: str | None) -> str:
    if value is None:
        return name
    return f"{name}={os.fsencode(value).hex()}"
