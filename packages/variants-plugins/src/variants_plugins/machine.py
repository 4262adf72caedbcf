"""What a kept answer of a plugin depends on besides the plugin: this machine and its drivers.

Homes are shared between machines, containers get other devices, drivers are upgraded without a
reboot. Whatever shows that cheaply is part of the key of a kept answer; the rest is what its
short life is for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

_MAX_BYTES = 4096

# Small files whose content counts.
_CONTENTS = (
    "proc/sys/kernel/random/boot_id",
    "proc/driver/nvidia/version",
    "sys/module/nvidia/version",
    "sys/module/amdgpu/version",
    "sys/class/kfd/kfd/topology/generation_id",
    "opt/rocm/.info/version",
    "usr/local/Ascend/driver/version.info",
)
# Files that are replaced when drivers or their libraries are installed. The loader's cache is
# rewritten by every package that brings a library.
_STAMPS = (
    "etc/ld.so.cache",
    "usr/lib/wsl/lib/libcuda.so.1",
    "Windows/System32/nvcuda.dll",
    "Windows/System32/nvml.dll",
    "Windows/System32/amdhip64.dll",
    "Windows/System32/amdhip64_6.dll",
    "Windows/System32/ze_loader.dll",
)
# Devices: directory, and how the names in it begin.
_DEVICES = (
    ("dev", ("accel", "davinci", "kfd", "neuron", "nvidia", "xpu")),
    ("dev/dri", ("",)),
    ("dev/accel", ("",)),
)


def machine_facts(environ: Mapping[str, str], root: Path | None = None) -> tuple[str, ...]:
    """Return what of this machine may change an answer, in a fixed order.

    Args:
        environ: names further places, as ``ROCM_PATH`` does.
        root: the file system's root, by default the real one.
    """
    return tuple(_facts(environ, root or Path(environ.get("SYSTEMDRIVE", "") + "/")))


def _facts(environ: Mapping[str, str], root: Path) -> Iterator[str]:
    # Not what `platform` knows: importing it costs a lot, and on Windows it starts a program.
    system = tuple(os.uname()) if hasattr(os, "uname") else (environ.get("COMPUTERNAME"),)
    yield f"{sys.platform} {system}"
    if sys.platform == "win32":
        yield repr(sys.getwindowsversion())
    files = [Path(root, name) for name in _CONTENTS]
    if environ.get("ROCM_PATH"):
        files.append(Path(environ["ROCM_PATH"], ".info", "version"))
    for file in files:
        try:
            with file.open("rb") as stream:
                yield f"{file}: {stream.read(_MAX_BYTES)!r}"
        except OSError:
            continue
    for name in _STAMPS:
        try:
            status = Path(root, name).stat()
        except OSError:
            continue
        yield f"{name}: {status.st_size} {status.st_mtime_ns}"
    for folder, prefixes in _DEVICES:
        try:
            names = sorted(path.name for path in Path(root, folder).iterdir())
        except OSError:
            continue
        yield f"{folder}: {' '.join(name for name in names if name.startswith(prefixes))}"
