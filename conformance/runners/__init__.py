"""Clients that play cases, listed in `RUNNERS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from support.environments import PIPS, Environments
from support.uvs import UVS

from .base import Runner
from .engine import Engine
from .pip import IndexShimPip, Pip, PipLock
from .resolve import Resolve, ResolveLock
from .uv import NativeUv, UvVariants
from .variantlib import Variantlib

RUNNERS: Mapping[str, Callable[[Environments], Runner]] = {
    "engine": Engine,
    "resolve": Resolve,
    "pip-oldest": partial(Pip, "pip-oldest", PIPS[0], "3.10"),
    "pip-newest": partial(Pip, "pip-newest", PIPS[-1], "3.13"),
    "resolve-lock": ResolveLock,
    "pip-lock": PipLock,
    "uv-variants-oldest": partial(UvVariants, "uv-variants-oldest", UVS[0]),
    "uv-variants-newest": partial(UvVariants, "uv-variants-newest", UVS[-1]),
    "index-shim-pip": IndexShimPip,
    "native-uv": NativeUv,
    "variantlib": Variantlib,
}
"""What makes a runner, by its name, in the order of the table."""

OLDEST = frozenset({"pip-oldest", "uv-variants-oldest"})
"""Runners whose results differ from those of the newest releases in few cases: run nightly."""
LIBRARIES = frozenset({"engine", "variantlib"})
"""Runners that play a case in milliseconds: no program is started for it."""
