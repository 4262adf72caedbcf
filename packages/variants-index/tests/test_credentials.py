"""Credentials: URL, netrc, keyring, in that order."""

import os
import stat
import sys
import types
from pathlib import Path

import pytest

from variants_index._errors import InvalidUrl
from variants_index._http import credentials
from variants_index._http.credentials import Credentials, find_credentials, split_credentials

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
    assert "pw" not in repr(split_credentials(url)[1])


@pytest.mark.parametrize("host", ["[x", "host:port", "host:99999"])
def test_invalid_urls(host):
    with pytest.raises(InvalidUrl, match="is not a valid URL") as caught:
        split_credentials(f"https://me:secret@{host}/simple")
    assert "secret" not in str(caught.value)


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


@pytest.mark.parametrize(
    ("text", "url", "expected"),
    [
        ("machine other.example login me password pw\n", URL, None),
        ("machine index.example login me password other\n", "https://me:pw@index.example/",
         Credentials("me", "pw")),
        ("machine index.example login me password pw\n", "https://me@index.example/",
         Credentials("me", "pw")),
        ("machine index.example login me password pw\n", "https://you@index.example/",
         Credentials("you", "")),
        ("not netrc at all", URL, None),
        ("machine index.example login me password pw\n", "file:///x", None),
    ],
)  # fmt: skip
def test_netrc(netrc, text, url, expected):
    """The file that a variable names, or the one in the home directory."""
    named = netrc(text)
    assert find_credentials(url, named) == expected
    path = Path(named["NETRC"])
    path.chmod(0o600)
    path.rename(path.with_name(".netrc"))
    assert find_credentials(url, environ(HOME=str(path.parent))) == expected


def entry(username, password):
    return types.SimpleNamespace(username=username, password=password)


@pytest.fixture
def keyring(monkeypatch):
    """Stand in for the library, which asks the system's own store; record what it is asked for."""

    def install(**entries):
        asked = []

        def get_credential(service, username):
            asked.append((service, username))
            found = entries.get(service)
            if isinstance(found, Exception):
                raise found
            return found

        module = types.SimpleNamespace(get_credential=get_credential)
        monkeypatch.setitem(sys.modules, "keyring", module)
        return asked

    return install


def test_keyring_is_asked_for_the_url_then_for_the_host(keyring):
    asked = keyring(**{"index.example": entry("me", "pw")})
    assert find_credentials(URL, environ(), keyring=False) is None
    assert find_credentials(URL, environ()) == Credentials("me", "pw")
    assert find_credentials("https://me@index.example/", environ()) == Credentials("me", "pw")
    assert asked == [
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
@pytest.mark.parametrize(
    ("script", "user", "password"),
    [
        ('echo "$1 $2 $3"', "me@", f"get {URL} me"),
        ("echo", "me@", ""),
        ("echo pw; exit 3", "me@", ""),
        ("exec sleep 20", "me@", ""),
        # It needs a user and gets no options.
        ("echo pw", "", None),
        ("echo pw", "-me@", ""),
    ],
)
def test_the_keyring_command(tmp_path, monkeypatch, script, user, password):
    monkeypatch.setattr(credentials, "TIMEOUT", 0.1 if "sleep" in script else 20)
    monkeypatch.setitem(sys.modules, "keyring", None)
    path = tmp_path / "keyring"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IEXEC)
    env = environ(PATH=f"{tmp_path}{os.pathsep}{os.defpath}")
    found = find_credentials(URL.replace("://", f"://{user}"), env)
    assert (found and found.password) == password
