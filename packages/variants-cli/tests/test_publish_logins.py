"""One set of credentials, and attestations, for everything that `variants publish` uploads."""

import base64
import contextlib
import hashlib
import json
import os
import re
import sys
from functools import partial
from urllib.parse import quote

import keyring
import pytest

from support.index import Answer, handler_of
from support.loopback import serving
from support.upload_server import Fault

PLAIN = "demo-1.0-py3-none-any.whl"
WHEEL3 = "demo-1.0-py3-none-any-v3.whl"
DOCUMENT = "demo-1.0-variants.json"
SECRET = "hunter2hunter2"
ME = ("--username", "me", "--password", SECRET)


@pytest.fixture
def dist(batch):
    return batch("dist", None, "v3")


@pytest.fixture
def index(index, tmp_path, monkeypatch):
    """An index that takes the user me, whose home directory is empty."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return index


@pytest.fixture
def publish(variants, dist, index):
    return partial(variants, "publish", dist, "--repository-url", index.url)


def authorized(index):
    """The user names and passwords of all requests, and what was sent with them."""
    given = {(upload.authorization or "").removeprefix("Basic ") for upload in index.uploads}
    return {base64.b64decode(pair).decode() for pair in given}, set(index.accepted)


# What is set where, and the options beside: without --repository-url, the way names the index.
WAYS = {
    "options": ({}, "", ME),
    "twine": ({"TWINE_USERNAME": "me", "TWINE_PASSWORD": SECRET}, "", ()),
    "uv": ({"UV_PUBLISH_USERNAME": "me", "UV_PUBLISH_PASSWORD": SECRET}, "", ()),
    "token": ({"UV_PUBLISH_TOKEN": SECRET}, "", ()),
    "URL": ({"UV_PUBLISH_URL": "{with_password}"}, "", ()),
    "pypirc": (
        {},
        "[distutils]\nindex-servers = internal\n[internal]\nrepository = {url}\nusername = me\n"
        f"password = {SECRET}\n",
        ("--repository", "internal"),
    ),
    "netrc": ({}, f"machine 127.0.0.1 login me password {SECRET}\n", ()),
    "keyring": ({}, "", ("--username", "me")),
}


@pytest.mark.parametrize("way", WAYS)
def test_one_set_of_credentials(variants, dist, index, tmp_path, monkeypatch, way):
    environ, file, options = WAYS[way]
    user = "__token__" if way == "token" else "me"
    index.credentials = (user, SECRET)
    for name, value in environ.items():
        url = index.url.replace("://", f"://me:{SECRET}@")
        monkeypatch.setenv(name, value.format(with_password=url))
    if file:
        (tmp_path / f".{way}").write_text(file.format(url=index.url))
    if way == "keyring":
        passwords = {(index.url, "me"): SECRET}
        monkeypatch.setattr(keyring, "get_password", lambda *place: passwords.get(place))
    url = [] if way in ("URL", "pypirc") else ["--repository-url", index.url]
    result = variants("publish", dist, *url, *options)
    assert result.code == 0, result.err
    assert authorized(index) == ({f"{user}:{SECRET}"}, {PLAIN, WHEEL3, DOCUMENT})
    assert SECRET not in result.out + result.err
    assert {path.name for path in tmp_path.iterdir()} <= {"dist", ".pypirc", ".netrc"}


def test_refused_credentials(publish, index, monkeypatch):
    monkeypatch.setenv("TWINE_USERNAME", "me")
    monkeypatch.setenv("TWINE_PASSWORD", "hunter1hunter1")
    result = publish()
    assert result.code == 1
    assert "with the user name 'me'" in result.err
    assert "hunter1" not in result.out + result.err
    assert index.accepted == []


def test_an_index_that_says_credentials_again(publish, index, monkeypatch):
    """As they were sent, quoted, and alone."""
    password = "hunter+1 hunter1"
    monkeypatch.setenv("TWINE_USERNAME", "me")
    monkeypatch.setenv("TWINE_PASSWORD", password)
    index.credentials = ("me", password)
    sent = base64.b64encode(f"me:{password}".encode()).decode()
    echoed = f"Basic {sent}, {sent}, {password}, {quote(password)}"
    index.faults = {"whl$": [Fault(400, reason=f"no: {echoed}")]}
    result = publish()
    assert result.code == 1
    assert "status 400: no: Basic ****, ****, ****, ****" in result.err
    assert not [each for each in (sent, "hunter") if each in result.out + result.err]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_to_another_host(variants, dist, index, status):
    """Neither files nor credentials are sent there."""
    received = []

    class Elsewhere(handler_of(lambda path, headers: Answer(404))):
        def do_POST(self):
            received.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send(Answer(status, headers={"Location": index.url}))

    with serving(Elsewhere) as url:
        result = variants("publish", dist, "--repository-url", f"{url}/legacy/", *ME)
    assert result.code == 1
    assert f"redirects to {index.url}" in result.err
    assert len(received) == 1
    assert index.uploads == []


def test_no_index_is_named(variants, dist, index):
    result = variants("publish", dist)
    assert result.code == 2
    assert "--repository-url URL" in result.err


def test_identity_tokens_are_for_pypi_alone(publish, index, monkeypatch):
    """Other indexes, by http or not, are never asked for an upload token in a job of CI."""
    for name in ("GITHUB_ACTIONS", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"):
        monkeypatch.setenv(name, "true")
    monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_URL", f"{index.url}identity")
    result = publish()
    assert result.code == 1
    assert "with no credentials" in result.err
    assert index.accepted == []
    assert all(path == "/legacy/" for path in index.pages.requests)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"password = hunter2hunter2\n", "Malformed configuration"),
        (b"[pypi]\npassword = hunter2hunter2\npassword = x\n", "Malformed configuration"),
        (b"[pypi]\nhunter2hunter2\n", "Malformed configuration"),
        (b"[pypi]\npassword = hunter2hunter2\xff\n", "Unable to read configuration file"),
        (b"[distutils]\nindex-servers = bare\n[bare]\npassword = hunter2hunter2\n",
         "no repository"),
        (b"", "Missing 'bare' section"),
    ],
)  # fmt: skip
def test_broken_files_keep_their_secrets(variants, dist, index, tmp_path, text, words):
    (tmp_path / ".pypirc").write_bytes(text)
    result = variants("publish", dist, "--repository", "bare")
    assert result.code == 1
    assert words in result.err
    assert SECRET not in result.out + result.err


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_prompts_on_a_terminal(dist, index):
    """It asks on stderr, and shows there how uploads go; stdout stays JSON."""
    import pty
    import subprocess

    main, child = pty.openpty()
    process = subprocess.Popen(
        [
            sys.executable, "-c", "from variants_cli.main import main; main()",
            "publish", str(dist), "--repository-url", index.url, "--json",
        ],
        stdin=child, stdout=subprocess.PIPE, stderr=child, start_new_session=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
    )  # fmt: skip
    os.close(child)
    shown = b""
    for prompt, answer in ((b"your username: ", b"me\n"), (b"your password: ", SECRET.encode())):
        while not shown.endswith(prompt):
            shown += os.read(main, 1)
        os.write(main, answer)
    os.write(main, b"\n")
    with contextlib.suppress(OSError):  # on Linux, at the end
        while chunk := os.read(main, 4096):
            shown += chunk
    assert json.loads(process.communicate(timeout=60)[0])["verified"], shown
    os.close(main)
    assert authorized(index)[0] == {f"me:{SECRET}"}
    assert SECRET.encode() not in shown
    plain = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", shown.decode())
    assert f"Uploading {WHEEL3}\r\n" in plain
    assert "100%" in plain


class TestAttestations:
    @pytest.fixture
    def publish(self, publish):
        return partial(publish, *ME)

    @pytest.fixture
    def attest(self, dist):
        """Write an attestation of wheels beside the variant wheel; return its path."""

        def attest(*of):
            subjects = [
                {"name": name, "digest": {"sha256": hashlib.sha256(data).hexdigest()}}
                for name, data in ((name, (dist / name).read_bytes()) for name in of)
            ]
            statement = base64.b64encode(json.dumps({"subject": subjects}).encode()).decode()
            beside = dist / f"{WHEEL3}.publish.attestation"
            beside.write_text(json.dumps({"version": 1, "envelope": {"statement": statement}}))
            return beside

        return attest

    def test_those_that_are_there(self, publish, attest, index):
        attested = attest(WHEEL3)
        result = publish()
        assert result.code == 0, result.err
        found = {upload.filename: upload.fields.get("attestations") for upload in index.uploads}
        (text,) = found.pop(WHEEL3)
        assert json.loads(text) == [json.loads(attested.read_text())]
        assert set(map(str, found.values())) == {"None"}
        assert attested.name not in index.sent

    def test_of_the_plain_wheel(self, publish, attest, index):
        attest(PLAIN)
        result = publish()
        assert result.code == 1
        assert f"is of the plain wheel {PLAIN}" in result.err
        assert index.sent == []
        assert publish("--no-attestations").code == 0
        assert not any("attestations" in upload.fields for upload in index.uploads)

    @pytest.mark.parametrize(
        "text", ["", "[]", '{"envelope": {"statement": "e30="}}', "[" * 9999, None]
    )
    def test_broken(self, publish, attest, index, text):
        attested = attest(WHEEL3, PLAIN)
        if text is not None:
            attested.write_text(text)
        result = publish()
        assert result.code == 1
        assert f"{attested.name}: is not an attestation of one file" in result.err
        assert index.sent == []
