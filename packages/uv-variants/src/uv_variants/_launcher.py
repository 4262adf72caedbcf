"""The program that uv starts in place of another, to give it the user's environment variables.

uv itself runs with variables of ours, which its children inherit. ``python -I -S launcher.py
program UV … -- PROGRAM …`` becomes PROGRAM, ``… python …`` the same Python with these arguments.
The process is replaced, so that its variables are the user's from its first instruction.

The file runs in any Python that uv may find (3.8 and newer), and imports what is loaded anyway:
every program waits for it.
"""

# ruff: noqa: PTH118, PTH120 - pathlib would take as long as the rest

from __future__ import annotations

import os
import sys
from typing import NoReturn

STATE = "_UV_VARIANTS_RESTORED"
"""Variable with the user's values, as `programs` writes it."""


def restored() -> dict[str, str]:
    """Return the variables of this process with the user's values."""
    environ = dict(os.environ)
    for item in (STATE, *environ[STATE].split(";")):
        name, known, value = item.partition("=")
        environ.pop(name, None)
        if known:
            environ[name] = os.fsdecode(bytes.fromhex(value))
    return dict(sorted(environ.items(), key=lambda item: os.fsencode(item[0])))  # as uv sorts them


def become(path: str, arguments: list[str], environ: dict[str, str]) -> NoReturn:
    """Replace this process by the program at *path*.

    Raises:
        OSError: it cannot be started.
    """
    import _signal  # type: ignore[import-not-found]  # `signal` imports `enum`

    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # Ctrl-C ends it without a traceback
    if os.name == "nt":
        _run_on_windows(path, arguments, environ)
    for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores them, and the program would as well
        number = getattr(_signal, name, None)
        if number is not None:
            _signal.signal(number, _signal.SIG_DFL)
    os.execve(path, arguments, environ)  # noqa: S606 - no shell is wanted


def run_program(arguments: list[str], environ: dict[str, str]) -> NoReturn:
    """Become a program, found as uv finds it; *arguments* are uv's own, up to ``--``, and its."""
    program = arguments[arguments.index("--") + 1 :]
    candidates = [program[0]]
    if not os.path.dirname(program[0]):
        folders = environ.get("PATH", os.defpath).split(os.pathsep)
        candidates = [os.path.join(folder, program[0]) for folder in folders]
    for candidate in candidates:
        try:
            become(candidate, program, environ)
        except OSError:
            continue
    # uv says why, in words that differ from version to version.
    become(arguments[0], arguments, environ)


def _run_on_windows(path: str, arguments: list[str], environ: dict[str, str]) -> NoReturn:
    """Run a program as a child, and exit with its code: Windows cannot replace a process."""
    import shutil
    import signal
    import subprocess

    found = shutil.which(path, path=environ.get("PATH")) or path
    # The console sends Ctrl-C to all of its processes; the program decides what it means.
    signal.signal(signal.SIGINT, lambda *_: None)
    sys.exit(subprocess.Popen([found, *arguments[1:]], env=environ).wait())


def main() -> NoReturn:
    """Run what the arguments say."""
    environ = restored()
    kind, *arguments = sys.argv[1:]
    if kind == "program":
        run_program(arguments, environ)
    called = getattr(sys, "orig_argv", [sys.executable])[0]
    path = called if os.path.isabs(called) else sys.executable  # noqa: PTH117
    become(path, [called, *arguments], environ)


if __name__ == "__main__":
    main()
