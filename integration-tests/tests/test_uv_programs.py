"""Programs that `uv-variants run` starts: they find what they would find under plain uv."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from support.index import Index
from support.uvs import Machine, project
from support.wheels import Wheel

PYTHON = sys.executable
Serve = Callable[[Index], Index]
posix = pytest.mark.skipif(os.name == "nt", reason="shell scripts, and processes that are replaced")
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")

REPORT = """
import json, os, sys

def read(path):
    try:
        with open(path, "rb") as file:
            return file.read().decode("latin-1")
    except OSError:
        return ""

print(json.dumps({
    "environ": dict(os.environ),
    "block": sorted(read("/proc/self/environ").split("\\0")),
    "argv": sys.argv,
    "orig_argv": getattr(sys, "orig_argv", []),
    "executable": sys.executable,
    "path": sys.path,
    "flags": str(sys.flags),
    "cwd": os.getcwd(),
    "signals": [line for line in read("/proc/self/status").splitlines() if line[:4] == "SigI"],
    "name": read("/proc/self/comm"),
    "parent": read("/proc/%d/comm" % os.getppid()),
    "modules": sorted(set(sys.modules) & {"sitecustomize", "usercustomize", "signal"}),
    "stdin": sys.stdin.read(),
}))
"""
METADATA = """# /// script
# requires-python = ">=3.10"
# dependencies = ["dep"]
# ///
"""
SHELL = """#!/bin/sh
echo "$0" "$@"
pwd
grep ^SigIgn /proc/self/status
cat /proc/self/environ
cat
"""
NATIVE = "native-1.0.data/scripts/native"

OURS = ("SSL_CERT_FILE", "UV_CACHE_DIR", "XDG_CONFIG_DIRS")
"""The variables that uv-variants adds for tools and builds, and programs that uv runs by itself."""

PROXIES = ("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
"""The same with uvs that read no proxies from files."""

READ_BY_UV = ("script-metadata", "module", "stdin")

RUNS = {
    "python": "python report.py a -c --with b",
    "script": "report.py a b",
    "script-metadata": "with-metadata.py a",
    "module": "-m report a",
    "stdin": "- a b",
    "shell": "./shell.sh a",
    "shell-no-first-line": "./shell-no-first-line a",
    "installed": "dep-tool a",
    "with-native": "--with native native a",
    "env-file": "--env-file variables python report.py",
    "directory": "--directory sub python report.py",
    "missing": "no-such-program",
    "not-executable": "./report.txt",
}

TOOLS = {
    "python-program": "dep-tool a --from x",
    "from-separated": "--from native -- native -c",
    "of-a-dependency": "--from empty native x",
    "no-program": "empty x",
}


def index() -> Index:
    index = Index()
    tool = "#!python\n" + REPORT
    index.add_wheel(Wheel("dep", "1.0", files={"dep-1.0.data/scripts/dep-tool": tool}))
    index.add_wheel(Wheel("empty", "1.0", requires=("native",)))
    index.add_wheel(Wheel("dep-tool", "1.0", files={"dep_tool-1.0.data/scripts/dep-tool": tool}))
    index.add_wheel(Wheel("native", "1.0", files={NATIVE: SHELL}))
    return index


def files(work: Path) -> None:
    """Write what is run into *work*, a project that depends on `dep`."""
    project(work, ["dep"])
    for name in ("report.py", "report.txt", "sub/report.py"):
        path = work / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(REPORT)
    (work / "with-metadata.py").write_text(METADATA + REPORT)
    (work / "variables").write_text(
        "FIRST=1\nHTTP_PROXY=http://nowhere:1\nHTTPS_PROXY=http://nowhere:2\n"
        "COPY=${HTTP_PROXY}-${http_proxy}-${PYTHONPATH}\nQUOTED='a b'\n"
    )
    (work / "shell.sh").write_text(SHELL)
    (work / "shell-no-first-line").write_text(SHELL.partition("\n")[2])
    for name in ("shell.sh", "shell-no-first-line"):
        (work / name).chmod(0o755)


def outcome(
    machine: Machine, program: Path, *arguments: str, stdin: str = "", without: Iterable[str] = ()
) -> dict[str, Any]:
    """Return what *program* says with these arguments, and its exit code.

    Of variables that tell, those called *without* are left out.
    """
    done = subprocess.run(
        [str(program), *arguments],
        capture_output=True,
        encoding="latin-1",
        env={**machine.variables, "ODD": os.fsdecode(b"\xff=\n")},
        cwd=machine.work,
        input=stdin,
        timeout=60,
        check=False,
    )
    # musl ignores two signals that glibc keeps for itself, where uv starts what has a path.
    out = re.sub(r"(SigIgn:\D+\d+)[01]8([01]\d{6})", r"\g<1>00\2", done.stdout)
    # Environments that are made for a command have names of their own.
    out = re.sub(r"(uv-cache)(?:-variants/\w+)?/(\w+-v\d+)/[^/:\"]*", r"\1/\2", out)
    try:
        found: dict[str, Any] = json.loads(out)
    except ValueError:
        kept = [line for line in re.split(r"[\0\n]", out) if line.split("=")[0] not in without]
        found = {"out": kept}
    else:
        for name in without:
            found["environ"].pop(name, None)
        found["block"] = [line for line in found["block"] if line.split("=")[0] not in without]
    messages = [line for line in done.stderr.splitlines() if "install" not in line.lower()]
    return {**found, "code": done.returncode, "messages": messages}


@pytest.fixture
def prepared(every_machine: Machine, serve: Serve) -> Machine:
    """A machine with the project, in the environment that uv has made."""
    machine = every_machine.with_environ(
        {
            "UV_DEFAULT_INDEX": serve(index()).url.rstrip("/"),
            "UV_PYTHON": PYTHON,
            "HTTPS_PROXY": "http://user:password@127.0.0.1:9",
            "PYTHONPATH": str(every_machine.home / "library"),
            "LANG": "C.UTF-8",
        }
    )
    files(machine.work)
    assert machine.plain("sync").code == 0
    return machine


@linux
@pytest.mark.everywhere
def test_programs_find_what_they_find_under_uv(prepared: Machine) -> None:
    runs = {name: f"run {text}" for name, text in RUNS.items()}
    read = {name: runs.pop(name) for name in READ_BY_UV}
    assert not differing(prepared, read, ours(prepared))
    if is_old(prepared):  # there a file cannot set the proxies that are set already
        runs = {name: text for name, text in runs.items() if "--env-file" not in text}
    assert not differing(prepared, runs)


@linux
@pytest.mark.everywhere
def test_tools_find_what_they_find_under_uv(prepared: Machine) -> None:
    runs = {name: f"tool run {text}" for name, text in TOOLS.items()}
    assert not differing(prepared, runs, ours(prepared))


def ours(machine: Machine) -> tuple[str, ...]:
    """Return the names of the variables that uv-variants adds for tools and builds."""
    return (*OURS, *PROXIES, *(name.lower() for name in PROXIES)) if is_old(machine) else OURS


def is_old(machine: Machine) -> bool:
    """Return whether this uv reads no proxies from files."""
    return machine.uv.parent.name in ("uv-0.5.31", "uv-0.8.24")


def differing(machine: Machine, runs: Mapping[str, str], without: Iterable[str] = ()) -> str:
    """Return what differs between uv and `uv-variants`, in lines."""
    found = []
    for name, text in runs.items():
        words = text.split()
        stdin = REPORT if name == "stdin" else "text\n"
        if "metadata" in name:  # uv names the Python differently when it has made the environment
            outcome(machine, machine.uv, *words)
            outcome(machine, machine.program, *words)
        plain = outcome(machine, machine.uv, *words, stdin=stdin, without=without)
        ours = outcome(machine, machine.program, *words, stdin=stdin, without=without)
        found += [
            (name, key, plain.get(key), ours.get(key))
            for key in {*plain, *ours}
            if plain.get(key) != ours.get(key)
        ]
    return "\n".join(map(repr, found))


@posix
def test_exit_codes_and_signals(prepared: Machine) -> None:
    runs = {"exit": "run python -c raise(SystemExit(7))"}
    for number in (signal.SIGTERM, signal.SIGPIPE):
        kill = f"__import__('os').kill(__import__('os').getpid(),{int(number)})"
        runs[f"signal-{number.name}"] = f"run python -c {kill}"
    assert not differing(prepared, runs)


@linux
@pytest.mark.everywhere
def test_a_signal_reaches_the_program(prepared: Machine) -> None:
    # uv 0.5 takes it for one of the terminal, which sends it to all processes.
    interrupt = signal.SIGTERM if is_old(prepared) else signal.SIGINT
    for words, number in (("python wait.py", interrupt), ("python3 wait.py", signal.SIGTERM)):
        (prepared.work / "wait.py").write_text(
            "import os, re, signal, sys\n"
            "def end(*_):\n    os.write(1, b'ended')\n    sys.exit(5)\n"
            f"signal.signal({int(number)}, end)\n"
            "def caught():  # by uv, which starts to do so when the program runs\n"
            "    text = open('/proc/%d/status' % os.getppid()).read()\n"
            "    caught = int(re.search(r'SigCgt:\\s+(\\w+)', text)[1], 16)\n"
            f"    return caught >> {int(number) - 1} & 1\n"
            "while not caught(): pass\n"
            "os.write(1, b'ready\\n')\n"
            "while True: signal.pause()\n"
        )
        process = subprocess.Popen(
            [str(prepared.program), "run", *words.split()],
            env=prepared.variables,
            cwd=prepared.work,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            process.send_signal(number)
            assert process.communicate(timeout=60) == ("ended", None)
            assert process.returncode == 5, words
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
