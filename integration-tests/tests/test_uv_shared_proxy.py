"""A proxy that a team shares, and plain uv: one lock, each machine with its own platform key."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import pytest
import uvicorn

from pep_variants.model.platform import Platform, Support
from support.environments import Environments
from support.index import Answer, Index
from support.projects import app_index
from support.uvs import UVS, Machine, downloaded_uv, project
from support.waiting import wait_until
from support.wheels import Wheel
from variants_proxy import Machine as Described
from variants_proxy import Settings, Upstream, create_app, encode
from variants_proxy.index_urls import keyed_url
from variants_proxy.server.listening import listen
from variants_proxy.server.middleware import TokenMiddleware

GPU = encode(
    Described(Platform({"nvidia": Support({"cuda_version_lower_bound": ("12.8", "12.7")})}))
)
CPU = encode(Described(Platform({})))
TOKEN = "secret-token"

Serve = Callable[[Index], Index]


@dataclass
class Team:
    """Machines of several people, who share a proxy.

    Attributes:
        uv: the program.
        folder: with a home for each.
        base: URL of the proxy.
        token: of the proxy.
    """

    uv: Path
    folder: Path
    base: str = ""
    token: str = TOKEN

    def machine(self, name: str, key: str, **more: str) -> Machine:
        """Return the machine of one person, whose plain uv has the proxy as its only index."""
        (self.folder / name).mkdir(exist_ok=True)
        (self.folder / "work").mkdir(exist_ok=True)
        url = keyed_url(self.base, key, self.token) if key else f"{self.base}/simple/"
        environ = {"UV_DEFAULT_INDEX": url, "UV_PYTHON": sys.executable, "UV_HTTP_RETRIES": "0"}
        home = self.folder / name
        return Machine(self.uv, self.uv, home, self.folder / "work", {**environ, **more})

    @property
    def lock(self) -> str:
        """The lock file."""
        return (self.folder / "work" / "uv.lock").read_text()


@contextmanager
def shared_proxy(
    folder: Path, *indexes: Index, token: str = TOKEN, **options: bool
) -> Iterator[str]:
    """Run a proxy for *indexes*; yield its URL."""
    upstreams = tuple(
        Upstream("main" if not number else f"index{number}", index.url)
        for number, index in enumerate(indexes)
    )
    app = create_app(Settings(upstreams, folder, environ={}, **options))  # type: ignore[arg-type]
    application = TokenMiddleware(app, token) if token else app
    server = uvicorn.Server(uvicorn.Config(application, log_level="critical", access_log=False))
    listening = listen()
    thread = Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        assert wait_until(lambda: server.started, 60)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)
        listening.close()


@pytest.fixture
def share(tmp_path: Path) -> Iterator[Callable[..., str]]:
    with ExitStack() as stack:

        def begin(*indexes: Index, **options: bool | str) -> str:
            proxy = shared_proxy(tmp_path / "cache", *indexes, **options)  # type: ignore[arg-type]
            return stack.enter_context(proxy)

        yield begin


@pytest.fixture
def team(request: pytest.FixtureRequest, environments: Environments, tmp_path: Path) -> Team:
    return Team(downloaded_uv(request.param, environments.wheelhouse), tmp_path)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests marked 'matrix' with the oldest and the newest uv, others with the newest."""
    if "team" in metafunc.fixturenames:
        uvs = UVS if metafunc.config.getoption("full_matrix") else UVS[-1:]
        if metafunc.definition.get_closest_marker("matrix"):
            uvs = uvs if len(uvs) > 1 else (UVS[0], UVS[-1])
        metafunc.parametrize("team", uvs, indirect=True)


def label(team: Team) -> list[str]:
    found = (team.folder / "work" / ".venv").rglob("app-1.0.dist-info/variant.json")
    return [path.read_text().split('"variants"')[1].split('"')[1] for path in found]


def succeeds(machine: Machine, *arguments: str) -> None:
    done = machine.plain(*arguments)
    assert done.code == 0, done


@pytest.mark.matrix
def test_one_lock_for_two_machines(team: Team, serve: Serve, share: Callable[..., str]) -> None:
    team.base = share(serve(app_index(metadata_file=True)))
    project(team.folder / "work", ["app"])
    gpu, cpu = team.machine("gpu", GPU), team.machine("cpu", CPU)
    succeeds(gpu, "lock")
    lock = team.lock
    assert f'registry = "{team.base}/simple/"' in lock
    assert f"{team.base}/simple/app/.variant/cu128/app-1.0-0_cu128-py3-none-any.whl" in lock
    for secret in (GPU, CPU, TOKEN, "/p/"):
        assert secret not in lock
    # The other machine installs what the lock says, and the lock stays.
    for machine in (cpu, gpu):
        succeeds(machine, "sync", "--locked")
        assert label(team) == ["cu128"]
        assert team.lock == lock
    # Asked anew, each gets its own variant; the address of the index is the same.
    succeeds(cpu, "lock", "--upgrade", "--refresh")
    assert f'registry = "{team.base}/simple/"' in team.lock
    assert ".variant/null/" in team.lock


@pytest.mark.matrix
def test_a_lock_without_variants(team: Team, serve: Serve, share: Callable[..., str]) -> None:
    """It is plain uv's but for the URL of the index, and passes with another key."""
    index = Index()
    index.add_wheel(Wheel("plain", "1.0", requires=("other",)), metadata_file=True)
    index.add_wheel(Wheel("other", "2.0"))
    serve(index)
    team.base = share(index)
    project(team.folder / "work", ["plain"])
    succeeds(team.machine("plain", "", UV_DEFAULT_INDEX=index.url), "lock")
    plain = team.lock
    (team.folder / "work" / "uv.lock").unlink()
    succeeds(team.machine("gpu", GPU), "lock")
    ours = team.lock
    assert re.sub(r'registry = "[^"]*"', "", ours) == re.sub(r'registry = "[^"]*"', "", plain)
    succeeds(team.machine("cpu", CPU), "sync", "--locked")
    assert team.lock == ours


def test_adding_leaves_the_project_without_the_proxy(
    team: Team, serve: Serve, share: Callable[..., str]
) -> None:
    """V9: the file with the index of the proxy is uv's own."""
    team.base = share(serve(app_index(metadata_file=True)))
    folder = project(team.folder / "work", [])
    file = team.folder / "uv.toml"
    url = keyed_url(team.base, GPU, TOKEN)
    file.write_text(f'[[index]]\nurl = "{url}"\ndefault = true\n')
    machine = team.machine("gpu", GPU, UV_DEFAULT_INDEX="")
    succeeds(machine, "add", "app", "--config-file", str(file))
    assert label(team) == ["cu128"]
    assert "index" not in (folder / "pyproject.toml").read_text()


def test_several_indexes(team: Team, serve: Serve, share: Callable[..., str]) -> None:
    second = Index()
    second.add_wheel(Wheel("extra", "1.0"))
    team.base = share(serve(app_index()), serve(second))
    project(team.folder / "work", ["app", "extra"])
    more = keyed_url(team.base, GPU, TOKEN, "index1")
    machine = team.machine("gpu", GPU, UV_INDEX=f"second={more}")
    succeeds(machine, "lock")
    assert f'registry = "{team.base}/i/index1/simple' in team.lock
    succeeds(machine, "sync", "--locked")


def test_without_a_key(team: Team, serve: Serve, share: Callable[..., str]) -> None:
    team.token = ""
    team.base = share(serve(app_index()), token="")
    project(team.folder / "work", ["app"])
    done = team.machine("none", "").plain("lock")
    assert done.code != 0
    assert "401" in done.err


def test_what_an_upstream_says_is_not_hidden(
    team: Team, serve: Serve, share: Callable[..., str]
) -> None:
    index = app_index()
    index.page_faults["app"] = lambda: Answer(503, b"no")
    team.base = share(serve(index))
    project(team.folder / "work", ["app"])
    done = team.machine("gpu", GPU).plain("lock")
    assert done.code != 0
    assert "503" in done.err, done
