"""Every key of uv's configuration that concerns indexes counts, with every uv."""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.certificates import Certified, certified
from support.environments import Environments
from support.index import Answer, Index, served
from support.projects import CUDA_12_8, app_index, cuda
from support.proxied_network import http_proxy
from support.running_transport import trusting
from support.uv_beside import Outcome, Place, outcome, places
from support.uv_forms import Form
from support.uv_keys import SHOWN, Shown
from support.uvs import UVS, Machine, project
from support.wheels import Release, Wheel
from uv_variants.transport.authority import Authority

PYTHON = sys.executable
posix = pytest.mark.skipif(os.name == "nt", reason="a program of the test is a script")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Try every key with the newest uv; with every uv in the matrix."""
    full = metafunc.config.getoption("full_matrix")
    if "shown" in metafunc.fixturenames:
        cases = []
        for shown in SHOWN:
            uvs = [uv for uv in UVS if shown.counts.exists_in(uv)]
            cases += [(shown, uv) for uv in (uvs if full else uvs[-1:])]
        metafunc.parametrize(("shown", "uv"), cases, ids=[f"{s.key}-{uv}" for s, uv in cases])


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Certified:
    return certified(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def place(
    environments: Environments, tmp_path_factory: pytest.TempPathFactory, authority: Certified
) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("keys")
    newer, dated, denied, secure = Index(), Index(), Index(), Index()
    guarded = Index(credentials="user:pass word")
    for index, name, version in (
        (newer, "plain", "9.0"),
        (newer, "always", "1.0"),
        (guarded, "guarded", "1.0"),
        (secure, "secured", "1.0"),
        (dated, "old", "1.0"),
        (dated, "old", "2.0"),
    ):
        index.add_wheel(Wheel(name, version), metadata_file=True)
    for version, year in (("1.0", 2024), ("2.0", 2026)):
        dated.attributes[f"old-{version}-py3-none-any.whl"] = {
            "upload-time": f"{year}-01-01T00:00:00Z"
        }
    denied.page_faults[""] = lambda: Answer(403, b"no")
    program = folder / "keyring-bin" / "keyring"
    program.parent.mkdir()
    program.write_text(
        f"#!{PYTHON}\nimport sys\n"
        "if '--mode' in sys.argv: print('user')\nif 'get' in sys.argv: print('pass word')\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    with places(environments, folder) as found, ExitStack() as stack:
        kinds = {"newer": newer, "dated": dated, "denied": denied, "guarded": guarded}
        for name, index in kinds.items():
            found.more[name] = stack.enter_context(served(index)).url.rstrip("/")
        found.more["userless"] = found.more["guarded"].replace("://", "://user@")
        stack.enter_context(served(secure, authority.context))
        found.more["secure"] = secure.url.rstrip("/")
        found.more["secure_host"] = secure.url.split("/")[2]
        found.more["keyring"] = str(program.parent)
        yield found


@posix
@pytest.mark.everywhere
def test_a_key_counts(place: Place, shown: Shown, uv: str) -> None:
    def ended(form: Form, kind: str) -> Outcome:
        shutil.rmtree(place.folder / kind, ignore_errors=True)
        return outcome(place, form, uv, kind)

    theirs, ours = ended(shown.counts, "plain"), ended(shown.counts, "without")
    assert ours.result.code == theirs.result.code, (theirs.result, ours.result)
    for name, data in theirs.files.items():
        if not name.startswith("kept/"):
            assert ours.files[name].decode() == data.decode(), (name, str(ours.result))
    assert ours.installed == theirs.installed
    assert ours.remarks == theirs.remarks
    assert names_of(ours) == names_of(theirs)
    # What it changes is more than the line of the key itself.
    changed, other = (
        (end.result.code, names_of(end), lock_of(end))
        for end in (theirs, ended(shown.without, "plain"))
    )
    assert changed != other, f"the test of {shown.key} shows nothing"


def names_of(end: Outcome) -> set[str]:
    return {name.split("/")[0].replace("kept-variants", "kept") for name in end.files}


def lock_of(end: Outcome) -> str:
    """Return the lock without its options."""
    return re.sub(r"(?s)\[options\].*?\n\n", "", end.files.get("uv.lock", b"").decode())


@pytest.fixture
def user(machine: Machine) -> Machine:
    """A machine with a GPU and an empty project."""
    project(machine.work, [])
    return machine.with_environ({**CUDA_12_8, "UV_PYTHON": PYTHON})


def with_index(machine: Machine, url: str, more: str = "") -> None:
    """Make the index at *url* the one of the project."""
    own = f'[[tool.uv.index]]\nname = "own"\nurl = "{url}"\ndefault = true\n{more}'
    project(machine.work, [], own)


def test_exclude_newer_holds_for_variants(user: Machine) -> None:
    """U9: a guard against fresh uploads is a guard for variants, too."""
    index = Index()
    for version, year in (("1.0", 2024), ("2.0", 2026)):
        index.add_release(Release("gpu", version, cuda("12.8")))
        for name in index.files["gpu"]:
            index.attributes.setdefault(name, {"upload-time": f"{year}-01-01T00:00:00Z"})
    with served(index):
        with_index(user, index.url, 'exclude-newer = "2025-01-01T00:00:00Z"\n')
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


def test_cache_control_of_an_index(user: Machine) -> None:
    """U9, V2: pages are asked for again whenever uv asks again."""
    index = Index()
    index.add_wheel(Wheel("plain", "1.0"))
    with served(index):
        for age in (0, 600):
            with_index(user, index.url, f'cache-control = {{ api = "max-age={age}" }}\n')
            found = []
            for _ in range(2):
                (user.work / "uv.lock").unlink(missing_ok=True)
                index.requests.clear()
                done = user.run("add", "--no-sync", "plain")
                assert done.code == 0, done
                found.append("/simple/plain/" in index.requests)
            assert found == [True, age == 0]


@pytest.mark.parametrize("trusted", [True, False])
def test_certificates_of_the_user(user: Machine, authority: Certified, trusted: bool) -> None:
    """The authorities that the user's uv trusts are trusted, and no others."""
    with served(app_index(), authority.context) as index:
        user = user.with_environ({"UV_DEFAULT_INDEX": f"own={index.url}"})
        if not trusted:
            done = user.run("add", "app")
            assert done.code != 0
            assert "certificate" in done.err
            return
        user = user.with_environ({"SSL_CERT_FILE": str(authority.authority)})
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
