"""The variables and the cache of uv."""

from __future__ import annotations

from pathlib import Path

from uv_variants.child_environ import child_environ
from uv_variants.uv_directories import variants_caches


def test_all_requests_come_to_the_proxy_and_all_else_stays():
    environ = {
        "NO_PROXY": "*",
        "no_proxy": "corp.example",
        "https_proxy": "http://corp.example:3128",
        "SSL_CERT_FILE": "/etc/corp.pem",
        "UV_INDEX": "https://a.example",
        "HOME": "/home/me",
    }
    proxy = "http://1:2@127.0.0.1:3"
    found = child_environ(environ, proxy_url=proxy, ca_file=Path("/ca.pem"), cache=Path("/c"))
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    assert found == {
        **{name: proxy for upper in names for name in (upper, upper.lower())},
        "SSL_CERT_FILE": "/ca.pem",
        "UV_CACHE_DIR": "/c",
        "UV_INDEX": "https://a.example",
        "HOME": "/home/me",
    }


def test_the_cache_is_beside_that_of_plain_uv(tmp_path):
    assert variants_caches(tmp_path / "uv") == tmp_path / "uv-variants"
    assert variants_caches(tmp_path / "not" / "there" / "uv").name == "uv-variants"
