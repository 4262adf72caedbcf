"""Detection of what the target of a command supports, and pip's settings for plugin packages."""

from __future__ import annotations

from sys import version_info
from typing import TYPE_CHECKING, Any

from pip._internal.exceptions import InstallationError

if TYPE_CHECKING:
    from pep_variants.choose.preferences import Preferences
    from pep_variants.sources import Sources
    from variants_plugins import PluginRunner

    from .variant_context import Detect


def detect_for(preferences: Preferences, finder: Any, *, foreign: bool) -> Detect:
    """Return the detection for a command.

    Args:
        preferences: of the user.
        finder: pip's ``PackageFinder``.
        foreign: the command has ``--platform``: this machine is not the target.

    Raises:
        InstallationError: the platform file is invalid.
    """
    from pep_variants.detect.detector import Detector
    from pep_variants.errors import PlatformFileError

    def runner() -> PluginRunner:
        from variants_plugins import PluginRunner

        return PluginRunner.of(preferences, sources_of(finder))

    environment = None
    target = finder.target_python
    if foreign or target.py_version_info[:2] != version_info[:2]:
        from pep_variants.model.environment import target_environment

        environment = target_environment(target.platforms or (), target.py_version_info)
    try:
        detector = Detector.of(
            preferences, runner=runner, environment=environment, here=not foreign
        )
    except PlatformFileError as error:
        raise InstallationError(str(error)) from None
    return detector.platform


def sources_of(finder: Any) -> Sources:
    """Return where plugin packages are installed from: the indexes and network settings of pip.

    pip takes the best candidate of all indexes, so ``BEST_MATCH``.
    """
    from pep_variants.sources import BEST_MATCH, Sources

    network = finder._link_collector.session
    urls = tuple(finder.index_urls)
    return Sources(
        index_url=urls[0] if urls else None,
        extra_index_urls=urls[1:],
        find_links=tuple(finder.find_links),
        no_index=not urls,
        index_strategy=BEST_MATCH,
        trusted_hosts=tuple(finder.trusted_hosts),
        # From the session: the finders of older pips do not have them.
        cert=network.verify if isinstance(network.verify, str) else None,
        client_cert=network.cert,
        proxy=getattr(network, "pip_proxy", None) or network.proxies.get("https"),
        timeout=network.timeout,
    )
