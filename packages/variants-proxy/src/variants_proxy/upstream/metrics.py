"""Metrics in the text format of Prometheus, written by hand: one page of a known shape."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .budget import Budget

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_HELP = {
    "page_cache_hits": "Upstream pages served from memory while fresh.",
    "page_fetches": "Upstream pages requested.",
    "page_failures": "Upstream pages that could not be fetched.",
    "stale_pages": "Old pages served because their upstream failed.",
    "broken_metadata": "Versions whose variants were ignored because of their metadata.",
    "verified_wheels": "Wheels sent completely, with the expected hash.",
    "broken_wheels": "Wheels whose transfer was aborted because of unexpected contents.",
}


_USAGE = {
    "in_flight": (
        "gauge",
        "in_flight",
        "Requests to an upstream, and computations on their responses.",
    ),
    "open_breakers": ("gauge", "open", "Servers of an upstream whose circuit breaker is open."),
    "failures": ("counter", "failures_total", "Requests without a response in time."),
    "received": ("counter", "bytes_total", "Bytes of pages, small files and wheels."),
    "rejected": ("counter", "rejected_total", "Requests for which no thread was free in time."),
}


class Metrics:
    """The metrics of one proxy; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter(dict.fromkeys(_HELP, 0))
        self._requests: Counter[int] = Counter()
        self._times = [0] * (len(_BUCKETS) + 1)
        self._seconds = 0.0

    def count(self, name: str, number: int = 1) -> None:
        """Add *number* to the counter *name*, a key of `_HELP`."""
        with self._lock:
            self._counts[name] += number

    def request(self, status: int, seconds: float) -> None:
        """Count a request that was answered with *status*, *seconds* before its response began."""
        with self._lock:
            self._requests[status] += 1
            self._times[bisect_left(_BUCKETS, seconds)] += 1
            self._seconds += seconds

    def text(
        self, gauges: dict[str, tuple[str, float]], upstreams: Mapping[str, Budget] | None = None
    ) -> str:
        """Return all metrics.

        Args:
            gauges: help and value of further gauges by name.
            upstreams: what each upstream uses, by name.
        """
        lines: list[str] = []

        def family(name: str, kind: str, text: str) -> str:
            full = f"variants_proxy_{name}"
            lines.extend((f"# HELP {full} {text}", f"# TYPE {full} {kind}"))
            return full

        with self._lock:
            for name, text in _HELP.items():
                full = family(f"{name}_total", "counter", text)
                lines.append(f"{full} {self._counts[name]}")
            full = family("requests_total", "counter", "Requests by HTTP status.")
            lines += [
                f'{full}{{status="{status}"}} {number}'
                for status, number in sorted(self._requests.items())
            ]
            full = family("request_seconds", "histogram", "Seconds until the response began.")
            total = 0
            for bound, number in zip((*_BUCKETS, "+Inf"), self._times, strict=True):
                total += number
                lines.append(f'{full}_bucket{{le="{bound}"}} {total}')
            lines += [f"{full}_sum {self._seconds:.6f}", f"{full}_count {total}"]
        for name, (text, value) in gauges.items():
            lines.append(f"{family(name, 'gauge', text)} {value:g}")
        for attribute, (kind, name, text) in _USAGE.items():
            full = family(f"upstream_{name}", kind, text)
            lines += [
                f'{full}{{upstream="{upstream}"}} {getattr(usage, attribute)}'
                for upstream, usage in (upstreams or {}).items()
            ]
        return "\n".join(lines) + "\n"
