"""The options that every client has, in the same words.

Imports next to nothing: pip registers them at every start. `preferences` gives them meaning.
"""

from __future__ import annotations

import os
from typing import NamedTuple

__all__ = ["OPTIONS", "Option", "any_file"]


class Option(NamedTuple):
    """One option, the same in every client.

    Attributes:
        name: long name without dashes, e.g. ``variant-prefer``.
        key: key in ``variants.toml``; ``VARIANTS_`` and this in capitals is the variable.
        metavar: placeholder of the value, empty for a flag.
        repeatable: may be given several times.
        help: one sentence for ``--help``.
        narrows: only reorders or narrows what an index offers, so it also counts in a project's
            ``variants.toml`` that the user has not approved. False for everything that runs or
            reads something, or changes where code comes from; new options start with False.
        installs: only for commands that change an environment.
        personal: not from a project's ``variants.toml``, approved or not: it changes where code
            comes from.

    >>> from pep_variants.options import OPTIONS
    >>> next(option.metavar for option in OPTIONS if option.name == "variant")
    'NAME=LABEL'
    >>> [option.name for option in OPTIONS if option.installs]
    ['variant-switch']
    """

    name: str
    key: str
    metavar: str
    repeatable: bool
    help: str
    narrows: bool = False
    installs: bool = False
    personal: bool = False


OPTIONS = (
    Option("no-variants", "no-variants", "", False, "Ignore variant wheels.", narrows=True),
    Option(
        "variant",
        "variant",
        "NAME=LABEL",
        True,
        "Take this variant of this project or fail; 'NAME=' takes the non-variant wheel.",
        narrows=True,
    ),
    Option(
        "variant-prefer",
        "prefer",
        "PROPERTY",
        True,
        "Prefer variants with this namespace, 'ns :: feature' or 'ns :: feature :: value'.",
        narrows=True,
    ),
    Option(
        "variant-exclude",
        "exclude",
        "PROPERTY",
        True,
        "Never take variants with this namespace, feature or property.",
        narrows=True,
    ),
    Option(
        "variant-before-version",
        "before-version",
        "NAME",
        True,
        "For this project, or ':all:', take the newest version that has a build for the "
        "accelerator here before newer ones that have none; ':none:' resets.",
        narrows=True,
    ),
    Option(
        "variant-platform",
        "platform",
        "MACHINE",
        False,
        "Use this machine instead of looking at the one here: a platform file, a name such as "
        "h100-zen4, or facts such as cuda=12.8,sm=9.0,cpu=zen4; 'native' is the one here.",
    ),
    # Runs what would not run otherwise: a driver's tool, or a plugin allowed for other projects.
    Option("variant-enable", "enable", "NAMESPACE", True, "Also use this optional provider."),
    Option(
        "variant-allow-provider",
        "allow-provider",
        "REQUIREMENT",
        True,
        "Trust this provider plugin package.",
    ),
    Option(
        "variant-on-plugin-error",
        "on-plugin-error",
        "ACTION",
        False,
        "When an allowed provider plugin fails: 'abort' (default), or 'skip' its namespace.",
    ),
    Option(
        "variant-plugin-variable",
        "plugin-variable",
        "NAME",
        True,
        "Pass this environment variable to provider plugins as well.",
    ),
    Option(
        "variant-plugin-sandbox",
        "plugin-sandbox",
        "MODE",
        False,
        "Run provider plugins in a sandbox where the system has one: 'auto' (default) or 'off'.",
    ),
    Option(
        "variant-coherent",
        "coherent",
        "NAMESPACE",
        True,
        "Prefer variants that agree in this namespace with what is already chosen.",
        narrows=True,
    ),
    Option(
        "variant-catalog",
        "catalog",
        "NAME|FILE|URL",
        False,
        "Take existing builds as variants, as this catalogue describes them; 'default' is the one "
        "of variants-catalog, 'none' is none.",
        personal=True,
    ),
    Option(
        "variant-catalog-mirror",
        "catalog-mirror",
        "FROM=TO",
        True,
        "Take what the catalogue has at URLs that begin with FROM from TO.",
        personal=True,
    ),
    Option(
        "allow-missing-sources",
        "allow-missing-sources",
        "",
        False,
        "Go on without what indexes and the catalogue's places do not give for now.",
    ),
    Option(
        "variant-switch",
        "switch",
        "",
        False,
        "Reinstall, with its dependencies, what another variant now fits better.",
        installs=True,
    ),
)


def any_file() -> bool:
    """Return whether there is a settings file, readable or not."""
    from . import _places  # for this question alone

    return any(os.path.lexists(place.path) for place in _places.places())
