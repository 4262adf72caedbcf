"""The command line beside an interpreter that does nothing, with compiled bytecode.

CPU time, so that other work on the machine counts little.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable, Iterator

from support.environments import clean_environ

from .report import Row, in_turn

_DETECT = "import sys; sys.argv[1:] = ['detect']; from variants_cli.main import main; main()"


def rows() -> Iterator[Row]:
    """Measure."""
    ours, theirs = in_turn(_python(_DETECT), _python("pass"), rounds=60, warmups=3, clock=_children)
    yield Row(
        "variants detect", ours * 1e3, theirs * 1e3, "ms", "python -c pass",
        "at most 250 ms", ours <= 250e-3,
    )  # fmt: skip


def _python(script: str) -> Callable[[], object]:
    command, environ = [sys.executable, "-c", script], clean_environ()
    return lambda: subprocess.run(command, env=environ, check=True, stdout=subprocess.DEVNULL)


def _children() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime
