"""Index proxies beside each other behind nginx, clients that install through it, and what fails."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from variants_proxy.index_urls import keyed_url

from .environments import clean_environ, uv_command
from .servers import free_port
from .waiting import wait_until

_SERVE = """
import sys
from pathlib import Path
from variants_proxy import Settings, Upstream
from variants_proxy.server.listening import listen
from variants_proxy.server.server import make_server
settings = Settings(
    (Upstream("main", sys.argv[1]),), Path(sys.argv[2]), fresh_seconds=float(sys.argv[4])
)
make_server(settings).run_until_signal(listen("127.0.0.1", int(sys.argv[3])))
"""


class Replica:
    """One proxy, a process of its own; all of them have one cache.

    Attributes:
        port: where it listens.
    """

    def __init__(self, index: str, folder: Path, fresh_seconds: float) -> None:
        self.port = free_port()
        self._arguments = [index, str(folder), str(self.port), str(fresh_seconds)]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it."""
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVE, *self._arguments],
            env=clean_environ(),
            stderr=subprocess.DEVNULL,
        )

    def wait(self) -> None:
        """Wait until it answers."""
        if not wait_until(self._answers):
            raise RuntimeError("a proxy does not start")

    def _answers(self) -> bool:
        try:
            url = f"http://127.0.0.1:{self.port}/health"
            return httpx.get(url, trust_env=False).status_code == 200
        except httpx.HTTPError:
            return False

    def kill(self) -> None:
        """End it at once, with the requests that it is answering."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @contextmanager
    def slow(self, stopped: float, running: float) -> Iterator[None]:
        """Let it run for some seconds only, then stop it for some, again and again."""
        assert self._process is not None
        ended, process = threading.Event(), self._process

        def alternate() -> None:
            while not ended.is_set():
                process.send_signal(signal.SIGSTOP)
                ended.wait(stopped)
                process.send_signal(signal.SIGCONT)
                ended.wait(running)

        thread = threading.Thread(target=alternate)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


@contextmanager
def replicas(index: str, folder: Path, fresh_seconds: float = 60.0) -> Iterator[list[Replica]]:
    """Run three proxies for the index at a URL, open to all."""
    found = [Replica(index, folder / "cache", fresh_seconds) for _ in range(3)]
    with ExitStack() as stack:
        for replica in found:
            stack.callback(replica.kill)
            replica.start()
        for replica in found:
            replica.wait()
        yield found


@dataclass
class Installs:
    """Installs that went on while things failed.

    Attributes:
        right: how many had the right variant.
        wrong: what went wrong with the others.
    """

    right: int = 0
    wrong: list[str] = field(default_factory=list)


@contextmanager
def installing(base: str, labels: Mapping[str, str]) -> Iterator[Installs]:
    """Install ``app`` with uv for one machine after the other, two at a time.

    Args:
        base: URL of nginx.
        labels: the right variant, by platform key.
    """
    found, ended, lock = Installs(), threading.Event(), threading.Lock()

    def work(number: int) -> None:
        turn = number
        while not ended.is_set():
            key, label = list(labels.items())[turn % len(labels)]
            turn += 1
            problem = install(keyed_url(base, key), label, {})
            with lock:
                if problem:
                    found.wrong.append(problem)
                else:
                    found.right += 1

    running = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in running:
        thread.start()
    try:
        yield found
    finally:
        ended.set()
        for thread in running:
            thread.join()


def install(url: str, label: str, environ: Mapping[str, str]) -> str:
    """Install ``app`` with uv, cache and retries switched off; return what is wrong, or nothing."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [
                *uv_command(), "pip", "install", "--quiet", "--no-config", "--no-cache",
                "--python", sys.executable, "--target", folder, "--default-index", url, "app",
            ],
            env=clean_environ({"UV_HTTP_RETRIES": "0", **environ}),
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            return done.stderr.strip()
        installed = (Path(folder) / "app" / "__init__.py").read_text()
        return "" if repr(label) in installed else f"{label} wanted: {installed}"
