"""Which proxy the user's variables name for a host."""

import pytest

from variants_index._http.user_proxies import InvalidProxy, UserProxy, is_exempt, proxy_for, read


@pytest.mark.parametrize(
    ("environ", "scheme", "expected"),
    [
        ({}, "https", None),
        ({"HTTPS_PROXY": ""}, "https", None),
        ({"HTTPS_PROXY": "http://a:1"}, "https", "a:1"),
        ({"HTTPS_PROXY": "http://a:1"}, "http", None),
        ({"HTTP_PROXY": "http://a:1"}, "https", None),
        ({"https_proxy": "http://a:1"}, "https", "a:1"),
        ({"HTTPS_PROXY": "http://a:1", "https_proxy": "http://b:1"}, "https", "a:1"),
        ({"ALL_PROXY": "http://a:1"}, "http", "a:1"),
        ({"ALL_PROXY": "http://a:1", "HTTP_PROXY": "http://b:1"}, "http", "b:1"),
        ({"HTTPS_PROXY": "http://a:1", "NO_PROXY": "x"}, "https", "a:1"),
        ({"HTTPS_PROXY": "http://a:1", "NO_PROXY": "index.example"}, "https", None),
        ({"HTTPS_PROXY": "http://a:1", "no_proxy": "*"}, "https", None),
    ],
)
def test_variables(environ, scheme, expected):
    found = proxy_for(scheme, "index.example", environ)
    assert (found.place if found else None) == expected


@pytest.mark.parametrize(
    ("host", "no_proxy", "expected"),
    [
        ("a.example", "", False),
        ("a.example", "*", True),
        ("a.example", "b.example", False),
        ("a.example", "A.Example", True),
        ("a.example", "example", True),
        ("a.example", ".example", True),
        ("example", ".example", True),
        ("notexample", "example", False),
        ("a.example", "b.example , a.example", True),
        ("a.example", ",,", False),
        ("a.example", "10.0.0.0/8", False),
        ("10.1.2.3", "10.0.0.0/8", True),
        ("11.1.2.3", "10.0.0.0/8", False),
        ("10.1.2.3", "10.1.2.3", True),
        ("10.1.2.3", "1.2.3", False),
        ("::1", "::1", True),
        ("::1", "[::1]", True),
        ("fd00::1", "fd00::/8", True),
        ("10.1.2.3", "10.0.0.0/99", False),
    ],
)
def test_exceptions(host, no_proxy, expected):
    assert is_exempt(host, no_proxy) is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a.example:3128", UserProxy("http", "a.example", 3128)),
        ("http://a.example", UserProxy("http", "a.example", 80)),
        ("https://a.example", UserProxy("https", "a.example", 443)),
        ("socks5h://[::1]", UserProxy("socks5h", "::1", 1080)),
        ("socks://a", UserProxy("socks5", "a", 1080)),
        ("http://me:p%40ss@a:1/", UserProxy("http", "a", 1, "me", "p@ss")),
    ],
)
def test_values(value, expected):
    found = read(value, "X")
    assert found == expected
    assert read(found.url, "X") == expected
    assert "p@ss" not in repr(found)


@pytest.mark.parametrize(
    "value", ["ftp://a", "http://", "http://a:b", "http://[", "http://a:99999"]
)
def test_other_values_are_refused_without_their_password(value):
    with pytest.raises(InvalidProxy, match="HTTPS_PROXY") as raised:
        read(value.replace("//", "//me:secret@"), "HTTPS_PROXY")
    assert "secret" not in str(raised.value)
