"""Every path of the kernel of ``projects/dotproduct``: compiled with its flags, and right.

Those for other machines are cross-compiled, and run where QEMU is there to run them.
"""

from __future__ import annotations

import os
import platform
import random
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from support.environments import ROOT
from support.tools import tool

FOLDER = ROOT / "integration-tests" / "projects" / "dotproduct" / "src" / "dotproduct"
# Reads sizes, each followed by as many bytes and as many others; prints the path and the products.
PROGRAM = """
#include <stdio.h>
#include "dot.h"

int main(void)
{
    static uint8_t size[2], left[1 << 16], right[1 << 16];
    puts(PATH);
    while (fread(size, 1, 2, stdin) == 2) {
        size_t count = size[0] + 256 * size[1];
        if (fread(left, 1, count, stdin) != count || fread(right, 1, count, stdin) != count) {
            return 1;
        }
        printf("%u\\n", dot(left, (const int8_t *)right, count));
    }
    return 0;
}
"""
# Path, machine, flags as in matrix.toml, what a CPU needs to run it.
PATHS = [
    ("baseline", "x86_64", (), set()),
    ("avx2", "x86_64", ("-march=x86-64-v3",), {"avx2", "fma", "bmi2"}),
    ("avx512", "x86_64", ("-march=x86-64-v4",), {"avx512f", "avx512bw", "avx512vl"}),
    ("avx512vnni", "x86_64", ("-march=x86-64-v4", "-mavx512vnni"), {"avx512bw", "avx512_vnni"}),
    ("neon", "aarch64", ("-march=armv8.2-a",), set()),
]
ZIG_FLAGS = {"neon": ("-mcpu=generic+v8_2a",)}
"""Of the paths whose flags Zig calls otherwise."""


@pytest.fixture
def compile_for(environments, tmp_path):
    """Compile `PROGRAM` for a path; return what comes of it, and whether that is a program."""

    def run(path, machine, flags):
        native = (sysconfig.get_config_var("CC") or "cc").split()[0]
        cross = f"{machine}-linux-gnu-gcc"
        if machine == platform.machine() and shutil.which(native):
            compiler, linked = [native], True
        elif shutil.which(cross):
            compiler, linked = [cross, "-static"], True
        else:  # to link, it would compile a C library first, which takes minutes
            python = tool(environments, "zig").python
            compiler = [python, "-m", "ziglang", "cc", "-target", f"{machine}-linux-musl", "-c"]
            linked = False
            flags = ZIG_FLAGS.get(path, flags)
        source, target = tmp_path / "program.c", tmp_path / "program"
        source.write_text(PROGRAM)
        cache = dict.fromkeys(["ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"], str(tmp_path))
        subprocess.run(
            [*compiler, "-O2", "-Wall", "-Werror", *flags, f"-I{FOLDER}", "-o", str(target),
             str(source)],
            check=True,
            env={**os.environ, **cache},
        )  # fmt: skip
        return target, linked

    return run


def runner(machine, needed):
    """Return the command before a program for *machine*, None if it cannot run here."""
    if platform.machine() == machine:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        flags = set(next((line for line in lines if line.startswith("flags")), "").split())
        return [] if needed <= flags else None
    found = filter(shutil.which, (f"qemu-{machine}", f"qemu-{machine}-static"))
    return next(([name] for name in found), None)


@pytest.mark.skipif(sys.platform != "linux", reason="programs are compiled for Linux")
@pytest.mark.parametrize(("path", "machine", "flags", "needed"), PATHS, ids=[x[0] for x in PATHS])
def test_path(compile_for, path, machine, flags, needed):
    if machine not in ("aarch64", platform.machine()):
        pytest.skip(f"this is no {machine}")
    program, linked = compile_for(path, machine, flags)
    header = program.read_bytes()[:20]
    assert header[:4] == b"\x7fELF"
    assert header[18:20] == {"x86_64": b"\x3e\x00", "aarch64": b"\xb7\x00"}[machine]
    if not linked:
        pytest.skip(f"compiled, but there is no {machine}-linux-gnu-gcc to link it")
    command = runner(machine, needed)
    if command is None:
        pytest.skip(f"compiled, but neither this CPU nor a qemu-{machine} can run it here")

    numbers = random.Random(path)
    # All of the lengths around the widths of vectors, and bytes at both ends.
    cases = [(numbers.randbytes(size), numbers.randbytes(size)) for size in (*range(140), 4000)]
    cases += [(bytes([a]) * 130, bytes([b]) * 130) for a in (0, 255) for b in (0, 127, 128, 255)]
    given = b"".join(len(a).to_bytes(2, "little") + a + b for a, b in cases)
    done = subprocess.run([*command, str(program)], input=given, capture_output=True, check=True)
    found, *products = done.stdout.decode().split()
    assert found == path
    assert list(map(int, products)) == [
        sum(a * (b - 256 if b > 127 else b) for a, b in zip(*case, strict=True)) % 2**32
        for case in cases
    ]
