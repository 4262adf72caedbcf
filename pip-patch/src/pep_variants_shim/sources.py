"""Where plugin packages are installed from: the same places as everything else of the command."""

from __future__ import annotations

from typing import Any

from pep_variants.plugins.sources import BEST_MATCH, Sources


def sources_of(finder: Any) -> Sources:
    """Return the settings of pip's *finder*, as the engine wants them.

    pip takes the best of all indexes, so that is what the plugin's installer is told, too.
    """
    network = finder._link_collector.session
    urls = tuple(finder.index_urls)
    return Sources(
        index_url=urls[0] if urls else None,
        extra_index_urls=urls[1:],
        find_links=tuple(finder.find_links),
        no_index=not urls,
        index_strategy=BEST_MATCH,
        trusted_hosts=tuple(finder.trusted_hosts),
        # From the session itself: not every pip's finder passes them on.
        cert=network.verify if isinstance(network.verify, str) else None,
        client_cert=network.cert,
        proxy=getattr(network, "pip_proxy", None) or network.proxies.get("https"),
        timeout=network.timeout,
    )
