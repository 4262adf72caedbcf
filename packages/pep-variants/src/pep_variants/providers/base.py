"""The seam between the engine and whatever knows a namespace, and what providers share.

They ask drivers by their commands and by their shared libraries, within limits: `command_output`
limits a command, `timeouts.within` a call of a library.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from ..errors import ProviderError, shortened
from ..model.platform import Fact
from ..model.property import Features
from .attempts import tried

if TYPE_CHECKING:
    from ctypes import CDLL


class Provider(Protocol):
    """Knows one namespace: which values there are, and which of them this machine supports.

    Implementations detect at the edges (driver library, ``/proc``, ``/sys``, tool output) and
    must not keep global state; the caller keeps the answer (see `detector.Detector`).
    """

    @property
    def namespace(self) -> str:
        """The namespace this provider governs."""
        ...

    def supported(self) -> Features:
        """Return the supported values, features and values most preferred first.

        An empty mapping means that nothing of the namespace is supported here. Absent hardware
        is not an error.

        Raises:
            ProviderError: an override or the detected state is invalid; the message says
                which and what to do.
        """
        ...

    def known(self) -> Features:
        """Return every value that is known to exist, in the same order."""
        ...

    def facts(self) -> tuple[Fact, ...]:
        """Return what `supported` was derived from, what decides first; empty when nothing was.

        Hardware that is found but too old, too new or hidden is a fact too.

        Raises:
            ProviderError: as in `supported`.
        """
        ...

    def summary(self) -> str:
        """Return the facts in a few words, for people; empty when there are none.

        Raises:
            ProviderError: as in `supported`.
        """
        ...


class DriverProvider:
    """Base of the providers of one vendor's devices: where they look, and what overrides that."""

    namespace: ClassVar[str]
    """The namespace this provider governs."""
    default_time_limit: ClassVar[float]
    """Seconds that a driver or a command may take."""

    def __init__(
        self,
        environ: Mapping[str, str] | None = None,
        root: Path = Path("/"),
        system: str | None = None,
        time_limit: float | None = None,
    ) -> None:
        """Set up; nothing is looked at yet.

        Args:
            environ: environment variables, those of the process by default.
            root: of the file system.
            system: as `sys.platform`, that of this machine by default.
            time_limit: in place of `default_time_limit`.
        """
        self.environ = os.environ if environ is None else environ
        self.root = root
        self.system = sys.platform if system is None else system
        self.time_limit = self.default_time_limit if time_limit is None else time_limit

    def facts(self) -> tuple[Fact, ...]:
        """See `Provider`."""
        raise NotImplementedError

    def summary(self) -> str:
        """Return the facts in a few words, e.g. ``CUDA driver 12.8, compute capability 9.0``.

        Raises:
            ProviderError: an override is malformed.
        """
        return summarized(self.facts())

    def overridden(
        self, variable: str, pattern: str, problem: str, example: str, *, several: bool = False
    ) -> tuple[str, ...]:
        """Return what the user says in *variable*, nothing if it is not set or blank.

        Args:
            variable: the environment variable.
            pattern: regular expression of a whole value.
            problem: what to say of another value, e.g. ``is not a version``.
            example: a value that would be right.
            several: there may be several, separated by commas, semicolons or white space.

        Raises:
            ProviderError: a value that does not match.
        """
        text = self.environ.get(variable, "").strip()
        values = re.split(r"[,;\s]+", text) if several else [text]
        found = tuple(dict.fromkeys(filter(None, values)))
        if text and not (found and all(re.fullmatch(pattern, value) for value in found)):
            raise ProviderError(
                f"environment variable {variable}: {shortened(text)} {problem}: "
                f"set it to one like {example}, or unset it"
            )
        return found


def summarized(facts: Iterable[Fact]) -> str:
    """Return *facts* in a few words, e.g. ``CUDA driver 12.8, compute capability 9.0 and 8.6``."""
    values: dict[str, dict[str, None]] = {}
    for fact in facts:
        value = f"{fact.value} (forced)" if fact.forced else fact.value
        values.setdefault(fact.what, {})[value] = None
    return ", ".join(f"{what} {_listed(list(found))}" for what, found in values.items())


def _listed(values: list[str]) -> str:
    return values[0] if len(values) == 1 else f"{', '.join(values[:-1])} and {values[-1]}"


COMMAND_SECONDS = 10.0
"""How long a command may take."""


class LimitExceeded(Exception):
    """A command was stopped; the message says which limit it exceeded."""


def find_command(name: str, folders: Iterable[Path]) -> Path | None:
    """Return the path of the command in the first of *folders* that has it, None if none has.

    Relative folders do not count: they would mean the working directory.
    """
    for folder in folders:
        path = folder / name
        if folder.is_absolute() and path.is_file() and os.access(path, os.X_OK):
            return path
    tried(name, "is not on PATH, nor where its driver puts it")
    return None


def command_folders(environ: Mapping[str, str]) -> list[Path]:
    """Return the folders of ``PATH``."""
    return [Path(folder) for folder in environ.get("PATH", os.defpath).split(os.pathsep)]


def command_output(
    path: Path,
    *arguments: str,
    environ: Mapping[str, str],
    time_limit: float = COMMAND_SECONDS,
) -> str | None:
    """Return what the command at *path* prints, None if it fails.

    It has no input, and its error output is discarded.

    Raises:
        LimitExceeded: it takes longer than *time_limit* seconds, or prints far too much.
    """
    from .process import run

    try:
        outcome = run([path, *arguments], environ=environ, cwd=path.parent, time_limit=time_limit)
    except OSError as error:
        tried(str(path), f"cannot be started: {error}")
        return None
    if outcome.exceeded:
        tried(str(path), outcome.exceeded)
        raise LimitExceeded(f"{path} {outcome.exceeded}")
    if outcome.status:
        tried(str(path), f"fails with status {outcome.status}: {outcome.errors}")
        return None
    tried(str(path), "answers", found=True)
    return outcome.output.decode(errors="replace")


LIBRARY_SECONDS = 30.0
"""How long a driver has to answer. That long because a driver without persistent state starts
every GPU when it is asked, which takes seconds for each."""


def load(names: Iterable[str]) -> CDLL | None:
    """Return the first library that can be loaded, None if none can.

    A bare name is looked for where the dynamic loader looks, a path is taken as it is.
    """
    from ctypes import CDLL

    for name in names:
        try:
            library = CDLL(name)
        except OSError as error:
            tried(name, f"cannot be loaded: {str(error).removeprefix(f'{name}: ')}")
        else:
            tried(name, "is loaded", found=True)
            return library
    return None
