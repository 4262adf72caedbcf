"""Three index proxies behind nginx with its cache: installs while they and the index fail, load.

BENCH_OUTAGE is how many seconds the index fails for; pages are fresh for 60.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

from pep_variants.model.platform import Platform, Support
from support.index import Answer, served
from support.projects import app_index
from support.proxy_fleet import cache_statuses, install, installing, replicas
from support.servers import has_nginx, nginx_before
from variants_proxy import Machine, encode, index_url
from variants_proxy.urls import keyed_url

from .bench_proxy import _cpu, _drive, _load_of
from .report import Row

OUTAGE = float(os.environ.get("BENCH_OUTAGE", "70"))
SECONDS = 5.0
_NVIDIA = Platform({"nvidia": Support({"cuda_version_lower_bound": ("12.8", "12.6")})})
_GPU = encode(Machine(_NVIDIA, target="linux-x86_64"))
_CPU = encode(Machine(target="linux-x86_64"))
_LABELS = {_GPU: "cu128", _CPU: "null"}


def rows() -> Iterator[Row]:
    """Measure."""
    if not has_nginx():
        print("  there is no nginx: nothing to measure")
        return
    with tempfile.TemporaryDirectory(prefix="variants-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        index = stack.enter_context(served(app_index(metadata_file=True)))
        fleet = stack.enter_context(replicas(index.url, folder))
        ports = [each.port for each in fleet]
        front = nginx_before(ports, folder / "nginx", read_timeout="2s")
        url = stack.enter_context(front)
        for key, label in _LABELS.items():
            problem = install(keyed_url(url, key), label, {})
            if problem:
                raise RuntimeError(problem)
        with installing(url, _LABELS, {}) as installs:
            time.sleep(5)
            fleet[0].kill()
            with fleet[1].slow(stopped=2.5, running=0.5):
                index.page_faults[""] = lambda: Answer(500, b"the index is down")
                time.sleep(OUTAGE)
                del index.page_faults[""]
            fleet[0].start()
            fleet[0].wait()
            time.sleep(5)
        for problem in installs.wrong:
            print(f"  wrong: {problem}")
        count = installs.right + len(installs.wrong)
        seen = cache_statuses(folder / "nginx" / "access.log")
        kept = seen["HIT"] + seen["STALE"] + seen["REVALIDATED"]
        yield Row(
            f"right installs, one proxy killed, one slow, the index down for {OUTAGE:g} s",
            installs.right, count, "", "all", "all of them", installs.right == count,
        )  # fmt: skip
        ordered = sorted(installs.seconds)
        yield Row(
            "the same, 99th percentile", ordered[int(count * 0.99)] * 1e3,
            statistics.median(ordered) * 1e3, "ms", "the median",
        )  # fmt: skip
        print(f"  nginx's cache: {dict(seen)}")
        yield Row("answers of nginx from its cache", kept, seen.total(), "", "all requests")
        path = f"{index_url(_GPU)}app/"
        alone, _ = _load_of(fleet[2].port, fleet[2].pid, [path], SECONDS)
        yield Row(
            "pages of nginx's cache, requests per second of CPU time",
            _load_of_nginx(url, folder / "nginx" / "pid", path), alone, "/s", "one proxy",
        )  # fmt: skip


def _load_of_nginx(url: str, pid_file: Path, path: str) -> float:
    """Return requests per second of CPU time of nginx."""
    main = pid_file.read_text().strip()
    workers = Path(f"/proc/{main}/task/{main}/children").read_text().split()
    begun = sum(_cpu(int(worker)) for worker in workers)
    number, _ = asyncio.run(_drive(urlsplit(url).port or 80, [path], SECONDS))
    return number / (sum(_cpu(int(worker)) for worker in workers) - begun)
