"""Providers that the build asks, not the machines of users (``build-requires`` in pyproject.toml).

Such an ahead-of-time provider says the same everywhere. What it says becomes the
``static-properties`` of the metadata, which installers read instead of asking anything.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from packaging.markers import default_environment

from pep_variants import machines
from pep_variants.errors import VariantError
from pep_variants.machines import Refused

from ._console import warn
from ._description import lost_priorities
from ._detection import plugin_runner_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pep_variants.metadata import Features, Metadata, ProviderInfo


class BuildProviderError(VariantError):
    """A provider of the build that cannot be asked, or whose answer cannot be used."""


def with_build_providers(project: Metadata, allowed: Sequence[str]) -> Metadata:
    """Return *project* with what the providers of the build say as static properties.

    Packages with a built-in implementation are not run; others have to be allowed. Warns of what
    *project* says that metadata cannot.

    Args:
        project: metadata as pyproject.toml has it.
        allowed: provider plugins that may run besides those of the user's settings.

    Raises:
        BuildProviderError: a provider is not allowed, or has no values.
        PluginFailed: an allowed one fails.
    """
    for lost in lost_priorities(project):
        warn(f"{project.source}: {lost} does not exist in the current format and is not written")
    providers = {}
    for namespace, provider in project.providers.items():
        if provider.build_requires:
            asked = replace(provider, requires=provider.build_requires, build_requires=())
            found = _asked(project.source, namespace, asked, allowed)
            provider = replace(provider, build_requires=(), plugin_api=None, static=found)
        providers[namespace] = provider
    return replace(project, providers=providers)


def _asked(source: str, namespace: str, provider: ProviderInfo, allowed: Sequence[str]) -> Features:
    environment = {name: str(value) for name, value in default_environment().items()}
    place = f"{source}: variant.providers.{namespace}"
    stand_in = machines.find_known(namespace, provider, lambda: environment)
    if stand_in is not None:
        return stand_in.factory().known()
    runner = plugin_runner_of({"variant-allow-provider": [*allowed]})
    judged = runner.judge(provider, environment)
    if isinstance(judged, Refused):
        way_out = (
            f": allow it with --variant-allow-provider {judged.requirement!r}"
            if judged.requirement
            else ""
        )
        raise BuildProviderError(f"{place}: the build asks this provider: {judged.reason}{way_out}")
    answer = runner.ask(namespace, provider, environment)
    # Of one that says something else on every machine, all that there is.
    found = answer.features
    if not answer.fixed:
        found = runner.ask_all(namespace, provider, environment).features
    if not found:
        raise BuildProviderError(f"{place}: {', '.join(answer.resolved)} has no values")
    return found
