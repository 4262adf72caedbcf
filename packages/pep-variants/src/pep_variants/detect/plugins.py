"""The interface between the detector and what runs third-party provider plugins.

The engine runs no plugin itself: a client that allows them passes a `PluginRunner` to the
`Detector`; `variants_plugins.PluginRunner` is the implementation of all clients of this project.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ..model.metadata import ProviderInfo
from ..model.property import Features


@dataclass(frozen=True)
class Answer:
    """The supported properties that a plugin returned for this machine.

    Attributes:
        features: supported values, features and values most preferred first.
        resolved: the packages that answered, ``name==version``, the provider's own first.
        plugin_api: the endpoint that was called.
        fixed: the plugin declares that its answer is the same on every machine.
        stderr: the end of its error output.
    """

    features: Features
    resolved: tuple[str, ...]
    plugin_api: str
    fixed: bool = False
    stderr: str = ""


@dataclass(frozen=True)
class Refused:
    """Why a provider's plugin does not run.

    Attributes:
        reason: for people, on one line.
        requirement: what the user has to allow for it to run, without its marker; empty when
            allowing does not help.
    """

    reason: str
    requirement: str = ""


class PluginRunner(Protocol):
    """Runs the plugins that the user allowed.

    Attributes:
        on_error: what the failure of an allowed plugin does, `ABORT` or `SKIP` of `preferences`.
    """

    on_error: str

    def judge(self, provider: ProviderInfo, environment: Mapping[str, str]) -> object | Refused:
        """Return `Refused` if the plugin of *provider* may not run.

        Args:
            provider: what metadata says of it.
            environment: PEP 508 marker environment of the target.
        """

    def ask(self, namespace: str, provider: ProviderInfo, environment: Mapping[str, str]) -> Answer:
        """Return what *provider* supports in *namespace* on this machine.

        Raises:
            PluginFailed: it may run and gives no usable answer.
        """
