"""The index proxy, compared with the index behind it, and under load.

Each figure is compared with one of the same run: uv without the proxy, parsing alone, the same
bytes copied, a bare ASGI application on the same server.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from support.environments import clean_environ, uv_command
from support.index import JSON, Index, served
from support.wheels import Release, Wheel
from variants_index.pages import Page, PageFile, json_page
from variants_proxy import Settings, Upstream, create_app, index_url

from .proxy_calls import KEY, VARIANTS, VERSIONS, LargePage
from .report import Row, in_turn

PACKAGES = 30
VARIANT_PROJECTS = 10
TAGS = (1, 3, 10)
"""Of large pages, in each version: pages of 600, 1,600 and 5,100 files."""
CONNECTIONS = 32
GOAL_RATE = 5000
PACE = 2000
SECONDS = float(os.environ.get("BENCH_SECONDS", "10"))
"""Of load; memory is to be flat over ten minutes: BENCH_SECONDS=600."""
GIGABYTES = float(os.environ.get("BENCH_GIGABYTES", "2"))


def rows() -> Iterator[Row]:
    """Measure."""
    with tempfile.TemporaryDirectory(prefix="variants-bench-") as name:
        folder = Path(name)
        yield from _uv(folder)
        yield from _load(folder)
        for tags in TAGS:
            yield _large_page(folder, tags, in_place=False)
        yield _large_page(folder, TAGS[-1], in_place=True)
        yield from _large_wheel(folder)


# --- uv through the proxy and without


def _uv(folder: Path) -> Iterator[Row]:
    index = Index()
    mixed = Index()
    for number in range(PACKAGES):
        name = f"package-{number}"
        requires = (f"package-{number + 1}",) if number + 1 < PACKAGES else ()
        index.add_wheel(Wheel(name, "1.0", requires=requires), metadata_file=True)
        if number < VARIANT_PROJECTS:
            mixed.add_release(Release(name, "1.0", VARIANTS, requires), metadata_file=True)
        else:
            mixed.add_wheel(Wheel(name, "1.0", requires=requires), metadata_file=True)
    environment = folder / "venv"
    subprocess.run([*uv_command(), "venv", "--quiet", str(environment)], check=True)

    def resolve(url: str, cache: str, *, cold: bool) -> Callable[[], object]:
        def call() -> None:
            if cold:
                shutil.rmtree(folder / cache, ignore_errors=True)
            subprocess.run(
                [*uv_command(), "pip", "install", "--dry-run", "--quiet", "--python",
                 str(environment), "--index-url", url, "package-0"],
                env=clean_environ({"UV_CACHE_DIR": str(folder / cache)}),
                check=True,
            )  # fmt: skip

        return call

    with served(index), served(mixed):
        for what, behind in (
            (f"uv pip install --dry-run, {PACKAGES} packages", index),
            (f"the same, {VARIANT_PROJECTS} of them with variants", mixed),
        ):
            with _proxy(behind, folder / f"proxy-{behind.url.rsplit(':', 1)[1][:5]}") as root:
                through, straight = root + index_url(KEY), index.url
                for state in ("warm", "cold"):
                    ours, theirs = in_turn(
                        resolve(through, f"ours-{state}", cold=state == "cold"),
                        resolve(straight, f"theirs-{state}", cold=state == "cold"),
                        rounds=11,
                        warmups=2,
                    )
                    yield Row(
                        f"{what}, uv's cache {state}", ours * 1e3, theirs * 1e3, "ms",
                        "uv straight to the same index, plain", "at most 1.25x",
                        ours <= 1.25 * theirs,
                    )  # fmt: skip


# --- load


def _load(folder: Path) -> Iterator[Row]:
    index = Index()
    for number in range(PACKAGES):
        index.add_release(Release(f"package-{number}", "1.0", VARIANTS), metadata_file=True)
    paths = [f"{index_url(KEY)}package-{number}/" for number in range(PACKAGES)]
    with served(index):
        with _server_process(index.url, folder / "load") as (port, pid):
            bare, _ = _load_of(port, pid, ["/health"], 3.0)
            _load_of(port, pid, paths, 2.0)
            before = _memory(pid)
            rate, _ = _load_of(port, pid, paths, SECONDS)
            _, slowest = _load_of(port, pid, paths, SECONDS, rate=PACE)
            after = _memory(pid)
        yield Row(
            "cached pages, requests per second of CPU time", rate, bare, "/s",
            "its /health", f"{GOAL_RATE:,} requests/s", rate >= GOAL_RATE,
        )  # fmt: skip
        yield Row(
            f"the same at {PACE} requests/s, 99th percentile", slowest * 1e3, 10.0, "ms",
            "the goal", "p99 10 ms", slowest <= 0.010,
        )  # fmt: skip
        yield Row(
            f"the same, memory after {SECONDS:g} s of it", after, before, "MB", "before",
            "flat", after <= before * 1.05 + 2,
        )  # fmt: skip


def _load_of(
    port: int, pid: int, paths: list[str], seconds: float, *, rate: int = 0
) -> tuple[float, float]:
    """Return requests per second of CPU time of the proxy, and the 99th percentile of seconds.

    CPU time, because whoever asks needs a core as well, and others want one too.
    """
    begun = _cpu(pid)
    number, slowest = asyncio.run(_drive(port, paths, seconds, rate=rate))
    return number / (_cpu(pid) - begun), slowest


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _drive(
    port: int, paths: list[str], seconds: float, *, rate: int = 0
) -> tuple[int, float]:
    """Return how many requests were answered and the 99th percentile of their seconds.

    As wrk does: connections that are kept, each with one request at a time; *rate* requests per
    second of all of them, as many as are answered if it is 0. A request that begins late because
    the one before took long has waited since it was due.
    """
    requests = [
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: {JSON}\r\nAccept-Encoding: gzip\r\n\r\n"
        .encode()
        for path in paths
    ]  # fmt: skip
    times: list[float] = []
    end = time.perf_counter() + seconds

    async def connection(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        turn = number
        due = time.perf_counter() + (number / rate if rate else 0)
        while (now := time.perf_counter()) < end:
            if rate and now < due:
                await asyncio.sleep(due - now)
            begun = due if rate else now
            due += CONNECTIONS / rate if rate else 0
            writer.write(requests[turn % len(requests)])
            turn += 1
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(head.decode())
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            times.append(time.perf_counter() - begun)
        writer.close()

    await asyncio.gather(*map(connection, range(CONNECTIONS)))
    times.sort()
    return len(times), times[int(len(times) * 0.99)]


# --- a large page


def _large_page(folder: Path, tags: int, *, in_place: bool) -> Row:
    """Return how much longer a page of many files takes than reading it."""
    page = LargePage(folder / f"large-{tags}", in_place=in_place, tags=tags)
    ours, theirs = in_turn(page.answer, page.parse, rounds=9, clock=time.process_time)
    what = "an in-place page" if in_place else "a page"
    return Row(
        f"{what} of {page.files} files, {VERSIONS} versions, CPU", ours * 1e3, theirs * 1e3, "ms",
        "parsing it alone", "at most 15 ms more", ours - theirs <= 0.015, size=page.files,
    )  # fmt: skip


# --- a large wheel


def _large_wheel(folder: Path) -> Iterator[Row]:
    project = folder / "index" / "large"
    project.mkdir(parents=True)
    wheel = project / "large-1.0-py3-none-any-x86_64_v3.whl"
    _write_large_wheel(wheel)
    document = project / "large-1.0-variants.json"
    document.write_text(json.dumps(VARIANTS))
    begun, used = time.perf_counter(), time.process_time()
    digest = _sha256(wheel)
    hashing, cpu = time.perf_counter() - begun, time.process_time() - used
    files = (
        PageFile(wheel.name, wheel.name, {"sha256": digest}),
        PageFile(document.name, document.name, {"sha256": _sha256(document)}),
    )
    (project / "index.v1_json").write_bytes(json_page(Page("large", files)))
    size = wheel.stat().st_size
    with _server_process(f"{project.parent.as_uri()}/", folder / "cache") as (port, pid):
        url = f"http://127.0.0.1:{port}/p/{KEY}/simple/large/.variant/x86_64_v3/large-1.0-0_x86_64_v3-py3-none-any.whl"
        with urllib.request.urlopen(f"{url}.metadata") as answer:
            answer.read()
        before = _memory(pid)
        peak = [before]
        used = _cpu(pid)
        seconds = _download(url, lambda: peak.append(_memory(pid)))
        used = _cpu(pid) - used
    what = f"a wheel of {size / 1e9:.1f} GB put together"
    yield Row(
        f"{what} and received, MB/s", size / seconds / 1e6, size / hashing / 1e6, "/s",
        "reading and hashing the file once", "near disk speed",
    )  # fmt: skip
    yield Row(
        f"{what} and sent, MB per second of CPU time", size / used / 1e6, size / cpu / 1e6, "/s",
        "reading and hashing the file once",
    )  # fmt: skip
    yield Row(
        "the same, peak memory", max(peak), before, "MB", "before", "constant",
        max(peak) - before < 64,
    )  # fmt: skip


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(256 * 1024):
            digest.update(chunk)
    return digest.hexdigest()


def _write_large_wheel(path: Path) -> None:
    small = Wheel("large", "1.0", "x86_64_v3", requires=("a; 'x86_64' in variant_namespaces",),
                  variant_json={**VARIANTS, "variants": {
                      "x86_64_v3": VARIANTS["variants"]["x86_64_v3"]}})  # fmt: skip
    chunk = os.urandom(1 << 20)
    with (
        zipfile.ZipFile(io.BytesIO(small.build())) as source,
        zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as target,
    ):
        with target.open("large/data.bin", "w", force_zip64=True) as stream:
            for _ in range(int(GIGABYTES * 1000)):
                stream.write(chunk)
        for info in source.infolist():
            target.writestr(info, source.read(info))


def _download(url: str, meanwhile: Callable[[], object]) -> float:
    begun = time.perf_counter()
    with urllib.request.urlopen(url) as answer:
        expected = int(answer.headers["Content-Length"])
        received = number = 0
        while chunk := answer.read(1 << 20):
            received += len(chunk)
            number += 1
            if number % 100 == 0:
                meanwhile()
    if received != expected:
        raise RuntimeError(f"received {received} of {expected} bytes")
    return time.perf_counter() - begun


# --- servers


@contextmanager
def _proxy(index: Index, cache: Path) -> Iterator[str]:
    """Serve a proxy from a thread of this process."""
    settings = Settings((Upstream("main", index.url),), cache)
    config = uvicorn.Config(create_app(settings), log_level="warning", access_log=False)
    server = uvicorn.Server(config)
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # asyncio looks elsewhere
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)


_SERVE = """
import sys
from pathlib import Path
from variants_index.pages import Page, PageFile, json_page
from variants_proxy import Settings, Upstream
from variants_proxy.server.listening import listen
from variants_proxy.server.server import make_server
url, cache, port = sys.argv[1:]
settings = Settings((Upstream("main", url),), Path(cache))
server = make_server(settings)
server.run_until_signal(listen("127.0.0.1", int(port)))
"""


@contextmanager
def _server_process(url: str, cache: Path) -> Iterator[tuple[int, int]]:
    """Serve a proxy from another process; yield its port and process number."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-c", _SERVE, url, str(cache), str(port)])
    try:
        for _ in range(200):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health").close()
                break
            except OSError:
                time.sleep(0.05)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(10)


def _memory(pid: int) -> float:
    """Return the resident megabytes of a process."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:  # no such place on this system: what children of ours had at most
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3
    return pages * resource.getpagesize() / 1e6
