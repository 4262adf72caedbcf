"""What stands for torch where a page runs it, in the wheels of a stand-in: `FILES`.

torch cannot be had here, nor a GPU. This one has torch's question alone, and answers it as torch
does: a driver is there, and its CUDA is not of an older major version than the build's, which is
in the version (``2.14.0+cu126``). A build of PyPI has CUDA 13 since 2.11.
"""

from __future__ import annotations

import ctypes
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

FILES = {"torch/__init__.py": Path(__file__).read_text("utf-8")}


def _is_available() -> bool:
    _, _, local = version("torch").partition("+")
    built_for = int(local[2:-1]) if local.startswith("cu") else 0 if local else 13
    supported = ctypes.c_int(0)
    try:
        driver = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return False
    driver.nvmlSystemGetCudaDriverVersion_v2(ctypes.byref(supported))
    return 0 < built_for <= supported.value // 1000


cuda = SimpleNamespace(is_available=_is_available)
