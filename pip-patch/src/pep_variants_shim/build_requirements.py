"""Variants of build requirements.

They are installed with the variant options of the command. A build requirement whose installed
version satisfies the build gets the installed variant: an extension is then compiled against the
build of the library that it will be loaded with.

pip installs build requirements in a subprocess (unless ``inprocess-build-deps`` is used), which
reads the same environment variables and settings files, but not the command line: options and
installed labels are passed to it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from pep_variants.choose.options import OPTIONS

VARIABLE = "_PEP_VARIANTS_INSTALLED"
"""Environment variable with the installed variants, read by the subprocess for a build."""

_MAX_LENGTH = 16_000  # characters of the variable; Windows allows 32,767

_options: ContextVar[tuple[str, ...]] = ContextVar("variant options", default=())

Labels = Mapping[str, tuple[str, str]]
"""Version and label of installed variants, by normalized project name."""


def note_options(values: Mapping[str, Any]) -> None:
    """Keep the variant options of the command; *values* by their long names without dashes."""
    words: list[str] = []
    for option in OPTIONS:
        value = values.get(option.name)
        if not value or option.installs:
            continue
        if not option.metavar:
            words.append(f"--{option.name}")
        else:
            each = value if isinstance(value, (list, tuple)) else [value]
            words += [f"--{option.name}={item}" for item in each]
    _options.set(tuple(words))


def build_command(
    command: Sequence[str], forced: Mapping[str, str], labels: Labels
) -> tuple[list[str], dict[str, str]]:
    """Return pip's *command* for build requirements with variant options, and its variables.

    Args:
        command: arguments of the subprocess, ``install`` among them.
        forced: labels from lines of requirements files, by project.
        labels: installed variants.
    """
    place = command.index("install") + 1
    options = [*_options.get(), *(f"--variant={name}={label}" for name, label in forced.items())]
    text = json.dumps(labels, separators=(",", ":"))
    variables = {VARIABLE: text if labels and len(text) <= _MAX_LENGTH else ""}
    return [*command[:place], *options, *command[place:]], variables


def inherited_labels() -> Labels:
    """Return the installed variants of the command that started this build."""
    text = os.environ.get(VARIABLE)
    if not text:
        return {}
    try:
        return {
            name: (str(version), str(label)) for name, (version, label) in json.loads(text).items()
        }
    except (ValueError, TypeError, AttributeError):  # not written by `build_command`
        return {}
