"""Our own options, given before uv's arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pep_variants.errors import PreferenceError, redacted, shortened
from pep_variants.options import OPTIONS

PINNED = "pinned"
FLOATING = "floating"

SHIM_VARIABLE = "VARIANTS_SHIM"
LOCK_VARIABLE = "VARIANTS_LOCK"
UV_VARIABLE = "VARIANTS_UV"

OWN_OPTIONS = (
    ("variant-shim", "URL", SHIM_VARIABLE, "Use this shared shim instead of one of your own."),
    ("variant-lock", "MODE", LOCK_VARIABLE, f"How uv.lock is made: {PINNED} or {FLOATING}."),
)
"""Options that only this client has: name, placeholder, variable, help."""


class Wishes(NamedTuple):
    """What was asked of us, before uv's arguments begin.

    Attributes:
        options: values by the names of `OPTIONS`; what was not given is missing.
        shim: URL of a shared shim, without the last slash; empty for one of our own.
        lock: `PINNED` or `FLOATING`, None if it was not said.
        rest: the arguments that follow.
    """

    options: Mapping[str, Any]
    shim: str
    lock: str | None
    rest: tuple[str, ...]


def read_wishes(arguments: Sequence[str], environ: Mapping[str, str]) -> Wishes:
    """Split our own options off the front of *arguments*.

    Raises:
        PreferenceError: an option is unknown, lacks its value, or has one that makes no sense.
    """
    known = {option.name: option for option in OPTIONS}
    own = {name for name, *_ in OWN_OPTIONS}
    options: dict[str, Any] = {}
    found: dict[str, str] = {}
    position = 0
    while position < len(arguments) and arguments[position].startswith(("--variant", "--no-vari")):
        name, equals, value = arguments[position][2:].partition("=")
        option = known.get(name)
        if option is None and name not in own:
            listed = ", ".join(f"--{each}" for each in sorted(known.keys() | own))
            raise PreferenceError(f"--{name} is no option of uv-variants; there are {listed}")
        position += 1
        if option is not None and not option.metavar:
            options[name] = True
            continue
        if not equals:
            if position == len(arguments):
                raise PreferenceError(f"--{name} needs a value")
            value = arguments[position]
            position += 1
        if option is None:
            found[name] = value
        elif option.repeatable:
            options.setdefault(name, []).append(value)
        else:
            options[name] = value
    shim = found.get("variant-shim", environ.get(SHIM_VARIABLE, "")).rstrip("/")
    if shim and not shim.startswith(("http://", "https://")):
        raise PreferenceError(f"--variant-shim: {shortened(redacted(shim))} is no http(s) URL")
    lock = found.get("variant-lock", environ.get(LOCK_VARIABLE, "")) or None
    if lock not in (None, PINNED, FLOATING):
        raise PreferenceError(
            f"--variant-lock: {shortened(lock)} is neither {PINNED} nor {FLOATING}"
        )
    return Wishes(options, shim, lock, tuple(arguments[position:]))
