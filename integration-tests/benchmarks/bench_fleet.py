"""Three index proxies behind nginx: installs while they and the index fail.

BENCH_OUTAGE is how many seconds the index fails for; pages are fresh for 60.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from pep_variants.model.platform import Platform, Support
from support.index import Answer, served
from support.projects import app_index
from support.proxy_fleet import install, installing, replicas
from support.servers import has_nginx, nginx_before
from variants_proxy import Machine, encode
from variants_proxy.index_urls import keyed_url

from .report import Row

OUTAGE = float(os.environ.get("BENCH_OUTAGE", "70"))
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
        yield Row(
            f"right installs, one proxy killed, one slow, the index down for {OUTAGE:g} s",
            installs.right, count, "", "all", "all of them", installs.right == count,
        )  # fmt: skip
        ordered = sorted(installs.seconds)
        yield Row(
            "the same, 99th percentile", ordered[int(count * 0.99)] * 1e3,
            statistics.median(ordered) * 1e3, "ms", "the median",
        )  # fmt: skip
