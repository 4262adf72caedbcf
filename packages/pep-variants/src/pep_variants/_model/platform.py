"""Supported values of a machine, in preference order; from providers or from a platform file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from .property import Features


class Fact(NamedTuple):
    """One thing that a provider detected on this machine, or that the user specified.

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


@dataclass(frozen=True)
class Support:
    """Supported values of one namespace on a platform.

    Attributes:
        features: supported values by feature, both in preference order; empty when nothing is.
        resolved: the provider packages that answered or that we stood in for, ``name==version``.
        plugin_api: endpoint of that provider, None where there is none.
        notice: why nothing is supported and what the user can do about it; empty otherwise.
        untrusted: requirement of the plugin that was not run because it is not allowed; empty
            otherwise.
        failed: whether an allowed plugin failed and was skipped, as the user wants it.
        facts: what a built-in provider derived its answer from; a file has none.
        output: what a plugin printed to its standard error, for those who want to see it.
    """

    features: Features = field(default_factory=dict)
    resolved: tuple[str, ...] = ()
    plugin_api: str | None = None
    notice: str = ""
    untrusted: str = ""
    failed: bool = False
    facts: tuple[Fact, ...] = field(default=(), compare=False)
    output: str = field(default="", compare=False)


UNSUPPORTED = Support()


@dataclass(frozen=True)
class Platform:
    """Supported values by namespace.

    Attributes:
        namespaces: support by namespace; a namespace that is missing supports nothing.
        source: the platform file, empty for a detected platform.
        described: False for a target of which nothing is known: it is another machine, and there
            is no platform file for it, see `ELSEWHERE`.
    """

    namespaces: Mapping[str, Support] = field(default_factory=dict)
    source: str = field(default="", compare=False)
    described: bool = field(default=True, compare=False)

    def support(self, namespace: str) -> Support:
        """Return the support of *namespace*; nothing if the platform does not know it."""
        return self.namespaces.get(namespace, UNSUPPORTED)


ELSEWHERE = Platform(source="detection on this machine, which is not the target,", described=False)
"""A target other than this machine, without a platform file."""
