"""Asking third-party plugins: the one way in."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import ProviderError, shortened
from ..metadata import ProviderInfo
from ..property import Features
from .answer import one_line, read_answer
from .cache import Cache, default_directory, key_of, read_record, write_record
from .environment import (
    INSTALL_TIME_LIMIT,
    Environment,
    build_environment,
    environment_key,
    intact_environment,
    iter_environments,
    read_environment,
    remove_environment,
)
from .machine import machine_facts
from .sources import Sources
from .trust import Allowed, AllowList, Refused
from .variables import plugin_variables

logger = logging.getLogger(__name__)

TIME_LIMIT = 10.0
"""Seconds that a plugin has to answer."""

MAX_AGE = 3600.0
"""Seconds that an answer is kept: not everything that changes one can be seen from outside."""

_DRIVER = Path(__file__).with_name("driver.py")
_ENDPOINT = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*)?", re.ASCII)
_MAX_ENDPOINT = 300


@dataclass(frozen=True)
class Answer:
    """What a plugin says of this machine.

    Attributes:
        features: supported values, features and values most preferred first.
        resolved: the packages that answered, ``name==version``, the provider's own first.
        plugin_api: the endpoint that was asked.
        fixed: whether the plugin says that its answer is the same everywhere.
        stderr: the end of what it printed, for people who want to see it.
        kept: whether this is what it answered a short while ago.
    """

    features: Features
    resolved: tuple[str, ...]
    plugin_api: str
    fixed: bool = False
    stderr: str = ""
    kept: bool = False


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
        time_limit: float = TIME_LIMIT,
        max_age: float = MAX_AGE,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """Set up; nothing runs or is written yet.

        Args:
            allow: requirements of the packages that may run, see `trust.AllowList.parse`.
            sources: where they are installed from, PyPI by default.
            cache_dir: where environments and answers are kept, see `cache.default_directory`.
            time_limit: seconds that a plugin has to answer.
            max_age: seconds that an answer is kept; 0 asks every time.
            environ: environment variables, those of the process by default.

        Raises:
            PreferenceError: an entry of *allow* makes no sense.
        """
        self._allow = AllowList.parse(allow)
        self._sources = sources or Sources()
        self._environ = dict(os.environ if environ is None else environ)
        self._cache = Cache(cache_dir or default_directory(self._environ))
        self._time_limit = time_limit
        self._max_age = max_age

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
            ProviderError: it may not run, cannot be installed, or fails; the message says which
                package and endpoint, and what is wrong.
        """
        allowed = self.judge(provider, environment)
        if isinstance(allowed, Refused):
            raise ProviderError(allowed.reason)
        endpoint = re.sub(r"\s*:\s*", ":", provider.plugin_api or allowed.endpoint)
        if len(endpoint) > _MAX_ENDPOINT or not _ENDPOINT.fullmatch(endpoint):
            raise ProviderError(f"{shortened(endpoint)} is no endpoint of a plugin")
        started = time.time()
        question = _Question(
            namespace,
            endpoint,
            plugin_variables(self._environ),
            machine_facts(self._environ),
        )
        key = environment_key(allowed, self._sources)
        environment_kept = read_environment(self._cache, key)
        if environment_kept and (answer := self._kept(question, environment_kept, 0)):
            return answer
        self._cache.prepare()
        with self._cache.locked(key, 2 * INSTALL_TIME_LIMIT + self._time_limit):
            installed = self._installed(key, allowed, started)
            # Whoever held the lock before may have asked the same.
            answer = self._kept(question, installed, started)
            return answer or self._asked(question, installed)

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
        try:
            environment = build_environment(self._cache, key, allowed, self._sources, self._environ)
        except ProviderError as error:
            self._keep(path, {"failure": str(error), "at": time.time()})
            raise
        _remove(path)
        return environment

    def _kept(self, question: _Question, environment: Environment, started: float) -> Answer | None:
        """Return what is kept of the answer to *question*, None if that is nothing usable.

        Failures count only if they are younger than *started*: those who waited while somebody
        else found out need not find out again; whoever comes later may.
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

    def _asked(self, question: _Question, environment: Environment) -> Answer:
        """Run the plugin, keep and return what it says; the lock is held."""
        path = self._result(question, environment)
        try:
            data, stderr = self._run(question, environment)
            answer = self._answer(question, environment, data, stderr)
        except ProviderError as error:
            self._keep(path, {"failure": str(error), "at": time.time()})
            raise
        record = {"answer": json.loads(data), "stderr": stderr, "at": time.time()}
        self._keep(path, record)
        self._forget_old()
        return answer

    def _run(self, question: _Question, environment: Environment) -> tuple[bytes, str]:
        """Return the plugin's answer, not yet read, and the end of its error output."""
        import tempfile

        from .process import run

        plugin = question.describe(environment)
        frame = f"{os.urandom(16).hex()}:"
        request = {
            "plugin_api": question.endpoint,
            "frame": frame,
            "time_limit": self._time_limit,
        }
        logger.debug("asking %s", plugin)
        with tempfile.TemporaryDirectory(
            prefix="pep-variants-", ignore_cleanup_errors=True
        ) as folder:
            work, temporary = Path(folder, "work"), Path(folder, "tmp")
            work.mkdir()
            temporary.mkdir()
            driver = _DRIVER
            if not driver.is_file():  # all this runs from a zip file
                driver = Path(folder, _DRIVER.name)
                driver.write_bytes(_driver_code())
            places = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))
            # What the plugin starts must not write into the environment any more than it does.
            variables = {**question.variables, **places, "PYTHONDONTWRITEBYTECODE": "1"}
            try:
                outcome = run(
                    [environment.python, "-I", "-B", driver],
                    environ=variables,
                    cwd=work,
                    time_limit=self._time_limit,
                    request=json.dumps(request).encode(),
                )
            except OSError as error:
                raise ProviderError(f"{plugin} cannot be started: {error}") from None
        if outcome.errors:
            logger.debug("%s printed:\n%s", plugin, outcome.errors)
        # Before the frame is what something printed before the driver could see to it.
        _, framed, data = outcome.output.rpartition(frame.encode())
        if framed and data.endswith(b"\n"):
            return data, outcome.errors
        ending = outcome.exceeded or f"ended with status {outcome.status} and no answer"
        said = one_line(outcome.errors, 200)
        raise ProviderError(f"{plugin} {ending}" + (f": {said}" if said else ""))

    def _answer(
        self, question: _Question, environment: Environment, data: bytes, stderr: str
    ) -> Answer:
        features, fixed = read_answer(data, question.namespace, question.describe(environment))
        return Answer(features, environment.resolved, question.endpoint, fixed, stderr)

    def _result(self, question: _Question, environment: Environment) -> Path:
        key = key_of(
            [
                environment.path.name,
                environment.created,
                environment.resolved,
                question.namespace,
                question.endpoint,
                sorted(question.variables.items()),
                question.facts,
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


@dataclass(frozen=True)
class _Question:
    """Everything that an answer depends on besides the environment."""

    namespace: str
    endpoint: str
    variables: Mapping[str, str]
    facts: tuple[str, ...]

    def describe(self, environment: Environment) -> str:
        """Return how messages name the plugin."""
        return f"the provider plugin {environment.resolved[0]} ({self.endpoint})"


def _driver_code() -> bytes:
    """Return what is in `_DRIVER`, wherever that is."""
    import pkgutil

    code = pkgutil.get_data(__package__, _DRIVER.name)
    if code is None:
        raise ProviderError(f"{_DRIVER} cannot be read, so no plugin can be asked")
    return code


def _raise_kept_failure(record: Mapping[str, object] | None, started: float) -> None:
    if record is None:
        return
    failure, at = record.get("failure"), record.get("at")
    if isinstance(failure, str) and isinstance(at, int | float) and at >= started:
        raise ProviderError(failure)


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
