"""Which credentials an upload has, by options, variables, files and keyrings."""

from contextlib import nullcontext

import pytest

from variants_cli.publishing.credentials import CredentialsError
from variants_cli.publishing.destination import UploadOptions, destination_of
from variants_cli.publishing.pypirc import MAX_BYTES, RepositoryError, read_repository
from variants_cli.publishing.simple_urls import simple_url_of

URL = "https://index.example/legacy/"
PYPI = "https://upload.pypi.org/legacy/"
PYPIRC = """
[distutils]
index-servers =
    pypi
    internal
    bare

[pypi]
username = me
password = pypi-from-file

[internal]
repository = https://index.example/legacy/
username = file-user
password = per%cent
ca_cert = /certs/ca.pem

[bare]
username = x
"""


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A home directory with a .pypirc, without netrc and keyring."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / ".pypirc").write_text(PYPIRC)
    return tmp_path


def found(home, options=None, *, ask=None, **environ):
    environ = {"HOME": str(home), "PATH": "", **environ}
    notes = []
    result = destination_of(options or UploadOptions(), environ, ask=ask, note=notes.append)
    assert notes == []
    return result


def login(home, *arguments, **keywords):
    destination = found(home, *arguments, **keywords)
    credentials = destination.login.credentials()
    pair = None if credentials is None else (credentials.username, credentials.password)
    return pair, destination.login.source


TWINE = {"TWINE_USERNAME": "tw", "TWINE_PASSWORD": "tw-pass"}
UV = {"UV_PUBLISH_USERNAME": "uv", "UV_PUBLISH_PASSWORD": "uv-pass"}
TOKEN = {"UV_PUBLISH_TOKEN": "pypi-uv"}
USER = "https://url-user:url%40pass@index.example/legacy/"


@pytest.mark.parametrize(
    ("options", "environ", "expected"),
    [
        ({"username": "o", "password": "p"}, TWINE, ("o", "p", "--password")),
        ({"token": "t"}, TWINE | TOKEN, ("__token__", "t", "--token")),
        ({"password": "p"}, {}, ("__token__", "p", "--password")),
        ({"password": "p"}, TWINE, ("tw", "p", "--password")),
        ({"username": "o"}, TWINE, ("o", "tw-pass", "TWINE_PASSWORD")),
        ({}, TWINE | UV, ("tw", "tw-pass", "TWINE_PASSWORD")),
        ({}, UV, ("uv", "uv-pass", "UV_PUBLISH_PASSWORD")),
        ({}, {"TWINE_USERNAME": "tw", **UV}, ("uv", "uv-pass", "UV_PUBLISH_PASSWORD")),
        ({}, {"TWINE_USERNAME": "tw", **TOKEN}, ("__token__", "pypi-uv", "UV_PUBLISH_TOKEN")),
        ({}, {"TWINE_PASSWORD": "", **TOKEN}, ("__token__", "pypi-uv", "UV_PUBLISH_TOKEN")),
        ({}, {"TWINE_PASSWORD": "line\n"}, ("__token__", "line", "TWINE_PASSWORD")),
        ({"repository_url": USER}, {}, ("url-user", "url@pass", "the upload URL")),
        ({"repository_url": USER}, TWINE, ("tw", "tw-pass", "TWINE_PASSWORD")),
        ({"repository_url": USER, "username": "o"}, {}, ("o", "url@pass", "the upload URL")),
        ({"repository": "internal"}, {}, ("file-user", "per%cent", "~/.pypirc [internal]")),
        ({"repository": "internal"}, TWINE, ("tw", "tw-pass", "TWINE_PASSWORD")),
        (
            {"repository": "internal"},
            {"TWINE_USERNAME": "tw"},
            ("tw", "per%cent", "~/.pypirc [internal]"),
        ),
        # PyPI has tokens only: the user name of an old file does not count.
        ({"repository": "pypi"}, {}, ("__token__", "pypi-from-file", "~/.pypirc [pypi]")),
        ({"repository": "pypi"}, TOKEN, ("__token__", "pypi-uv", "UV_PUBLISH_TOKEN")),
        # A URL has nothing to do with the file, as in twine.
        ({"repository_url": PYPI}, TOKEN, ("__token__", "pypi-uv", "UV_PUBLISH_TOKEN")),
    ],
)
def test_the_first_password_counts(home, options, environ, expected):
    if "repository" not in options:
        options = {"repository_url": URL, **options}
    pair, source = login(home, UploadOptions(**options), **environ)
    assert (*pair, source) == expected


def test_netrc_and_no_credentials(home):
    options = UploadOptions(repository_url=URL)
    assert login(home, options) == (None, "no credentials")
    (home / ".netrc").write_text("machine index.example login net password rc\n")
    assert login(home, options) == (("net", "rc"), "netrc or keyring")
    # A user name that netrc does not have.
    with pytest.raises(CredentialsError, match="no password for the user other"):
        login(home, UploadOptions(repository_url=URL, username="other"))


def test_keyring_command(home):
    command = home / "keyring"
    command.write_text(
        '#!/bin/sh\n[ "$*" = "get https://upload.pypi.org/legacy/ __token__" ] && echo pypi-ring\n'
    )
    command.chmod(0o755)
    options = UploadOptions(repository_url=PYPI)
    expected = ("__token__", "pypi-ring"), "netrc or keyring"
    assert login(home, options, PATH=f"{home}:/usr/bin:/bin") == expected


@pytest.mark.parametrize(
    ("options", "environ", "url"),
    [
        ({"repository": "pypi"}, {}, PYPI),
        ({"repository": "testpypi"}, TOKEN, "https://test.pypi.org/legacy/"),
        ({"repository": "internal"}, {"TWINE_REPOSITORY_URL": PYPI}, URL),
        ({"repository_url": URL}, {"TWINE_REPOSITORY": "pypi"}, URL),
        ({}, {"TWINE_REPOSITORY": "internal"}, URL),
        ({}, {"TWINE_REPOSITORY": "pypi", "UV_PUBLISH_URL": URL}, URL),
        ({"repository_url": "http://upload.pypi.org/legacy/"}, TOKEN, PYPI),
        ({"repository_url": USER}, {}, URL),
    ],
)
def test_upload_url(home, options, environ, url):
    assert found(home, UploadOptions(**options), **environ).upload_url == url


def test_nothing_is_said(home):
    assert found(home) is None


def test_certificates(home):
    assert found(home, UploadOptions(repository="internal")).cert == "/certs/ca.pem"
    options = UploadOptions(repository="internal", cert="/other.pem", client_cert="/key.pem")
    destination = found(home, options, TWINE_CERT="/twine.pem")
    assert (destination.cert, destination.client_cert) == ("/other.pem", "/key.pem")
    with pytest.raises(RepositoryError, match=r"/other\.pem"):
        destination.client({})
    assert found(home, UploadOptions(repository="internal"), TWINE_CERT="/t").cert == "/t"


@pytest.mark.parametrize(
    ("upload", "pages"),
    [
        (PYPI, "https://pypi.org/simple/"),
        ("https://test.pypi.org/legacy", "https://test.pypi.org/simple/"),
        (URL, "https://index.example/simple/"),
        ("http://localhost:8080", "http://localhost:8080/simple/"),
        (
            "https://gitlab.example/api/v4/projects/1/packages/pypi",
            "https://gitlab.example/api/v4/projects/1/packages/pypi/simple/",
        ),
        (
            "https://art.example/artifactory/api/pypi/wheels",
            "https://art.example/artifactory/api/pypi/wheels/simple/",
        ),
        (
            "https://pkgs.dev.azure.com/o/_packaging/feed/pypi/upload/",
            "https://pkgs.dev.azure.com/o/_packaging/feed/pypi/simple/",
        ),
        ("https://index.example/legacy/?x=1", "https://index.example/simple/"),
    ],
)
def test_project_pages(upload, pages):
    assert simple_url_of(upload).url == pages


def test_project_pages_that_are_named(home):
    options = UploadOptions(repository_url=URL, index_url="https://me:pw@pages.example/all")
    assert found(home, options).index_url == "https://me:pw@pages.example/all/"
    assert "pw" not in repr(found(home, options))
    assert not found(home, options).guessed
    destination = found(home, UploadOptions(repository_url=URL), UV_PUBLISH_CHECK_URL="http://c/s/")
    assert destination.index_url == "http://c/s/"


@pytest.mark.parametrize(
    ("url", "typed", "expected"),
    [
        (PYPI, ["pypi-typed"], ("__token__", "pypi-typed")),
        (URL, ["me", "typed"], ("me", "typed")),
        (URL, [""], None),
        (URL, ["me", ""], None),
    ],
)
def test_prompts(home, url, typed, expected):
    asked = []

    def ask(text, *, hidden):
        asked.append((text, hidden))
        return typed[len(asked) - 1]

    pair, _source = login(home, UploadOptions(repository_url=url), ask=ask)
    assert pair == expected
    assert len(asked) == len(typed)
    with pytest.raises(CredentialsError) if url == PYPI else nullcontext():
        login(home, UploadOptions(repository_url=url), ask=ask, TWINE_NON_INTERACTIVE="true")
    assert len(asked) == len(typed)
    assert [hidden for _, hidden in asked] == [len(typed) == 1 and url == PYPI, True][: len(typed)]


@pytest.mark.parametrize(
    ("options", "environ", "words"),
    [
        ({"token": "t", "password": "p"}, {}, "--token and --password"),
        ({"token": "t", "username": "u"}, {}, "leave out --username"),
        ({}, {"UV_PUBLISH_TOKEN": "t", "UV_PUBLISH_PASSWORD": "p"}, "unset one of them"),
        ({}, {"UV_PUBLISH_TOKEN": "t", "UV_PUBLISH_USERNAME": "u"}, "unset UV_PUBLISH_USERNAME"),
        ({"password": "hush\x16"}, {}, "the password of --password has characters"),
        ({"username": "u"}, {}, "no password for the user u"),
        ({"repository_url": PYPI}, {}, "no API token: set TWINE_PASSWORD or UV_PUBLISH_TOKEN"),
        ({"repository_url": PYPI}, {"TWINE_PASSWORD": ""}, "TWINE_PASSWORD is set but empty"),
        ({"repository_url": PYPI}, {"GITHUB_ACTIONS": "true"}, "id-token: write"),
        ({"repository_url": PYPI}, {"GITLAB_CI": "true"}, "PYPI_ID_TOKEN"),
        (
            {"trusted_publishing": "always"},
            TWINE,
            "--trusted-publishing always does not go with TWINE_PASSWORD",
        ),
    ],
)
def test_credentials_that_cannot_be_used(home, options, environ, words):
    with pytest.raises(CredentialsError) as caught:
        found(home, UploadOptions(**{"repository_url": URL, **options}), **environ)
    assert words in str(caught.value)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"repository": "none"}, "~/.pypirc has no section [none]: known are bare, internal, pypi"),
        ({"repository": "bare"}, "[bare] has no repository"),
        ({"repository": "pypi", "repository_url": URL}, "exclude each other"),
        ({"repository": "pypi", "config_file": "/nowhere"}, "/nowhere: no such file"),
        ({"repository_url": "index.example"}, "'index.example' is not an upload URL"),
        ({"repository_url": "https://u:secret@[::1"}, "is not an upload URL"),
        ({"repository_url": "https:///legacy"}, "is not an upload URL"),
        ({"repository_url": "https://pypi.python.org/pypi"}, f"use {PYPI}"),
    ],
)
def test_repositories_that_cannot_be_used(home, options, words):
    with pytest.raises(RepositoryError) as caught:
        found(home, UploadOptions(**options))
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("password = secret\n", "line 1: a line before the first [section]"),
        ("[pypi]\npassword = secret\npassword = secret\n", "line 3: a key is there twice"),
        ("[pypi]\n[pypi]\n", "line 2: a section is there twice"),
        ("[pypi]\nsecret\n", "line 2: cannot be parsed"),
        (b"[pypi]\npassword = secret\xff\n", "not UTF-8"),
        ("#" * MAX_BYTES + "\n", "larger than"),
    ],
)
def test_broken_files_keep_their_secrets(home, text, words):
    data = text if isinstance(text, bytes) else text.encode()
    (home / ".pypirc").write_bytes(data)
    with pytest.raises(RepositoryError) as caught:
        read_repository("pypi")
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)


def test_obsolete_section_and_byte_order_mark(home):
    (home / ".pypirc").write_text(
        "\ufeff[server-login]\nusername = old\npassword = older\n", encoding="utf-8"
    )
    found = read_repository("pypi")
    assert (found.username, found.password) == ("old", "older")


def test_no_secret_in_a_repr(home):
    options = UploadOptions(repository="internal", password="hidden", token=None)
    destination = found(home, options, **UV)
    assert "hidden" not in repr(options) + repr(destination)
    assert "per%cent" not in repr(read_repository("internal"))
