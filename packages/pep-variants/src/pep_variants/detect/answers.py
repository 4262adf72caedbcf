"""Answers of the built-in providers, and how they came to them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import ProviderError, shortened
from ..model.platform import Support
from ..providers.attempts import Attempt, recorded
from ..providers.base import DriverProvider
from ..providers.registry import BUILTIN_NAMESPACES

if TYPE_CHECKING:
    from ..providers.base import Provider
    from ..providers.registry import KnownProvider


logger = logging.getLogger(__name__)


def ask_known(known: KnownProvider, implementation: Provider | None = None) -> Support:
    """Return what a built-in provider answers.

    Args:
        known: the provider.
        implementation: to ask, a new one for this machine by default.
    """
    resolved = (f"{known.package}=={known.stands_for}",)
    plugin_api = known.plugin_apis[0]
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


class Examined(NamedTuple):
    """What one built-in provider answers, and what it tried.

    Attributes:
        support: its answer.
        attempts: libraries, tools and files, in order.
        warnings: what users are warned of.
    """

    support: Support
    attempts: tuple[Attempt, ...]
    warnings: tuple[str, ...]


def examine_host(
    environ: Mapping[str, str] | None = None, root: Path = Path("/")
) -> dict[str, Examined]:
    """Ask every built-in provider about this machine; return the answers by namespace.

    Args:
        environ: environment variables, those of the process by default.
        root: of the file system in which drivers are looked for.
    """
    examined = {}
    for namespace, known in sorted(BUILTIN_NAMESPACES.items()):
        factory: Any = known.factory
        looks_at_files = isinstance(factory, type) and issubclass(factory, DriverProvider)
        with recorded() as trail:
            support = ask_known(known, factory(environ, root) if looks_at_files else factory())
        examined[namespace] = Examined(support, tuple(trail.attempts), tuple(trail.warnings))
    return examined
