"""The seam between the engine and whatever knows a namespace, and what providers share.

They ask drivers by their commands and by their shared libraries, within limits: `command_output`
limits a command, `timeouts.within` a call of a library. They report every attempt with `tried`,
which costs a log record at debug level; `recorded` collects them, from all threads, for those who
explain a detection.

Each module of a provider has one `Vendor`, called ``VENDOR``: what is known of the maker besides
detection. Messages, machines in words, the doctor, pages and the keys of kept plugin answers read
it through `registry.find_vendor`, so that a new accelerator is one module and one row in
`registry.KNOWN`.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

from .._model.platform import Fact
from .._model.property import Features
from ..errors import ProviderError, cut, printable, shortened

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
        """Return the facts behind `supported`, the deciding ones first; empty without any.

        Hardware that is found but too old, too new or hidden is a fact too.

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

    def overridden(
        self, variable: str, pattern: str, problem: str, example: str, *, several: bool = False
    ) -> tuple[str, ...]:
        """Return the values that the user set in *variable*, none if it is not set or blank.

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
        given = tuple(dict.fromkeys(filter(None, values)))
        if text and not (given and all(re.fullmatch(pattern, value) for value in given)):
            raise ProviderError(
                f"environment variable {variable}: {shortened(text)} {problem}: "
                f"set it to one like {example}, or unset it"
            )
        return given


COMMAND_SECONDS = 10.0
"""How long a command may take."""


class CommandFailed(Exception):
    """A command failed or was stopped at a limit; the message names it and says how."""


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


def script_folders(environ: Mapping[str, str], system: str) -> list[Path]:
    """Return where the active environment and the running Python have commands of packages."""
    prefixes = (environ.get("VIRTUAL_ENV"), environ.get("CONDA_PREFIX"), sys.prefix)
    name = "Scripts" if system == "win32" else "bin"
    return [Path(prefix, name) for prefix in prefixes if prefix]


def command_output(
    path: Path,
    *arguments: str,
    environ: Mapping[str, str],
    time_limit: float = COMMAND_SECONDS,
) -> str:
    """Return the output of the command at *path*; it has no input.

    Raises:
        CommandFailed: it cannot be started, fails, takes longer than *time_limit* seconds, or
            prints far too much.
    """
    from .process import run

    try:
        outcome = run([path, *arguments], environ=environ, cwd=path.parent, time_limit=time_limit)
    except OSError as error:
        problem = f"cannot be started: {error}"
    else:
        problem = outcome.exceeded
        if outcome.status:
            said = (outcome.errors or outcome.output.decode(errors="replace")).strip()
            last = printable(cut(said.splitlines()[-1], 200)) if said else "no message"
            problem = f"fails with status {outcome.status}: {last}"
    if problem:
        tried(str(path), problem)
        raise CommandFailed(f"{path} {problem}")
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


_logger = logging.getLogger(__name__)
_PACKAGE = __name__.partition(".")[0]


class Attempt(NamedTuple):
    """One library, tool or file that a provider looked at.

    Attributes:
        place: its name or path.
        answer: what it said, or why it said nothing; a verb phrase whose subject is *place*.
        found: it is there and answers.
    """

    place: str
    answer: str
    found: bool = False


@dataclass
class Trail:
    """Attempts in order, the warnings meanwhile, and the commands that help."""

    attempts: list[Attempt] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    remedies: dict[str, str] = field(default_factory=dict)


def tried(place: str, answer: str, *, found: bool = False) -> None:
    """Report an attempt, see `Attempt`."""
    attempt = Attempt(place, answer, found)
    _logger.debug("%s %s", place, answer, extra={"attempt": attempt})


@contextmanager
def recorded() -> Iterator[Trail]:
    """Yield the trail of attempts in the context; warnings go there, not to the terminal."""
    trail = Trail()

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            attempt = getattr(record, "attempt", None)
            if isinstance(attempt, Attempt):
                trail.attempts.append(attempt)
            elif record.levelno >= logging.WARNING:
                trail.warnings.append(record.getMessage())
                if remedy := getattr(record, "remedy", ""):
                    trail.remedies[trail.warnings[-1]] = remedy

    collector = Collector()
    package = logging.getLogger(_PACKAGE)
    propagate, level = package.propagate, _logger.level
    package.addHandler(collector)
    package.propagate = False
    _logger.setLevel(logging.DEBUG)
    try:
        yield trail
    finally:
        package.removeHandler(collector)
        package.propagate = propagate
        _logger.setLevel(level)


class FeatureWords(NamedTuple):
    """One feature in words; the functions take values as metadata has them.

    Attributes:
        heading: the feature as a heading, ``CUDA driver``.
        fits: what a build with a value is for, ``CUDA driver 12.8 or newer``.
        needs: what a build with these values needs, ``needs CUDA driver 12.8 or newer``.
        answer: a value below the heading, ``12.8 or newer``.
        has: what a machine has that supports these values, ``this one supports up to 12.4``; None
            for the values themselves.
        lacks: what a machine lacks that supports something of the namespace, but nothing of this
            feature, if that is not a device.
    """

    heading: str
    fits: Callable[[str], str]
    needs: Callable[[Sequence[str]], str]
    answer: Callable[[str], str] = str
    has: Callable[[Sequence[str]], str] | None = None
    lacks: str = ""


class FactWord(NamedTuple):
    """A fact in the description of a machine, such as ``cuda=12.8``.

    Attributes:
        variable: the override of the provider which says the same.
        title: what it is, for people.
        example: a value.
        read: returns the value for the variable; a `ValueError` says what is wrong with it.
        several: there may be several values, for several devices.
        best: chooses among several values if the variable takes one; None if it takes all.
    """

    variable: str
    title: str
    example: str
    read: Callable[[str], str]
    several: bool = False
    best: Callable[[Sequence[str]], str] | None = None


class Trouble(NamedTuple):
    """Something that keeps programs from devices which detection finds, or that tells less of them.

    Attributes:
        code: of the doctor's problem.
        text: what, where and why, on one line.
        command: what to type.
        fails: something is wrong; else it is a hint.
    """

    code: str
    text: str
    command: str
    fails: bool = True


class Vendor(NamedTuple):
    """A maker of accelerators, or a family of CPUs.

    Attributes:
        provider: detects its devices: the class.
        title: its name, ``NVIDIA``.
        absent: why nothing is supported where a description of a machine names no device.
        features: words for its features, by name.
        device: one of its devices, ``NVIDIA GPU``; empty for CPUs.
        facts: words that describe a machine with its devices, by name.
        check: returns what is wrong with the facts of a description together; empty if nothing is.
        counted: title of the fact that there is one of for each device; empty if detection cannot
            count them.
        hidden_by: variables that hide its devices from programs.
        heeds_hiding: whether detection heeds these variables.
        variables: other variables that programs which look for its devices need.
        pci: vendor in ``/sys/bus/pci``, ``0x10de``; empty if the doctor has no advice about it.
        nodes: patterns of its device files below ``/dev``.
        versions: small files, below the root of the file system, which tell the driver's version.
        libraries: files of the driver that are replaced when it is upgraded.
        troubles: finds what is wrong besides, given environment variables, the root of the file
            system, what detection found, and the kind of container this is in.
    """

    provider: Callable[..., Provider]
    title: str
    absent: str
    features: Mapping[str, FeatureWords]
    device: str = ""
    facts: Mapping[str, FactWord] = {}
    check: Callable[[Mapping[str, Sequence[str]]], str] = lambda _: ""
    counted: str = ""
    hidden_by: tuple[str, ...] = ()
    heeds_hiding: bool = False
    variables: tuple[str, ...] = ()
    pci: str = ""
    nodes: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    troubles: Callable[[Mapping[str, str], Path, Sequence[Fact], str], Iterable[Trouble]] = (
        lambda *_: ()
    )


def matching(pattern: str, what: str, example: str) -> Callable[[str], str]:
    """Return a `FactWord.read` for values that match *pattern* as a whole."""

    def read(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"is not {what}, such as {example}")
        return text

    return read


def numbers(value: str) -> tuple[int, ...]:
    """Return the numbers between the dots of *value*, to compare versions by."""
    return tuple(int(part) for part in value.split(".") if part.isdigit() and len(part) < 6)
