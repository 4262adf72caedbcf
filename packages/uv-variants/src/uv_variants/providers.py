"""Provider plugins that the user allowed: asked here, before uv runs, never by a shim.

What they support becomes a part of the platform key. Which namespace a plugin is for is said by
the metadata of the packages that want it, so what metadata has said is remembered.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .installed import normalized_name

if TYPE_CHECKING:
    from pep_variants.platform import Platform
    from pep_variants.preferences import Preferences

    from .invocation import Invocation
    from .plan import Place, Plan

_MOST = 200
_NAME = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")


@dataclass(frozen=True)
class Wanted:
    """A provider that metadata wants.

    Attributes:
        namespace: it is for.
        requires: requirements of its package, with markers.
        plugin_api: endpoint of the plugin, None to derive it.
    """

    namespace: str
    requires: tuple[str, ...]
    plugin_api: str | None

    @classmethod
    def read(cls, namespace: str, tree: Mapping[str, Any]) -> Wanted:
        """Read what a shim's decision says of a provider."""
        return cls(namespace, tuple(tree["requires"]), tree["plugin-api"])


class Memory:
    """The providers that metadata has wanted so far; safe to delete."""

    def __init__(self, cache: Path) -> None:
        """Set up for a directory in which it keeps a file."""
        self._path = cache / "providers.json"

    def load(self) -> list[Wanted]:
        """Return them."""
        try:
            rows = json.loads(self._path.read_text("utf-8"))
            return [Wanted(name, tuple(requires), api) for name, requires, api in rows[-_MOST:]]
        except (OSError, ValueError, TypeError):
            return []

    def learn(self, wanted: Iterable[Wanted]) -> bool:
        """Remember *wanted*; return whether any of it is new."""
        known = self.load()
        new = [each for each in dict.fromkeys(wanted) if each not in known]
        if not new:
            return False
        rows = [[each.namespace, list(each.requires), each.plugin_api] for each in (*known, *new)]
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            unfinished = self._path.with_suffix(f".{os.getpid()}")
            unfinished.write_text(json.dumps(rows[-_MOST:]), "utf-8")
            unfinished.replace(self._path)
        return True


def supported_by(
    wanted: Iterable[Wanted], preferences: Preferences, plan: Plan, strategy: str | None
) -> Platform:
    """Return what the allowed ones of *wanted* support on this machine.

    Those that built-in providers stand in for are not among them.

    Args:
        wanted: providers; of several for one namespace the last that is allowed counts.
        preferences: say which packages are allowed.
        plan: says where they are installed from.
        strategy: uv's index strategy, None for its default.
    """
    from pep_variants.detection import Detector
    from pep_variants.metadata import Metadata, ProviderInfo
    from pep_variants.platform import Platform
    from pep_variants.plugins import PluginRunner, Sources
    from pep_variants.plugins.sources import FIRST_INDEX
    from pep_variants.providers.known import find_known

    default = next((index.url for index in plan.indexes.values() if index.default), None)
    sources = Sources(
        default,
        tuple(
            index.url
            for index in plan.indexes.values()
            if not (index.default or index.links or index.explicit)
        ),
        tuple(index.url for index in plan.indexes.values() if index.links),
        no_index=default is None,
        index_strategy=strategy or FIRST_INDEX,
    )
    detector = Detector(
        enabled=preferences.enable, runner=PluginRunner(preferences.allow_providers, sources)
    )
    found = {}
    for each in wanted:
        provider = ProviderInfo(each.requires, each.plugin_api)
        if find_known(each.namespace, provider, detector.environment()) is not None:
            continue
        metadata = Metadata((each.namespace,), providers={each.namespace: provider})
        support = detector.platform(metadata).support(each.namespace)
        if support.features:
            found[each.namespace] = support
    return Platform(found)


def refusal(wanted: Wanted, preferences: Preferences) -> str | None:
    """Return why a provider was not asked and how to allow it, None if it is none of a stranger's.

    Args:
        wanted: what metadata wants.
        preferences: say which packages are allowed, and what may be consulted.
    """
    from pep_variants.detection import Detector
    from pep_variants.metadata import Metadata, ProviderInfo
    from pep_variants.platform import Platform

    if preferences.allow_providers:
        return None
    provider = ProviderInfo(wanted.requires, wanted.plugin_api)
    metadata = Metadata((wanted.namespace,), providers={wanted.namespace: provider})
    detector = Detector(enabled=preferences.enable, detected=Platform())
    support = detector.platform(metadata).support(wanted.namespace)
    return support.notice if support.untrusted else None


def requested(invocation: Invocation, place: Place) -> list[str]:
    """Return the projects (normalized names) that a command names, or its project depends on."""
    texts: list[str] = []
    if invocation.command[:1] in (("pip",), ("add",)) or invocation.command[:1] == ("tool",):
        texts += invocation.operands
    if invocation.command[:1] != ("pip",):
        from .configuration import project_table, workspace_root

        root = workspace_root(place.project.absolute())
        project = project_table(root) if root is not None else {}
        listed = project.get("dependencies")
        texts += [text for text in listed if isinstance(text, str)] if listed else []
    names = (match[1] for text in texts if (match := _NAME.match(text)))
    return list(dict.fromkeys(map(normalized_name, names)))
