"""Runs one pip command after the other, each in a process of its own that is forked from here.

Most of the time of a small pip command is spent on importing pip. Here it is imported once: what
the commands of an earlier server of the environment have imported, or else the first command. Run
with the Python of an environment, whose pip it is, the module that is run as pip, the file that
names what is imported, and the last names of what each command imports by itself. Prints what the
imports printed, then for each job the result, as lines of JSON. Uses nothing but the standard
library.
"""

import contextlib
import importlib
import json
import os
import runpy
import sys
import tempfile
from pathlib import Path
from typing import IO, Any


def main() -> None:
    """Do jobs until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    sys.path.pop(0)  # the folder of this file
    module, path, found = sys.argv[1], Path(sys.argv[2]), dict[str, None]()
    if module != "pip":
        importlib.import_module(module).watch()
    known = path.read_text().split() if path.exists() else []
    with tempfile.TemporaryFile() as said:
        stderr = os.dup(2)
        os.dup2(said.fileno(), 2)
        warm_up(known)
        sys.stderr.flush()
        os.dup2(stderr, 2)
        print(json.dumps(read(said)), file=answers, flush=True)
    for line in sys.stdin:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            with tempfile.TemporaryFile() as modules:
                job = {**json.loads(line), "module": module}
                code = forked(job, out.fileno(), err.fileno(), modules.fileno())
                names = read(modules).split()
            if not known and not found:
                warm_up(names)
                keep(path, names)
            found.update(dict.fromkeys(names))
            texts = [read(file) for file in (out, err)]
        print(json.dumps([code, *texts]), file=answers, flush=True)
    if not known:
        keep(path, [*found])


def forked(job: dict[str, Any], out: int, err: int, modules: int) -> int:
    """Run the pip of *job* in a process of its own; return its exit code."""
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
        try:
            runpy.run_module(job["module"], run_name="__main__", alter_sys=True)
            code = 0
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else int(error.code is not None)
        os.write(modules, "\n".join(sys.modules).encode())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def warm_up(names: list[str]) -> None:
    """Import what a command needs, as far as it can be imported."""
    for name in names:
        parts = name.split(".")
        if parts[0] in ("pip", "pep_variants_shim") and not {"__main__", *sys.argv[3:]} & {*parts}:
            with contextlib.suppress(Exception):
                importlib.import_module(name)


def keep(path: Path, names: list[str]) -> None:
    """Write what commands import, for the next server; several may do so at once."""
    new = path.with_name(f"{path.stem}-{os.getpid()}.txt")
    new.write_text("\n".join(names))
    new.replace(path)


def read(file: IO[bytes]) -> str:
    """Return what was written."""
    file.seek(0)
    return file.read().decode()


if __name__ == "__main__":
    main()
