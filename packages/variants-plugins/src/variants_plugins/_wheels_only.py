"""Runs pip without letting it build anything; a script, run by the environment's Python.

``--only-binary`` counts for what pip finds on indexes only: a dependency that names the URL of a
source distribution or repository is built all the same, with the installer's environment variables
and outside of the sandbox. pip builds in processes, which is where this stops it.

Arguments: the path of pip's ``__pip-runner__.py``, or a dash for the pip of this environment, and
those for pip.
"""

from __future__ import annotations

import os
import runpy
import sys

_REPOSITORY_TOOLS = ("bzr", "git", "hg", "svn")


def refuse_builds(event: str, arguments: tuple[object, ...]) -> None:
    """Do not start Python, which builds, nor what gets the sources to build; an audit hook.

    Raises:
        OSError: pip prints its message on one line.
    """
    if event != "subprocess.Popen":
        return
    executable, command = arguments[0], arguments[1]
    words = list(map(str, command)) if isinstance(command, (list, tuple)) else [str(command)]
    program = str(executable or words[0])
    tool = os.path.splitext(os.path.basename(program))[0].lower()  # noqa: PTH119, PTH122
    # packaging asks another Python for the version of macOS so.
    asks_version = words[1:2] == ["-sS"]
    if tool in _REPOSITORY_TOOLS or (program == sys.executable and not asks_version):
        raise OSError(
            "plugins are installed from wheels only, and one of the packages has no wheel"
        )


def main() -> None:
    """Run pip with the arguments of this script."""
    _, pip, *arguments = sys.argv
    sys.addaudithook(refuse_builds)
    sys.argv = [pip, *arguments]
    if pip == "-":
        runpy.run_module("pip", run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(pip, run_name="__main__")


if __name__ == "__main__":
    main()
