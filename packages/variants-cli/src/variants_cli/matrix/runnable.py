"""Which variants of a matrix run on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterable

from pep_variants.choose.explanation import why_not
from pep_variants.choose.preferences import Preferences
from pep_variants.choose.ranking import rank
from pep_variants.settings.loader import load_preferences

from ..detection import detector_for
from .combination import metadata_of
from .model import Matrix, Variant


def reasons_not_here(matrix: Matrix, variants: Iterable[Variant]) -> dict[str, str]:
    """Return by label why a variant does not run here; labels of those that do are left out.

    The machine is what the providers detect, as for an installer; the user's preferences and
    platform files do not count. Optional namespaces are asked, too.

    Raises:
        PluginFailed: an allowed provider plugin fails.
    """
    metadata = metadata_of(matrix, variants)
    own = load_preferences({}, os.environ, warn=lambda _: None)
    optional = frozenset(
        namespace for namespace, provider in metadata.providers.items() if provider.optional
    )
    preferences = Preferences(
        enable=optional,
        allow_providers=own.allow_providers,
        on_plugin_error=own.on_plugin_error,
        plugin_variables=own.plugin_variables,
        plugin_sandbox=own.plugin_sandbox,
    )
    ranking = rank(metadata, detector_for(preferences).platform(metadata), preferences)
    return {
        label: "; ".join(why_not(ranking, label)) or "it does not fit this machine"
        for label in ranking.rejected_labels
    }
