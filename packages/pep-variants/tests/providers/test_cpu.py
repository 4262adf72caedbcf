"""The x86_64 and aarch64 providers, on the machines that archspec itself is tested with.

archspec's test data hold `/proc/cpuinfo`, the output of `sysctl` and answers of the cpuid
instruction. Here they stand where the real ones would be; archspec's detection runs unchanged.
"""

import builtins
import importlib.resources
import logging
import os
import platform
import stat
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import archspec.cpu
import archspec.cpu.detect
import pytest

from pep_variants._model.platform import Fact
from pep_variants._providers.aarch64 import AArch64Provider
from pep_variants._providers.base import recorded
from pep_variants._providers.x86_64 import X8664Provider

TARGETS = Path(str(importlib.resources.files("archspec"))) / "json" / "tests" / "targets"

V1, V2, V3, V4 = "v1", "v2 v1", "v3 v2 v1", "v4 v3 v2 v1"
A81, A82 = "8.1a 8a", "8.2a 8.1a 8a"
A84, A85 = "8.4a 8.3a 8.2a 8.1a 8a", "8.5a 8.4a 8.3a 8.2a 8.1a 8a"
A86, A90 = f"8.6a {A85}", f"9.0a {A85}"
A92 = f"9.2a 9.0a {A86}"

# By file of archspec's test data: what is supported of the first feature, and the summary.
X86_64 = {
    "linux-rhel6-piledriver": (V2, "x86-64-v2 (piledriver)"),
    "linux-rhel7-x86_64_v3": (V3, "x86-64-v3"),
    "linux-rocky8.5-zen4": (V4, "x86-64-v4 (zen4)"),
    "linux-ubuntu24.04-alderlake": (V3, "x86-64-v3 (alderlake)"),
    "linux-unknown-sapphirerapids": (V4, "x86-64-v4 (sapphirerapids)"),
    "windows-cpuid-icelake": (V4, "x86-64-v4 (icelake)"),
}
AARCH64 = {
    "darwin-monterey-m1": (A84, "armv8.4-a (m1)"),
    "darwin-sequoia-m4": (A86, "armv8.6-a (m4)"),
    "linux-amazon-neoverse_n1": (A82, "armv8.2-a (neoverse_n1)"),
    "linux-centos7-thunderx2": (A81, "armv8.1-a (thunderx2)"),
    "linux-ubuntu22.04-neoverse_v2": (A90, "armv9.0-a (neoverse_v2)"),
    "linux-ubuntu24.04-neoverse_v3ae": (A92, "armv9.2-a (neoverse_v3ae)"),
}
PROVIDERS = {"x86_64": (X8664Provider, X86_64), "aarch64": (AArch64Provider, AARCH64)}

if not (TARGETS / "linux-ubuntu26.04-olympus").exists():
    pytest.skip("needs the machines that come with archspec 0.2.7", allow_module_level=True)


def forget() -> None:
    """Let archspec look again; it keeps what it found for the life of the process."""
    for function in (
        archspec.cpu.detect.host,
        archspec.cpu.detect._machine,
        archspec.cpu.detect._darwin_sysctl_data,
    ):
        function.cache_clear()


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Return a function that turns this machine into the one of a file of archspec's."""

    def become(name: str, architecture: str) -> None:
        system, data = name.split("-")[0], TARGETS / name
        if system == "darwin":
            # The worst case: an interpreter for x86-64 everywhere, on Apple CPUs under Rosetta.
            monkeypatch.setattr(platform, "system", lambda: "Darwin")
            monkeypatch.setattr(platform, "machine", lambda: "x86_64")
            write_tool(tmp_path / "sysctl", f"cat '{data}'\necho noise >&2")
            monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
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


@pytest.mark.parametrize(
    ("namespace", "name"),
    [(namespace, name) for namespace, (_, table) in PROVIDERS.items() for name in table],
)
def test_recorded_machines(machine, capfd, namespace, name):
    machine(name, namespace)
    factory, table = PROVIDERS[namespace]
    values, summary = table[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        provider = factory()
        grade, *extensions = provider.supported().items()
    assert grade == (provider.grade, tuple(values.split()))
    target = archspec.cpu.TARGETS[name.split("-")[2]]
    assert {extension for extension, _ in extensions} == target.features
    assert {value for _, value in extensions} == ({("on",)} if target.features else set())
    title, _, model = summary.partition(" ")
    source = {"linux": "/proc/cpuinfo", "darwin": "sysctl", "windows": "cpuid"}[name.split("-")[0]]
    facts = [Fact("CPU level", title, source)]
    if model:
        facts.append(Fact("CPU", model.strip("()"), source))
    assert provider.facts() == tuple(facts)
    other = next(factory for factory, _ in PROVIDERS.values() if factory.namespace != namespace)
    assert other().supported() == {}
    assert other().facts() == ()
    assert capfd.readouterr() == ("", "")
    os.write(2, b"what comes later is seen")
    assert capfd.readouterr() == ("", "what comes later is seen")


@pytest.mark.parametrize("factory", [X8664Provider, AArch64Provider])
@pytest.mark.parametrize(
    ("name", "architecture"),
    [
        ("bgq-rhel6-power7", "ppc64"),
        ("linux-sifive-u74mc", "riscv64"),
        *(("linux-rhel7-haswell", text) for text in ("i686", "armv7l", "new", "")),
    ],
)
def test_nothing_is_supported_on_other_architectures(machine, factory, name, architecture):
    machine(name, architecture)
    assert factory().supported() == {}
    assert factory().facts() == ()


@pytest.mark.parametrize(
    ("factory", "architecture", "supported", "summary"),
    [
        (X8664Provider, "x86_64", {"level": ("v1",)}, "x86-64-v1"),
        (AArch64Provider, "aarch64", {"version": ("8a",)}, "armv8-a"),
    ],
)
def test_unreadable_cpuinfo_leaves_the_baseline(
    machine, monkeypatch, tmp_path, factory, architecture, supported, summary
):
    machine("linux-rhel7-haswell", architecture)
    replace_file(monkeypatch, "/proc/cpuinfo", tmp_path / "absent")
    with recorded() as trail:
        assert factory().supported() == supported
    source = "the machine type that Python reports"
    assert factory().facts() == (Fact("CPU level", summary, source),)
    assert trail.attempts == [
        ("/proc/cpuinfo", "does not tell the model of the CPU", False),
        (source, f"is {architecture}, all that is known", True),
    ]


def test_windows_on_arm_has_the_baseline(monkeypatch, machine):
    monkeypatch.setattr(platform, "system", lambda: "Windows")
    monkeypatch.setattr(platform, "machine", lambda: "ARM64")
    assert AArch64Provider().supported() == {"version": ("8a",)}
    [fact] = AArch64Provider().facts()
    assert fact == ("CPU level", "armv8-a", "the machine type that Python reports", False)
    assert X8664Provider().supported() == {}


@pytest.mark.parametrize("factory", [X8664Provider, AArch64Provider])
def test_a_failing_detection_is_no_error(monkeypatch, machine, tmp_path, caplog, factory):
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setenv("PATH", str(tmp_path))
    write_tool(tmp_path / "sysctl", "printf '\\377'")  # no UTF-8
    provider = factory()
    assert provider.supported() == {}
    assert provider.facts() == ()
    [record] = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert "cannot be identified" in record.getMessage()


@pytest.mark.parametrize(
    ("factory", "architecture"), [(X8664Provider, "aarch64"), (AArch64Provider, "x86_64")]
)
def test_other_families_are_told_without_archspec(factory, architecture):
    code = (
        "import platform, sys\n"
        f"from {factory.__module__} import {factory.__name__} as Provider\n"
        "platform.system = lambda: 'Linux'\n"
        f"platform.machine = lambda: {architecture!r}\n"
        "print(Provider().supported(), Provider().facts(), 'archspec' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "{} () False\n"
