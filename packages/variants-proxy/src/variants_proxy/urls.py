"""URLs of the proxy: its address, platform keys, and the indexes behind them."""

from ._choice.in_place_names import FOLDER, wheel_at
from ._headers import tag_as_sent
from ._index_urls import (
    PYPI,
    absolute_url,
    bare_url,
    index_url,
    links_url,
    upstream_name,
    variants_url,
)
from ._key import PYTHON, TARGET, Machine, decode, described_machine, encode, host_target
from ._server.listening import listen

__all__ = [
    "FOLDER", "PYPI", "PYTHON", "TARGET", "Machine", "absolute_url", "bare_url", "decode",
    "described_machine", "encode", "host_target", "index_url", "links_url", "listen",
    "tag_as_sent", "upstream_name", "variants_url", "wheel_at",
]  # fmt: skip
