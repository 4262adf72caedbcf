"""Settings handed to installers; credentials that stay out of sight."""

import os
from dataclasses import replace

import pytest

from pep_variants._sources import BEST_MATCH, Sources

SECRET = "s3cr3t%40word"
FULL = Sources(
    index_url=f"https://me:{SECRET}@index.example/simple/",
    extra_index_urls=("https://t0ken@more.example/simple", "https://plain.example/a b"),
    find_links=("https://links.example/a,b",),
    trusted_hosts=("index.example", "more.example:8443"),
    cert="/etc/ca.pem",
    client_cert="/etc/client.pem",
    proxy=f"http://me:{SECRET}@proxy.example:3128",
    timeout=7,
    keyring=True,
)


def test_pip():
    assert FULL.for_pip() == {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": f"https://me:{SECRET}@index.example/simple/",
        "PIP_EXTRA_INDEX_URL": "https://t0ken@more.example/simple https://plain.example/a%20b",
        "PIP_FIND_LINKS": "https://links.example/a,b",
        "PIP_TRUSTED_HOST": "index.example more.example:8443",
        "PIP_CERT": "/etc/ca.pem",
        "PIP_CLIENT_CERT": "/etc/client.pem",
        "PIP_PROXY": f"http://me:{SECRET}@proxy.example:3128",
        "PIP_DEFAULT_TIMEOUT": "7",
        "PIP_KEYRING_PROVIDER": "subprocess",
    }
    assert Sources().for_pip() == {"PIP_CONFIG_FILE": os.devnull}


def test_uv():
    proxy = f"http://me:{SECRET}@proxy.example:3128"
    assert FULL.for_uv() == {
        "UV_NO_CONFIG": "1",
        "UV_INDEX_STRATEGY": "first-index",
        "UV_INDEX_URL": f"https://me:{SECRET}@index.example/simple/",
        "UV_EXTRA_INDEX_URL": "https://t0ken@more.example/simple https://plain.example/a%20b",
        "UV_FIND_LINKS": "https://links.example/a%2Cb",
        "UV_INSECURE_HOST": "index.example more.example:8443",
        "SSL_CERT_FILE": "/etc/ca.pem",
        "SSL_CLIENT_CERT": "/etc/client.pem",
        **dict.fromkeys(["ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY"], proxy),
        **dict.fromkeys(["all_proxy", "https_proxy", "http_proxy"], proxy),
        "UV_HTTP_TIMEOUT": "7",
        "UV_KEYRING_PROVIDER": "subprocess",
    }
    assert Sources().for_uv() == {"UV_NO_CONFIG": "1", "UV_INDEX_STRATEGY": "first-index"}


def test_nothing_shows_credentials():
    shown = repr(FULL) + str(FULL) + repr(FULL.identity(["acme"]))
    for secret in (SECRET, "s3cr3t@word", "t0ken"):
        assert secret not in shown
        text = f"cannot get https://x.example/{secret}/: {secret} was refused"
        assert secret not in FULL.redact(text)
    assert "index.example" in shown
    assert FULL.redact("at https://a:b@c.example/") == "at https://****@c.example/"


def test_identity_is_about_files_not_about_the_way_to_them(tmp_path):
    base = FULL.identity(["acme"])
    same = replace(FULL, timeout=9, proxy=None, keyring=False)
    other_user = replace(FULL, index_url="https://you:x@index.example/simple/")
    assert same.identity(["acme"]) == other_user.identity(["acme"]) == base
    for name, value in {
        "index_url": None,
        "extra_index_urls": (),
        "find_links": (str(tmp_path),),
        "no_index": True,
        "index_strategy": BEST_MATCH,
        "trusted_hosts": (),
        "cert": None,
    }.items():
        assert replace(FULL, **{name: value}).identity(["acme"]) != base


def test_identity_sees_rebuilt_local_wheels(tmp_path):
    sources = Sources(find_links=(str(tmp_path),))
    before = sources.identity(["acme-tools"])
    (tmp_path / "other-1.0-py3-none-any.whl").write_bytes(b"1")
    assert sources.identity(["acme-tools"]) == before
    wheel = tmp_path / "Acme_Tools-1.0-py3-none-any.whl"
    wheel.write_bytes(b"1")
    first = sources.identity(["acme-tools"])
    assert first != before
    wheel.write_bytes(b"22")
    assert sources.identity(["acme-tools"]) != first


def test_from_environ():
    assert Sources.from_environ({}) == Sources(index_strategy=BEST_MATCH)
    found = Sources.from_environ(FULL.for_pip())
    urls = tuple(url.replace(" ", "%20") for url in FULL.extra_index_urls)
    assert found == replace(FULL, extra_index_urls=urls, index_strategy=BEST_MATCH)
    assert Sources.from_environ({"PIP_NO_INDEX": "true"}).no_index


@pytest.mark.parametrize(
    ("text", "seconds", "for_uv"),
    [("30", 30.0, "30"), ("7.2", 7.2, "8"), ("x", None, None), ("-1", None, None)],
)
def test_seconds(text, seconds, for_uv):
    found = Sources.from_environ({"PIP_DEFAULT_TIMEOUT": text})
    assert found.timeout == seconds
    assert found.for_uv().get("UV_HTTP_TIMEOUT") == for_uv


def test_no_index_drops_the_indexes(tmp_path):
    sources = Sources("https://a.example", ("https://b.example",), no_index=True)
    assert sources.indexes == ()
    assert sources.for_pip() == {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1"}
    assert "UV_INDEX_URL" not in sources.for_uv()
    assert "UV_EXTRA_INDEX_URL" not in sources.for_uv()
