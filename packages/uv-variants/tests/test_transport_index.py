"""Which requests the service answers, with whose credentials, and what its refusals lead to."""

from __future__ import annotations

import base64

import pytest

from support.proxied_network import Reply
from uv_variants._session_server import with_authorization
from variants_proxy.settings import Settings, Upstream
from variants_proxy.urls import tag_as_sent

ME = "Basic " + base64.b64encode(b"me:s@cret").decode()


def index(name="main", path="/simple", projects=None, links=False):
    return name, path, projects, links


VARIANT = ".variant/cu128/app-1.0-0_cu128-py3-none-any.whl"
PATHS = [
    ("/simple/App_x/", "app-x/"),
    ("/simple/%61pp/", "app/"),
    (f"/simple/app/{VARIANT}", f"app/{VARIANT}"),
    (f"/simple/app/{VARIANT}.metadata", f"app/{VARIANT}.metadata"),
    ("/simple/app", None),
    ("/simple/app/?x=1", None),
    ("/simple/app/x.whl", None),
    ("/simple/app/.variant/cu128/", None),
    ("/simple/app/.variant/cu128/a/b", None),
    ("/simple/", None),
    ("/simple", None),
    ("/simple/a%20b/", None),
    ("/simpler/app/", None),
    *(
        (f"/simple/{path}/", None)
        for path in ("../simple/app", "%2e%2e/x", "./x", "a%2Fb", "a%5Cb", "/a", "%00", "%ff")
    ),
    ("/health", None),
]


@pytest.mark.parametrize(("target", "path"), PATHS)
def test_what_is_answered(world, target, path):
    world.begin(index(path="/simple/" if path else "/simple"))
    expected = f"upstream {target}"
    if path is not None:
        expected = f"service {path}"
    assert world.text(target) == (200, expected)


def test_methods(world):
    world.begin(index())
    assert world.text("/simple/app/", "POST") == (200, "upstream /simple/app/")
    assert world.asked == []
    assert world.text("/simple/app/", "HEAD") == (200, "")
    assert len(world.asked) == 1


@pytest.mark.parametrize("order", [1, -1])
def test_the_longest_url_counts(world, order):
    indexes = [index("root", ""), index("short", "/a/simple"), index("long", "/a/simple/b/c")]
    world.begin(*indexes[::order], index("second", "/a/simple/b/c"))
    for target in ("/x/", "/a/simple/x/", "/a/simple/b/c/x/"):
        world.text(target)
    assert [each[0] for each in world.asked] == ["root", "short", "long"]
    # Below the URL of an index, what is no page of it is the upstream's.
    assert world.text("/a/simple/b/c/x/y/")[1].startswith("upstream")


def test_explicit_indexes(world):
    world.begin(index(projects=frozenset({"app"})))
    assert world.text("/simple/app/")[1].startswith("service")
    assert world.text(f"/simple/app/{VARIANT}")[1].startswith("service")
    assert world.text("/simple/other/") == (200, "upstream /simple/other/")
    assert world.application.asked == {"app"}


@pytest.mark.parametrize(
    ("url", "target", "path"),
    [
        ("/links.html", "/links.html", ""),
        ("/links.html", f"/{VARIANT}", VARIANT),
        ("/wheels/", "/wheels/", ""),
        ("/wheels/", f"/wheels/{VARIANT}", VARIANT),
        ("/wheels", f"/{VARIANT}", VARIANT),
        ("/wheels/", "/wheels", None),
        ("/wheels/", "/wheels/x.whl", None),
    ],
)
def test_find_links_pages(world, url, target, path):
    world.begin(index(path=url, links=True))
    expected = f"upstream {target}"
    if path is not None:
        expected = f"service {path}".strip()
    assert world.text(target) == (200, expected)


def test_an_index_beside_a_find_links_page(world):
    world.begin(index("links", "/a/links.html", links=True), index("main", "/a"))
    assert world.text("/a/app/")[1] == "service app/"
    assert world.text("/a/links.html")[1] == "service"
    assert [each[0] for each in world.asked] == ["main", "links"]


def test_credentials_are_those_of_the_request(world):
    world.begin(index(), index("other", "/other"))
    world.text("/simple/app/")
    world.text("/simple/app/", headers={"Authorization": ME})
    world.text("/other/app/", headers={"Authorization": "Bearer x"})
    world.text("/simple/app/", headers={"Cookie": "a=b"})
    assert [each[:2] for each in world.asked] == [
        ("main", ""), ("main", ME), ("other", "Bearer x"), ("main", ""),
    ]  # fmt: skip
    for headers in world.headers:
        assert not headers.keys() & {b"authorization", b"cookie", b"proxy-authorization"}


@pytest.mark.parametrize(("refused", "status"), [(403, 401), (403, 404), (500, 503), (502, 403)])
def test_what_the_upstream_refuses_is_its_own_response(world, refused, status):
    world.begin(index())
    world.refusal = (refused, "the service's words")
    world.host.replies["/simple/app/"] = Reply(b"its words", status)
    assert world.text("/simple/app/", headers={"Authorization": ME}) == (status, "its words")
    assert world.host.asked[0].header("Authorization") == ME
    assert world.transport.failures == []


def test_a_page_that_cannot_be_used_is_uvs_to_judge(world):
    """uv ends as it does without us; that variants are missing is said."""
    world.begin(index())
    world.refusal = (502, "this page is broken")
    assert world.text("/simple/app/") == (200, "upstream /simple/app/")
    assert world.transport.failures == ["this page is broken"]


@pytest.mark.parametrize("status", [404, 409, 410, 424, 504])
def test_other_refusals_of_the_service(world, status):
    world.begin(index())
    world.refusal = (status, "why")
    assert world.text("/simple/app/") == (status, "why")
    assert world.host.asked == []
    assert world.transport.failures == ([] if status in (404, 410) else ["why"])


@pytest.mark.parametrize(("headers", "expected"), [({}, 401), ({"Authorization": ME}, 403)])
def test_a_variant_that_the_upstream_refuses(world, headers, expected):
    world.begin(index())
    world.refusal = (403, "access denied")
    assert world.text(f"/simple/app/{VARIANT}", headers=headers) == (expected, "access denied")
    assert world.host.asked == []


@pytest.mark.parametrize(
    ("authorization", "credentials", "token"),
    [
        ("", None, ""),
        (ME, ("me", "s@cret"), ""),
        ("Bearer t", None, "t"),
        ("Basic *", None, ""),
        ("Digest x", None, ""),
    ],
)
def test_settings_of_a_service(tmp_path, authorization, credentials, token):
    upstreams = (
        Upstream("main", "https://u:p@a.example/simple/"),
        Upstream("other", "https://b.example/simple/", token="t"),
    )
    settings = Settings(upstreams, tmp_path, environ={"NETRC": "x", "HTTPS_PROXY": "y"})
    made = with_authorization(settings, "main", authorization)
    main, other = made.upstreams
    found = main.credentials
    assert ((found.username, found.password) if found else None) == credentials
    assert main.token == token
    assert (other.credentials, other.token) == (None, "")
    assert not made.keyring
    assert made.environ["NETRC"] != "x"
    assert made.environ["HTTPS_PROXY"] == "y"


def url_of(world, target):
    return world.host.url + target


@pytest.mark.parametrize(
    ("tag", "now", "kept"),
    [
        ("index", "index", True),
        ("index", "another", False),
        ("as sent", None, True),
        ("as sent, of another page", None, False),
        ("chosen", None, False),
        (None, None, False),
    ],
)
def test_a_page_without_variants_that_the_index_did_not_change(world, tag, now, kept):
    """The service is not asked for what uv keeps as the index sent it."""
    kind = "application/vnd.pypi.simple.v1+json"
    body = b'{"files": []}'
    tags = {
        "index": '"index"',
        "another": '"another"',
        "as sent": tag_as_sent(body, kind, url_of(world, "/simple/app/")),
        "as sent, of another page": tag_as_sent(b"", kind, ""),
        "chosen": '"' + "0" * 32 + '"',
    }

    def reply(asked):
        if now is not None and asked.header("If-None-Match") == tags[now]:
            return Reply(b"", 304, {"ETag": tags[now], "Cache-Control": "max-age=600"})
        return Reply(body, 200, {"Content-Type": kind})

    world.host.reply = reply
    world.begin(index(), may_keep={"app"})
    headers = {} if tag is None else {"If-None-Match": tags[tag]}
    status, got, _ = world.ask("/simple/app/", headers=headers)
    assert (status, bool(world.asked)) == ((304, False) if kept else (200, True))
    if kept:
        assert (got["etag"], got["cache-control"]) == (headers["If-None-Match"], "no-cache")
    # What something else may change, and files, are always the service's.
    for target in ("/simple/other/", f"/simple/app/{VARIANT}"):
        world.asked.clear()
        world.text(target, headers=headers)
        assert world.asked
