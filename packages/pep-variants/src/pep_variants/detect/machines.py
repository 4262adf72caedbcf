"""A machine as options, variables and settings give it: in place of looking at this one.

It is one of these:

* a path of a platform file: ``machine.toml``, ``./machine``;
* the name of a known machine: ``h100-zen4``;
* facts: ``cuda=12.8,sm=9.0,cpu=zen4``, see `machine_facts`; the name of a known machine may go
  first, of which they replace some: ``h100-zen4,cuda=13.0``.

Names and facts mean the same in every directory: a file of such a name needs a ``./`` before it.
"""

from __future__ import annotations

import os
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..choose.explanation import listed
from ..choose.preferences import NATIVE
from ..errors import PlatformFileError, printable, shortened
from ..formats.platform_file import load_platform, platform_title, write_platform
from ..model.platform import Platform
from .known_machines import BY_NAME, names_beginning

if TYPE_CHECKING:
    from .machine_facts import Facts

_SUFFIX = ".toml"
_CLOSE = 3


def names_file(text: str) -> bool:
    """Return whether *text* is the path of a platform file, not a name or facts."""
    if text.endswith(_SUFFIX) or any(separator in text for separator in "/\\"):
        return True
    return "=" not in text and text not in BY_NAME and text != NATIVE


def load_machine(machine: str | os.PathLike[str]) -> Platform:
    """Return what *machine* supports.

    Args:
        machine: a path, a name or facts; an object that is a path is nothing else.

    Raises:
        PlatformFileError: the file cannot be read or is invalid, there is no such machine, or the
            facts are invalid.
    """
    if not isinstance(machine, str) or names_file(machine):
        try:
            return load_platform(machine)
        except PlatformFileError as error:
            if isinstance(machine, str) and isinstance(error.__context__, FileNotFoundError):
                raise _no_such(machine) from None
            raise
    from .machine_facts import support_of

    return Platform(support_of(_facts(machine)), machine)


def machine_text(machine: str, created_by: str) -> str:
    """Return the platform file of *machine*: what `variants detect -o` writes there.

    Args:
        machine: as in `load_machine`.
        created_by: the program that writes it.

    Raises:
        PlatformFileError: as in `load_machine`.
    """
    platform = load_machine(machine)
    if names_file(machine):
        return write_platform(platform, created_by)
    from .machine_facts import ABSENT, write_facts

    namespaces = {
        namespace: support
        if support.features or support.notice
        else replace(support, notice=ABSENT[namespace])
        for namespace, support in platform.namespaces.items()
    }
    written = write_platform(Platform(namespaces), created_by)
    facts = f"What the built-in providers answer for {write_facts(_facts(machine))}."
    known = BY_NAME.get(machine)
    comment = [*([f"{known.title}."] if known else []), facts]
    lines = [line for text in comment for line in textwrap.wrap(text, 98, break_on_hyphens=False)]
    return "".join(f"# {line}\n" for line in lines) + "\n" + written


def machine_title(machine: str) -> str:
    """Return what is known of *machine*, or what its file says in its first lines, or nothing.

    Args:
        machine: as in `load_machine`.

    Raises:
        OSError: its file cannot be read.
    """
    if names_file(machine):
        return platform_title(Path(machine))
    known = BY_NAME.get(machine)
    return known.title if known else ""


def _facts(machine: str) -> Facts:
    # Imported here: the providers are not needed for a file.
    from .machine_facts import parse_facts

    first, _, rest = machine.partition(",")
    if "=" in first:
        return parse_facts(machine)
    known = BY_NAME.get(first.strip())
    if known is None:
        raise _no_such(first.strip())
    facts = parse_facts(known.facts)
    return {**facts, **parse_facts(rest)} if rest else facts


def _no_such(text: str) -> PlatformFileError:
    from difflib import get_close_matches

    if text.endswith(_SUFFIX):
        return PlatformFileError(f"{printable(text)}: cannot be read: No such file or directory")
    # A path, too: settings files name machines, and what is no machine is a path beside them.
    name = text.replace("\\", "/").rpartition("/")[2]
    close = names_beginning(name)[:_CLOSE] if name else []
    close = close or get_close_matches(name[:80], BY_NAME, _CLOSE)
    meant = f": did you mean {listed(close, 'or')}?" if close else ";"
    return PlatformFileError(
        f"{shortened(text, 200)} is neither a platform file nor a known machine{meant} "
        "'variants platforms' lists the machines"
    )
