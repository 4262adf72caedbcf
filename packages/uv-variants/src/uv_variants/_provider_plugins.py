"""Provider plugins that the user allowed, run before uv: the proxy runs none.

What they support becomes a part of the platform key. Variant metadata names the plugins, and uv has
not fetched any yet, so the names are remembered from earlier commands.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pep_variants import machines, safe_files
from pep_variants.errors import PluginFailed
from pep_variants.machines import Detector, Platform, Refused
from pep_variants.metadata import Metadata, ProviderInfo

from ._errors import warn
from ._indexes import sources_of

if TYPE_CHECKING:
    from pep_variants.machines import Support
    from pep_variants.preferences import Preferences
    from variants_plugins.runner import PluginRunner

    from ._context import Context

_MOST = 200


class WantedProvider(NamedTuple):
    """A provider that variant metadata names.

    Attributes:
        namespace: of its properties.
        requires: requirements of its package, with markers.
        plugin_api: endpoint of the plugin, None for the default one.
    """

    namespace: str
    requires: tuple[str, ...]
    plugin_api: str | None

    def metadata(self) -> tuple[ProviderInfo, Metadata]:
        """Return the provider, and variant metadata that names no other."""
        provider = ProviderInfo(self.requires, self.plugin_api)
        return provider, Metadata((self.namespace,), providers={self.namespace: provider})


def _remembered(folder: Path) -> Iterator[WantedProvider]:
    """Yield the providers that metadata has named so far, each in a file of *folder*."""
    paths = []
    with contextlib.suppress(OSError):
        paths = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
        for path in paths[:-_MOST]:
            path.unlink(missing_ok=True)
    for path in paths[-_MOST:]:
        with contextlib.suppress(OSError, ValueError, TypeError):
            namespace, requires, plugin_api = json.loads(path.read_text("utf-8"))
            yield WantedProvider(namespace, tuple(requires), plugin_api)


def _remember(folder: Path, wanted: WantedProvider) -> None:
    """Write *wanted* to *folder*; without it the next command learns of it from the metadata."""
    data = json.dumps(wanted).encode()
    path = folder / f"{hashlib.sha256(data).hexdigest()[:32]}.json"
    with contextlib.suppress(OSError):
        if not path.exists():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with safe_files.replacing(path) as stream:
                stream.write(data)


class Plugins:
    """The plugins that the user allowed, each run at most once by one command.

    An answer is used only for metadata that names the same provider, by namespace, requirements and
    endpoint.

    Attributes:
        answers: supported properties by `provider_id`.
        failures: errors of plugins, by `provider_id`.
    """

    def __init__(self, cache: Path, preferences: Preferences, runner: PluginRunner) -> None:
        """Run those that earlier commands learned of.

        Args:
            cache: directory of our cache.
            preferences: which namespaces are enabled.
            runner: of the packages that are allowed.
        """
        self.answers: dict[str, Support] = {}
        self.failures: dict[str, PluginFailed] = {}
        self._folder = cache / "providers"
        self._runner = runner
        self._detector = Detector(enabled=preferences.enable, runner=self._runner)
        self._seen: set[WantedProvider] = set()
        for each in _remembered(self._folder):
            self._run(each)

    def learn(self, wanted: Iterable[WantedProvider]) -> bool:
        """Run and remember *wanted*; return whether this command has a new answer.

        Raises:
            PluginFailed: one that this command had not run before fails.
        """
        wanted = list(dict.fromkeys(wanted))
        answers, failures = len(self.answers), set(self.failures)
        for each in wanted:
            _remember(self._folder, each)
            self._run(each)
        for name, error in self.failures.items():
            if name not in failures:
                raise error
        return len(self.answers) > answers

    def _run(self, wanted: WantedProvider) -> None:
        """Run a plugin, unless it was run before, is built in, or is not allowed."""
        if wanted in self._seen:
            return
        self._seen.add(wanted)
        provider, metadata = wanted.metadata()
        environment = self._detector.environment()
        if machines.find_known(wanted.namespace, provider, lambda: environment) is not None:
            return
        if isinstance(self._runner.judge(provider, environment), Refused):
            return
        name = machines.provider_id(wanted.namespace, wanted.requires, wanted.plugin_api)
        try:
            support = self._detector.platform(metadata).support(wanted.namespace)
        except PluginFailed as error:
            self.failures[name] = error
            return
        if support.failed:
            warn(f"Namespace {wanted.namespace!r} is skipped: {support.notice}")
        self.answers[name] = support


def allowed_plugins(context: Context) -> Plugins | None:
    """Return the plugins that the user allowed, None if there are none to run."""
    preferences = context.preferences
    if not preferences.allow_providers or preferences.platform_file is not None:
        return None
    from variants_plugins.runner import PluginRunner

    usual = (index for index in context.indexes.indexes.values() if not index.explicit)
    sources = sources_of(usual, context.index_strategy)
    runner = PluginRunner.of(preferences, sources, offline=context.is_offline)
    return Plugins(context.cache, preferences, runner)


def refusal(namespace: str, provider: ProviderInfo, preferences: Preferences) -> str | None:
    """Return why a third-party provider was not run and how to allow it, None if it is built in.

    Args:
        namespace: of its properties.
        provider: that variant metadata names.
        preferences: which packages are allowed, and which namespaces are enabled.
    """
    if preferences.allow_providers:
        return None
    wanted = WantedProvider(namespace, provider.requires, provider.plugin_api)
    _, metadata = wanted.metadata()
    detector = Detector(enabled=preferences.enable, detected=Platform())
    support = detector.platform(metadata).support(namespace)
    return support.notice if support.untrusted else None
