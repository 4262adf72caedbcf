"""Asking third-party plugins: the one way in.

Each question starts one process in the plugin's environment, within limits.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import pkgutil
import pwd
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pep_variants import limits, machines, safe_files
from pep_variants import preferences as user_preferences
from pep_variants.errors import PluginFailed, ProviderError, redacted, shortened
from pep_variants.machines import Allowed, AllowList, Answer, Refused
from pep_variants.metadata import ProviderInfo
from pep_variants.preferences import Preferences, Sources

from ._answer import one_line, read_answer
from ._installer import remove_tree
from ._plugin_environment import Environments, PluginEnvironment
from ._sandbox import MEASURES
from ._variables import plugin_variables

__all__ = ["MEASURES", "PluginRunner"]

logger = logging.getLogger(__name__)

_HOME_VARIABLES = ("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA")
_TEMPORARY_VARIABLES = ("TMPDIR", "TEMP", "TMP")
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
        time_limit: float = limits.PLUGIN_SECONDS,
        environ: Mapping[str, str] | None = None,
        variables: Sequence[str] = (),
        sandbox: str = user_preferences.SANDBOX_AUTO,
        on_error: str = user_preferences.ABORT,
    ) -> None:
        """Set up; nothing runs or is written yet.

        Args:
            allow: requirements of the packages that may run, see `AllowList.parse`.
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
        self._environments = Environments(
            cache_dir or safe_files.cache_directory(self._environ, "plugins")
        )
        self._time_limit = time_limit
        self._variables = plugin_variables(self._environ, variables)
        self._confined = sandbox != user_preferences.SANDBOX_OFF

    @classmethod
    def of(
        cls, preferences: Preferences, sources: Sources | None = None, *, offline: bool = False
    ) -> PluginRunner:
        """Return the runner that *preferences* want, which asks no index *offline*."""
        return cls(
            preferences.allow_providers,
            sources,
            environ={**os.environ, **({"UV_OFFLINE": "1"} if offline else {})},
            variables=preferences.plugin_variables,
            sandbox=preferences.plugin_sandbox,
            on_error=preferences.on_plugin_error,
        )

    def judge(self, provider: ProviderInfo, environment: Mapping[str, str]) -> Allowed | Refused:
        """Return what would be installed for *provider*, or why it may not run.

        Args:
            provider: what metadata says of it.
            environment: PEP 508 marker environment of the target.

        >>> from pep_variants.metadata import ProviderInfo
        >>> from variants_plugins.runner import PluginRunner
        >>> provider = ProviderInfo(requires=("acme-provider>=2",), plugin_api="acme_provider")
        >>> PluginRunner().judge(provider, {}).reason
        "its provider requires 'acme-provider>=2', which is not allowed to run"
        >>> PluginRunner(allow=["acme-provider"]).judge(provider, {}).wanted[0].specifier
        '>=2'
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
        names = [each.name for each in allowed.wanted]
        data, stderr = self._run(plugin, environment, endpoint, names, method)
        features, fixed = read_answer(data, namespace, plugin, stderr)
        return Answer(features, environment.resolved, endpoint, fixed, stderr)

    def _run(
        self,
        plugin: str,
        environment: PluginEnvironment,
        endpoint: str,
        names: Sequence[str],
        method: str,
    ) -> tuple[bytes, str]:
        """Return what *method* of the plugin answers, unread, and the end of its error output.

        Args:
            plugin: how messages name it.
            environment: that it is installed in.
            endpoint: ``module`` or ``module:object.path``.
            names: normalized, of the packages that may provide it.
            method: of the plugin.

        Raises:
            PluginFailed: it cannot be started, exceeds a limit, or ends without an answer.
        """
        frame = f"{os.urandom(16).hex()}:"
        logger.debug("asking the provider plugin %s", plugin)
        with _scripts() as folder:
            for name in ("work", "tmp", "home"):
                (folder / name).mkdir()
            request = {
                "plugin_api": endpoint,
                "distributions": names,
                "method": method,
                "frame": frame,
                "time_limit": self._time_limit,
                "memory": limits.PLUGIN_MEMORY_BYTES,
                "processes": limits.PLUGIN_PROCESSES,
                "threads": limits.PLUGIN_THREADS,
                # Of one process, by the names of `resource`.
                "limits": {
                    "RLIMIT_CORE": 0,
                    "RLIMIT_CPU": int(self._time_limit) + 1,
                    "RLIMIT_DATA": limits.PLUGIN_MEMORY_BYTES,
                    "RLIMIT_FSIZE": limits.PLUGIN_FILE_BYTES,
                },
                "sandbox": self._confined,
                "writable": str(folder),
                "homes": _homes(self._environ),
                "environment": str(environment.path),
            }
            variables = {
                **self._variables,
                **dict.fromkeys(_HOME_VARIABLES, str(folder / "home")),
                **dict.fromkeys(_TEMPORARY_VARIABLES, str(folder / "tmp")),
                # What the plugin starts must not write into the environment any more than it does.
                "PYTHONDONTWRITEBYTECODE": "1",
            }
            try:
                outcome = machines.run(
                    [environment.python, "-I", "-S", "-B", folder / "_driver.py"],
                    environ=variables,
                    cwd=folder / "work",
                    time_limit=self._time_limit,
                    request=json.dumps(request).encode(),
                )
            except OSError as error:
                raise PluginFailed(plugin, f"cannot be started: {error}") from None
        if outcome.errors:
            logger.debug("%s printed:\n%s", plugin, outcome.errors)
        # Before the frame is what was printed before the driver redirected the output.
        _, framed, data = outcome.output.rpartition(frame.encode())
        if framed and data.endswith(b"\n"):
            logger.debug("%s answered: %s", plugin, data[: machines.NOISE_BYTES])
            return data, outcome.errors
        ending = outcome.exceeded or f"ended with status {outcome.status} and no answer"
        raise PluginFailed(plugin, ending, one_line(outcome.errors, 200))

    def measures(self) -> dict[str, str]:
        """Return what confines plugins on this machine besides the limits, by what it is for.

        Empty where the system has nothing, or where the user switched it off.
        """
        if not self._confined or sys.platform != "linux":
            return {}
        with _scripts() as folder:
            outcome = machines.run(
                [sys.executable, "-I", "-B", folder / "_sandbox.py"],
                environ=plugin_variables(self._environ),
                cwd=folder,
                time_limit=self._time_limit,
            )
        try:
            found = json.loads(outcome.output)
        except ValueError:
            return {}
        return {str(name): str(value) for name, value in found.items()}

    def cached(self) -> list[PluginEnvironment]:
        """Return the plugin environments that are kept."""
        return list(self._environments)


@contextlib.contextmanager
def _scripts() -> Iterator[Path]:
    """Yield a temporary folder with what runs in the plugin's environment, also of a zip file."""
    folder = Path(tempfile.mkdtemp(prefix="pep-variants-")).resolve()
    try:
        for name in ("_driver.py", "_sandbox.py"):
            (folder / name).write_bytes(pkgutil.get_data(__package__, name) or b"")
        yield folder
    finally:
        remove_tree(folder)


def _homes(environ: Mapping[str, str]) -> list[str]:
    """Return the user's home directories: what the system says, and what the variable says."""
    found = [environ.get("HOME", "")]
    with contextlib.suppress(ImportError, KeyError, OSError):  # a user without a name
        found.append(pwd.getpwuid(os.getuid()).pw_dir)
    return sorted({path for path in found if Path(path).is_absolute() and path != "/"})
