"""``pip --python OTHER``: the shim goes along to where it is not installed.

pip starts the other interpreter on its own files. In whose environment the shim is not: it is
found by a few lines of code that run before pip does.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import ModuleType

from .. import BUILT_IN
from ..hook import replace

_BOOTSTRAP = os.path.join(os.path.dirname(os.path.dirname(__file__)), "bootstrap.py")  # noqa: PTH118, PTH120

_CODE = """\
import runpy, sys
if sys.path[:1] == ['']:
    sys.path[0] = {folder!r}
if sys.version_info >= (3, 10):
    runpy.run_path({bootstrap!r})
runpy.run_path({runner!r}, run_name='__main__')
"""


def patch_runner(module: ModuleType) -> None:
    """Make pip run the shim's bootstrap first, then itself."""
    if BUILT_IN:
        return  # it is in the files that are run

    @replace(module, "get_runnable_pip")
    def get_runnable_pip(original: Callable[[], str]) -> str:
        runner = original()
        # Old pips define it where it is patched first, and import it from there.
        patched = runner.startswith("-c")
        if patched or not os.path.isfile(_BOOTSTRAP):  # noqa: PTH113 - text; may be in a zip file
            return runner
        # Where Python would look first if it were given the runner: beside a file, in a zip file.
        folder = os.path.dirname(runner) if runner.endswith(".py") else runner  # noqa: PTH120
        code = _CODE.format(folder=folder, bootstrap=_BOOTSTRAP, runner=runner)
        return f"-c{code}"  # one argument, in the place of one
