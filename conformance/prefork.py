"""Run a program many times without importing it many times: ``python prefork.py MODULE:FUNCTION``.

It runs in the environment of the program, and imports nothing of the corpus. Every line on stdin
is a JSON object: ``arguments`` (``sys.argv``), ``variables`` (the environment), ``directory``,
``output`` (a file for what is printed) and ``seconds``. The answer is a line with the exit code.
Every run is a process of its own, forked after the imports: none sees what another left behind.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any


def main() -> None:
    """Answer jobs until stdin is closed."""
    name, _, function = sys.argv[1].partition(":")
    entry = getattr(importlib.import_module(name), function)
    for module in sys.argv[2:]:
        importlib.import_module(module)
    for line in sys.stdin.buffer:
        print(_run(entry, json.loads(line)), flush=True)


def _run(entry: Callable[[], Any], job: dict[str, Any]) -> int:
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.setpgid(0, 0)
            code = _child(entry, job)
        finally:
            os._exit(code)
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(child, signal.SIGKILL))
    signal.alarm(job["seconds"])
    _, status = os.waitpid(child, 0)
    signal.alarm(0)
    return os.waitstatus_to_exitcode(status)


def _child(entry: Callable[[], Any], job: dict[str, Any]) -> int:
    os.environ.clear()
    os.environ.update(job["variables"])
    os.chdir(job["directory"])
    output = os.open(job["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.argv = job["arguments"]
    try:
        code = entry()
    except SystemExit as error:
        code = error.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 70
    sys.stdout.flush()
    sys.stderr.flush()
    if code is None:
        return 0
    return code if isinstance(code, int) else 1


if __name__ == "__main__":
    main()
