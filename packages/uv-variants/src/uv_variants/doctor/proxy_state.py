"""The background process: whether it runs, and whether its files are in order."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from variants_index.doctor.findings import Part, Problem

from ..daemon.control_client import ControlClient, NoDaemon, Refused
from ..daemon.record import Record, idle_seconds, records, state_folder
from ..daemon.state_file import read_state, state_path

_SECONDS = 2.0


def proxy_part(environ: Mapping[str, str]) -> Part:
    """Return what is known of the user's background process, and what is wrong with it."""
    folder = state_folder(environ)
    known = {"state": str(folder)}
    problems: list[Problem] = []
    writable = next(path for path in (folder, *folder.parents) if path.exists())
    if not os.access(writable, os.W_OK):
        problems.append(
            Problem(
                "proxy",
                f"{writable}: cannot be written: every command runs an index proxy of its own; set "
                "VARIANTS_STATE_DIR to a directory that can",
                fails=False,
            )
        )
    running = [
        f"process {record.pid} at port {record.port}"
        for record in records(environ).values()
        if _answers(record)
    ]
    idle = idle_seconds(environ)
    known["running"] = ", ".join(running) or (
        "no; it starts when a command needs it"
        + (f" and ends {idle:.0f} seconds after the last one" if idle else " and ends with it")
    )
    if (folder / "authority.pem").exists():
        known["certificates"] = f"{folder / 'authority.pem'}, for uv alone"
    known |= _served(state_path(environ), problems)
    return Part(tuple(known.items()), tuple(problems), known)


def _answers(record: Record) -> bool:
    try:
        ControlClient(record.port, record.secret, seconds=_SECONDS).close()
    except (NoDaemon, Refused, OSError):
        return False
    return True


def _served(path: Path, problems: list[Problem]) -> dict[str, str]:
    """Return what is known of a proxy that ``uv-variants serve`` started."""
    served = read_state(path)
    if served is None:
        if path.exists():
            text = f"{path}: cannot be read, or other users could write it"
            problems.append(Problem("proxy", text, f"rm {path}"))
        return {}
    if not served.responds():
        text = f"{path}: the process {served.pid} of uv-variants serve does not answer"
        problems.append(Problem("proxy", text, "uv-variants stop", fails=False))
        return {}
    return {"serve": f"process {served.pid} at {served.url}"}
