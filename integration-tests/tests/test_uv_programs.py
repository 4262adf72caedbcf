"""Programs that `uv-variants run` starts: they find what they would find under plain uv."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from support.index import Index
from support.uvs import Machine, project
from support.wheels import Wheel

PYTHON = sys.executable
Serve = Callable[[Index], Index]
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

OURS = {"SSL_CERT_FILE", "UV_CACHE_DIR", "XDG_CONFIG_DIRS"}
"""The variables that uv-variants adds for programs that uv runs by itself."""
PROXIES = {"ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"}
"""The same with uvs that read no proxies from files."""
KILL = "run python -c __import__('os').kill(__import__('os').getpid(),{})"
RUNS = {
    "python": "run python report.py a -c --with b",
    "script": "run report.py a b",
    "shell": "run ./shell.sh a",
    "shell-no-first-line": "run ./shell-no-first-line a",
    "installed": "run dep-tool a",
    "with-native": "run --with native native a",
    "env-file": "run --env-file variables python report.py",
    "directory": "run --directory sub python report.py",
    "missing": "run no-such-program",
    "not-executable": "run ./report.txt",
    "exit": "run python -c raise(SystemExit(7))",
    "terminated": KILL.format(int(signal.SIGTERM)),
    "broken pipe": KILL.format(int(signal.SIGPIPE)),
}
READ_BY_UV = {
    "script-metadata": "run with-metadata.py a",
    "module": "run -m report a",
    "stdin": "run - a b",
    "tool": "tool run dep-tool a --from x",
    "tool-separated": "tool run --from native -- native -c",
    "tool-of-a-dependency": "tool run --from empty native x",
    "tool-without-program": "tool run empty x",
}
"""Programs that uv runs by itself."""


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
        "export SSL_CERT_FILE='/$own.pem' # ours\nXDG_CONFIG_DIRS=\"${HOME}/etc\"\n"
    )
    (work / "shell.sh").write_text(SHELL)
    (work / "shell-no-first-line").write_text(SHELL.partition("\n")[2])
    for name in ("shell.sh", "shell-no-first-line"):
        (work / name).chmod(0o755)


def outcome(
    machine: Machine, program: Path, *arguments: str, stdin: str = "", without: Collection[str] = ()
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


def is_old(machine: Machine) -> bool:
    """Return whether this uv reads no proxies from files."""
    return machine.uv.parent.name in ("uv-0.5.31", "uv-0.8.24")


@linux
@pytest.mark.everywhere
def test_programs_find_what_they_find_under_uv(prepared: Machine) -> None:
    """It takes long: each of twenty programs is started by uv and by uv-variants."""
    added = OURS
    if is_old(prepared):
        added = added | PROXIES | {name.lower() for name in PROXIES}
    found = []
    for name, text in (RUNS | READ_BY_UV).items():
        if name == "env-file" and is_old(prepared):
            continue  # there a file cannot set the proxies that are set already
        without = added if name in READ_BY_UV else set()
        stdin = REPORT if name == "stdin" else "text\n"
        both = (prepared.uv, prepared.program)
        for _ in range(1 + ("metadata" in name)):  # uv has made the environment when it is run
            plain, ours = (
                outcome(prepared, each, *text.split(), stdin=stdin, without=without)
                for each in both
            )
        found += [
            (name, key, plain.get(key), ours.get(key))
            for key in {*plain, *ours}
            if plain.get(key) != ours.get(key)
        ]
    assert not found, "\n".join(map(repr, found))


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
        process = prepared.start(prepared.program, "run", *words.split(), stdout=subprocess.PIPE)
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            process.send_signal(number)
            assert process.communicate(timeout=60) == ("ended", None)
            assert process.returncode == 5, words
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
