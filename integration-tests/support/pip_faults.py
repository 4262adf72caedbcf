"""Runs pip commands, each with a fault in one function of the shim.

Run with the Python of an environment, whose pip and shim they are; gets jobs as JSON, and prints
results as JSON. Each job runs in a process that is forked from here, where only what pip bundles is
imported. A fault is a module of the shim and the line where the function begins; in the source that
is compiled there the function raises an error. Uses nothing but the standard library.
"""

import ast
import contextlib
import importlib
import json
import os
import sys
import tempfile
from functools import partial
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from pip_server import forked, read

BUNDLED = "cachecontrol packaging.tags pygments requests resolvelib rich.console rich.progress"


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
    """Have a function fail, as if nothing of the shim had been imported yet."""
    import pep_variants_shim

    # What pip bundles imports a few modules of pip.
    for name in [*sys.modules]:
        if name.startswith(("pep_variants_shim.", "pip._internal")):
            del sys.modules[name]
    known = [item for item in sys.meta_path if not type(item).__module__.startswith("pep_variants")]
    sys.meta_path[:] = [Injector(f"pep_variants_shim.{module}", line), *known]
    pep_variants_shim.watch()


def main() -> None:
    """Do the jobs in standard input."""
    jobs = json.load(sys.stdin)
    sys.path.pop(0)  # the folder of this file
    for name in BUNDLED.split():
        with contextlib.suppress(ImportError):
            importlib.import_module(f"pip._vendor.{name}")
    answers = os.fdopen(os.dup(1), "w")
    results = []
    for job in jobs:
        with (
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
            tempfile.TemporaryFile("w+") as modules,
        ):
            before = partial(inject, *job["fault"])
            code = forked(job, out.fileno(), err.fileno(), modules.fileno(), before)
            results.append([code, read(out), read(err)])
    json.dump(results, answers)
    answers.flush()


if __name__ == "__main__":
    main()
