"""The process of a plugin: started in its environment, for one question, within limits."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pep_variants.errors import PluginFailed, ProviderError
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

_FOLDER = Path(__file__).parent
_SCRIPTS = ("driver.py", "sandbox.py", "supervisor.py")
"""What runs in the plugin's environment, the first of them first."""

_HOME_VARIABLES = ("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA")
_TEMPORARY_VARIABLES = ("TMPDIR", "TEMP", "TMP")


SUPPORTED, ALL = "get_supported_configs", "get_all_configs"
"""Methods of plugins: what this machine supports, and what there is at all (PEP 817)."""


@dataclass(frozen=True)
class Question:
    """What a plugin is asked; an answer depends on this and on the environment.

    Attributes:
        namespace: that it answers for.
        endpoint: of the plugin, ``module`` or ``module:object.path``.
        packages: normalized names of the packages that may provide it.
        variables: environment variables that it sees.
        facts: what is known of the machine, see `machine`.
        sandbox: `SANDBOX_AUTO` or `SANDBOX_OFF`.
        method: of the plugin, `SUPPORTED` or `ALL`.
    """

    namespace: str
    endpoint: str
    packages: tuple[str, ...]
    variables: Mapping[str, str]
    facts: tuple[str, ...]
    sandbox: str
    method: str = SUPPORTED

    def describe(self, environment: Environment) -> str:
        """Return how messages name the plugin."""
        return f"{environment.resolved[0]} ({self.endpoint})"


class PluginProcess:
    """Runs plugins, one process for each question."""

    def __init__(self, environ: Mapping[str, str], time_limit: float, *, confined: bool) -> None:
        """Set up; nothing is started yet.

        Args:
            environ: environment variables of the caller.
            time_limit: seconds that a plugin has to answer.
            confined: run plugins in a sandbox where the system has one.
        """
        self._environ = environ
        self._time_limit = time_limit
        self._confined = confined

    def run(self, question: Question, environment: Environment) -> tuple[bytes, str]:
        """Return the plugin's answer, unread, and the end of its error output.

        Raises:
            PluginFailed: it cannot be started, exceeds a limit, or ends without an answer.
        """
        from pep_variants.providers.process import NOISE_BYTES, run

        plugin = question.describe(environment)
        frame = f"{os.urandom(16).hex()}:"
        logger.debug("asking the provider plugin %s", plugin)
        with self._temporary() as folder:
            places = {name: folder / name for name in ("work", "tmp", "home")}
            for place in places.values():
                place.mkdir()
            request = {
                "plugin_api": question.endpoint,
                "distributions": question.packages,
                "method": question.method,
                "frame": frame,
                "time_limit": self._time_limit,
                "memory": PLUGIN_MEMORY_BYTES,
                "processes": PLUGIN_PROCESSES,
                "threads": PLUGIN_THREADS,
                "limits": _limits(self._time_limit),
                "sandbox": self._confined,
                "writable": str(folder),
                "homes": _homes(self._environ),
                "environment": str(environment.path),
            }
            variables = {
                **question.variables,
                **dict.fromkeys(_HOME_VARIABLES, str(places["home"])),
                **dict.fromkeys(_TEMPORARY_VARIABLES, str(places["tmp"])),
                # What the plugin starts must not write into the environment any more than it does.
                "PYTHONDONTWRITEBYTECODE": "1",
            }
            try:
                outcome = run(
                    [environment.python, "-I", "-S", "-B", self._script(folder, _SCRIPTS[0])],
                    environ=variables,
                    cwd=places["work"],
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

    @contextlib.contextmanager
    def _temporary(self) -> Iterator[Path]:
        import tempfile

        folder = Path(tempfile.mkdtemp(prefix="pep-variants-")).resolve()
        try:
            yield folder
        finally:
            remove_tree(folder)

    def _script(self, folder: Path, name: str) -> Path:
        """Return the path of the script *name*, with the others beside it."""
        if (_FOLDER / name).is_file():
            return _FOLDER / name
        import pkgutil

        for each in _SCRIPTS:  # all this runs from a zip file
            code = pkgutil.get_data(__package__, each)
            if code is None:
                raise ProviderError(f"{_FOLDER / each} cannot be read, so no plugin can be asked")
            (folder / each).write_bytes(code)
        return folder / name

    def measures(self) -> dict[str, str]:
        """Return what confines plugins on this machine besides the limits, by what it is for.

        Empty where the system has nothing, or where the user switched it off.
        """
        if not self._confined or sys.platform != "linux":
            return {}
        from pep_variants.providers.process import run

        with self._temporary() as folder:
            outcome = run(
                [sys.executable, "-I", "-B", self._script(folder, "sandbox.py")],
                environ=plugin_variables(self._environ),
                cwd=folder,
                time_limit=self._time_limit,
            )
        try:
            found = json.loads(outcome.output)
        except ValueError:
            return {}
        return {str(name): str(value) for name, value in found.items()}


def _homes(environ: Mapping[str, str]) -> list[str]:
    """Return the user's home directories: what the system says, and what the variable says."""
    found = [environ.get("HOME", "")]
    with contextlib.suppress(ImportError, KeyError, OSError):  # a user without a name
        import pwd

        found.append(pwd.getpwuid(os.getuid()).pw_dir)
    return sorted({path for path in found if Path(path).is_absolute() and path != "/"})


def _limits(seconds: float) -> dict[str, int]:
    """Return the limits of one process of a plugin, by the names of `resource`."""
    return {
        "RLIMIT_CORE": 0,
        "RLIMIT_CPU": int(seconds) + 1,
        "RLIMIT_DATA": PLUGIN_MEMORY_BYTES,
        "RLIMIT_FSIZE": PLUGIN_FILE_BYTES,
    }
