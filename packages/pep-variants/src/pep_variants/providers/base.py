"""The seam between the engine and whatever knows a namespace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from ..errors import ProviderError, shortened
from ..property import Features


class Fact(NamedTuple):
    """One thing that a provider found out about this machine, or was told by the user.

    Attributes:
        what: what it is, e.g. ``CUDA driver``; several GPUs have a fact each, under one name.
        value: e.g. ``12.8``.
        source: who said so: a library, a file, a command or an environment variable.
        forced: an override of the user's said so, the machine was not asked.
    """

    what: str
    value: str
    source: str
    forced: bool = False


class Provider(Protocol):
    """Knows one namespace: which values there are, and which of them this machine supports.

    Implementations detect at the edges (driver library, ``/proc``, ``/sys``, tool output) and
    must not keep global state; whoever asks them keeps the answer (see `detection.Detector`).
    """

    @property
    def namespace(self) -> str:
        """The namespace this provider governs."""
        ...

    def supported(self) -> Features:
        """Return the supported values, features and values most preferred first.

        An empty mapping means that nothing of the namespace is supported here. Absent hardware
        is no error.

        Raises:
            ProviderError: an override or the detected state makes no sense; the message says
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


def summarized(facts: Iterable[Fact]) -> str:
    """Return *facts* in a few words, e.g. ``CUDA driver 12.8, compute capability 9.0 and 8.6``."""
    values: dict[str, dict[str, None]] = {}
    for fact in facts:
        value = f"{fact.value} (forced)" if fact.forced else fact.value
        values.setdefault(fact.what, {})[value] = None
    return ", ".join(f"{what} {_listed(list(found))}" for what, found in values.items())


def malformed(variable: str, text: str, problem: str, example: str) -> ProviderError:
    """Return the error for an override that makes no sense.

    Args:
        variable: the environment variable.
        text: its value.
        problem: what is wrong with it, e.g. ``is no version``.
        example: a value that would be right.
    """
    return ProviderError(
        f"environment variable {variable}: {shortened(text)} {problem}: "
        f"set it to one like {example}, or unset it"
    )


def _listed(values: list[str]) -> str:
    return values[0] if len(values) == 1 else f"{', '.join(values[:-1])} and {values[-1]}"
