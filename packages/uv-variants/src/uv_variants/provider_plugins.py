"""Provider plugins that the user allowed, run before uv: the proxy runs none.

What they support becomes a part of the platform key. Variant metadata names the plugins, and uv has
not fetched any yet, so the names are remembered from earlier commands.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .report import warn

if TYPE_CHECKING:
    from pep_variants.choose.preferences import Preferences
    from pep_variants.errors import PluginFailed
    from pep_variants.model.platform import Support
    from variants_plugins import Sources

    from .used_indexes import UsedIndexes

_MOST = 200
_LOCK_SECONDS = 10.0


@dataclass(frozen=True)
class WantedProvider:
    """A provider that variant metadata names.

    Attributes:
        namespace: of its properties.
        requires: requirements of its package, with markers.
        plugin_api: endpoint of the plugin, None for the default one.
    """

    namespace: str
    requires: tuple[str, ...]
    plugin_api: str | None

    @classmethod
    def read(cls, namespace: str, tree: Mapping[str, Any]) -> WantedProvider:
        """Return the provider in a `VersionChoice.providers` of the proxy."""
        return cls(namespace, tuple(tree["requires"]), tree["plugin-api"])


class KnownProviders:
    """The providers that metadata has named so far, in a file of the cache.

    Several commands may use it at once.
    """

    def __init__(self, cache: Path) -> None:
        """Use a file in the directory *cache*."""
        self._path = cache / "providers.json"

    def load(self) -> list[WantedProvider]:
        """Return the providers."""
        try:
            rows = json.loads(self._path.read_text("utf-8"))
            return [
                WantedProvider(name, tuple(requires), api) for name, requires, api in rows[-_MOST:]
            ]
        except (OSError, ValueError, TypeError):
            return []

    def add(self, wanted: Iterable[WantedProvider]) -> None:
        """Add *wanted* to the file, which other commands may have changed since `load`."""
        import filelock

        from pep_variants.files import replacing

        # Without a cache the next command learns of them from the metadata again.
        with contextlib.suppress(OSError, NotImplementedError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with filelock.FileLock(f"{self._path}.lock", timeout=_LOCK_SECONDS):
                known = self.load()
                new = [each for each in dict.fromkeys(wanted) if each not in known]
                if not new:
                    return
                rows = [
                    [each.namespace, list(each.requires), each.plugin_api]
                    for each in (*known, *new)
                ]
                with replacing(self._path) as stream:
                    stream.write(json.dumps(rows[-_MOST:]).encode())


class Plugins:
    """The plugins that the user allowed, each run at most once by one command.

    An answer is used only for metadata that names the same provider, by namespace, requirements and
    endpoint.

    Attributes:
        answers: supported properties by `provider_id`.
        failures: errors of plugins, by `provider_id`.
    """

    def __init__(
        self, cache: Path, preferences: Preferences, plan: UsedIndexes, strategy: str | None
    ) -> None:
        """Run those that earlier commands learned of.

        Args:
            cache: directory of our cache.
            preferences: which packages are allowed, and how they run.
            plan: has the indexes that they are installed from.
            strategy: uv's index strategy, None for its default.
        """
        from pep_variants.detect.detector import Detector
        from variants_plugins import PluginRunner

        self.answers: dict[str, Support] = {}
        self.failures: dict[str, PluginFailed] = {}
        self._known = KnownProviders(cache)
        self._runner = PluginRunner.of(preferences, _sources(plan, strategy))
        self._detector = Detector(enabled=preferences.enable, runner=self._runner)
        self._seen: set[WantedProvider] = set()
        for each in self._known.load():
            self._run(each)

    def learn(self, wanted: Iterable[WantedProvider]) -> bool:
        """Run and remember *wanted*; return whether this command has a new answer.

        Raises:
            PluginFailed: one that this command had not run before fails.
        """
        wanted = list(dict.fromkeys(wanted))
        self._known.add(wanted)
        answers, failures = len(self.answers), set(self.failures)
        for each in wanted:
            self._run(each)
        for name, error in self.failures.items():
            if name not in failures:
                raise error
        return len(self.answers) > answers

    def _run(self, wanted: WantedProvider) -> None:
        """Run a plugin, unless it was run before, is built in, or is not allowed."""
        from pep_variants.detect.detector import provider_id
        from pep_variants.errors import PluginFailed
        from pep_variants.model.metadata import Metadata, ProviderInfo
        from pep_variants.providers.registry import find_known
        from variants_plugins import Refused

        if wanted in self._seen:
            return
        self._seen.add(wanted)
        provider = ProviderInfo(wanted.requires, wanted.plugin_api)
        environment = self._detector.environment()
        if find_known(wanted.namespace, provider, lambda: environment) is not None:
            return
        if isinstance(self._runner.judge(provider, environment), Refused):
            return
        name = provider_id(wanted.namespace, wanted.requires, wanted.plugin_api)
        metadata = Metadata((wanted.namespace,), providers={wanted.namespace: provider})
        try:
            support = self._detector.platform(metadata).support(wanted.namespace)
        except PluginFailed as error:
            self.failures[name] = error
            return
        if support.failed:
            warn(f"Namespace {wanted.namespace!r} is skipped: {support.notice}")
        self.answers[name] = support


def _sources(plan: UsedIndexes, strategy: str | None) -> Sources:
    from pep_variants.sources import FIRST_INDEX
    from variants_plugins import Sources

    default = next((index.url for index in plan.indexes.values() if index.default), None)
    return Sources(
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


def refusal(wanted: WantedProvider, preferences: Preferences) -> str | None:
    """Return why a third-party provider was not run and how to allow it, None if it is built in.

    Args:
        wanted: the provider that metadata names.
        preferences: which packages are allowed, and which namespaces are enabled.
    """
    from pep_variants.detect.detector import Detector
    from pep_variants.model.metadata import Metadata, ProviderInfo
    from pep_variants.model.platform import Platform

    if preferences.allow_providers:
        return None
    provider = ProviderInfo(wanted.requires, wanted.plugin_api)
    metadata = Metadata((wanted.namespace,), providers={wanted.namespace: provider})
    detector = Detector(enabled=preferences.enable, detected=Platform())
    support = detector.platform(metadata).support(wanted.namespace)
    return support.notice if support.untrusted else None
