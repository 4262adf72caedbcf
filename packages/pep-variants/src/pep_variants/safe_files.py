"""Files and directories that others may have written: read and replaced safely."""

from ._directories import VARIABLE, cache_directory
from ._files import (
    is_special,
    leftovers,
    open_regular,
    patiently,
    read_regular,
    read_text,
    remove_leftovers,
    replacing,
    write_if_changed,
)
from ._formats.toml import read_toml
from ._gc_pause import paused
from ._ownership import NotPrivate, check_private, make_private
from ._timeouts import within
from ._urls import is_local, local_path

__all__ = [
    "VARIABLE", "NotPrivate", "cache_directory", "check_private", "is_local", "is_special",
    "leftovers", "local_path", "make_private", "open_regular", "patiently", "paused",
    "read_regular", "read_text", "read_toml", "remove_leftovers", "replacing", "within",
    "write_if_changed",
]  # fmt: skip
