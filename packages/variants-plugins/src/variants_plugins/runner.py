"""Asking third-party plugins: the one way in."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pep_variants.cache_directory import cache_directory
from pep_variants.choose.preferences import ABORT, SANDBOX_AUTO, SANDBOX_OFF, Preferences
from pep_variants.detect.plugins import Answer, Refused
from pep_variants.errors import PluginFailed, ProviderError, redacted, shortened
from pep_variants.limits import (
    PLUGIN_ENVIRONMENTS,
    PLUGIN_SECONDS,
)
from pep_variants.model.metadata import ProviderInfo
from pep_variants.settings.allow_list import Allowed, AllowList
from pep_variants.sources import Sources

from .answer import read_answer
from .cache import Cache, key_of, read_record, write_record
from .environment import (
    Environment,
    build_environment,
    environment_key,
    intact_environment,
    iter_environments,
    read_environment,
    remove_environment,
)
from .installer import INSTALL_TIME_LIMIT
from .machine import machine_facts
from .plugin_process import ALL, SUPPORTED, PluginProcess, Question
from .variables import plugin_variables

logger = logging.getLogger(__name__)

MAX_AGE = 3600.0
"""Seconds that an answer is kept: not everything that changes one can be seen from outside."""

_ENDPOINT = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*)?", re.ASCII)
_MAX_ENDPOINT = 300


class PluginRunner:
    """Runs the plugins that the user allowed, and keeps what they say for a while.

    Safe to use from several processes and threads at once; what they ask is done once.
    """

    def __init__(
        self,
        allow: Sequence[str] = (),
        sources: Sources | None = None,
        *,
        cache_dir: Path | None = None,
        time_limit: float = PLUGIN_SECONDS,
        max_age: float = MAX_AGE,
        environ: Mapping[str, str] | None = None,
        variables: Sequence[str] = (),
        sandbox: str = SANDBOX_AUTO,
        on_error: str = ABORT,
    ) -> None:
        """Set up; nothing runs or is written yet.

        Args:
            allow: requirements of the packages that may run, see `allow_list.AllowList.parse`.
            sources: where they are installed from, PyPI by default.
            cache_dir: where environments and answers are kept, ``plugins`` among all caches by
                default.
            time_limit: seconds that a plugin has to answer.
            max_age: seconds that an answer is kept; 0 asks every time.
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
        self._cache = Cache(cache_dir or cache_directory(self._environ, "plugins"))
        self._time_limit = time_limit
        self._max_age = max_age
        self._variables = tuple(variables)
        self._sandbox = sandbox
        self._process = PluginProcess(self._environ, time_limit, confined=sandbox != SANDBOX_OFF)
        self._made: set[str] = set()

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

        Its plugin is installed if it is not yet, and run if nothing it said is kept.

        Raises:
            ProviderError: it may not run.
            PluginFailed: it may, and cannot be installed, or fails; the message says which package
                and endpoint, and what is wrong.
        """
        return self._answer_of(SUPPORTED, namespace, provider, environment)

    def ask_all(
        self, namespace: str, provider: ProviderInfo, environment: Mapping[str, str]
    ) -> Answer:
        """Return every feature and value that *provider* has in *namespace*, on any machine.

        Builds check their properties by it. As `ask` otherwise.

        Raises:
            ProviderError: it may not run.
            PluginFailed: it may, and gives no usable answer.
        """
        return self._answer_of(ALL, namespace, provider, environment)

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
        started = time.time()
        question = Question(
            namespace,
            endpoint,
            tuple(each.name for each in allowed.wanted),
            plugin_variables(self._environ, self._variables),
            machine_facts(self._environ),
            self._sandbox,
            method,
        )
        key = environment_key(allowed, self._sources)
        environment_kept = read_environment(self._cache, key)
        if environment_kept and (answer := self._kept(question, environment_kept, 0)):
            return answer
        self._cache.prepare()
        with self._cache.locked(key, 2 * INSTALL_TIME_LIMIT + self._time_limit):
            installed = self._installed(key, allowed, started)
            # The process that held the lock before may have asked the same.
            answer = self._kept(question, installed, started)
            return answer or self._asked(question, installed)

    def measures(self) -> dict[str, str]:
        """Return what confines plugins on this machine besides the limits, by what it is for.

        Empty where the system has nothing, or where the user switched it off.
        """
        return self._process.measures()

    def cached(self) -> list[Environment]:
        """Return the plugin environments that are kept."""
        return iter_environments(self._cache)

    def clear(self) -> int:
        """Remove all kept environments and answers; return the number of environments.

        Raises:
            ProviderError: the directory is not ours, or a plugin is still being installed.
        """
        if not self._cache.root.exists():
            return 0
        self._cache.prepare()
        names = {
            path.name.strip(".").partition(".")[0] for path in _listed(self._cache.environments)
        }
        count = 0
        for key in sorted(names):
            with self._cache.locked(key, INSTALL_TIME_LIMIT):
                count += read_environment(self._cache, key) is not None
                remove_environment(self._cache, key)
                _remove(self._failure(key))
        for path in _listed(self._cache.results):
            _remove(path)
        return count

    def _failure(self, key: str) -> Path:
        return self._cache.environments / f"{key}.failure.json"

    def _installed(self, key: str, allowed: Allowed, started: float) -> Environment:
        """Return the environment *key*, made if need be; the lock is held."""
        environment = intact_environment(self._cache, key)
        if environment is not None:
            return environment
        path = self._failure(key)
        _raise_kept_failure(read_record(path), started)
        if len(self._made) >= PLUGIN_ENVIRONMENTS:
            raise ProviderError(
                f"metadata needs more than {PLUGIN_ENVIRONMENTS} different sets of plugin packages"
            )
        self._made.add(key)
        try:
            environment = build_environment(self._cache, key, allowed, self._sources, self._environ)
        except ProviderError as error:
            self._keep(path, {"failure": ["", str(error), ""], "at": time.time()})
            raise
        _remove(path)
        return environment

    def _kept(self, question: Question, environment: Environment, started: float) -> Answer | None:
        """Return what is kept of the answer to *question*, None if that is nothing usable.

        Failures count only if they are younger than *started*: a process that waited for the lock
        need not repeat a failing call; a later one may.
        """
        record = read_record(self._result(question, environment))
        if record is None:
            return None
        if started:
            _raise_kept_failure(record, started)
        at, stderr = record.get("at"), record.get("stderr", "")
        if not isinstance(at, int | float) or not 0 <= time.time() - at < self._max_age:
            return None
        if "answer" not in record or not isinstance(stderr, str):
            return None
        try:
            data = json.dumps(record["answer"]).encode()
            answer = self._answer(question, environment, data, stderr)
        except (ProviderError, ValueError):  # edited, or damaged
            return None
        return replace(answer, kept=True)

    def _asked(self, question: Question, environment: Environment) -> Answer:
        """Run the plugin, keep and return what it says; the lock is held."""
        path = self._result(question, environment)
        try:
            data, stderr = self._process.run(question, environment)
            answer = self._answer(question, environment, data, stderr)
        except PluginFailed as error:
            failure = [error.plugin, error.cause, error.output]
            self._keep(path, {"failure": failure, "at": time.time()})
            raise
        record = {"answer": json.loads(data), "stderr": stderr, "at": time.time()}
        self._keep(path, record)
        self._forget_old()
        return answer

    def _answer(
        self, question: Question, environment: Environment, data: bytes, stderr: str
    ) -> Answer:
        plugin = question.describe(environment)
        features, fixed = read_answer(data, question.namespace, plugin, stderr)
        return Answer(features, environment.resolved, question.endpoint, fixed, stderr)

    def _result(self, question: Question, environment: Environment) -> Path:
        key = key_of(
            [
                environment.path.name,
                environment.created,
                environment.resolved,
                question.namespace,
                question.endpoint,
                question.packages,
                sorted(question.variables.items()),
                question.facts,
                question.sandbox,
                *([question.method] if question.method != SUPPORTED else []),
            ]
        )
        return self._cache.results / f"{key}.json"

    def _keep(self, path: Path, record: Mapping[str, object]) -> None:
        try:
            write_record(path, record)
        except OSError as error:  # a full disk: then it is asked again
            logger.debug("%s cannot be written: %s", path, error)

    def _forget_old(self) -> None:
        limit = time.time() - self._max_age
        for path in _listed(self._cache.results):
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < limit:
                    path.unlink()


def _raise_kept_failure(record: Mapping[str, object] | None, started: float) -> None:
    if record is None:
        return
    failure, at = record.get("failure"), record.get("at")
    if not isinstance(at, int | float) or at < started or not isinstance(failure, list):
        return
    plugin, cause, output = map(str, (*failure, "", "", "")[:3])
    raise PluginFailed(plugin, cause, output) if plugin else ProviderError(cause)


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
