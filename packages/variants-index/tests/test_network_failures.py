"""What a session says of a company's network: proxies that want a password, certificates."""

import os

import pytest

from pep_variants.sources import Sources
from support.certificates import certified
from support.index import Index, served
from support.proxied_network import http_proxy
from variants_index.errors import PackageIndexError
from variants_index.http.session import Session


@pytest.fixture
def index(tmp_path):
    certificates = certified(tmp_path, "index.example")
    with served(Index(), certificates.context) as running:
        yield running, certificates


def failure(url, **environ):
    """Return the message."""
    sources = Sources(index_url=url)
    with (
        Session(sources, environ={"HOME": os.devnull, **environ}) as session,
        pytest.raises(PackageIndexError) as error,
    ):
        session.fetch_page(f"{url}demo/")
    return str(error.value)


def test_an_authority_that_is_not_trusted(index):
    names = {"index.example:443": index[0].url.split("/")[2]}
    with http_proxy(names=names) as proxy:
        message = failure("https://index.example/simple/", HTTPS_PROXY=proxy.url)
    assert "the certificate is not accepted (unable to get local issuer certificate)" in message
    assert "SSL_CERT_FILE" in message
    assert len(proxy.asked) == 1, "it is not tried again"


def test_the_certificate_of_another_host(index):
    place = index[0].url.split("/")[2]
    trusted = {"SSL_CERT_FILE": str(index[1].authority)}
    with http_proxy(names={"other.example:443": place}) as proxy:
        message = failure("https://other.example/simple/", HTTPS_PROXY=proxy.url, **trusted)
    assert "the certificate is not accepted (Hostname mismatch" in message


def test_a_proxy_that_wants_another_password(index):
    names = {"index.example:443": index[0].url.split("/")[2]}
    trusted = {"SSL_CERT_FILE": str(index[1].authority)}
    with http_proxy("me:right", names=names) as proxy:
        url = "https://index.example/simple/"
        wrong = proxy.url.replace("right", "hunter2")
        message = failure(url, HTTPS_PROXY=wrong, **trusted)
        assert message == (
            f"{url}demo/: the proxy wants another user name or password: put them into the proxy's "
            "URL in the variable HTTPS_PROXY or HTTP_PROXY"
        )
        message = failure(url, HTTPS_PROXY=proxy.url, **trusted)
        assert message == f"{url}demo/: not found (HTTP status 404)"
