"""How uv-variants reaches an index: log-ins, certificates and proxies that uv knows."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from support.index import Index, served
from support.projects import CUDA_12_8, app_index, cuda
from support.proxied_network import http_proxy
from support.running_transport import trusting
from support.uvs import Machine, project
from support.wheels import Release
from uv_variants._transport.authority import Authority

PYTHON = sys.executable
posix = pytest.mark.skipif(os.name == "nt", reason="a program of the test is a script")


@pytest.fixture
def user(machine: Machine) -> Machine:
    """A machine with a GPU and an empty project."""
    project(machine.work, [])
    return machine.with_environ({**CUDA_12_8, "UV_PYTHON": PYTHON})


def test_exclude_newer_holds_for_variants(user: Machine) -> None:
    """U9: a guard against fresh uploads is a guard for variants, too."""
    index = Index()
    for version, year in (("1.0", 2024), ("2.0", 2026)):
        index.add_release(Release("gpu", version, cuda("12.8")))
        for name in index.files["gpu"]:
            index.attributes.setdefault(name, {"upload-time": f"{year}-01-01T00:00:00Z"})
    with served(index):
        own = f'[[tool.uv.index]]\nname = "own"\nurl = "{index.url}"\ndefault = true\n'
        project(user.work, [], own + 'exclude-newer = "2025-01-01T00:00:00Z"\n')
        done = user.run("add", "gpu")
        assert done.code == 0, done
        assert " + gpu==1.0" in done.err
        assert user.labels() == {"gpu": "cu128"}


@posix
@pytest.mark.parametrize("kind", ["auth login", "keyring", "url of a variable"])
def test_credentials_reach_the_index(user: Machine, kind: str) -> None:
    """U10: whatever uv knows credentials from, variants come with them."""
    with served(app_index(credentials="user:pass word")) as index:
        url, environ = index.url, {}
        if kind == "auth login":
            login = ("--username", "user", "--password", "pass word")
            assert user.plain("auth", "login", url, *login).code == 0
        elif kind == "keyring":
            program = user.home / "bin" / "keyring"
            program.parent.mkdir()
            program.write_text("#!/bin/sh\ncase $* in *get*) echo 'pass word';; esac\n")
            program.chmod(0o755)
            url = url.replace("://", "://user@")
            path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
            environ = {"PATH": path, "UV_KEYRING_PROVIDER": "subprocess"}
        else:
            url = url.replace("://", "://user:pass%20word@")
        done = user.with_environ({"UV_DEFAULT_INDEX": f"own={url}", **environ}).run(
            "add", "app", "-v"
        )
        assert done.code == 0, done
        assert user.labels() == {"app": "cu128"}
        assert "pass" not in (user.work / "uv.lock").read_text()
        assert "pass%20word" not in done.text
        assert "pass word" not in done.text


def test_wrong_credentials_are_uvs_to_report(user: Machine) -> None:
    with served(app_index(credentials="user:right")) as index:
        url = index.url.replace("://", "://user:wrong@")
        user = user.with_environ({"UV_DEFAULT_INDEX": f"own={url}"})
        user.create_environment(PYTHON)
        theirs, ours = user.plain("add", "app"), user.run("add", "app")
        assert ours.code == theirs.code != 0
        assert ours.err == theirs.err


def test_certificates_of_the_user(user: Machine, tmp_path: Path) -> None:
    """The authorities that the user's uv trusts are trusted."""
    authority = Authority(["127.0.0.1"])
    with served(app_index(), authority.leaf("127.0.0.1")) as index:
        trusted = str(trusting(authority, tmp_path))
        user = user.with_environ({"UV_DEFAULT_INDEX": f"own={index.url}", "SSL_CERT_FILE": trusted})
        done = user.run("add", "app")
        assert done.code == 0, done
        assert user.labels() == {"app": "cu128"}
        assert "app/.variant/cu128/" in (user.work / "uv.lock").read_text()


def test_proxies_of_the_environment(user: Machine, tmp_path: Path) -> None:
    """With a password, for an index that only the proxy can find; and not where none is to be."""
    far, authority = app_index(metadata_file=True), Authority(["index.test"])
    with (
        served(far, authority.leaf("index.test")),
        served(app_index(metadata_file=True)) as near,
        http_proxy("me:p@ss", names={"index.test": "127.0.0.1"}) as proxy,
    ):
        url = far.url.replace("127.0.0.1", "index.test")
        environ = {
            "UV_DEFAULT_INDEX": url,
            "SSL_CERT_FILE": str(trusting(authority, tmp_path)),
            "HTTPS_PROXY": f"http://me:p%40ss@127.0.0.1:{proxy.port}",
            "NO_PROXY": "localhost,127.0.0.1",
        }
        user = user.with_environ(environ)
        done = user.run("add", "app")
        assert done.code == 0, done
        assert user.labels() == {"app": "cu128"}
        assert f'"{url}app/.variant/cu128/' in (user.work / "uv.lock").read_text()
        seen = len(proxy.asked)
        assert seen
        done = user.with_environ({"UV_DEFAULT_INDEX": near.url}).run("lock", "--upgrade")
        assert done.code == 0, done
        assert len(proxy.asked) == seen
        assert "/simple/app/" in near.requests


def test_proxies_of_uvs_own_settings(user: Machine) -> None:
    """`http-proxy` of uv.toml is before the variables: what is installed is sound, and said."""
    with served(app_index()) as index, http_proxy() as proxy:
        user = user.with_environ({"UV_DEFAULT_INDEX": index.url})
        config = user.home / ".config" / "uv"
        config.mkdir(parents=True)
        (config / "uv.toml").write_text(
            f'http-proxy = "{proxy.url}"\nhttps-proxy = "{proxy.url}"\nno-proxy = ["localhost"]\n'
        )
        done = user.run("add", "app")
        assert any("/simple/app/" in each.target for each in proxy.asked)
        assert user.labels() == {"app": "cu128"} or "http-proxy" in done.err
