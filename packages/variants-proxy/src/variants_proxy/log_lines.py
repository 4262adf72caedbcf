"""Lines in the proxy's log that the command around uv reads from its error output."""

from __future__ import annotations

NOT_SERVED = "file not served: "
"""Precedes the error of a file that a client did not get."""

VARIANTS_IGNORED = "variants ignored: "
"""Precedes the error of a version whose variants do not count."""

HAS_NOTICES = "project has notices: "
"""Precedes the name of a requested project whose decision report has notices for the user."""

ACCESS_LOGGER = "variants_proxy.access"
"""Logger of requests, one line of JSON each."""

NOTICES_LOGGER = "variants_proxy.notices"
"""Logger of `HAS_NOTICES`; off unless its level is INFO."""


def values_after(prefix: str, output: str) -> list[str]:
    """Return what follows *prefix* in the lines of *output* that begin with it, each once."""
    lines = (line for line in output.splitlines() if line.startswith(prefix))
    return list(dict.fromkeys(line[len(prefix) :] for line in lines))
