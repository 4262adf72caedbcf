"""The log of decisions that commands show with ``-v``."""

from __future__ import annotations

import logging

from .errors import printable, redacted

_PACKAGES = (
    *("pep_variants", "resolvelib_variants", "uv_variants", "variants_catalog", "variants_cli"),
    *("variants_index", "variants_plugins", "variants_proxy"),
)


class _OneLine(logging.Formatter):
    """Writes records as one printable line each, without what may be secret in URLs."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - as in `logging`
        """Return the line."""
        return printable(redacted(super().formatMessage(record)))


def log_decisions(program: str) -> None:
    """Have each decision of the packages of this project logged to stderr, for ``program -v``.

    Warnings are left to the handlers of the root logger, if it has any.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine(f"%(levelname)s {program}: %(message)s"))
    root = logging.getLogger()
    handler.addFilter(lambda record: record.levelno < logging.WARNING or not root.handlers)
    for name in _PACKAGES:
        package = logging.getLogger(name)
        package.setLevel(logging.DEBUG)
        package.addHandler(handler)
