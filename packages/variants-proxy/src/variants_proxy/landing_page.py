"""The page at the root of a proxy: what it is, for people who open it in a browser."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from .upstream_options import bare_url

if TYPE_CHECKING:
    from .settings import Settings

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>Index proxy for wheel variants</title></head>
<body>
<h1>Index proxy for wheel variants</h1>
<p>A package index: of each version it serves the wheel variant (PEP 817, PEP 825) that fits the
machine that asks. It is for installers, there is nothing to click.</p>
<h2>Use</h2>
<p>Print the URL for a machine, on that machine, and give it to the installer:</p>
<pre>{commands}</pre>
<h2>Indexes</h2>
<ul>
{indexes}
</ul>
</body>
</html>
"""


def landing_page(settings: Settings, host: str) -> bytes:
    """Return the page.

    Args:
        settings: of the proxy; URLs are shown without credentials.
        host: value of the ``Host`` header, by which the client knows this server.
    """
    url = f"http://{host or 'HOST'}"
    commands = (
        f'uv pip install --default-index "$(variants-proxy url --keyed --proxy {url})" NAME\n'
        f'pip install --index-url "$(variants-proxy url --proxy {url})" NAME'
    )
    indexes = "\n".join(
        f"<li>{escape(item.name)}: {escape(bare_url(item.url))}</li>" for item in settings.upstreams
    )
    return _PAGE.format(commands=escape(commands), indexes=indexes).encode()
