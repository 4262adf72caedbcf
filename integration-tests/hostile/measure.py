"""Run a command in a prepared place, and return what it printed and what it cost.

`run` starts this file as a process of its own, small and without other modules: Linux counts the
memory of the process that forks as a child's.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

PATIENCE = 10.0
"""Seconds that processes of a client may go on after it."""
OUTPUT_BYTES = 4 << 20
"""As much of each output is kept."""
PASSED_ON = ("PATH", "LANG")
"""Variables of this process that a client sees as well."""
ADDRESS_SPACE = 8 << 30
"""Bytes of a process: an attack that succeeds must not take down this machine."""


class Run(NamedTuple):
    """How a command ended.

    Attributes:
        code: exit status; negative for a signal.
        output: stdout and stderr.
        cpu: seconds, of it and all processes that it started.
        memory: bytes, the most that one of these processes had.
        seconds: it took.
        timed_out: it was killed after its time.
        left: processes that it started went on after it and had to be killed; on Linux only.
    """

    code: int
    output: str
    cpu: float
    memory: int
    seconds: float
    timed_out: bool
    left: bool


class Place:
    """A user's machine: the directories `root`, `work`, `home`, `target`, empty at first."""

    def __init__(self, root: Path) -> None:
        """Name the directories; `create` makes them."""
        self.root = root
        self.work, self.home, self.target = root / "work", root / "home", root / "target"

    def create(self) -> None:
        """Make the directories."""
        for folder in (self.work, self.home, self.target, self.root / "tmp"):
            folder.mkdir(parents=True)

    def variables(self, more: Mapping[str, str]) -> dict[str, str]:
        """Return the environment variables of a client here."""
        return {
            **{name: os.environ[name] for name in PASSED_ON if name in os.environ},
            "HOME": str(self.home),
            "TMPDIR": str(self.root / "tmp"),
            "XDG_CONFIG_DIRS": str(self.root / "etc"),
            "PYTHONDONTWRITEBYTECODE": "1",
            **more,
        }


def run(
    command: Sequence[str],
    place: Place,
    variables: Mapping[str, str],
    seconds: float,
    patience: float = PATIENCE,
) -> Run:
    """Run *command* in the working directory of *place* for *seconds* at most."""
    outputs = [place.root / "out", place.root / "err"]
    done = subprocess.run(
        [sys.executable, "-I", "-S", __file__, str(seconds), str(patience), *outputs, *command],
        cwd=place.work,
        env=place.variables(variables),
        check=True,
        stdout=subprocess.PIPE,
        timeout=seconds + 60,
    )
    texts = []
    for path in outputs:
        with path.open("rb") as file:
            texts.append(file.read(OUTPUT_BYTES).decode("utf-8", "replace"))
    return Run(output="".join(texts), **json.loads(done.stdout))


class Costs:
    """What the command and the processes that it leaves behind cost, see `Run`."""

    def __init__(self) -> None:
        """Have processes without a parent become children of this one, on Linux."""
        self.cpu = 0.0
        self.memory = 0
        if sys.platform == "linux":
            import ctypes

            ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER

    def wait(self, process: int, options: int = 0) -> int | None:
        """Wait for *process*, -1 for any; return its exit status, None if it still runs."""
        number, status, usage = os.wait4(process, options)
        if number == 0:
            return None
        self.cpu += usage.ru_utime + usage.ru_stime
        unit = 1 if sys.platform == "darwin" else 1024
        self.memory = max(self.memory, usage.ru_maxrss * unit)
        return os.waitstatus_to_exitcode(status)

    def wait_for_the_rest(self, patience: float) -> bool:
        """Wait for processes that the command left; return whether any had to be killed."""
        if sys.platform != "linux":
            return False
        end = time.monotonic() + patience
        killed = False
        while True:
            try:
                if self.wait(-1, os.WNOHANG) is None:
                    if time.monotonic() > end:
                        own = Path(f"/proc/self/task/{os.getpid()}/children").read_text("ascii")
                        for child in own.split():
                            os.kill(int(child), signal.SIGKILL)
                            killed = True
                    time.sleep(0.02)
            except ChildProcessError:
                return killed


def main(seconds: str, patience: str, out: str, err: str, *command: str) -> None:
    """Run *command* and print what it cost."""
    costs = Costs()
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    start = time.monotonic()
    timed_out = threading.Event()
    with Path(out).open("wb") as stdout, Path(err).open("wb") as stderr:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )

        def end() -> None:
            timed_out.set()
            os.killpg(process.pid, signal.SIGKILL)

        watch = threading.Timer(float(seconds), end)
        watch.start()
        code = costs.wait(process.pid)
        watch.cancel()
        left = costs.wait_for_the_rest(float(patience))
    result = {"code": code, "cpu": costs.cpu, "memory": costs.memory, "left": left}
    result |= {"seconds": time.monotonic() - start, "timed_out": timed_out.is_set()}
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
