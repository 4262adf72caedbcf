"""Asking third-party plugins: the one way in."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from pep_variants.cache_directory import cache_directory
from pep_variants.choose.preferences import ABORT, SANDBOX_AUTO, SANDBOX_OFF, Preferences
from pep_variants.detect.plugins import Answer, Refused
from pep_variants.errors import PluginFailed, ProviderError, redacted, shortened
from pep_variants.limits import PLUGIN_SECONDS
from pep_variants.model.metadata import ProviderInfo
from pep_variants.settings.allow_list import Allowed, AllowList
from pep_variants.sources import Sources

from .answer import read_answer
from .environment import Environment, Environments
from .plugin_process import PluginProcess

logger = logging.getLogger(__name__)

_ENDPOINT = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*)?", re.ASCII)
_MAX_ENDPOINT = 300


class PluginRunner:
    """Runs the plugins that the user allowed.

    Safe to use from several processes and threads at once: a plugin is installed once.
    """

    def __init__(
        self,
        allow: Sequence[str] = (),
        sources: Sources | None = None,
        *,
        cache_dir: Path | None = None,
        time_limit: float = PLUGIN_SECONDS,
        environ: Mapping[str, str] | None = None,
        variables: Sequence[str] = (),
        sandbox: str = SANDBOX_AUTO,
        on_error: str = ABORT,
    ) -> None:
        """Set up; nothing runs or is written yet.

        Args:
            allow: requirements of the packages that may run, see `allow_list.AllowList.parse`.
            sources: where they are installed from, PyPI by default.
            cache_dir: where environments are kept, ``plugins`` among all caches by default.
            time_limit: seconds that a plugin has to answer.
            environ: environment variables, those of the process by default.
            variables: names of those that plugins see besides `variables.PLUGIN_VARIABLES`.
            sandbox: `SANDBOX_AUTO` confines plugins where the system can, `SANDBOX_OFF` does not.
            on_error: what a `Detector` does with the failure of an allowed plugin: `ABORT` raises
                it, `SKIP` leaves the namespace unsupported.

        Raises:
            PreferenceError: an entry of *allow* is malformed.
        """
        self.on_error = on_error
        self._allow = AllowList.parse(allow)
        self._sources = sources or Sources()
        self._environ = dict(os.environ if environ is None else environ)
        self._environments = Environments(cache_dir or cache_directory(self._environ, "plugins"))
        self._process = PluginProcess(
            self._environ, variables, time_limit, confined=sandbox != SANDBOX_OFF
        )

    @classmethod
    def of(cls, preferences: Preferences, sources: Sources | None = None) -> PluginRunner:
        """Return the runner that *preferences* want; as the constructor."""
        return cls(
            preferences.allow_providers,
            sources,
            variables=preferences.plugin_variables,
            sandbox=preferences.plugin_sandbox,
            on_error=preferences.on_plugin_error,
        )

    def judge(self, provider: ProviderInfo, environment: Mapping[str, str]) -> Allowed | Refused:
        """Return what would be installed for *provider*, or why it may not run.

        Args:
            provider: what metadata says of it.
            environment: PEP 508 marker environment of the target.
        """
        return self._allow.judge(provider.requires, environment)

    def ask(self, namespace: str, provider: ProviderInfo, environment: Mapping[str, str]) -> Answer:
        """Return what *provider* supports in *namespace* on this machine.

        Its plugin is installed if it is not yet, and run.

        Raises:
            ProviderError: it may not run.
            PluginFailed: it may, and cannot be installed, or fails; the message says which package
                and endpoint, and what is wrong.
        """
        return self._answer_of("get_supported_configs", namespace, provider, environment)

    def ask_all(
        self, namespace: str, provider: ProviderInfo, environment: Mapping[str, str]
    ) -> Answer:
        """Return every feature and value that *provider* has in *namespace*, on any machine.

        Builds check their properties by it. As `ask` otherwise.

        Raises:
            ProviderError: it may not run.
            PluginFailed: it may, and gives no usable answer.
        """
        return self._answer_of("get_all_configs", namespace, provider, environment)

    def _answer_of(
        self,
        method: str,
        namespace: str,
        provider: ProviderInfo,
        environment: Mapping[str, str],
    ) -> Answer:
        allowed = self.judge(provider, environment)
        if isinstance(allowed, Refused):
            raise ProviderError(allowed.reason)
        try:
            return self._answered(method, namespace, provider, allowed)
        except PluginFailed:
            raise
        except ProviderError as error:
            cause = f"cannot be used: {error}"
        except OSError as error:  # a full disk
            cause = f"cannot be used: {redacted(str(error))}"
        except Exception as error:
            # A fault of ours costs variants, never the install; but this one the user asked for.
            logger.debug("asking a plugin failed", exc_info=True)
            described = shortened(str(error), 200)
            cause = f"cannot be used because of an internal error in pep-variants: {described}"
        raise PluginFailed(", ".join(map(str, allowed.wanted)), cause)

    def _answered(
        self, method: str, namespace: str, provider: ProviderInfo, allowed: Allowed
    ) -> Answer:
        endpoint = re.sub(r"\s*:\s*", ":", provider.plugin_api or allowed.endpoint)
        if len(endpoint) > _MAX_ENDPOINT or not _ENDPOINT.fullmatch(endpoint):
            raise ProviderError(f"{shortened(endpoint)} is not a valid plugin endpoint")
        environment = self._environments.get(allowed, self._sources, self._environ)
        plugin = f"{environment.resolved[0]} ({endpoint})"
        data, stderr = self._process.run(
            plugin,
            environment,
            plugin_api=endpoint,
            packages=[each.name for each in allowed.wanted],
            method=method,
        )
        features, fixed = read_answer(data, namespace, plugin, stderr)
        return Answer(features, environment.resolved, endpoint, fixed, stderr)

    def measures(self) -> dict[str, str]:
        """Return what confines plugins on this machine besides the limits, by what it is for.

        Empty where the system has nothing, or where the user switched it off.
        """
        return self._process.measures()

    def cached(self) -> list[Environment]:
        """Return the plugin environments that are kept."""
        return list(self._environments)
