"""Detection of what the target supports, for the providers that variant metadata names.

No code from an index runs unasked: built-in implementations answer for known packages, static
properties are taken from the metadata, and a platform file replaces detection. Any other plugin
runs only if the user allowed its package (see `PluginRunner`). Otherwise its namespace is
unsupported, with a notice that names the option to allow it. An allowed plugin that fails is an
error, or a notice if the user wants failing plugins skipped.
"""

from __future__ import annotations

import hashlib
import logging
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from .._choose.preferences import SKIP, Preferences
from .._model.platform import ELSEWHERE, Platform, Support
from .._model.property import ABI_DEPENDENCY, Features
from .._providers.registry import (
    BUILTIN_NAMESPACES,
    KnownProvider,
    applicable,
    ask_known,
    find_known,
)
from ..errors import PluginFailed, shortened
from .known_machines import names_file

if TYPE_CHECKING:
    from .._model.metadata import Metadata, ProviderInfo

PROVIDER_ID_LENGTH = 24
"""Hexadecimal digits of a `provider_id`: enough that none can be made to equal another one."""

_logger = logging.getLogger(__name__)

# The interface between the detector and what runs third-party provider plugins. The engine runs no
# plugin itself: a client that allows them passes a `PluginRunner` to the `Detector`;
# `variants_plugins.PluginRunner` is the implementation of all clients of this project.


class Answer(NamedTuple):
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


class Refused(NamedTuple):
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
        """Return the answer of *provider* about *namespace* on this machine.

        Raises:
            PluginFailed: it may run and gives no usable answer.
        """


class Detector:
    """Answers what the target supports; asks each provider at most once.

    Make one per command. It is not global because a command may resolve for several targets.

    >>> from pep_variants.machines import Detector, load_machine
    >>> from pep_variants.metadata import Metadata
    >>> metadata = Metadata(("nvidia",), {"cu128": {"nvidia": {"sm_arch": ("90_real",)}}})
    >>> platform = Detector(platform=load_machine("cuda=12.8,sm=9.0")).platform(metadata)
    >>> platform.namespaces["nvidia"].features["sm_arch"][:2]
    ('90_real', '90_virtual')
    """

    def __init__(
        self,
        *,
        environment: Mapping[str, str] | None = None,
        enabled: Collection[str] = (),
        platform: Platform | None = None,
        runner: PluginRunner | None = None,
        detected: Platform | None = None,
        answers: Mapping[str, Support | PluginFailed] | None = None,
    ) -> None:
        """Set up for one target.

        Args:
            environment: PEP 508 marker environment of the target, the running Python by default.
            enabled: namespaces of optional providers that the user wants consulted.
            platform: what a platform file says, in place of detection.
            runner: runs the plugins that the user allowed; by default none is.
            detected: what the built-in providers answer on the target, in place of asking them
                here. Like them it counts only where they stand in for what metadata wants. A
                namespace that *platform* lists as well is taken from there.
            answers: what plugins were asked before, or why they gave no answer, by `provider_id`.
                They count for metadata that wants this very provider for this namespace.
        """
        self._environment = environment
        self._enabled = frozenset(enabled)
        self._platform = platform
        self._runner = runner
        self._detected = detected
        self._given = answers or {}
        self._answers: dict[tuple[str, object], Support] = {}

    @classmethod
    def of(
        cls,
        preferences: Preferences,
        *,
        runner: Callable[[], PluginRunner] | None = None,
        environment: Mapping[str, str] | None = None,
        platform: Platform | None = None,
        here: bool = True,
    ) -> Detector:
        """Return the detector that *preferences* ask for.

        Args:
            preferences: its platform file replaces detection; its optional providers are enabled.
            runner: makes the runner of plugins; called only if plugins are allowed and nothing
                replaces detection.
            environment: PEP 508 marker environment of the target, the running Python by default.
            platform: what the target supports, in place of detection and of the platform file.
            here: the target is this machine; otherwise nothing is detected.

        Raises:
            PlatformFileError: the platform file cannot be read, or there is no such machine.
            PreferenceError: an allowed provider is malformed.
        """
        if platform is None and preferences.platform_file is not None:
            from .machines import load_machine

            platform = load_machine(preferences.platform_file)
        if platform is None and not here:
            platform = ELSEWHERE
        plugins = runner() if runner and preferences.allow_providers and platform is None else None
        return cls(
            environment=environment,
            enabled=preferences.enable,
            platform=platform,
            runner=plugins,
        )

    def platform(self, metadata: Metadata) -> Platform:
        """Return the support of every namespace that *metadata* prioritizes.

        Raises:
            PluginFailed: a plugin that the user allowed gives no answer.
        """
        return replace(
            self._platform or Platform(),
            namespaces={
                namespace: self._support(namespace, metadata)
                for namespace in metadata.namespaces
                if namespace != ABI_DEPENDENCY
            },
        )

    def host(self) -> Platform:
        """Return the support of every namespace that has a built-in provider."""
        return Platform(
            {
                namespace: self._ask(namespace, known)
                for namespace, known in sorted(BUILTIN_NAMESPACES.items())
            }
        )

    def environment(self) -> Mapping[str, str]:
        """Return the marker environment of the target."""
        if self._environment is None:
            from packaging.markers import default_environment

            self._environment = {str(k): str(v) for k, v in default_environment().items()}
        return self._environment

    def _support(self, namespace: str, metadata: Metadata) -> Support:
        # What the user lists is used exclusively and first (providers draft): "enable-if" and
        # "optional" decide whether a provider is asked, and none is.
        if self._platform is not None and namespace in self._platform.namespaces:
            return self._platform.namespaces[namespace]
        provider = metadata.providers.get(namespace)
        if provider is not None and provider.enable_if and not self._holds(provider.enable_if):
            marker = shortened(provider.enable_if, 200)
            return Support(notice=f"its provider is only for environments with {marker}")
        if provider is not None and provider.optional and namespace not in self._enabled:
            return Support(
                notice=f"its provider is optional: use it with --variant-enable {namespace}"
            )
        if provider is not None and provider.static is not None:
            # There are published ahead-of-time namespaces without listed values (a
            # 'priority' namespace that only orders builds). By the letter they support nothing
            # and would reject every accelerated build of their release; what the publisher
            # meant is that nothing has to be detected, so every value in use is supported.
            return Support(provider.static or metadata.used_values(namespace))
        if provider is not None and self._given:
            given = self._given.get(provider_id(namespace, provider.requires, provider.plugin_api))
            if isinstance(given, PluginFailed):
                raise given
            if given is not None:
                return given
        if self._platform is not None and not self._platform.described:
            return Support(
                notice="the target is not this machine: describe it with --variant-platform FILE"
            )
        if self._platform is not None and self._detected is None:
            return _unlisted(self._platform)
        if provider is None:
            # Generations without 'providers' leave it to the installer; the others have to say.
            builtin = None if metadata.providers else BUILTIN_NAMESPACES.get(namespace)
            if builtin is None:
                return Support(notice="no provider is known for this namespace")
            return self._ask(namespace, builtin)
        stand_in = find_known(namespace, provider, self.environment)
        return self._ask(namespace, stand_in or provider)

    def _ask(self, namespace: str, provider: KnownProvider | ProviderInfo) -> Support:
        # ProviderInfo is not hashable: its requirements and endpoint are the key.
        key = (namespace, provider if isinstance(provider, KnownProvider) else _identity(provider))
        if key not in self._answers:
            if isinstance(provider, KnownProvider):
                self._answers[key] = (
                    ask_known(provider)
                    if self._detected is None
                    else self._detected.support(provider.namespace)
                )
            else:
                self._answers[key] = self._ask_plugin(namespace, provider)
            if _logger.isEnabledFor(logging.DEBUG):
                _logger.debug("Provider of %s: %s", namespace, _in_words(self._answers[key]))
        return self._answers[key]

    def _ask_plugin(self, namespace: str, provider: ProviderInfo) -> Support:
        if provider.builtin is not None:
            name = shortened(provider.builtin)
            return Support(notice=f"the built-in provider {name} is not known to this release")
        if not provider.requires:
            return Support(notice="no provider is named for this namespace")
        if self._runner is None:
            return self._untrusted(provider)
        judgement = self._runner.judge(provider, self.environment())
        if isinstance(judgement, Refused):
            return _refused(judgement.reason, judgement.requirement)
        try:
            answer = self._runner.ask(namespace, provider, self.environment())
        except PluginFailed as error:
            if self._runner.on_error != SKIP:
                raise
            return Support(notice=error.problem, failed=True)
        return Support(answer.features, answer.resolved, answer.plugin_api, output=answer.stderr)

    def _untrusted(self, provider: ProviderInfo) -> Support:
        try:
            requirements = applicable(provider.requires, self.environment)
        except ValueError:
            listed = shortened(list(provider.requires), 200)
            return Support(notice=f"its provider is not a valid requirement: {listed}")
        if not requirements:
            return Support(notice="no requirement of its provider applies to this environment")
        requirements[0].marker = None
        requirement = str(requirements[0])
        quoted = shlex.quote(requirement)
        return _refused(
            f"its provider plugin {quoted} is neither built in nor allowed to run", requirement
        )

    def _holds(self, marker: str) -> bool:
        from packaging.markers import Marker

        try:
            return Marker(marker).evaluate(dict(self.environment()))
        except (ValueError, LookupError, RecursionError) as error:  # what packaging raises
            _logger.debug("the marker %s cannot be evaluated: %s", shortened(marker), error)
            return False


def _in_words(support: Support) -> str:
    """Return the best value of each supported feature, or why there is none."""
    best = (f"{feature} {values[0]}" for feature, values in support.features.items() if values)
    return ", ".join(best) or support.notice or "nothing is supported"


def provider_id(namespace: str, requires: Sequence[str], plugin_api: str | None) -> str:
    """Return a short name for what metadata says of a provider: equal for equal providers.

    It stands for the namespace as well: what a plugin says in one means nothing in another.
    """
    import json

    text = json.dumps([namespace, list(requires), plugin_api])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:PROVIDER_ID_LENGTH]


def _identity(provider: ProviderInfo) -> tuple[object, ...]:
    return provider.requires, provider.plugin_api, provider.builtin


def _unlisted(platform: Platform) -> Support:
    source = platform.source or "the platform"
    table = "add a [[provider]] table for it"
    if not names_file(source):
        table = (
            f"write a platform file (variants platforms {shlex.quote(source)} -o FILE) and {table}"
        )
    return Support(notice=f"{source} does not list this namespace: {table}")


def _refused(reason: str, requirement: str) -> Support:
    if not requirement:  # allowing something would not help
        return Support(notice=reason)
    # The text comes from an untrusted file: it never runs, and it is safe to copy to a shell.
    quoted = shlex.quote(requirement)
    return Support(
        notice=(
            f"{reason}: allow it with --variant-allow-provider {quoted}, "
            "or describe the namespace in a platform file (--variant-platform)"
        ),
        untrusted=requirement,
    )
