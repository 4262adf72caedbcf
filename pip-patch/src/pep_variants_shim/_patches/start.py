"""pip's own start: the version, the commands, and ``pip --python OTHER``.

pip runs its own files with the other interpreter, where the shim may not be installed: a few lines
of code start it before pip. Imported at every start of pip.
"""

from __future__ import annotations

import os
from types import ModuleType
from typing import Any

from .. import BUILT_IN
from .._guard import Original, fault, is_ours, replace, switch


def patch_version(module: ModuleType) -> None:
    """Add the version of the shim to that of pip."""
    if BUILT_IN:
        return  # the local version of this pip has it

    @replace(module, "get_pip_version", shows=True)
    def get_pip_version(original: Original) -> str:
        return f"{original()} with {own_version()}"


def own_version() -> str:
    """Return name and version of the installed shim.

    pip calls it at every start: `importlib.metadata` would take as long as all the patches.
    """
    package = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120 - faster
    for entry in os.listdir(os.path.dirname(package)):  # noqa: PTH120, PTH208
        name, _, version = entry.partition("-")
        if name in ("pep_variants_shim", "pip_variants") and version.endswith(".dist-info"):
            return f"{name.replace('_', '-')} {version[: -len('.dist-info')]}"
    return "pep-variants-shim (version unknown)"


def patch_create(module: ModuleType) -> None:
    """Run commands again, without variants, after a fault that nothing else has handled."""

    @replace(module, "create_command", shows=True)
    def create_command(original: Original, name: str, **kwargs: Any) -> Any:
        command = original(name, **kwargs)
        run = command.run

        def run_or_again(*args: Any) -> Any:
            try:
                return run(*args)
            except Exception as error:
                # A module of errors is not imported at pip's start.
                is_off = type(error).__name__ == "VariantsOff" and not switch.asked()
                if not (is_off or is_ours(error)):
                    raise
                if not is_off:
                    fault(error)
                switch.tell()
                switch.used = False  # it collects anew
            return run(*args)

        command.run = run_or_again
        return command


_BOOTSTRAP = os.path.join(os.path.dirname(os.path.dirname(__file__)), "_bootstrap.py")  # noqa: PTH118, PTH120

_CODE = """\
import runpy, sys
if sys.path[:1] == ['']:
    sys.path[0] = {folder!r}
if sys.version_info >= (3, 10):
    runpy.run_path({bootstrap!r})
runpy.run_path({runner!r}, run_name='__main__')
"""


def patch_runner(module: ModuleType) -> None:
    """Run the shim's bootstrap before pip."""
    if BUILT_IN:
        return  # the files that are run include it

    @replace(module, "get_runnable_pip")
    def get_runnable_pip(original: Original) -> str:
        runner: str = original()
        # Older pips import it from the module where it is patched already.
        patched = runner.startswith("-c")
        if patched or not os.path.isfile(_BOOTSTRAP):  # noqa: PTH113 - text; may be in a zip file
            return runner
        # The first entry of sys.path if Python ran the runner: its folder, or the zip file.
        folder = os.path.dirname(runner) if runner.endswith(".py") else runner  # noqa: PTH120
        code = _CODE.format(folder=folder, bootstrap=_BOOTSTRAP, runner=runner)
        return f"-c{code}"  # one argument instead of one
