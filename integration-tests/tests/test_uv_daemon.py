"""The daemon with unmodified uvs: many commands, a daemon that is killed, no room for its files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from pep_variants.model.platform import Platform, Support
from support.environments import Environments, Result, clean_environ
from support.index import Answer, Index
from support.projects import app_index
from support.uvs import UVS, downloaded_uv
from support.waiting import wait_until
from uv_variants import daemon
from uv_variants.child_environ import child_environ
from uv_variants.daemon.connection import LiveSession
from uv_variants.daemon.place import retire
from uv_variants.daemon.record import read_record, record_path
from uv_variants.daemon.session import SessionSettings, network_variables
from uv_variants.indexes import UserIndex
from uv_variants.proxy_client import ProxyClient
from variants_proxy import Machine, encode

GPU = encode(
    Machine(Platform({"nvidia": Support({"cuda_version_lower_bound": ("12.8", "12.7", "12.6")})}))
)


@dataclass
class World:
    """A user with a uv, whose commands have sessions of the daemon.

    Attributes:
        uv: the program.
        folder: the user's.
        environ: set besides.
        cache: name of uv's cache directory.
    """

    uv: Path
    folder: Path
    environ: dict[str, str] = field(default_factory=dict)
    cache: str = "uv-cache"

    @property
    def variables(self) -> dict[str, str]:
        """Variables of the user."""
        return {
            **clean_environ(
                {
                    "HOME": str(self.folder),
                    "USERPROFILE": str(self.folder),
                    "UV_PYTHON_DOWNLOADS": "never",
                    "UV_PYTHON": sys.executable,
                    "VARIANTS_STATE_DIR": str(self.folder / "state"),
                }
            ),
            **self.environ,
        }

    def settings(self, index: Index, **more: object) -> SessionSettings:
        """Return the settings of a command that uses *index*."""
        settings = SessionSettings(
            (UserIndex(index.url, "own", default=True),),
            GPU,
            self.folder / "variants-cache",
            environ=network_variables(self.variables),
        )
        return replace(settings, **more)  # type: ignore[arg-type]

    @contextmanager
    def session(self, settings: SessionSettings, **options: bool) -> Iterator[LiveSession]:
        """Open a session."""
        session = daemon.connect(self.variables, settings, **options)  # type: ignore[arg-type]
        try:
            yield session
        finally:
            session.close()

    def start(self, session: LiveSession, index: Index, *arguments: str) -> subprocess.Popen[str]:
        """Start uv in *session*."""
        environ = {
            **child_environ(
                self.variables,
                proxy_url=session.proxy_url,
                ca_file=session.ca_file,
                cache=self.folder / self.cache,
            ),
            "UV_DEFAULT_INDEX": f"own={index.url}",
        }
        return subprocess.Popen(
            [str(self.uv), *arguments],
            env=environ,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def install(self, session: LiveSession, index: Index, target: str, *names: str) -> Result:
        """Run ``uv pip install --target``."""
        done = self.start(session, index, "pip", "install", "--target", target, *names)
        return ended(done)


def ended(process: subprocess.Popen[str]) -> Result:
    out, err = process.communicate(timeout=120)
    return Result(process.returncode, out, err)


@pytest.fixture
def world(
    request: pytest.FixtureRequest, environments: Environments, tmp_path: Path
) -> Iterator[World]:
    found = World(downloaded_uv(request.param, environments.wheelhouse), tmp_path)
    yield found
    record = read_record(record_path(found.variables))
    if record is not None and retire(record):
        os.kill(record.pid, signal.SIGTERM)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests marked 'matrix' with the oldest and the newest uv, others with the newest."""
    if "world" in metafunc.fixturenames:
        uvs = UVS if metafunc.config.getoption("full_matrix") else UVS[-1:]
        if metafunc.definition.get_closest_marker("matrix"):
            uvs = uvs if len(uvs) > 1 else (UVS[0], UVS[-1])
        metafunc.parametrize("world", uvs, indirect=True)


Serve = Callable[[Index], Index]


def labels(world: World, target: str) -> list[str]:
    found = (world.folder / target).glob("app-1.0.dist-info/variant.json")
    return [path.read_text().split('"variants"')[1].split('"')[1] for path in found]


def pid(world: World) -> int:
    record = read_record(record_path(world.variables))
    assert record is not None
    return record.pid


@pytest.mark.matrix
def test_a_command(world: World, serve: Serve) -> None:
    index = serve(app_index(metadata_file=True))
    settings = world.settings(index)
    with world.session(settings) as session:
        done = world.install(session, index, "here", "app")
        assert done.code == 0, (done, session.refusals())
        assert labels(world, "here") == ["cu128"]
        assert session.refusals() == []
        assert session.noted_projects() == ["app"]
        assert "app" not in session.plain_projects()
        name = settings.indexes[0].proxy_name
        client = ProxyClient(session.port, session.id, session.token, (name,))
        assert client.choices(["app"])["app"]["1.0"].chosen.label == "cu128"  # type: ignore[union-attr]
    # Another command has nothing to report, and the answers of the first.
    before = list(index.requests)
    with world.session(settings) as session:
        assert world.install(session, index, "there", "always").code == 0
        assert session.noted_projects() == []
        assert session.plain_projects() == ["always"]
        client = ProxyClient(session.port, session.id, session.token, (name,))
        assert client.choices(["always", "none"]) == {"always": {}}
        assert world.install(session, index, "again", "app").code == 0
        assert "app" not in session.plain_projects()
    assert [path for path in index.requests[len(before) :] if path.endswith("/app/")] == []


def test_a_session_of_another_machine(world: World, serve: Serve) -> None:
    index = serve(app_index(metadata_file=True))
    with (
        world.session(world.settings(index)) as gpu,
        world.session(world.settings(index, key=encode(Machine(Platform({}))))) as cpu,
    ):
        assert gpu.port == cpu.port
        assert world.install(cpu, index, "cpu", "app").code == 0
        # uv 0.5 takes a wheel of its cache for every build of the version.
        world.cache = "another-cache"
        assert world.install(gpu, index, "gpu", "app").code == 0
    assert (labels(world, "cpu"), labels(world, "gpu")) == (["null"], ["cu128"])


def test_what_is_refused_is_reported_to_its_session(world: World, serve: Serve) -> None:
    index = app_index()
    (wheel,) = (name for name in index.files["app"] if name.endswith("cu128.whl"))
    index.wrong_hashes.add(wheel)
    index = serve(index)
    settings = world.settings(index)
    with world.session(settings) as other, world.session(settings) as session:
        assert world.install(session, index, "here", "app").code != 0
        assert any("app-1.0" in line for line in session.refusals())
        assert other.refusals() == []


@pytest.mark.matrix
@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_daemon_that_is_killed(world: World, serve: Serve) -> None:
    """While uv waits for the page of a dependency."""
    index = app_index(metadata_file=True)
    asked, killed = threading.Event(), threading.Event()

    def page() -> Answer:
        asked.set()
        assert killed.wait(60)
        del index.page_faults["always"]
        return Answer(503)

    index.page_faults["always"] = page
    index = serve(index)
    with world.session(world.settings(index)) as session:
        running = world.start(session, index, "pip", "install", "--target", "here", "app")
        assert asked.wait(60)
        before = pid(world)
        os.kill(before, signal.SIGKILL)
        assert wait_until(lambda: pid(world) != before, 60)
        killed.set()
        done = ended(running)
        assert done.code == 0, (done, session.refusals(), session.failure())
        assert labels(world, "here") == ["cu128"]
        assert session.failure() is None


def test_many_commands_at_once(world: World, serve: Serve) -> None:
    index = serve(app_index(metadata_file=True))
    settings = world.settings(index)
    ports, results = set(), []

    def command(number: int) -> None:
        with world.session(settings) as session:
            done = world.install(session, index, f"target-{number}", "app")
            results.append((done.code, labels(world, f"target-{number}"), done))
            ports.add(session.port)

    threads = [threading.Thread(target=command, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ports) == 1
    assert [(code, label) for code, label, _ in results] == [(0, ["cu128"])] * 20, results


@pytest.mark.parametrize("variable", ["VARIANTS_STATE_DIR", "cache"])
def test_no_writable_directory(world: World, serve: Serve, variable: str) -> None:
    index = serve(app_index(metadata_file=True))
    (world.folder / "file").write_text("")
    place = str(world.folder / "file" / "folder")
    more: Mapping[str, object] = {}
    if variable == "cache":
        more = {"cache": Path(place)}
    else:
        world.environ[variable] = place
    with world.session(world.settings(index, **more)) as session:
        assert world.install(session, index, "here", "app").code == 0
    assert labels(world, "here") == ["cu128"]
