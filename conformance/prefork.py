"""Run a program many times without importing it many times: ``python prefork.py MODULE:FUNCTION``.

It runs in the environment of the program, and imports nothing of the corpus. Every line on stdin
is a JSON object: ``arguments`` (``sys.argv``), ``variables`` (the environment), ``directory``,
``output`` (a file for what is printed) and ``seconds``. The answer is a line with the exit code.
Every run is a process of its own, forked after the imports: none sees what another left behind.
What a run imports besides is imported before the next one is forked. More functions on the command
line are called once before all runs, for what they keep in a cache.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any


def main() -> None:
    """Answer jobs until stdin is closed."""
    entry = _function(sys.argv[1])
    for name in sys.argv[2:]:
        with suppress(ImportError, AttributeError):
            _function(name)()
    for line in sys.stdin.buffer:
        job = json.loads(line)
        gc.freeze()
        print(_run(entry, job), flush=True)
        _import_as(Path(job["output"] + ".modules"))


def _function(name: str) -> Callable[[], Any]:
    """Return the function ``MODULE:FUNCTION``."""
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)  # type: ignore[no-any-return]


def _import_as(path: Path) -> None:
    """Import the modules that a run lists in the file *path*, if it got so far."""
    with suppress(FileNotFoundError):
        names = path.read_text("utf-8").split()
        path.unlink()
        for name in names:
            # What is made while the program runs cannot be imported.
            with suppress(ImportError):
                importlib.import_module(name)


def _run(entry: Callable[[], Any], job: dict[str, Any]) -> int:
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.setpgid(0, 0)
            known = set(sys.modules)
            code = _child(entry, job)
            found = [name for name in sys.modules if name not in known]
            Path(job["output"] + ".modules").write_text("\n".join(found), "utf-8")
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
