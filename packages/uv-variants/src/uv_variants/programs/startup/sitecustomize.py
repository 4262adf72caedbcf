"""What uv starts in place of a program, to give that the user's own environment variables.

uv itself runs with variables of ours (the proxy, its certificates, a cache directory). Its children
inherit them, and this file puts back what the user had, in one of two ways:

- as a program: ``python -I -S sitecustomize.py program …`` becomes the program that the further
  arguments name, ``… python …`` the same Python with these arguments, and ``… tool …`` a program of
  the environment that uv has made for a tool.
- as the module that Python imports when it starts, from a folder in ``PYTHONPATH``: the process
  becomes the same Python again, with the same arguments. So scripts, modules, the backends of
  builds and ``keyring`` are caught.

In both cases the process is replaced, so that its variables are the user's from its first
instruction. The file runs in any Python that uv may find (3.8 and newer), and imports what is
loaded anyway: every program waits for it.
"""

# ruff: noqa: PTH100, PTH110, PTH117, PTH118, PTH120, PTH208 - pathlib would take as long as the rest

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import NoReturn

STATE = "_UV_VARIANTS_RESTORED"
"""Variable with the user's values, as `uv_variants.programs.state` writes it."""

USER = "user"
"""Says that uv finds its files once more without variables of ours."""


def restored() -> dict[str, str] | None:
    """Return the variables of this process with the user's values, None if they are unchanged.

    They are in the order in which uv would have passed them on.
    """
    state = os.environ.get(STATE)
    if state is None:
        return None
    environ = dict(os.environ)
    for item in (STATE, *state.split(";")):
        name, known, value = item.partition("=")
        environ.pop(name, None)
        if known:
            environ[name] = os.fsdecode(bytes.fromhex(value))
    return dict(sorted(environ.items(), key=lambda item: os.fsencode(item[0])))


def become(path: str, arguments: list[str], environ: dict[str, str]) -> NoReturn:
    """Replace this process by the program at *path*.

    Raises:
        OSError: it cannot be started.
    """
    import _signal  # type: ignore[import-not-found]  # `signal` imports `enum`

    for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores them, and the program would as well
        number = getattr(_signal, name, None)
        if number is not None:
            _signal.signal(number, _signal.SIG_DFL)
    os.execve(path, arguments, environ)  # noqa: S606 - no shell is wanted


def run_program(arguments: list[str], environ: dict[str, str]) -> NoReturn:
    """Become a program, found as uv finds it.

    Args:
        arguments: uv with the arguments with which it starts a program, up to ``--``; then the
            program with its own.
        environ: its variables.
    """
    program = arguments[arguments.index("--") + 1 :]
    _run_found(program, environ)
    # uv says why, in words that differ from version to version.
    become(arguments[0], arguments, environ)


def run_tool(arguments: list[str], environ: dict[str, str]) -> NoReturn:
    """Become a program of a tool; uv decides if the tool itself does not provide it.

    Args:
        arguments: name of the program, name of its distribution, whether the user named that
            (``from``) or not (empty), `USER` or empty, the number of the following arguments that
            are not the program's; then uv with the arguments of the user. Names that are not known
            are empty: they are those of the one distribution that came from a URL or path.
        environ: variables of the program.
    """
    name, distribution, explicit, whose, number, *command = arguments
    installed = list(_installed(os.environ["PATH"].split(os.pathsep)[0]))
    if not distribution:
        found = [item for item, _, is_direct in installed if is_direct]
        distribution = found[0] if len(found) == 1 else ""
    name = name or distribution
    providers = [item for item, programs, _ in installed if name in programs]
    if name and (distribution in providers or (explicit and not providers)):
        _run_found([name, *command[int(number) :]], environ)
    # It says that a program is missing, or that another distribution has it.
    if whose != USER:
        environ = dict(os.environ)
    before = environ["PATH"].partition(os.pathsep)[2]  # uv puts the tool's folder in front
    become(command[0], command, {**environ, "PATH": before})


def _installed(scripts: str) -> Iterator[tuple[str, list[str], bool]]:
    """Yield name, programs, and whether it came from a URL or path, of what is installed.

    *scripts* is the folder of the programs.
    """
    library = os.path.join(os.path.dirname(scripts), "Lib" if os.name == "nt" else "lib")
    folders = [library] if os.name == "nt" else [os.path.join(library, x) for x in _names(library)]
    for folder in (os.path.join(item, "site-packages") for item in folders):
        for item in _names(folder):
            if item.endswith(".dist-info"):
                path = os.path.join(folder, item)
                name = normalized(item.split("-")[0])
                is_direct = os.path.exists(os.path.join(path, "direct_url.json"))
                yield name, _programs(os.path.join(path, "RECORD")), is_direct


def _programs(record: str) -> list[str]:
    """Return the names of the programs in the ``RECORD`` of a distribution."""
    place = "Scripts" if os.name == "nt" else "bin"
    found = []
    try:
        with open(record, encoding="utf-8") as file:  # noqa: PTH123 - see above
            for line in file:
                if line.startswith("../"):
                    folder, _, name = line.split(",")[0].rpartition("/")
                    if folder.rpartition("/")[2] == place:
                        found.append(name[: -len(".exe")] if name.endswith(".exe") else name)
    except OSError:
        pass
    return found


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def normalized(name: str) -> str:
    """Return the normalized name of a distribution."""
    parts = name.lower().replace("_", "-").replace(".", "-").split("-")
    return "-".join(filter(None, parts))


def _run_found(program: list[str], environ: dict[str, str]) -> None:
    """Become *program*, unless no such program can be started."""
    _leave_at_interrupt()
    if os.name == "nt":
        _run_on_windows(program, environ)
    if os.path.dirname(program[0]):
        candidates = [program[0]]
    else:
        folders = environ.get("PATH", os.defpath).split(os.pathsep)
        candidates = [os.path.join(folder, program[0]) for folder in folders]
    for candidate in candidates:
        try:
            become(candidate, program, environ)
        except OSError:
            continue


def run_python(arguments: list[str], environ: dict[str, str]) -> NoReturn:
    """Become the Python that runs this, with other *arguments*."""
    _leave_at_interrupt()
    called = getattr(sys, "orig_argv", [sys.executable])[0]
    path = called if os.path.isabs(called) else sys.executable
    if os.name == "nt":
        _run_on_windows([path, *arguments], environ)
    become(path, [called, *arguments], environ)


def _leave_at_interrupt() -> None:
    """Have Ctrl-C end this process without a traceback."""
    import _signal  # `signal` imports `enum`

    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def _run_on_windows(program: list[str], environ: dict[str, str]) -> NoReturn:
    """Run *program* as a child, and exit with its code: Windows cannot replace a process."""
    import shutil
    import signal
    import subprocess

    path = shutil.which(program[0], path=environ.get("PATH")) or program[0]
    # The console sends Ctrl-C to all of its processes; the program decides what it means.
    signal.signal(signal.SIGINT, lambda *_: None)
    try:
        process = subprocess.Popen([path, *program[1:]], env=environ)
    except OSError as error:
        sys.stderr.write(f"error: Failed to spawn: `{program[0]}`\n  Caused by: {error}\n")
        sys.exit(2)
    sys.exit(process.wait())


def _start_again() -> None:
    """Become this Python once more, with the user's variables."""
    environ = restored()
    if environ is None:
        return
    arguments = _command_line()
    if arguments and sys.executable and os.name != "nt":
        become(sys.executable, arguments, environ)
    # In place: a process cannot be replaced on Windows, nor without its arguments.
    os.environ.clear()
    os.environ.update(environ)
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != here]
    del sys.modules[__name__]
    __import__(__name__)  # the user's


def _command_line() -> list[str]:
    """Return the arguments of this process, with the program; empty if they cannot be known."""
    if hasattr(sys, "orig_argv"):
        return list(sys.orig_argv)
    try:
        with open("/proc/self/cmdline", "rb") as file:  # noqa: PTH123 - see above
            return [os.fsdecode(item) for item in file.read().split(b"\0")[:-1]]
    except OSError:
        return []


def main() -> NoReturn:
    """Run what the arguments say."""
    environ = restored()
    if environ is None:
        sys.exit(f"{__file__}: {STATE} is not set")
    {"program": run_program, "python": run_python, "tool": run_tool}[sys.argv[1]](
        sys.argv[2:], environ
    )
    raise AssertionError


if __name__ == "__main__":
    main()
elif __name__ == "sitecustomize":
    _start_again()
