"""Runs one pip command after the other, each in a process of its own that is forked from here.

Most of the time of a small pip command is spent on importing pip. Here it is imported once, by
what a first command has imported. Run with the Python of an environment, whose pip it is, and the
module that is run as pip; jobs come and results go as lines of JSON. Uses nothing but the standard
library.
"""

import contextlib
import importlib
import json
import os
import runpy
import sys
import tempfile
from collections.abc import Callable
from typing import IO, Any


def main() -> None:
    """Do jobs until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    sys.path.pop(0)  # the folder of this file
    module, warm = sys.argv[1], False
    if module != "pip":
        importlib.import_module(module).watch()
    for line in sys.stdin:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            with tempfile.TemporaryFile("w+") as modules:
                job = {**json.loads(line), "module": module}
                code = forked(job, out.fileno(), err.fileno(), modules.fileno())
                if not warm:
                    warm = True
                    modules.seek(0)
                    warm_up(modules.read().split())
            texts = [read(file) for file in (out, err)]
        print(json.dumps([code, *texts]), file=answers, flush=True)


def forked(
    job: dict[str, Any], out: int, err: int, modules: int, before: Callable[[], None] = lambda: None
) -> int:
    """Run the pip of *job* in a process of its own, after *before*; return its exit code."""
    process = os.fork()
    if process:
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    code = 1
    try:
        nothing = os.open(os.devnull, os.O_RDONLY)
        for number, file in enumerate((nothing, out, err)):
            os.dup2(file, number)
        os.environ.clear()
        os.environ.update(job["env"])
        os.chdir(job["cwd"])
        sys.path.insert(0, job["cwd"])
        sys.argv = ["pip", *job["args"]]
        before()
        try:
            runpy.run_module(job.get("module", "pip"), run_name="__main__", alter_sys=True)
            code = 0
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else int(error.code is not None)
        with open(modules, "w", closefd=False) as file:
            file.write("\n".join(sys.modules))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def warm_up(names: list[str]) -> None:
    """Import what a command needs, as far as it can be imported."""
    for name in names:
        if name.partition(".")[0] in ("pip", "pep_variants_shim") and "__main__" not in name:
            with contextlib.suppress(Exception):
                importlib.import_module(name)


def read(file: IO[bytes]) -> str:
    """Return what was written."""
    file.seek(0)
    return file.read().decode()


if __name__ == "__main__":
    main()
