"""What archspec says of a CPU is kept, and counts for that CPU and that archspec alone."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import archspec
import archspec.cpu
import pytest
from cpu_machines import TARGETS, forget, replace_file

from pep_variants.detect.attempts import recorded
from pep_variants.detect.providers import cpu_cache
from pep_variants.detect.providers.cpu import detected_cpu

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is kept")

LINUX = sorted(path.name for path in TARGETS.glob("linux-*"))
HASWELL = ("linux-rhel7-haswell", "x86_64")


@pytest.fixture(autouse=True)
def records(tmp_path, monkeypatch):
    """The directory of the records."""
    monkeypatch.setenv("VARIANTS_CACHE_DIR", str(tmp_path / "caches"))
    return tmp_path / "caches" / "cpu"


@pytest.fixture
def asked(monkeypatch):
    """How often archspec was asked."""
    calls = []
    host = archspec.cpu.host

    def counted():
        calls.append(1)
        forget()
        return host()

    monkeypatch.setattr(archspec.cpu, "host", counted)
    return calls


def family_of(name):
    target = archspec.cpu.TARGETS.get(name.split("-")[2])
    return target.family.name if target else "x86_64"


@pytest.mark.parametrize("name", LINUX)
def test_kept_is_what_archspec_says(machine, asked, name):
    family = family_of(name)
    machine(name, family)
    plain = cpu_cache.Cpu.of(archspec.cpu.host())
    asked.clear()
    assert detected_cpu(family) == plain
    assert detected_cpu(family) == plain
    assert len(asked) == 1


def test_every_cpu_has_its_own(machine, asked, monkeypatch, records):
    monkeypatch.setattr(cpu_cache, "_RECORDS", 1)  # they all replace one another
    names = [name for name in LINUX if family_of(name) == "x86_64"]
    for name in (*names, *reversed(names)):
        machine(name, "x86_64")
        assert detected_cpu("x86_64") == cpu_cache.Cpu.of(archspec.cpu.host())
    assert len(list(records.iterdir())) == 1


def test_records_are_bounded(machine, records):
    for name in LINUX:
        machine(name, family_of(name))
        detected_cpu(family_of(name))
    kept = list(records.iterdir())
    assert 4 < len(kept) <= 16
    assert {path.name for path in kept} <= {str(number) for number in range(16)}


@pytest.mark.parametrize(
    "change",
    [
        lambda monkeypatch: monkeypatch.setattr(archspec, "__version__", "9"),
        lambda monkeypatch: monkeypatch.setenv("ARCHSPEC_CPU_DIR", "/nowhere"),
        lambda monkeypatch: monkeypatch.setenv("ARCHSPEC_EXTENSION_CPU_DIR", "/nowhere"),
    ],
)
def test_another_archspec_is_asked(machine, asked, monkeypatch, change):
    machine(*HASWELL)
    first = detected_cpu("x86_64")
    change(monkeypatch)
    assert detected_cpu("x86_64") == first
    assert len(asked) == 2


def test_edited_data_of_archspec(machine, asked, monkeypatch, tmp_path):
    machine(*HASWELL)
    first = detected_cpu("x86_64")
    data = tmp_path / "json" / "cpu" / "microarchitectures.json"
    data.parent.mkdir(parents=True)
    data.write_text("{}")
    monkeypatch.setattr(archspec, "__file__", str(tmp_path / "__init__.py"))
    for time in (1, 1, 2):
        os.utime(data, (time, time))
        assert detected_cpu("x86_64") == first
    assert len(asked) == 3
    data.unlink()  # as in a zip file
    assert detected_cpu("x86_64") == first
    assert len(asked) == 4


def test_another_machine_type(machine, monkeypatch):
    machine(*HASWELL)
    assert detected_cpu("x86_64").name == "haswell"
    machine("linux-rhel7-haswell", "riscv64")
    forget()
    assert detected_cpu("x86_64") is None
    assert detected_cpu("riscv64").name == "riscv64"
    forget()
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    assert detected_cpu("x86_64").name == "haswell"


def test_clock_rate_does_not_matter(machine, asked, monkeypatch, tmp_path):
    machine(*HASWELL)
    detected_cpu("x86_64")
    text = (TARGETS / "linux-rhel7-haswell").read_text()
    assert "cpu MHz" in text
    lines = ["cpu MHz : 1" if line.startswith("cpu MHz") else line for line in text.splitlines()]
    (tmp_path / "linux-changed").write_text("\n".join(lines))
    replace_file(monkeypatch, "/proc/cpuinfo", tmp_path / "linux-changed")
    assert detected_cpu("x86_64").name == "haswell"
    assert len(asked) == 1
    (tmp_path / "linux-changed").write_text(text.replace(" avx2 ", " "))
    assert detected_cpu("x86_64").name != "haswell"
    assert len(asked) == 2


def test_attempts_are_those_of_archspec(machine, asked):
    machine(*HASWELL)
    detected_cpu("x86_64")
    with recorded() as trail:
        detected_cpu("x86_64")
    assert "archspec takes it for haswell" in trail.attempts[0].answer
    assert len(asked) == 2


def damaged():
    """Yield functions from the text of a record to bytes that must not count."""
    yield lambda text: b""
    yield lambda text: b"\xff\xfe\0"
    yield lambda text: b"\0" * 100_000
    yield lambda text: text.encode()[:-1]
    yield lambda text: text.encode()[: len(text) // 2]
    yield lambda text: (text + "\n").encode()
    yield lambda text: (text * 100).encode()
    yield lambda text: text.replace("haswell\nx86_64\n", "haswell\n\n").encode()
    yield lambda text: text.replace("haswell\nx86_64\n", "has well\nx86_64\n").encode()
    yield lambda text: text.replace("haswell\nx86_64\n", "\x1b[31m\nx86_64\n").encode()
    yield lambda text: text.replace("haswell\nx86_64\n", "haswell\naarch64\n").encode()
    yield lambda text: text.replace("avx avx2", "avx  avx2").encode()
    yield lambda text: text.replace("avx avx2", "ävx avx2").encode()
    yield lambda text: text.replace("CPU 1", "CPU 0").encode()


@pytest.mark.parametrize("damage", list(damaged()))
def test_damaged_records_do_not_count(machine, asked, records, damage):
    machine(*HASWELL)
    first = detected_cpu("x86_64")
    (path,) = records.iterdir()
    good = path.read_bytes()
    path.write_bytes(damage(good.decode()))
    assert path.read_bytes() != good
    assert detected_cpu("x86_64") == first
    assert len(asked) == 2
    assert path.read_bytes() == good


@pytest.mark.parametrize("name", ["directory", "pipe", "dangling"])
def test_something_else_in_its_place(machine, records, name):
    machine(*HASWELL)
    first = detected_cpu("x86_64")
    (path,) = records.iterdir()
    path.unlink()
    if name == "directory":
        path.mkdir()
    elif name == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("nowhere")
    assert detected_cpu("x86_64") == first


@pytest.mark.parametrize("place", ["record", "directory"])
def test_what_others_can_write_does_not_count(machine, asked, records, place):
    machine(*HASWELL)
    first = detected_cpu("x86_64")
    (path,) = records.iterdir()
    path.write_text(path.read_text().replace("haswell\nx86_64\n", "doctored\nx86_64\n"))
    assert detected_cpu("x86_64").name == "doctored"  # the user may
    (path if place == "record" else records).chmod(0o777)
    assert detected_cpu("x86_64") == first
    assert len(asked) == 2


def test_where_nothing_can_be_written(machine, asked, records):
    machine(*HASWELL)
    records.parent.write_text("not a directory")
    assert detected_cpu("x86_64").name == "haswell"
    assert detected_cpu("x86_64").name == "haswell"
    assert len(asked) == 2
    assert records.parent.read_text() == "not a directory"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
def test_root_writes_nothing_into_the_home_of_another_user(machine, tmp_path):
    machine(*HASWELL)
    os.chown(tmp_path, 12345, 12345)
    assert detected_cpu("x86_64").name == "haswell"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", None])
def test_unreadable_cpuinfo_is_not_kept(machine, monkeypatch, records, tmp_path, text):
    machine(*HASWELL)
    if text is not None:
        (tmp_path / "cpuinfo").write_text(text)
    replace_file(monkeypatch, "/proc/cpuinfo", tmp_path / "cpuinfo")
    assert detected_cpu("x86_64").name == "x86_64"
    assert not records.exists()


def test_system_and_machine_are_those_of_platform():
    code = (
        "import sys; from pep_variants.detect.providers.cpu_cache import system_and_machine\n"
        "first, light = system_and_machine(), 'platform' not in sys.modules\n"
        "import platform; print(first == (platform.system(), platform.machine()), light)\n"
        "platform.machine = lambda: 'vax'; print(system_and_machine()[1])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True True\nvax\n"


def test_many_processes(records):
    code = (
        "import platform; from pep_variants.detect.providers.cpu import detected_cpu\n"
        "print(sorted(detected_cpu(platform.machine()).features))"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(12)
    ]
    answers = {process.communicate()[0] for process in processes}
    assert answers == {f"{sorted(archspec.cpu.host().features)}\n"}
    assert [process.returncode for process in processes] == [0] * 12
    assert len(list(records.iterdir())) == 1


def test_the_second_run_does_without_archspec():
    code = (
        "import platform, sys; from pep_variants.detect.providers.cpu import detected_cpu\n"
        "detected_cpu(platform.machine())\n"
        "print(*{'archspec.cpu', 'json', 'subprocess', 'platformdirs'} & {*sys.modules})"
    )
    for expected in (True, False):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert ("archspec.cpu" in done.stdout.split()) is expected
    assert done.stdout == "\n"
    assert Path(archspec.__file__).exists()
