"""Runs one pip command after the other, each in a process of its own that is forked from here.

Most of the time of a small pip command is spent on importing pip. Here it is imported once: what
the commands of an earlier server of the environment have imported, or else the first command. Run
with the Python of an environment, whose pip it is, and the module that is run as pip. Prints what
the imports printed, then for each job the result, as lines of JSON. Uses nothing but the standard
library.

A job may have a fault: a module of the shim and the line where a function begins. It runs as if
nothing of pip had been imported, and the function raises an error.
"""

import ast
import contextlib
import importlib
import json
import os
import runpy
import sys
import tempfile
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import IO, Any

KNOWN = Path(sys.prefix, "modules.txt")
"""What the commands of an earlier server have imported."""


def main() -> None:
    """Do jobs until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    sys.path.pop(0)  # the folder of this file
    module, found = sys.argv[1], dict[str, None]()
    if module != "pip":
        importlib.import_module(module).watch()
    known = KNOWN.read_text().split() if KNOWN.exists() else []
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
            found.update(dict.fromkeys(names))
            texts = [read(file) for file in (out, err)]
        print(json.dumps([code, *texts]), file=answers, flush=True)
    if not known:
        new = KNOWN.with_name(f"modules-{os.getpid()}.txt")
        new.write_text("\n".join(found))
        new.replace(KNOWN)


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
        if job["fault"]:
            inject(*job["fault"])
        try:
            runpy.run_module(job["module"], run_name="__main__", alter_sys=True)
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


class Injector:
    """Finder and loader of the module with the fault."""

    def __init__(self, name: str, line: int) -> None:
        self._name = name
        self._line = line

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Find that module alone."""
        if name != self._name:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None:
            spec.loader = self  # type: ignore[assignment] # has all methods used
        return spec

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to Python."""

    def exec_module(self, module: ModuleType) -> None:
        """Execute it with the fault."""
        path = str(module.__file__)
        tree = ast.parse(Path(path).read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.lineno == self._line:
                body = node.body[1:] if ast.get_docstring(node) else node.body
                # Where a function handles faults itself, within that.
                inner = body[0].body if isinstance(body[0], (ast.Try, ast.With)) else node.body
                inner.insert(0, ast.parse("raise RuntimeError('injected')").body[0])
        exec(compile(ast.fix_missing_locations(tree), path, "exec"), module.__dict__)


def inject(module: str, line: int) -> None:
    """Have a function fail, as if nothing of pip and the shim had been imported yet."""
    import pep_variants_shim

    for name in [*sys.modules]:
        if name.startswith(("pep_variants_shim.", "pip._internal")):
            del sys.modules[name]
    others = [
        item for item in sys.meta_path if not type(item).__module__.startswith("pep_variants")
    ]
    sys.meta_path[:] = [Injector(f"pep_variants_shim.{module}", line), *others]
    pep_variants_shim.watch()


if __name__ == "__main__":
    main()
