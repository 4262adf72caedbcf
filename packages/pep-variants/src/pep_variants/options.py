"""The options that every client has, in the same words.

Imports next to nothing: pip registers them at every start. `preferences` gives them meaning.
"""

from __future__ import annotations

from typing import NamedTuple


class Option(NamedTuple):
    """One option, the same in every client.

    Attributes:
        name: long name without dashes, e.g. ``variant-prefer``.
        key: key in ``variants.toml``; ``VARIANTS_`` and this in capitals is the variable.
        metavar: placeholder of the value, empty for a flag.
        repeatable: may be given several times.
        help: one sentence for ``--help``.
    """

    name: str
    key: str
    metavar: str
    repeatable: bool
    help: str


OPTIONS = (
    Option("no-variants", "no-variants", "", False, "Ignore variant wheels."),
    Option(
        "variant",
        "variant",
        "NAME=LABEL",
        True,
        "Take this variant of this project or fail; 'NAME=' takes the non-variant wheel.",
    ),
    Option(
        "variant-prefer",
        "prefer",
        "PROPERTY",
        True,
        "Prefer variants with this namespace, 'ns :: feature' or 'ns :: feature :: value'.",
    ),
    Option(
        "variant-exclude",
        "exclude",
        "PROPERTY",
        True,
        "Never take variants with this namespace, feature or property.",
    ),
    Option(
        "variant-platform",
        "platform",
        "FILE",
        False,
        "Use this platform file instead of looking at this machine.",
    ),
    Option("variant-enable", "enable", "NAMESPACE", True, "Consult this optional provider."),
    Option(
        "variant-allow-provider",
        "allow-provider",
        "REQUIREMENT",
        True,
        "Trust this provider plugin package.",
    ),
    Option(
        "variant-coherent",
        "coherent",
        "NAMESPACE",
        True,
        "Prefer variants that agree in this namespace with what is already chosen.",
    ),
)
