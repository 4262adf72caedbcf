"""The machines of archspec's test data, in place of this one."""

import builtins
import importlib.resources
import os
import platform
import stat
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import archspec.cpu
import archspec.cpu.detect

TARGETS = Path(str(importlib.resources.files("archspec"))) / "json" / "tests" / "targets"


def forget() -> None:
    """Let archspec look again; it keeps what it found for the life of the process."""
    for function in (
        archspec.cpu.detect.host,
        archspec.cpu.detect._machine,
        archspec.cpu.detect._darwin_sysctl_data,
    ):
        function.cache_clear()


@contextmanager
def machines(monkeypatch, folder):
    """Yield a function that turns this machine into the one of a file of archspec's.

    Args:
        folder: where programs can be put.
    """

    def become(name: str, architecture: str) -> None:
        system, data = name.split("-")[0], TARGETS / name
        if system == "darwin":
            # The worst case: an interpreter for x86-64 everywhere, on Apple CPUs under Rosetta.
            monkeypatch.setattr(platform, "system", lambda: "Darwin")
            monkeypatch.setattr(platform, "machine", lambda: "x86_64")
            write_tool(folder / "sysctl", f"cat '{data}'\necho noise >&2")
            monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        elif system == "windows":
            monkeypatch.setattr(platform, "system", lambda: "Windows")
            monkeypatch.setattr(platform, "machine", lambda: "AMD64")
            monkeypatch.setattr(archspec.cpu.detect, "CPUID", lambda: recorded_cpuid(data))
        else:
            monkeypatch.setattr(platform, "system", lambda: "Linux")
            monkeypatch.setattr(platform, "machine", lambda: architecture)
            replace_file(monkeypatch, "/proc/cpuinfo", data)

    forget()
    yield become
    monkeypatch.undo()
    forget()


def write_tool(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def replace_file(monkeypatch, path: str, replacement: Path) -> None:
    real = builtins.open
    monkeypatch.setattr(
        builtins,
        "open",
        lambda file, *args, **options: real(
            replacement if file == path else file, *args, **options
        ),
    )


def recorded_cpuid(data: Path) -> SimpleNamespace:
    """Return what answers like the cpuid instruction, from lines `eax, ecx, four registers`."""
    answers = {}
    for line in data.read_text().splitlines():
        eax, ecx, *registers = (int(number) for number in line.split(","))
        answers[eax, ecx] = SimpleNamespace(
            **dict(zip(("eax", "ebx", "ecx", "edx"), registers, strict=True))
        )
    return SimpleNamespace(registers_for=lambda eax, ecx: answers[eax, ecx])
