"""A command that had nothing to do a short while ago, run again with almost nothing imported.

`noted_command` writes a note of such a command: what uv was run with, and the state of all files
that decided it. As long as these are unchanged, uv is run in the same way, beside a socket that
listens. If uv asks an index after all, all is prepared then (`late_run`), while uv waits.
"""

# ruff: noqa: PTH110, PTH123 - pathlib would take as long as the rest

from __future__ import annotations

import os

from .command_note import SECONDS, Note, note_path, state_of

TYPE_CHECKING = False  # `typing` would take as long as the rest
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .late_run import LateRun

_LIMIT = 1 << 20
_BACKLOG = 512


def run_noted(arguments: Sequence[str], environ: Mapping[str, str]) -> int | None:
    """Run uv if there is a note of the command; return the exit code, None without a note.

    Raises:
        UvVariantsError, ProxyError, VariantError: see `errors.USER_ERRORS`.
    """
    note = _current(note_path(arguments, environ))
    if note is None or not os.path.exists(note.variables.get("SSL_CERT_FILE") or ""):
        return None
    from .uv_program import find_uv

    if find_uv(environ) != note.command[0]:
        return None
    return _run(note, arguments, environ)


def _current(path: str) -> Note | None:
    """Return the note in *path* if it counts."""
    import time

    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if status.st_uid != os.getuid() or status.st_mode & 0o077:
                return None
            if not 0 <= time.time() - status.st_mtime < SECONDS:
                return None
            note = Note.of(file.read(_LIMIT).decode("utf-8", "surrogateescape"))
    except OSError:
        return None
    if note is None or any(state_of(name) != state for name, state in note.states.items()):
        return None
    return note


def _run(note: Note, arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    # Not `threading` or `socket`: each imports more than all of this.
    import _socket
    import _thread
    import select

    from .daemon.tokens import new_id, new_secret, session_token

    listening = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM, _socket.IPPROTO_TCP)
    listening.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
    listening.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", 0))
    listening.listen(_BACKLOG)
    port = listening.getsockname()[1]
    secret, name = new_secret(), new_id()
    url = f"http://{name}:{session_token(secret, name)}@127.0.0.1:{port}"
    ended, ending = os.pipe()
    finished = _thread.allocate_lock()
    finished.acquire()
    late: list[LateRun] = []
    failures: list[BaseException] = []

    def prepare() -> None:
        from .late_run import LateRun

        late.append(LateRun.prepare(arguments, environ, listening.detach(), secret, name))

    def answer() -> None:
        try:
            found, _, _ = select.select([listening.fileno(), ended], [], [])
            if listening.fileno() in found:
                prepare()
        except BaseException as error:  # raised again where the command ends
            failures.append(error)
            listening.close()
        finally:
            finished.release()

    _thread.start_new_thread(answer, ())
    code = _wait(note.command, note.environ(environ, url))
    os.write(ending, b".")
    finished.acquire()
    if failures:
        raise failures[0]
    if code > 0 and not late:
        prepare()
    if late:
        return late[0].finish(code)
    if code < 0:
        from .uv_process import end_as

        return end_as(code)
    return code


def _wait(command: list[str], environ: Mapping[str, str]) -> int:
    """Run uv as `uv_process.run_uv` does, without `subprocess`."""
    import _signal  # type: ignore[import-not-found]  # `signal` imports `enum`

    child = 0
    early: list[int] = []

    def forward(number: int, _frame: object) -> None:
        from contextlib import suppress

        if not child:
            early.append(number)
            return
        if number in (_signal.SIGINT, _signal.SIGQUIT):
            from .uv_process import in_foreground

            if in_foreground():  # the terminal has sent it to uv already
                return
        with suppress(ProcessLookupError):
            os.kill(child, number)

    names = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
    for number in (getattr(_signal, each) for each in names):
        if _signal.getsignal(number) != _signal.SIG_IGN:  # with nohup uv ignores it as well
            _signal.signal(number, forward)
    defaults = [_signal.SIGPIPE, _signal.SIGXFSZ]  # which Python ignores
    child = os.posix_spawn(command[0], command, environ, setsigdef=defaults)
    for number in early:
        os.kill(child, number)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)
