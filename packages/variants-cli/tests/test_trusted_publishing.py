"""Trusted publishing against a stand-in for GitHub, GitLab and PyPI."""

import httpx
import pytest

from support.token_server import identity_token, token_server
from variants_cli.publishing.destination import UploadOptions, destination_of
from variants_cli.publishing.trusted_publishing import (
    MAX_BYTES,
    TrustedPublisher,
    TrustedPublishingError,
    ci_job,
)

AUDIENCE, MINT = "/_/oidc/audience", "/_/oidc/mint-token"


@pytest.fixture
def server():
    with token_server() as state:
        yield state


@pytest.fixture
def job(monkeypatch):
    """Sets the variables of a job and returns them; the library `id` reads those of the process."""

    def set_variables(variables):
        for name in ("GITHUB_ACTIONS", "GITLAB_CI", "BUILDKITE", "CIRCLECI"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return dict(variables)

    return set_variables


def publisher(server, environ, clock=lambda: 0.0):
    return TrustedPublisher(
        f"{server.url}/legacy/",
        environ,
        httpx.Client,
        clock=clock,
        pause=lambda seconds: None,
    )


@pytest.mark.parametrize("system", ["github", "gitlab"])
@pytest.mark.parametrize("audience", ["pypi", "testpypi"])
def test_identity_becomes_an_upload_token(server, job, capsys, system, audience):
    server.audience = audience
    environ = job(getattr(server, system))
    credentials = publisher(server, environ).credentials()
    assert (credentials.username, credentials.password) == ("__token__", "pypi-minted-1")
    assert "minted" not in repr(credentials)
    printed = capsys.readouterr()
    assert printed.out == ""
    if system == "github":  # what GitHub is asked to hide, and nothing else
        lines = printed.err.splitlines()
        assert lines[1:] == ["::add-mask::pypi-minted-1"]
        assert lines[0].startswith(f"::add-mask::{identity_token(audience, 1)}")
    else:
        assert printed.err == ""


def test_renewed_before_its_end(server, job):
    now = [1000.0]
    environ = job(server.github)
    server.lifetime = 15 * 60
    server.now = now[0]
    login = publisher(server, environ, lambda: now[0])
    assert [login.credentials().password for _ in range(3)] == ["pypi-minted-1"] * 3
    now[0] += 9 * 60
    assert login.credentials().password == "pypi-minted-1"
    now[0] += 2 * 60
    assert login.credentials().password == "pypi-minted-2"
    assert server.minted == ["pypi-minted-1", "pypi-minted-2"]


def test_gitlab_identity_is_used_once(server, job):
    now = [0.0]
    login = publisher(server, job(server.gitlab), lambda: now[0])
    assert login.credentials().password == "pypi-minted-1"
    now[0] = 14 * 60
    assert login.credentials().password == "pypi-minted-1"
    now[0] = 15 * 60
    with pytest.raises(TrustedPublishingError, match="already used"):
        login.credentials()


@pytest.mark.parametrize("path", [AUDIENCE, MINT])
def test_busy_index_is_asked_again(server, job, path):
    server.statuses[path] = [503, 429]
    assert publisher(server, job(server.github)).credentials().password == "pypi-minted-1"


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        (lambda s: s.statuses.update({AUDIENCE: [404]}), "does not support trusted publishing"),
        (lambda s: s.statuses.update({AUDIENCE: [403]}), "has trusted publishing disabled"),
        (lambda s: s.statuses.update({AUDIENCE: [503] * 9}), "status 503 (try again)"),
        (lambda s: s.bodies.update({AUDIENCE: b"<html>"}), "status 200, and no JSON object"),
        (lambda s: s.bodies.update({AUDIENCE: b"[" * 90_000}), "and no JSON object"),
        (lambda s: s.bodies.update({AUDIENCE: b" " * MAX_BYTES + b"{}"}), "and no JSON object"),
        (lambda s: s.bodies.update({AUDIENCE: b"{}"}), "no audience in the response"),
        (lambda s: s.bodies.update({MINT: b"{}"}), "no token in the response"),
        # It would be a command in the log.
        (
            lambda s: s.bodies.update({MINT: b'{"token": "a\\n::set-env name=X::"}'}),
            "no token in the response",
        ),
        (lambda s: s.statuses.update({MINT: [422]}), "job is sub 'repo:acme/rocket:environment:"),
        (lambda s: s.statuses.update({"/github": [500]}), "permissions: {id-token: write}"),
        (lambda s: s.bodies.update({"/github": b"{}"}), "no identity token"),
        (lambda s: s.bodies.update({"/github": b'{"value": "a.b.c"}'}), "no identity token"),
    ],
)
def test_failures_name_the_step(server, job, capsys, prepare, words):
    environ = job(server.github)
    prepare(server)
    with pytest.raises(TrustedPublishingError) as caught:
        publisher(server, environ).credentials()
    message = str(caught.value)
    assert words in message
    assert message.isprintable()
    assert identity_token("pypi", 1) not in message
    assert "set-env" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"GITHUB_ACTIONS": "true"}, "permissions: {id-token: write}"),
        (
            {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "pull_request"},
            "pull requests of forks get none",
        ),
        (
            {"GITLAB_CI": "true", "TESTPYPI_ID_TOKEN": "x"},
            "the variable PYPI_ID_TOKEN is not set: add to the job in .gitlab-ci.yml",
        ),
        ({"GITLAB_CI": "true", "PYPI_ID_TOKEN": "two words"}, "malformed"),
        ({}, "this is not a job of GitHub Actions or GitLab CI"),
    ],
)
def test_jobs_without_identity(server, job, monkeypatch, variables, words):
    monkeypatch.delenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", raising=False)
    with pytest.raises(TrustedPublishingError) as caught:
        publisher(server, job(variables)).credentials()
    assert words in str(caught.value)
    assert server.minted == []


def test_no_token_without_https():
    with pytest.raises(TrustedPublishingError, match="only sent by https"):
        TrustedPublisher("http://index.example/legacy/", {}, httpx.Client)


def test_unreachable_index(job):
    environ = job({"GITLAB_CI": "true", "PYPI_ID_TOKEN": identity_token("pypi")})
    login = TrustedPublisher("http://127.0.0.1:9/", environ, httpx.Client, pause=lambda _: None)
    with pytest.raises(TrustedPublishingError, match="audience: cannot connect"):
        login.credentials()


@pytest.mark.parametrize(
    ("variables", "system"),
    [
        ({}, None),
        ({"GITHUB_ACTIONS": "true"}, None),
        ({"GITLAB_CI": "true"}, None),
        ({"GITLAB_CI": "true", "PYPI_ID_TOKEN": ""}, None),
        ({"GITLAB_CI": "true", "PYPI_ID_TOKEN": "x"}, "GitLab CI"),
        ({"PYPI_ID_TOKEN": "x"}, None),
        (
            {
                "GITHUB_ACTIONS": "true",
                "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "x",
                "ACTIONS_ID_TOKEN_REQUEST_URL": "y",
            },
            "GitHub Actions",
        ),
    ],
)
def test_jobs_with_identity(variables, system):
    assert ci_job(variables) == system


def login_of(server, tmp_path, environ, mode="auto", **more):
    notes = []
    options = UploadOptions(repository_url=f"{server.url}/legacy/", trusted_publishing=mode, **more)
    environ = {"HOME": str(tmp_path), "PATH": "", **environ}
    destination = destination_of(options, environ, note=notes.append)
    return destination.login, notes


def test_auto_in_a_job_that_has_an_identity(server, job, tmp_path):
    login, notes = login_of(server, tmp_path, job(server.gitlab))
    assert login.credentials().password == "pypi-minted-1"
    assert login.source == "trusted publishing (GitLab CI)"
    assert notes == []


@pytest.mark.parametrize(
    ("environ", "options"),
    [
        ({"TWINE_PASSWORD": "p"}, {}),
        ({}, {"token": "t"}),
        ({}, {"mode": "never"}),
    ],
)
def test_auto_is_last(server, job, tmp_path, environ, options):
    login_of(server, tmp_path, {**job(server.gitlab), **environ}, **options)
    assert server.requests == []


def test_auto_falls_back_with_a_note(server, job, tmp_path):
    server.statuses[AUDIENCE] = [404]
    login, notes = login_of(server, tmp_path, job(server.gitlab))
    assert login.credentials() is None
    (note,) = notes
    assert note.startswith(f"no trusted publishing: {server.url} does not support")


def test_always_is_an_error_without(server, job, tmp_path):
    with pytest.raises(TrustedPublishingError, match="id-token: write"):
        login_of(server, tmp_path, job({"GITHUB_ACTIONS": "true"}), "always")
