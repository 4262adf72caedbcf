"""Indexes that have builds of one backend only, as PyTorch's, and whether these suit a machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pep_variants.internal import redacted

from .drivers import Drivers
from .findings import Problem

_BACKEND = re.compile(r"/whl/(?:(?:nightly|test)/)?(cpu|cu[0-9]{2,4}|rocm[0-9.]+|xpu)(?:/|$)")
"""Paths of the indexes of PyTorch and of mirrors of it: one for each backend."""


class IndexSetting(NamedTuple):
    """A place that names an index.

    Attributes:
        url: of the index.
        place: variable, or file and line.
        undo: command that takes it back, empty for a line to remove.
    """

    url: str
    place: str
    undo: str = ""


def index_pins(settings: Iterable[IndexSetting], drivers: Drivers) -> Iterator[Problem]:
    """Yield what is wrong with the indexes of one backend, and hints where they suit the machine.

    Args:
        settings: every place that names an index.
        drivers: that detection found.
    """
    for setting in settings:
        match = _BACKEND.search(setting.url)
        if match is None:
            continue
        against = unsuitable(match[1], drivers)
        text = (
            f"{setting.place} takes packages from {redacted(setting.url)}, which has builds "
            f"{backend_title(match[1])} only"
        )
        text += f", while {against}" if against else ", whatever the machine supports"
        if not setting.undo:
            text += ": remove that index there"
        yield Problem("index-pin", text, setting.undo, fails=bool(against))


def backend_title(backend: str) -> str:
    """Return *backend*, as ``cu128``, as in ``for CUDA 12.8``."""
    if backend == "cpu":
        return "for CPUs"
    if backend == "xpu":
        return "for Intel GPUs"
    if backend.startswith("rocm"):
        return f"for ROCm {backend[4:]}"
    return f"for CUDA {_cuda(backend)[0]}.{_cuda(backend)[1]}"


def unsuitable(backend: str, drivers: Drivers) -> str:
    """Return what speaks against builds of *backend* on this machine, empty for nothing."""
    found = f"this machine has the driver of {' and '.join(drivers.vendors)}"
    if backend == "cpu":
        return found if drivers.vendors else ""
    vendor = {"r": "AMD", "x": "Intel"}.get(backend[0], "NVIDIA")
    if vendor not in drivers.vendors:
        return found if drivers.vendors else f"detection finds no driver of {vendor} here"
    # Drivers for CUDA 12.0 run all builds for CUDA 12.
    if vendor == "NVIDIA" and drivers.cuda and _cuda(backend)[0] > drivers.cuda[0]:
        return f"the driver here supports CUDA {drivers.cuda[0]}.{drivers.cuda[1]} at most"
    return ""


def _cuda(backend: str) -> tuple[int, int]:
    """Return the version in ``cu128``, ``cu92``."""
    digits = backend[2:]
    return int(digits[:-1]), int(digits[-1])
