"""A running transport, and a web server that is no part of it."""

from __future__ import annotations

import pytest
from starlette.responses import PlainTextResponse

from support.proxied_network import Reply, origin
from support.running_transport import HOSTS, running, trusting
from uv_variants._transport.authority import Authority
from uv_variants._transport.index_application import AnsweredIndex, IndexApplication
from uv_variants._transport.outbound import Outbound
from variants_proxy.errors import NothingFetched


@pytest.fixture(scope="session")
def theirs():
    """The authority of servers here."""
    return Authority(HOSTS)


@pytest.fixture(scope="session")
def trusted(theirs, tmp_path_factory):
    """The file with its certificate."""
    return trusting(theirs, tmp_path_factory.mktemp("theirs"))


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    with running(tmp_path_factory.mktemp("ours")) as found:
        yield found


@pytest.fixture
def transport(started):
    """A transport that answers for no host until a test begins."""
    started.begin()
    return started


@pytest.fixture(scope="module", params=["https"])
def web(request, theirs):
    """An upstream, over HTTPS; a module may ask for ``http``, too."""
    with origin(theirs.leaf("127.0.0.1") if request.param == "https" else None) as found:
        yield found


@pytest.fixture
def host(web):
    """The same without what earlier tests asked."""
    web.asked.clear()
    web.replies.clear()
    return web


class World:
    """A session with indexes on one host; the service answers with its own path.

    Attributes:
        refusal: status and text of the service, in place of that.
        asked: index, Authorization and path of what the service got.
        headers: of that.
    """

    def __init__(self, transport, host, outbound):
        self.transport = transport
        self.host = host
        self.outbound = outbound
        self.refusal = None
        self.asked = []
        self.headers = []
        host.reply = lambda asked: Reply(b"upstream " + asked.target.encode())
        self.begin(("main", "/simple/"))

    def begin(self, *indexes, may_keep=()):
        """Answer for *indexes*: names, paths, and more of `AnsweredIndex`."""
        self.application = IndexApplication(
            [AnsweredIndex(name, self.host.url + path, *more) for name, path, *more in indexes],
            self.service,
            self.outbound,
            self.transport.forwarder,
            self.transport.failures.append,
            lambda project: project in may_keep,
        )
        self.transport.begin(self.application.hosts, self.application, self.outbound)

    async def service(self, index, authorization, asked, scope):
        path = f"{asked.project}/" if asked.project else ""
        if asked.folder:
            path += f".variant/{asked.folder}/{asked.filename}"
        self.asked.append((index, authorization, path))
        self.headers.append(dict(scope["headers"]))
        if self.refusal is not None:
            status, text = self.refusal
            raise NothingFetched(text, status)
        return PlainTextResponse(f"service {path}")

    def ask(self, target="/file", method="GET", headers=None, body=None):
        """Return status, headers and body."""
        if self.host.url.startswith("https"):
            return self.transport.https("127.0.0.1", self.host.port, method, target, headers, body)
        return self.transport.http(self.host.url + target, method, headers, body)

    def text(self, target, method="GET", headers=None):
        """Return status and body as text."""
        status, _, body = self.ask(target, method, headers)
        return status, body.decode().strip()


@pytest.fixture
def session(transport):
    """Return a function from a host, variables for proxies and trust to a `World`."""

    def made(host, trusted, environ=None, insecure=()):
        return World(transport, host, Outbound(environ or {}, trusted, frozenset(insecure)))

    return made


@pytest.fixture
def world(session, host, trusted):
    """A `World` of the upstream."""
    return session(host, trusted)
