"""The process of a plugin: started in its environment, for one question, within limits."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import pkgutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pep_variants.errors import PluginFailed
from pep_variants.limits import (
    PLUGIN_FILE_BYTES,
    PLUGIN_MEMORY_BYTES,
    PLUGIN_PROCESSES,
    PLUGIN_THREADS,
)

from .answer import one_line
from .environment import Environment
from .removal import remove_tree
from .variables import plugin_variables

logger = logging.getLogger(__name__)

_HOME_VARIABLES = ("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA")
_TEMPORARY_VARIABLES = ("TMPDIR", "TEMP", "TMP")


class PluginProcess:
    """Runs plugins, one process for each question."""

    def __init__(
        self,
        environ: Mapping[str, str],
        variables: Iterable[str],
        time_limit: float,
        *,
        confined: bool,
    ) -> None:
        """Set up; nothing is started yet.

        Args:
            environ: environment variables of the caller.
            variables: names of those that plugins see besides `variables.PLUGIN_VARIABLES`.
            time_limit: seconds that a plugin has to answer.
            confined: run plugins in a sandbox where the system has one.
        """
        self._environ = environ
        self._variables = plugin_variables(environ, variables)
        self._time_limit = time_limit
        self._confined = confined

    def run(
        self,
        plugin: str,
        environment: Environment,
        *,
        plugin_api: str,
        packages: Sequence[str],
        method: str,
    ) -> tuple[bytes, str]:
        """Return the plugin's answer, unread, and the end of its error output.

        Args:
            plugin: how messages name it.
            environment: that it is installed in.
            plugin_api: its endpoint, ``module`` or ``module:object.path``.
            packages: normalized names of the packages that may provide it.
            method: of the plugin, that is called.

        Raises:
            PluginFailed: it cannot be started, exceeds a limit, or ends without an answer.
        """
        from pep_variants.detect.process import NOISE_BYTES, run

        frame = f"{os.urandom(16).hex()}:"
        logger.debug("asking the provider plugin %s", plugin)
        with _scripts() as folder:
            for name in ("work", "tmp", "home"):
                (folder / name).mkdir()
            request = {
                "plugin_api": plugin_api,
                "distributions": packages,
                "method": method,
                "frame": frame,
                "time_limit": self._time_limit,
                "memory": PLUGIN_MEMORY_BYTES,
                "processes": PLUGIN_PROCESSES,
                "threads": PLUGIN_THREADS,
                # Of one process, by the names of `resource`.
                "limits": {
                    "RLIMIT_CORE": 0,
                    "RLIMIT_CPU": int(self._time_limit) + 1,
                    "RLIMIT_DATA": PLUGIN_MEMORY_BYTES,
                    "RLIMIT_FSIZE": PLUGIN_FILE_BYTES,
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
                outcome = run(
                    [environment.python, "-I", "-S", "-B", folder / "driver.py"],
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
            logger.debug("%s answered: %s", plugin, data[:NOISE_BYTES])
            return data, outcome.errors
        ending = outcome.exceeded or f"ended with status {outcome.status} and no answer"
        raise PluginFailed(plugin, ending, one_line(outcome.errors, 200))

    def measures(self) -> dict[str, str]:
        """Return what confines plugins on this machine besides the limits, by what it is for.

        Empty where the system has nothing, or where the user switched it off.
        """
        if not self._confined or sys.platform != "linux":
            return {}
        from pep_variants.detect.process import run

        with _scripts() as folder:
            outcome = run(
                [sys.executable, "-I", "-B", folder / "sandbox.py"],
                environ=plugin_variables(self._environ),
                cwd=folder,
                time_limit=self._time_limit,
            )
        try:
            found = json.loads(outcome.output)
        except ValueError:
            return {}
        return {str(name): str(value) for name, value in found.items()}


@contextlib.contextmanager
def _scripts() -> Iterator[Path]:
    """Yield a temporary folder with what runs in the plugin's environment, also of a zip file."""
    folder = Path(tempfile.mkdtemp(prefix="pep-variants-")).resolve()
    try:
        for name in ("driver.py", "sandbox.py"):
            (folder / name).write_bytes(pkgutil.get_data(__package__, name) or b"")
        yield folder
    finally:
        remove_tree(folder)


def _homes(environ: Mapping[str, str]) -> list[str]:
    """Return the user's home directories: what the system says, and what the variable says."""
    found = [environ.get("HOME", "")]
    with contextlib.suppress(ImportError, KeyError, OSError):  # a user without a name
        import pwd

        found.append(pwd.getpwuid(os.getuid()).pw_dir)
    return sorted({path for path in found if Path(path).is_absolute() and path != "/"})
