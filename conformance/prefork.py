"""Run a program many times, forked after its imports: ``python prefork.py MODULE:FUNCTION``.

It runs in the environment of the program. Every line on stdin is a JSON object: ``arguments``
(``sys.argv``), ``variables`` (the environment) and ``directory``, where ``.output`` gets what is
printed. The answer is a line with the exit code. What a run imports besides is imported before the
next one is forked. More functions on the command line are called once, for their caches.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

SECONDS = 120


def main() -> None:
    """Answer jobs until stdin is closed."""
    entry = function(sys.argv[1])
    for name in sys.argv[2:]:
        with suppress(ImportError, AttributeError):
            function(name)()
    for line in sys.stdin.buffer:
        job = json.loads(line)
        modules = Path(job["directory"], ".modules")
        gc.freeze()  # what is there already is left alone when a run ends
        child = os.fork()
        if child == 0:
            become(job)
            try:
                sys.exit(entry())
            finally:
                modules.write_text("\n".join(sys.modules), "utf-8")
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        with suppress(FileNotFoundError):
            for name in set(modules.read_text("utf-8").split()) - sys.modules.keys():
                # What is made while the program runs cannot be imported.
                with suppress(ImportError):
                    importlib.import_module(name)
            modules.unlink()


def function(name: str) -> Callable[[], Any]:
    """Return the function ``MODULE:FUNCTION``."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)  # type: ignore[no-any-return]


def become(job: Mapping[str, Any]) -> None:
    """Make this process the one of a run; it is killed if it takes too long."""
    signal.alarm(SECONDS)
    os.environ.clear()
    os.environ.update(job["variables"])
    os.chdir(job["directory"])
    output = os.open(".output", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for number, opened in enumerate((os.open(os.devnull, os.O_RDONLY), output, output)):
        os.dup2(opened, number)
    sys.argv = job["arguments"]


if __name__ == "__main__":
    main()
