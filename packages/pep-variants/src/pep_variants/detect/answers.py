"""Answers of the built-in providers."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import ProviderError, shortened
from ..model.platform import Support

if TYPE_CHECKING:
    from .providers.base import Provider
    from .registry import KnownProvider

logger = logging.getLogger(__name__)


def ask_known(known: KnownProvider, implementation: Provider | None = None) -> Support:
    """Return what a built-in provider answers.

    Args:
        known: the provider.
        implementation: to ask, a new one for this machine by default.
    """
    resolved = (f"{known.package}=={known.stands_for}",)
    plugin_api = known.plugin_apis[0] if known.plugin_apis else None
    implementation = implementation or known.factory()
    try:
        features = implementation.supported()
        return Support(features, resolved, plugin_api, facts=implementation.facts())
    except ProviderError as error:
        return Support({}, resolved, plugin_api, str(error))
    except Exception as error:  # a fault of ours must cost variants, never the install
        return replace(_faulty(known.namespace, error), resolved=resolved, plugin_api=plugin_api)


def _faulty(namespace: str, error: Exception) -> Support:
    logger.debug("provider of %s failed", namespace, exc_info=True)
    return Support(notice=f"detection failed: {shortened(str(error))}")
