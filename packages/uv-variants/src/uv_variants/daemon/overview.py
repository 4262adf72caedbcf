"""The user's daemons for ``uv-variants status`` and ``stop``: asked, described, ended."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..uv_directories import in_words, size_of
from .control_client import ControlClient, NoDaemon, Refused
from .place import retire
from .record import Record, records, remove_record

SECONDS = 5.0
"""Timeout for an answer, and for a daemon without sessions to end."""


def daemon_rows(environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return what there is to say of the daemons that run, as rows of a table."""
    rows = []
    for _, record in sorted(records(environ).items()):
        found = _status(record)
        if found is not None:
            rows += _rows(record, found)
    return rows


def stop_daemons(environ: Mapping[str, str]) -> list[str]:
    """End all daemons of the user; return a line on each.

    One that commands use ends after the last of them, and is used by no other.
    """
    lines = []
    for path, record in sorted(records(environ).items()):
        found = _status(record)
        if found is None or not retire(record):
            remove_record(path, record)
            continue
        number = found["sessions"]
        if number:
            commands = "the command" if number == 1 else f"the {number} commands"
            lines.append(f"Process {record.pid} ends after {commands} that it serves")
            continue
        end = time.monotonic() + SECONDS
        while _status(record) is not None and time.monotonic() < end:
            time.sleep(0.02)
        lines.append(f"Stopped process {record.pid}")
    return lines


def _status(record: Record) -> dict[str, Any] | None:
    try:
        control = ControlClient(record.port, record.secret, seconds=SECONDS)
    except NoDaemon:
        return None
    try:
        found: dict[str, Any] = control.request("GET", "/status")
    except (NoDaemon, Refused):
        return None
    finally:
        control.close()
    return found


def _rows(record: Record, found: Mapping[str, Any]) -> list[tuple[str, str]]:
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.started))
    end = "after the commands that it serves" if found["ending"] else _seconds(found["idle"])
    rows = [
        ("daemon", f"process {record.pid} at port {record.port}, version {found['version']}"),
        ("since", since),
        ("commands", str(found["sessions"])),
        ("memory", f"{found['memory'] / 2**20:.0f} MiB"),
        ("ends", end),
    ]
    return rows + [("cache", f"{path} ({_size(Path(path))})") for path in found["caches"]]


def _seconds(idle: float) -> str:
    return f"{idle:g} seconds after the last command"


def _size(folder: Path) -> str:
    size, complete = size_of(folder)
    return in_words(size, complete=complete)
