"""The name under which uv knows a shim of the user's, and how a client of one says who it is."""

from __future__ import annotations

RESERVED_HOST = "uv-variants.invalid"
"""RFC 2606: never resolves, so without a shim nothing is ever found there."""

RESERVED_URL = f"http://{RESERVED_HOST}"

USERNAME = "uv"
"""Goes with the token, where a user name has to be."""
