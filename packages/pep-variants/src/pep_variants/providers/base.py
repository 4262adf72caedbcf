"""The seam between the engine and whatever knows a namespace."""

from __future__ import annotations

from typing import Protocol

from ..property import Features


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
        """Return every value the provider could ever report, in the same order."""
        ...

    def summary(self) -> str:
        """Return in a few words what was detected, for people; empty when nothing was."""
        ...
