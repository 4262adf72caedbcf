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

from pep_variants.providers.registry import BUILTIN_NAMESPACES

_MAX_BYTES = 4096

_VENDORS = [known.vendor for known in BUILTIN_NAMESPACES.values()]
# Small files whose content counts.
_CONTENTS = (
    "proc/sys/kernel/random/boot_id",
    *(name for vendor in _VENDORS for name in vendor.versions),
)
# Files that are replaced when drivers or their libraries are installed. The loader's cache is
# rewritten by every package that brings a library.
_STAMPS = ("etc/ld.so.cache", *(name for vendor in _VENDORS for name in vendor.libraries))
# Device files of vendors, and of those without a built-in provider.
_DEVICES = (
    *dict.fromkeys(name for vendor in _VENDORS for name in vendor.nodes),
    *("neuron*", "xpu*"),
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
    for pattern in _DEVICES:
        try:
            names = sorted(path.name for path in Path(root, "dev").glob(pattern))
        except OSError:
            continue
        yield f"{pattern}: {' '.join(names)}"
