"""The x86_64 and aarch64 providers, on CPUs that archspec knows; how it finds them is its own."""

import os
import platform
import subprocess
import sys
import warnings

import archspec.cpu
import pytest

from pep_variants.model.platform import Fact
from pep_variants.providers.aarch64 import AArch64Provider
from pep_variants.providers.base import recorded
from pep_variants.providers.x86_64 import X8664Provider

PROVIDERS = {"x86_64": X8664Provider, "aarch64": AArch64Provider}
A82 = "8.2a 8.1a 8a"
A85 = f"8.5a 8.4a 8.3a {A82}"
SOURCES = {"Linux": "/proc/cpuinfo", "Darwin": "sysctl", "Windows": "cpuid"}
MACHINE_TYPE = "the machine type that Python reports"


@pytest.fixture
def become(monkeypatch):
    """Return a function that turns this machine into one with a CPU of archspec's."""

    def become(system, machine, cpu):
        def host():
            if system == "Darwin":
                os.write(2, b"noise of sysctl")
            if cpu not in archspec.cpu.TARGETS:
                raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, cpu)
            return archspec.cpu.TARGETS[cpu]

        monkeypatch.setattr(platform, "system", lambda: system)
        monkeypatch.setattr(platform, "machine", lambda: machine)
        monkeypatch.setattr(archspec.cpu, "host", host)

    return become


@pytest.mark.parametrize(
    ("namespace", "system", "machine", "cpu", "grades", "title"),
    [
        ("x86_64", "Linux", "x86_64", "piledriver", "v2 v1", "x86-64-v2"),
        ("x86_64", "Linux", "x86_64", "x86_64_v3", "v3 v2 v1", "x86-64-v3"),
        ("x86_64", "Linux", "x86_64", "zen4", "v4 v3 v2 v1", "x86-64-v4"),
        ("x86_64", "Linux", "x86_64", "alderlake", "v3 v2 v1", "x86-64-v3"),
        ("x86_64", "Windows", "AMD64", "icelake", "v4 v3 v2 v1", "x86-64-v4"),
        # The worst case: an interpreter for x86-64, on Apple CPUs under Rosetta.
        ("aarch64", "Darwin", "x86_64", "m1", f"8.4a 8.3a {A82}", "armv8.4-a"),
        ("aarch64", "Darwin", "x86_64", "m4", f"8.6a {A85}", "armv8.6-a"),
        ("aarch64", "Linux", "aarch64", "neoverse_n1", A82, "armv8.2-a"),
        ("aarch64", "Linux", "aarch64", "neoverse_v2", f"9.0a {A85}", "armv9.0-a"),
        # All that is known is the family.
        ("x86_64", "Linux", "x86_64", "x86_64", "v1", "x86-64-v1"),
        ("aarch64", "Linux", "aarch64", "aarch64", "8a", "armv8-a"),
        ("aarch64", "Windows", "ARM64", "aarch64", "8a", "armv8-a"),
    ],
)
def test_cpus(become, capfd, namespace, system, machine, cpu, grades, title):
    become(system, machine, cpu)
    target = archspec.cpu.TARGETS[cpu]
    provider = PROVIDERS[namespace]()
    with warnings.catch_warnings(), recorded() as trail:
        warnings.simplefilter("error")
        grade, *extensions = provider.supported().items()
    assert grade == (provider.grade, tuple(grades.split()))
    assert {extension for extension, _ in extensions} == target.features
    assert {value for _, value in extensions} == ({("on",)} if target.features else set())
    place, source = SOURCES[system], MACHINE_TYPE if cpu == namespace else SOURCES[system]
    facts = [Fact("CPU level", title, source)]
    if target.vendor != "generic":
        facts.append(Fact("CPU", cpu, source))
    assert provider.facts() == tuple(facts)
    if cpu == namespace:
        assert trail.attempts == [
            (place, "does not tell the model of the CPU", False),
            (source, f"is {machine}, all that is known", True),
        ]
    else:
        assert trail.attempts == [(place, f"shows a CPU that archspec takes for {cpu}", True)]
    (other,) = (factory() for name, factory in PROVIDERS.items() if name != namespace)
    assert (other.supported(), other.facts()) == ({}, ())
    assert capfd.readouterr() == ("", "")
    os.write(2, b"what comes later is seen")
    assert capfd.readouterr() == ("", "what comes later is seen")


@pytest.mark.parametrize("factory", PROVIDERS.values())
@pytest.mark.parametrize(
    ("machine", "cpu"), [("ppc64", "power7"), ("i686", "haswell"), ("", "haswell")]
)
def test_nothing_is_supported_on_other_architectures(become, factory, machine, cpu):
    become("Linux", machine, cpu)
    assert (factory().supported(), factory().facts()) == ({}, ())


@pytest.mark.parametrize("factory", PROVIDERS.values())
def test_a_failing_detection_is_no_error(become, caplog, factory):
    become("Darwin", "x86_64", "no such CPU")
    provider = factory()
    assert (provider.supported(), provider.facts()) == ({}, ())
    [record] = caplog.records
    assert "cannot be identified" in record.getMessage()


@pytest.mark.parametrize(
    ("factory", "machine"), [(X8664Provider, "aarch64"), (AArch64Provider, "x86_64")]
)
def test_other_families_are_told_without_archspec(factory, machine):
    code = (
        "import platform, sys\n"
        f"from {factory.__module__} import {factory.__name__} as Provider\n"
        "platform.system = lambda: 'Linux'\n"
        f"platform.machine = lambda: {machine!r}\n"
        "print(Provider().supported(), Provider().facts(), 'archspec' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "{} () False\n"
