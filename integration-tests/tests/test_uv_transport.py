"""Unmodified uvs whose only index is behind the transport: what they see is the index's own URL."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pep_variants.model.platform import Platform, Support
from support.environments import Environments, Result, clean_environ
from support.index import Answer, Index, served
from support.projects import app_index
from support.proxied_network import Reply, Server, http_proxy, origin
from support.running_transport import HOSTS, Running, running, trusting
from support.uvs import UVS, downloaded_uv, project
from support.wheels import Wheel
from uv_variants.transport.authority import Authority
from uv_variants.transport.index_application import AnsweredIndex
from uv_variants.transport.route import Outbound
from uv_variants.transport.trust_bundle import trusted_roots
from variants_proxy import Machine, Settings, Upstream, encode

OLDEST, NEWEST = UVS[0], UVS[-1]
GPU = Platform({"nvidia": Support({"cuda_version_lower_bound": ("12.8", "12.7", "12.6")})})


@dataclass
class World:
    """A uv behind a transport, and the network beyond it.

    Attributes:
        uv: the program.
        version: of it.
        folder: for everything.
        transport: that uv has as its proxy.
        theirs: the authority that the network beyond is trusted with.
        stack: ends the servers.
        environ: of the user: what the transport has to honour.
    """

    uv: Path
    version: str
    folder: Path
    transport: Running
    theirs: Authority
    stack: ExitStack
    environ: dict[str, str] = field(default_factory=dict)

    def serve(self, index: Index, *, tls: bool = True) -> Index:
        """Serve *index* until the end of the test."""
        return self.stack.enter_context(
            served(index, self.theirs.leaf("127.0.0.1") if tls else None)
        )

    def origin(self, *, tls: bool = True) -> Server:
        """Serve another host until the end of the test."""
        context = self.theirs.leaf("127.0.0.1") if tls else None
        return self.stack.enter_context(origin(context))

    def begin(self, *indexes: Index, **options: frozenset[str]) -> None:
        """Begin the session of uv's commands with *indexes*, called ``index0`` and so on."""
        environ = {"SSL_CERT_FILE": str(self.trusted), **self.environ}
        roots = self.folder / "roots.pem"
        roots.write_bytes(trusted_roots(environ))
        outbound = Outbound(environ, roots)
        names = [f"index{number}" for number in range(len(indexes))]
        upstreams = tuple(
            Upstream(name, index.url) for name, index in zip(names, indexes, strict=True)
        )
        settings = Settings(
            upstreams,
            self.folder / "cache",
            environ=environ,
            ca_bundle=outbound.roots,
            compress=False,
        )
        answered = [
            AnsweredIndex(each.name, each.url, options.get(each.name)) for each in upstreams
        ]
        self.transport.add_indexes(settings, answered, encode(Machine(GPU)), outbound)

    @property
    def trusted(self) -> Path:
        """File with the certificate of the network beyond."""
        return trusting(self.theirs, self.folder / "theirs")

    @property
    def variables(self) -> dict[str, str]:
        """Variables of uv, which runs with the user's own files and arguments."""
        home = self.folder / "home"
        found = clean_environ(
            {
                "HOME": str(home),
                "USERPROFILE": str(home),
                "UV_CACHE_DIR": str(home / "uv-cache"),
                "UV_PYTHON_DOWNLOADS": "never",
                "UV_PYTHON": sys.executable,
                "UV_HTTP_RETRIES": "0",
                "XDG_CONFIG_DIRS": str(home / "etc"),
                **self.transport.variables(),
            }
        )
        del found["UV_NO_CONFIG"]
        return found

    @property
    def plain(self) -> dict[str, str]:
        """Variables of uv that make it plain uv."""
        plain = dict.fromkeys(self.transport.variables(), "")
        return {**plain, "SSL_CERT_FILE": str(self.trusted)}

    def run(self, *arguments: str, environ: Mapping[str, str] | None = None) -> Result:
        """Run uv."""
        done = subprocess.run(
            [str(self.uv), *arguments],
            capture_output=True,
            text=True,
            env={**self.variables, **(environ or {})},
            cwd=self.folder / "work",
            timeout=60,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def project(self, dependencies: tuple[str, ...], index: str, more: str = "") -> str:
        """Write a project; return its uv.lock after ``uv lock``."""
        text = f'[[tool.uv.index]]\nname = "own"\nurl = "{index}"\ndefault = true\n{more}'
        project(self.folder / "work", dependencies, text)
        done = self.run("lock")
        assert done.code == 0, (done, self.transport.failures)
        return (self.folder / "work" / "uv.lock").read_text()


@pytest.fixture
def world(
    request: pytest.FixtureRequest, environments: Environments, tmp_path: Path
) -> Iterator[World]:
    version: str = request.param
    (tmp_path / "work").mkdir()
    (tmp_path / "home").mkdir()
    theirs = Authority(HOSTS)
    with running(tmp_path / "ours") as transport, ExitStack() as stack:
        uv = downloaded_uv(version, environments.wheelhouse)
        yield World(uv, version, tmp_path, transport, theirs, stack)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests with the oldest and the newest uv, with all of them in the matrix."""
    if "world" in metafunc.fixturenames:
        full = metafunc.config.getoption("full_matrix")
        metafunc.parametrize("world", UVS if full else (OLDEST, NEWEST), indirect=True)


VARIANT = ".variant/cu128/app-1.0-0_cu128-py3-none-any.whl"


@pytest.mark.parametrize("tls", [True, False], ids=["https", "http"])
def test_a_lock_has_the_urls_of_the_index(world: World, tls: bool) -> None:
    index = world.serve(app_index(metadata_file=True), tls=tls)
    world.begin(index)
    lock = world.project(("app",), index.url)
    assert f'source = {{ registry = "{index.url}" }}' in lock
    assert f"{index.url}app/{VARIANT}" in lock
    assert "for-128" in lock
    assert str(world.transport.port) not in lock
    done = world.run("sync", "--locked")
    assert done.code == 0, (done, world.transport.failures)
    assert world.run("run", "--no-sync", "python", "-c", "import app; print(app.LABEL)").out == (
        "cu128\n"
    )
    assert world.transport.failures == []


def test_a_lock_without_variants_is_plain_uvs(world: World) -> None:
    index = Index()
    index.add_wheel(Wheel("plain", "1.0", requires=("other",)), metadata_file=True)
    index.add_wheel(Wheel("other", "2.0"))
    world.serve(index)
    world.begin(index)
    lock = world.project(("plain",), index.url)
    (world.folder / "work" / "uv.lock").unlink()
    assert world.run("lock", "--no-cache", environ=world.plain).code == 0
    assert (world.folder / "work" / "uv.lock").read_text() == lock


def with_user(url: str, user: str = "me:s%40cret") -> str:
    return url.replace("://", f"://{user}@")


def netrc(world: World, _: str) -> dict[str, str]:
    path = world.folder / "netrc"
    path.write_text("machine 127.0.0.1 login me password s@cret\n")
    path.chmod(0o600)
    return {"NETRC": str(path)}


def variables(_: World, __: str) -> dict[str, str]:
    return {"UV_INDEX_OWN_USERNAME": "me", "UV_INDEX_OWN_PASSWORD": "s@cret"}


def auth_login(world: World, url: str) -> dict[str, str]:
    done = world.run("auth", "login", url, "--username", "me", "--password", "s@cret")
    assert done.code == 0, done
    return {}


def in_url(_: World, __: str) -> dict[str, str]:
    return {}


@pytest.mark.parametrize("way", [in_url, netrc, variables, auth_login])
def test_credentials_are_those_that_uv_finds(
    world: World, way: Callable[[World, str], dict[str, str]]
) -> None:
    if way is auth_login and world.version in ("0.5.31", "0.8.24"):
        pytest.skip("this uv has no `uv auth`")
    index = world.serve(app_index(credentials="me:s@cret", metadata_file=True))
    world.begin(index)
    url = with_user(index.url) if way is in_url else index.url
    environ = way(world, index.url)
    text = f'[[tool.uv.index]]\nname = "own"\nurl = "{url}"\ndefault = true\n'
    project(world.folder / "work", ("app",), text)
    done = world.run("sync", environ=environ)
    assert done.code == 0, (done, world.transport.failures)
    lock = (world.folder / "work" / "uv.lock").read_text()
    assert f"{index.url}app/{VARIANT}" in lock
    assert "s%40cret" not in lock
    assert world.transport.failures == []


@pytest.mark.parametrize("user", ["", "me:wrong"])
def test_without_credentials_uv_says_what_it_says(world: World, user: str) -> None:
    index = world.serve(app_index(credentials="me:s@cret"))
    world.begin(index)
    url = with_user(index.url, user) if user else index.url
    arguments = ("pip", "install", "--target", "there", "--index-url", url, "app")
    ours = world.run(*arguments)
    theirs = world.run(*arguments, "--no-cache", environ=world.plain)
    assert (ours.code, ours.err) == (theirs.code, theirs.err)
    assert ours.code != 0


def test_without_credentials_there_is_nothing_of_what_was_answered_with_them(world: World) -> None:
    index = world.serve(app_index(credentials="me:s@cret"))
    world.begin(index)
    port = int(index.url.split(":")[2].split("/")[0])
    secret = {"Authorization": "Basic " + base64.b64encode(b"me:s@cret").decode()}
    ask = world.transport.https
    assert ask("127.0.0.1", port, "GET", "/simple/app/", secret)[0] == 200
    for path in ("/simple/app/", f"/simple/app/{VARIANT}"):
        status, headers, _ = ask("127.0.0.1", port, "GET", path)
        assert (status, headers["www-authenticate"][:5]) == (401, "Basic")


@pytest.mark.parametrize("status", [403, 404, 410, 500])
def test_statuses_of_the_index_are_uvs(world: World, status: int) -> None:
    first = Index()
    first.page_faults["plain"] = lambda: Answer(status, b"no")
    second = Index()
    second.add_wheel(Wheel("plain", "1.0"))
    world.serve(first)
    world.serve(second)
    world.begin(first, second)
    keys = f"ignore-error-codes = [{status}]\n" if world.version != OLDEST else ""
    more = f'[[tool.uv.index]]\nurl = "{second.url}"\n'
    text = f'[[tool.uv.index]]\nname = "a"\nurl = "{first.url}"\n{keys}{more}default = true\n'
    project(world.folder / "work", ("plain",), text)
    ours = world.run("lock", "--quiet")
    lock = world.folder / "work" / "uv.lock"
    locked = lock.read_text() if ours.code == 0 else ""
    lock.unlink(missing_ok=True)
    theirs = world.run("lock", "--quiet", "--no-cache", environ=world.plain)
    assert (ours.code, ours.err) == (theirs.code, theirs.err)
    assert locked == (lock.read_text() if ours.code == 0 else "")
    assert world.transport.failures == []


def test_the_users_proxy_and_its_exceptions(world: World) -> None:
    direct = world.serve(Index())
    direct.add_wheel(Wheel("plain", "1.0"))
    behind = world.stack.enter_context(
        http_proxy("me:p@ss", names={"index.test": "127.0.0.1", "files.test": "127.0.0.1"})
    )
    far = app_index(metadata_file=True)
    context = world.theirs.leaf("index.test")
    world.stack.enter_context(served(far, context))
    far.url = far.url.replace("127.0.0.1", "index.test")
    world.environ = {
        "HTTPS_PROXY": f"http://me:p%40ss@127.0.0.1:{behind.port}",
        "NO_PROXY": "localhost,127.0.0.1",
    }
    world.begin(far, direct)
    lock = world.project(("app", "plain"), far.url, f'[[tool.uv.index]]\nurl = "{direct.url}"\n')
    assert f"{far.url}app/{VARIANT}" in lock
    assert {each.target.split(":")[0] for each in behind.asked} == {"index.test"}
    done = world.run("sync", "--locked")
    assert done.code == 0, (done, world.transport.failures)


def test_a_big_file_of_another_host(world: World) -> None:
    files = world.origin()
    data = Wheel("big", "1.0", files={"big/data": os.urandom(4_000_000).hex()}).build()
    files.replies["/big-1.0-py3-none-any.whl"] = Reply(data)
    index = world.serve(Index())
    world.begin(index)
    url = f"big @ {files.url}/big-1.0-py3-none-any.whl"
    done = world.run("pip", "install", "--target", "there", url)
    assert done.code == 0, (done, world.transport.failures)
    assert (world.folder / "work" / "there" / "big" / "data").stat().st_size == 8_000_000


def test_a_big_file_of_the_index(world: World) -> None:
    index = Index(ranges=True)
    index.add_wheel(Wheel("big", "1.0", files={"big/data": os.urandom(4_000_000).hex()}))
    world.serve(index)
    world.begin(index)
    done = world.run("pip", "install", "--target", "there", "--index-url", index.url, "big")
    assert done.code == 0, (done, world.transport.failures)
    assert (world.folder / "work" / "there" / "big" / "data").stat().st_size == 8_000_000


def test_an_upstream_that_is_gone(world: World) -> None:
    gone = Index()
    with served(gone, world.theirs.leaf("127.0.0.1")):
        pass
    world.begin(gone)
    done = world.run("pip", "install", "--target", "there", "--index-url", gone.url, "app")
    assert done.code != 0
    assert "502" in done.err
    assert any("onnection refused" in text for text in world.transport.failures), (
        world.transport.failures
    )


def test_an_upstream_that_breaks_off(world: World) -> None:
    index = Index()
    wheel = Wheel("plain", "1.0")
    index.add_wheel(wheel)
    index.faults[wheel.filename] = lambda: Answer.cut_off(wheel.build()[:100])
    world.serve(index)
    world.begin(index)
    done = world.run("pip", "install", "--target", "there", "--index-url", index.url, "plain")
    assert done.code != 0


def test_a_killed_uv_leaves_nothing_open(world: World) -> None:
    index = Index()
    index.page_faults["slow"] = Answer.endless
    index.faults["plain-1.0-py3-none-any.whl"] = Answer.endless
    index.add_wheel(Wheel("plain", "1.0"))
    world.serve(index)
    world.begin(index)
    command = [str(world.uv), "pip", "install", "--target", "there", "--index-url", index.url]
    process = subprocess.Popen(
        [*command, "plain"],
        env=world.variables,
        cwd=world.folder / "work",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + 30
        while not any(path.endswith(".whl") for path in index.requests):
            assert time.monotonic() < end
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)
    while not world.transport.transport.is_idle:
        assert time.monotonic() < end + 10
        time.sleep(0.01)


def test_an_explicit_index_answers_for_its_projects_alone(world: World) -> None:
    index = app_index()
    index.add_wheel(Wheel("app-tool", "1.0"))
    world.serve(index)
    world.begin(index, index0=frozenset({"other"}))
    done = world.run("pip", "install", "--target", "there", "--index-url", index.url, "app-tool")
    assert done.code == 0, (done, world.transport.failures)
    assert world.transport.application.asked == set()
