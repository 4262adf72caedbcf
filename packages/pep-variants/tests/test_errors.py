import pytest

from pep_variants.errors import (
    MetadataError,
    redacted,
    shortened,
    without_userinfo,
)


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("variants.json", "variants.json"),
        ("https://user:secret@host/x", "https://****@host/x"),
        ("https://user:se:c%40ret@host:8080/x?y=z@w", "https://****@host:8080/x?****"),
        ("git+ssh://git@host/x", "git+ssh://****@host/x"),
        ("see https://a:b@c/ and http://d:e@f/", "see https://****@c/ and http://****@f/"),
        # Queries hold signatures and tokens, with or without a name; fragments as well.
        ("https://host/a.whl?SECRET: not found", "https://host/a.whl?****: not found"),
        ("(https://host/a?X-Amz-Signature=S&b='c').", "(https://host/a?****')."),
        ("https://host/a#sha256=00AFff", "https://host/a#sha256=00AFff"),
        ("https://host/?", "https://host/?"),
        (
            "HTTPSConnectionPool(host='h', port=443): Max retries exceeded with url: /a?s=SECRET "
            "(Caused by X)",
            "HTTPSConnectionPool(host='h', port=443): Max retries exceeded with url: /a?**** "
            "(Caused by X)",
        ),
        ("is it? yes #1", "is it? yes #1"),
        # What a server has got it may say again.
        ("403 no: Basic bWU6c2VjcmV0, me", "403 no: Basic ****, me"),
        ("BASIC bWU6czM=", "BASIC ****"),
        ("not 'Bearer pypi-AgEIcHlwaS5vcmc.x~y'", "not 'Bearer ****'"),
        ("Basic authentication, or a bearer token", "Basic authentication, or a bearer token"),
        ('WWW-Authenticate: Basic realm="index"', 'WWW-Authenticate: Basic realm="index"'),
    ],
)
def test_credentials_are_left_out(source, shown):
    assert redacted(source) == shown


def test_data_keeps_the_rest():
    url = "https://host/a?sig=SECRET#token"
    assert without_userinfo(url.replace("://", "://me:pw@")) == url


@pytest.mark.parametrize(
    "part", ["://", "://a@", "?", "://?", "#", "://#", "'", "://a?'", "url: /", "basic ", "basic a"]
)
def test_long_text_takes_linear_time(part):
    """Quadratic, a million characters would take minutes."""
    redacted(part * (1_000_000 // len(part)))


@pytest.mark.parametrize("value", ["x" * 10**6, list(range(10_000)), {"a": "b" * 999}])
def test_values_are_shortened(value):
    text = shortened(value)
    assert len(text) == 80
    assert text.endswith("…")
    assert len(shortened(value, 200)) == 200
    assert shortened("x" * 78) == repr("x" * 78)


def test_values_without_a_representation():
    nested = []
    for _ in range(100_000):
        nested = [nested]
    assert shortened(nested) == "<list>"


def test_metadata_error():
    error = MetadataError("https://u:p@host/x.json", "variants.a", "is wrong")
    assert (error.source, error.path, error.problem) == (
        "https://****@host/x.json",
        "variants.a",
        "is wrong",
    )
    assert str(error) == "https://****@host/x.json: variants.a: is wrong"
    assert str(MetadataError("x.json", "", "is wrong")) == "x.json: is wrong"
