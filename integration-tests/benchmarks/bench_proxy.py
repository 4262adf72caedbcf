"""The index proxy: uv through it and straight to the index, and a large wheel put together."""

from __future__ import annotations

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
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pep_variants.model.platform import Platform, Support
from support.environments import clean_environ, uv_command
from support.index import Index, served
from support.wheels import X86_64, Release, Wheel, metadata
from variants_index.pages import Page, PageFile, json_page
from variants_proxy import Machine, encode, index_url

from .report import Row, in_turn

PACKAGES = 30
VARIANT_PROJECTS = 10
VARIANTS = metadata(
    {"null": {}, **{f"x86_64_v{n}": {"x86_64": {"level": [f"v{n}"]}} for n in (2, 3, 4)}},
    namespaces=["x86_64"],
    providers={"x86_64": X86_64},
)
KEY = encode(
    Machine(Platform({"x86_64": Support({"level": ("v3", "v2", "v1")})}), target="linux-x86_64")
)
GIGABYTES = float(os.environ.get("BENCH_GIGABYTES", "2"))


def rows() -> Iterator[Row]:
    """Measure."""
    with tempfile.TemporaryDirectory(prefix="variants-bench-") as name:
        folder = Path(name)
        yield from _uv(folder)
        yield from _large_wheel(folder)


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

    def resolve(url: str, cache: str) -> Callable[[], object]:
        def call() -> None:
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
            cache = folder / f"proxy-{behind.url.rsplit(':', 1)[1][:5]}"
            with _server_process(behind.url, cache) as (port, _):
                through, straight = f"http://127.0.0.1:{port}{index_url(KEY)}", index.url
                ours, theirs = in_turn(
                    resolve(through, "ours"), resolve(straight, "theirs"), rounds=11, warmups=2
                )
                yield Row(
                    f"{what}, uv's cache empty", ours * 1e3, theirs * 1e3, "ms",
                    "uv straight to the same index, plain", "at most 1.1x", ours <= 1.1 * theirs,
                )  # fmt: skip


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
