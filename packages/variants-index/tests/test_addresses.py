"""Where links and redirects may lead: decided by the address that is connected to."""

import ipaddress
import itertools
import socket

import pytest

from support.index import Answer, served
from support.raw_server import got
from variants_index._errors import BadResponse, PackageIndexError
from variants_index._http.transports import AddressPolicy, ForbiddenAddress, Reach, reach_of

PUBLIC = "93.184.216.34"
OTHER_PUBLIC = "2606:2800:220:1:248:1893:25c8:1946"


@pytest.mark.parametrize(
    ("reach", "addresses"),
    [
        (Reach.PUBLIC, [
            PUBLIC, OTHER_PUBLIC, "::ffff:93.184.216.34", "64:ff9b::5db8:d822", "192.175.48.1",
            "172.32.0.1", "198.20.0.1", "192.0.1.1", "2001:200::1", "2a00:1450::1",
        ]),
        (Reach.NETWORK, [
            "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "100.100.100.200", "198.18.0.1",
            "240.0.0.1", "fd00:ec2::254", "fec0::1", "::ffff:10.0.0.1", "64:ff9b::a00:1",
            "2002:a00:1::", "192.0.0.192", "192.0.0.9", "192.0.2.1", "192.88.99.1", "198.51.100.7",
            "203.0.113.1", "255.255.255.255", "64:ff9b:1::1:5db8:d822", "2001:db8::1", "3fff::1",
            "5f00::1", "100::1", "2001:2::1", "2001:20::1", "4000::1", "::10.0.0.1",
            "::ffff:0:10.0.0.1", "2001:0:4136:e378:8000:63bf:f5ff:fffe",
        ]),
        (Reach.MACHINE, [
            "127.0.0.1", "127.255.0.1", "0.0.0.0", "0.1.2.3", "169.254.169.254", "168.63.129.16",
            "224.0.0.1", "::1", "::", "fe80::1", "ff02::1", "::ffff:127.0.0.1", "2002:7f00:1::",
            "64:ff9b::7f00:1", "::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b:1::7f00:1",
            "64:ff9b:1:ffff::169.254.169.254", "::2", "239.1.1.1", "::169.254.169.254",
        ]),
    ],
)  # fmt: skip
def test_reach(reach, addresses):
    for address in addresses:
        assert reach_of(ipaddress.ip_address(address)) is reach, address


class TestPolicy:
    def test_configured_hosts_may_be_anywhere_on_their_port_others_have_to_be_public(self):
        policy = AddressPolicy(["trusted.example", "one.example:81"])
        policy.configure("https://me:pw@Index.example/simple/")
        for place in (
            ("a.example", 443, PUBLIC), ("index.example", 443, "127.0.0.1"),
            ("trusted.example", 22, "10.0.0.1"), ("one.example", 81, "10.0.0.1"),
        ):  # fmt: skip
            policy.check(*place)
        for place in (
            ("a.example", 443, "10.0.0.1"), ("a.example", 443, "fe80::1%eth0"),
            ("index.example", 22, "127.0.0.1"), ("one.example", 80, "127.0.0.1"),
        ):  # fmt: skip
            with pytest.raises(ForbiddenAddress, match="which is not a public address"):
                policy.check(*place)

    @pytest.mark.parametrize(
        ("source", "near", "far"),
        [
            ("http://10.0.0.1/", ["10.0.0.2", PUBLIC], ["127.0.0.1", "169.254.1.1"]),
            ("http://localhost:8/", ["127.0.0.1", "10.0.0.2", "169.254.1.1"], []),
            ("file:///srv/links.html", ["127.0.0.1", "10.0.0.2"], []),
            (f"http://{PUBLIC}/", [PUBLIC], ["127.0.0.1", "10.0.0.2", "169.254.169.254"]),
            ("http://unknown.example/", [PUBLIC], ["127.0.0.1", "10.0.0.2"]),
            ("http://[/", [PUBLIC], ["10.0.0.2"]),
        ],
    )
    def test_links_lead_no_nearer_than_their_page(self, source, near, far):
        policy = AddressPolicy()
        policy.allow_links(
            source, ["http://files.example/a", "http://files.example/b", "http://[", "x"]
        )
        for address in near:
            policy.check("files.example", 80, address)
        for address in far:
            with pytest.raises(ForbiddenAddress):
                policy.check("files.example", 80, address)

    @pytest.mark.parametrize(
        "host",
        ["127.0.0.1", "localhost", "a.localhost", "LOCALHOST.", "::1", "0x7f.1", "2130706433",
         "127.1", "017700000001", "169.254.169.254", "10.0.0.1", "0"],
    )  # fmt: skip
    def test_proxies_get_no_local_addresses_either(self, host):
        with pytest.raises(ForbiddenAddress):
            AddressPolicy().check_name(host, 80)
        AddressPolicy().check_name("files.example", 80)
        AddressPolicy().check_name(PUBLIC, 80)


class Internet:
    """Names and addresses at the level of sockets: public ones lead to a server of the test.

    Attributes:
        names: addresses by host name; a list is gone through, one per question, and a tuple is
            given as one answer.
        asked: names that were resolved.
        places: the real port by public address.
        connected: addresses that were connected to.
    """

    def __init__(self):
        self.names = {}
        self.places = {}
        self.connected = []
        self.asked = []
        self._resolve = socket.getaddrinfo
        self._connect = socket.create_connection

    def resolve(self, host, port, *args, **options):
        self.asked.append(host)
        known = self.names.get(host, host)
        if isinstance(known, tuple):
            found = (self._resolve(each, port, *args, **options) for each in known)
            return list(itertools.chain.from_iterable(found))
        address = known.pop(0) if isinstance(known, list) else known
        return self._resolve(address, port, *args, **options)

    def connect(self, address, *args, **options):
        self.connected.append(address[0])
        if address[0] in self.places:
            address = ("127.0.0.1", self.places[address[0]])
        return self._connect(address, *args, **options)


@pytest.fixture
def internet(monkeypatch):
    world = Internet()
    monkeypatch.setattr(socket, "getaddrinfo", world.resolve)
    monkeypatch.setattr(socket, "create_connection", world.connect)
    return world


@pytest.fixture
def public(internet, server):
    """A server with a public address: http://index.example/."""
    internet.names.update({"index.example": PUBLIC, "files.example": OTHER_PUBLIC})
    port = int(server.root.rpartition(":")[2])
    internet.places.update({PUBLIC: port, OTHER_PUBLIC: port})
    return server


@pytest.fixture
def inside(other):
    """A server of this machine, which nothing may reach."""
    other.resources["/secret"] = Answer(body=b"secret")
    other.port = int(other.root.rpartition(":")[2])
    return other


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "127.1", "2130706433",
             "0x7f000001", "0.0.0.0", "[::]", "169.254.169.254", "10.0.0.1", "[fe80::1]",
             "[fd00::1]", "rebound.example", "a.internal"],
)  # fmt: skip
@pytest.mark.parametrize("way", ["redirect", "two redirects", "link", "part", "stream"])
def test_a_public_index_leads_nowhere_inside(session, internet, public, inside, host, way):
    internet.names.update({"rebound.example": "127.0.0.1", "a.internal": "192.168.0.1"})
    url = f"http://{host}:{inside.port}/secret"
    public.resources["/simple/demo/"] = Answer.redirect(url)
    public.resources["/a"] = Answer.redirect("http://files.example/simple/demo/")
    asking = session()
    start = {
        "redirect": "http://index.example/simple/demo/",
        "two redirects": "http://index.example/a",
    }.get(way, url)
    with pytest.raises(BadResponse, match="not a public address and not a configured index"):
        got(asking, start, way)
    assert inside.requests == []
    assert set(internet.connected) <= {PUBLIC, OTHER_PUBLIC}


def test_an_answer_of_dns_that_changes_does_not_help(session, internet, public, inside):
    internet.names["files.example"] = [OTHER_PUBLIC, "127.0.0.1"]
    public.resources["/a"] = Answer(body=b"body", headers={"Connection": "close"})
    asking = session()
    assert asking.fetch("http://files.example/a", limit=100).body == b"body"
    with pytest.raises(BadResponse, match="not a public address"):
        asking.fetch(f"http://files.example:{inside.port}/secret", limit=100)
    assert inside.requests == []


@pytest.mark.parametrize("way", ["link", "redirect", "cached page"])
@pytest.mark.parametrize("addresses", [("127.0.0.1", PUBLIC), ("::1", PUBLIC), (PUBLIC, "::1")])
def test_an_index_that_also_claims_to_be_here_leads_nowhere_inside(
    session, internet, public, inside, addresses, way
):
    """The owner of a name decides which addresses it has; nothing answers at those inside."""
    internet.names["index.example"] = addresses
    internet.places.update({"127.0.0.1": 9, "::1": 9})  # "discard": refuses
    secret = f"http://localhost:{inside.port}/secret"
    public.resources["/simple/demo/"] = Answer.redirect(secret)
    public.resources["/simple/"] = Answer(body=b"")
    asking = session()
    if way == "redirect":
        with pytest.raises(BadResponse, match="not a public address"):
            asking.fetch("http://index.example/simple/demo/", limit=100)
    else:
        if way == "link":
            asking.fetch("http://index.example/simple/", limit=100)
        asking.addresses.allow_links("http://index.example/simple/demo/", [secret])
        with pytest.raises(BadResponse, match="not a public address"):
            asking.fetch(secret, limit=100)
    assert inside.requests == []


def test_a_configured_host_may_be_inside_however_it_is_spelled(session, internet, inside):
    internet.names["xn--bcher-kva.example"] = "127.0.0.1"
    for name in ("bücher.example", "BÜCHER.example", "xn--bcher-kva.example"):
        index = f"http://{name}:{inside.port}/"
        assert session(index).fetch(f"{index}secret", limit=100).body == b"secret"


def test_public_places_may_lead_to_each_other(session, public):
    public.resources["/simple/demo/"] = Answer.redirect("http://files.example/b")
    public.resources["/b"] = Answer(body=b"body")
    assert session().fetch("http://index.example/simple/demo/", limit=100).body == b"body"


@pytest.mark.parametrize(
    "options",
    [{"trusted_hosts": ("127.0.0.1",)}, {"find_links": ("{url}/links/",)},
     {"extra_index_urls": ("{url}/simple/",)}],
)  # fmt: skip
def test_what_the_user_names_may_be_inside(session, public, inside, options):
    public.resources["/simple/demo/"] = Answer.redirect(f"{inside.root}/secret")
    options = {
        name: tuple(value.format(url=inside.root) for value in values)
        for name, values in options.items()
    }
    asking = session(**options)
    assert asking.fetch("http://index.example/simple/demo/", limit=100).body == b"secret"


def test_an_index_inside_may_lead_to_others_there(session, inside):
    with served() as other:
        other.resources["/demo-1.0.tar.gz"] = Answer(body=b"sdist")
        inside.add("demo", "demo-1.0.tar.gz", b"", url=f"{other.root}/demo-1.0.tar.gz")
        inside.resources["/a"] = Answer.redirect(f"{other.root}/demo-1.0.tar.gz")
        asking = session(inside.url)
        (file,) = asking.fetch_page(f"{inside.url}demo/", "demo").files
        assert asking.fetch(file.url, limit=100).body == b"sdist"
        assert session(inside.url).fetch(f"{inside.root}/a", limit=100).body == b"sdist"
        with pytest.raises(BadResponse):
            session(inside.url).fetch(f"{other.root}/demo-1.0.tar.gz", limit=100)


def test_through_a_proxy(session, internet, public, inside):
    """The proxy resolves names; addresses are not even sent to it."""
    with served() as proxy:
        proxy.resources["http://index.example/a"] = Answer.redirect(f"{inside.root}/secret")
        asking = session(environ={"http_proxy": proxy.root})
        with pytest.raises(BadResponse, match="not a public address"):
            asking.fetch("http://index.example/a", limit=100)
        assert proxy.requests == ["http://index.example/a"]
    assert inside.requests == []


def test_behind_a_proxy_no_name_is_resolved(session, internet, public):
    """Networks behind one may have no DNS for other networks, and wait for it in vain."""
    with served() as proxy:
        links = b'<a href="http://files.example/demo-1.0.tar.gz">'
        for url, body in (("simple/demo/", links), ("demo-1.0.tar.gz", b"sdist")):
            host = "files" if body == b"sdist" else "index"
            proxy.resources[f"http://{host}.example/{url}"] = Answer(body=body, kind="text/html")
        asking = session(environ={"http_proxy": proxy.root})
        (file,) = asking.fetch_page("http://index.example/simple/demo/", "demo").files
        assert asking.fetch(file.url, limit=100).body == b"sdist"
    assert set(internet.asked) == {"127.0.0.1"}  # the proxy


@pytest.mark.parametrize("host", ["a" * 64 + ".example", "a..example", "\ud800.example", "%00"])
def test_hosts_that_cannot_be_resolved_are_an_error(session, host):
    with pytest.raises(PackageIndexError):
        session().fetch(f"http://{host}/a", limit=100)
