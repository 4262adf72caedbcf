"""Credentials: URL, netrc, keyring, in that order."""

import os
import stat
import sys
import types

import pytest

from variants_index.errors import InvalidUrl
from variants_index.http import credentials
from variants_index.http.credentials import Credentials, find_credentials, split_credentials

URL = "https://index.example/simple/"


def environ(**more):
    return {"HOME": os.devnull, "PATH": os.devnull, **more}


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://host/x", ("https://host/x", None)),
        ("https://me:pw@host/x", ("https://host/x", Credentials("me", "pw"))),
        ("https://me@host/x", ("https://host/x", Credentials("me", ""))),
        ("https://:token@host/x", ("https://host/x", Credentials("", "token"))),
        ("https://me:p%40w%2F@host:8/x", ("https://host:8/x", Credentials("me", "p@w/"))),
        ("https://me:p@w@host/x", ("https://host/x", Credentials("me", "p@w"))),
        ("https://me:a:b@host/x?q#f", ("https://host/x?q#f", Credentials("me", "a:b"))),
        ("https://@host/", ("https://host/", Credentials("", ""))),
        ("file:///a@b", ("file:///a@b", None)),
        ("https://host/a@b", ("https://host/a@b", None)),
    ],
)
def test_split(url, expected):
    assert split_credentials(url) == expected


@pytest.mark.parametrize("host", ["[x", "host:port", "host:99999"])
def test_invalid_urls(host):
    with pytest.raises(InvalidUrl, match="is not a valid URL") as caught:
        split_credentials(f"https://me:secret@{host}/simple")
    assert "secret" not in str(caught.value)


def test_passwords_are_not_shown():
    assert "secret" not in repr(Credentials("me", "secret"))


@pytest.fixture
def netrc(tmp_path):
    path = tmp_path / "netrc"

    def write(text):
        path.write_text(text)
        return environ(NETRC=str(path))

    return write


@pytest.mark.parametrize("entry", ["machine index.example", "default"])
@pytest.mark.parametrize(
    ("url", "configured", "known"),
    [
        ("https://index.example/", False, True),
        ("https://index.example:443/", False, True),
        ("http://index.example/", False, True),
        ("http://index.example:443/", False, False),
        ("https://index.example:8443/", False, False),
        ("https://index.example:8443/", True, True),
        ("https://index.example/", True, True),
    ],
)
def test_netrc_is_for_default_ports_and_configured_places(netrc, entry, url, configured, known):
    env = netrc(f"{entry} login me password pw\n")
    found = find_credentials(url, env, configured=configured)
    # The default entry would go to every host that a page links to.
    expected = known and (configured or entry != "default")
    assert found == (Credentials("me", "pw") if expected else None)


def test_the_url_counts_most(netrc):
    env = netrc("machine index.example login me password other\n")
    found = find_credentials("https://me:pw@index.example/", env)
    assert found == Credentials("me", "pw")


@pytest.mark.parametrize(
    ("text", "url", "expected"),
    [
        ("machine other.example login me password pw\n", URL, None),
        ("machine index.example login me password pw\n", "https://me@index.example/",
         Credentials("me", "pw")),
        ("machine index.example login me password pw\n", "https://you@index.example/",
         Credentials("you", "")),
        ("not netrc at all", URL, None),
        ("machine index.example login me password pw\n", "file:///x", None),
    ],
)  # fmt: skip
def test_netrc(netrc, text, url, expected):
    assert find_credentials(url, netrc(text)) == expected


def test_netrc_of_the_home_directory(tmp_path):
    path = tmp_path / ".netrc"
    path.write_text("machine index.example login me password pw\n")
    path.chmod(0o600)
    assert find_credentials(URL, environ(HOME=str(tmp_path))) == Credentials("me", "pw")


class Keyring(types.ModuleType):
    """Stands in for the library, which asks the system's own store."""

    def __init__(self, entries):
        super().__init__("keyring")
        self.entries = entries
        self.asked = []

    def get_credential(self, service, username):
        self.asked.append((service, username))
        found = self.entries.get(service)
        if isinstance(found, Exception):
            raise found
        return found


@pytest.fixture
def keyring(monkeypatch):
    def install(**entries):
        module = Keyring(entries)
        monkeypatch.setitem(sys.modules, "keyring", module)
        return module

    return install


def entry(username, password):
    return types.SimpleNamespace(username=username, password=password)


def test_keyring_is_asked_for_the_url_then_for_the_host(keyring):
    module = keyring(**{"index.example": entry("me", "pw")})
    assert find_credentials(URL, environ(), keyring=False) is None
    assert find_credentials(URL, environ()) == Credentials("me", "pw")
    assert find_credentials("https://me@index.example/", environ()) == Credentials("me", "pw")
    assert module.asked == [
        (URL, None), ("index.example", None), ("https://index.example/", "me"),
        ("index.example", "me"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "found", [None, entry("me", None), entry("me", ""), RuntimeError("locked")]
)
def test_keyring_that_knows_nothing(keyring, found):
    keyring(**{URL: found, "index.example": found})
    assert find_credentials(URL, environ()) is None


@pytest.mark.skipif(os.name == "nt", reason="the fake command is a shell script")
class TestCommand:
    @pytest.fixture(autouse=True)
    def no_library(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "keyring", None)

    def command(self, folder, script):
        path = folder / "keyring"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IEXEC)
        return environ(PATH=f"{folder}{os.pathsep}{os.defpath}")

    def test_answer(self, tmp_path):
        env = self.command(tmp_path, 'echo "$1 $2 $3"')
        found = find_credentials("https://me@index.example/simple/", env)
        assert found == Credentials("me", f"get {URL} me")

    @pytest.mark.parametrize("script", ["echo", "echo pw; exit 3"])
    def test_no_answer(self, tmp_path, script):
        env = self.command(tmp_path, script)
        assert find_credentials("https://me@index.example/", env) == Credentials("me", "")

    def test_it_may_not_take_for_ever(self, tmp_path, monkeypatch):
        monkeypatch.setattr(credentials, "TIMEOUT", 0.1)
        env = self.command(tmp_path, "exec sleep 20")
        assert find_credentials("https://me@index.example/", env) == Credentials("me", "")

    @pytest.mark.parametrize("url", [URL, "https://-me@index.example/"])
    def test_it_needs_a_user_and_gets_no_options(self, tmp_path, url):
        env = self.command(tmp_path, "echo pw")
        found = find_credentials(url, env)
        assert found is None or not found.password
