"""Counters for whoever looks after a shim, in the text format of Prometheus."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_HELP = {
    "page_cache_hits": "Pages of upstreams that were still fresh.",
    "page_fetches": "Pages that upstreams were asked for.",
    "page_failures": "Pages that upstreams could not give.",
    "stale_pages": "Times an old page served because its upstream failed.",
    "broken_metadata": "Versions that lost their variants because of their metadata.",
    "spliced_wheels": "Wheels served with other metadata than upstream's.",
    "verified_wheels": "Wheels that passed and had the hash that was promised.",
    "broken_wheels": "Wheels that were cut off because they are not what was promised.",
}


class Metrics:
    """All counters of one shim; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter(dict.fromkeys(_HELP, 0))
        self._requests: Counter[int] = Counter()
        self._times = [0] * (len(_BUCKETS) + 1)
        self._seconds = 0.0

    def count(self, name: str, number: int = 1) -> None:
        """Add to the counter *name*, one of the known ones."""
        with self._lock:
            self._counts[name] += number

    def request(self, status: int, seconds: float) -> None:
        """Take note of an answered request; *seconds* until its answer began."""
        with self._lock:
            self._requests[status] += 1
            self._times[bisect_left(_BUCKETS, seconds)] += 1
            self._seconds += seconds

    def text(self, gauges: dict[str, tuple[str, float]]) -> str:
        """Return everything, and *gauges*: help and value by name."""
        lines: list[str] = []

        def family(name: str, kind: str, text: str) -> str:
            full = f"uv_variants_{name}"
            lines.extend((f"# HELP {full} {text}", f"# TYPE {full} {kind}"))
            return full

        with self._lock:
            for name, text in _HELP.items():
                full = family(f"{name}_total", "counter", text)
                lines.append(f"{full} {self._counts[name]}")
            full = family("requests_total", "counter", "Answered requests by HTTP status.")
            lines += [
                f'{full}{{status="{status}"}} {number}'
                for status, number in sorted(self._requests.items())
            ]
            full = family("request_seconds", "histogram", "Seconds until an answer began.")
            total = 0
            for bound, number in zip((*_BUCKETS, "+Inf"), self._times, strict=True):
                total += number
                lines.append(f'{full}_bucket{{le="{bound}"}} {total}')
            lines += [f"{full}_sum {self._seconds:.6f}", f"{full}_count {total}"]
        for name, (text, value) in gauges.items():
            lines.append(f"{family(name, 'gauge', text)} {value:g}")
        return "\n".join(lines) + "\n"
