"""The index proxy: uv through it and straight to the index, and a large wheel put together."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pep_variants._model.platform import Platform, Support
from support.environments import clean_environ, uv_command
from support.index import served
from support.servers import free_port
from support.waiting import wait_until
from support.wheels import Wheel
from variants_index.pages import Page, PageFile, json_page
from variants_proxy.urls import Machine, encode, index_url

from .bench_pip import PACKAGES, VARIANT_PROJECTS, VARIANTS, index_of
from .report import Row, in_turn

KEY = encode(
    Machine(Platform({"x86_64": Support({"level": ("v3", "v2", "v1")})}), target="linux-x86_64")
)
WHEEL = "large-1.0-py3-none-any-x86_64_v3.whl"
GIGABYTES = 2


def rows() -> Iterator[Row]:
    """Measure."""
    with tempfile.TemporaryDirectory(prefix="variants-bench-") as name:
        yield _uv(Path(name))
        yield from _large_wheel(Path(name))


def _uv(folder: Path) -> Row:
    environment = folder / "venv"
    subprocess.run([*uv_command(), "venv", "--quiet", str(environment)], check=True)

    def resolve(url: str) -> Callable[[], object]:
        cache = folder / "uv-cache"
        command = [*uv_command(), "pip", "install", "--dry-run", "--quiet", "--python"]
        command += [str(environment), "--index-url", url, "package-0"]

        def call() -> None:
            environ = clean_environ({"UV_CACHE_DIR": str(cache)})
            subprocess.run(command, env=environ, check=True)
            shutil.rmtree(cache)

        return call

    plain, mixed = (index_of(number, metadata_file=True) for number in (0, VARIANT_PROJECTS))
    with served(plain), served(mixed), _proxy(mixed.url, folder / "proxy") as (url, _):
        ours, theirs = in_turn(
            resolve(f"{url}{index_url(KEY)}"), resolve(plain.url), rounds=11, warmups=2
        )
    return Row(
        f"uv pip install --dry-run, {PACKAGES} packages, {VARIANT_PROJECTS} of them with variants,"
        " uv's cache empty", ours * 1e3, theirs * 1e3, "ms",
        "uv straight to the same index, plain", "at most 1.1x", ours <= 1.1 * theirs,
    )  # fmt: skip


def _large_wheel(folder: Path) -> Iterator[Row]:
    project = folder / "index" / "large"
    project.mkdir(parents=True)
    wheel, document = project / WHEEL, project / "large-1.0-variants.json"
    _write_large_wheel(wheel)
    document.write_text(json.dumps(VARIANTS))
    begun = time.perf_counter()
    digest = _sha256(wheel)
    hashing = time.perf_counter() - begun
    files = (
        PageFile(wheel.name, wheel.name, {"sha256": digest}),
        PageFile(document.name, document.name, {"sha256": _sha256(document)}),
    )
    (project / "index.v1_json").write_bytes(json_page(Page("large", files)))
    with _proxy(f"{project.parent.as_uri()}/", folder / "cache") as (url, peak):
        url += f"/p/{KEY}/simple/large/.variant/x86_64_v3/"
        url += "large-1.0-0_x86_64_v3-py3-none-any.whl"
        with urllib.request.urlopen(f"{url}.metadata") as answer:
            answer.read()
        before = peak()
        begun = time.perf_counter()
        size = 0
        with urllib.request.urlopen(url) as answer:
            while chunk := answer.read(1 << 20):
                size += len(chunk)
        seconds, after = time.perf_counter() - begun, peak()
    if size < GIGABYTES * 1e9:
        raise RuntimeError(f"received {size} bytes only")
    what = f"a wheel of {size / 1e9:.1f} GB put together and received"
    speed, least = size / seconds / 1e6, size / hashing / 1e6
    against = "reading and hashing the file once"
    yield Row(f"{what}, MB/s", speed, least, "/s", against, "at least 300 MB/s", speed >= 300)
    constant = after - before < 64
    yield Row(f"{what}, peak memory", after, before, "MB", "before", "constant", constant)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(256 * 1024):
            digest.update(chunk)
    return digest.hexdigest()


def _write_large_wheel(path: Path) -> None:
    own = {**VARIANTS, "variants": {"x86_64_v3": VARIANTS["variants"]["x86_64_v3"]}}
    requires = ("a; 'x86_64' in variant_namespaces",)
    small = Wheel("large", "1.0", "x86_64_v3", requires=requires, variant_json=own)
    chunk = os.urandom(1 << 20)
    with (
        zipfile.ZipFile(io.BytesIO(small.build())) as source,
        zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as target,
    ):
        with target.open("large/data.bin", "w", force_zip64=True) as stream:
            for _ in range(GIGABYTES * 1000):
                stream.write(chunk)
        for info in source.infolist():
            target.writestr(info, source.read(info))


@contextmanager
def _proxy(index: str, cache: Path) -> Iterator[tuple[str, Callable[[], float]]]:
    """Serve a proxy from another process; yield its URL, and what returns its peak megabytes."""
    port = free_port()
    program = Path(sys.executable).with_name("variants-proxy")
    command = [str(program), "serve", "--open", "--index", index, "--cache", str(cache)]
    url = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        try:
            urllib.request.urlopen(f"{url}/health").close()
        except OSError:
            return False
        return True

    with subprocess.Popen(
        [*command, "--port", str(port)], env=clean_environ(), stderr=subprocess.DEVNULL
    ) as process:
        try:
            if not wait_until(answers):
                raise RuntimeError("the proxy does not start")
            status = Path(f"/proc/{process.pid}/status")
            yield url, lambda: int(status.read_text().partition("VmHWM:")[2].split()[0]) / 1e3
        finally:
            process.terminate()
