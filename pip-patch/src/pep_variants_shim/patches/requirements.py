"""Requirements files: the option ``--variant`` after a requirement."""

from __future__ import annotations

import functools
import optparse
from collections.abc import Callable
from types import ModuleType
from typing import Any

from pip._internal.exceptions import InstallationError

from ..guard import replace, switch
from ..requirement_lines import DEST, LabelLine, check_option_line, read_line
from ..session import last_session

_OPTION = functools.partial(
    optparse.Option,
    "--variant",
    dest=DEST,
    metavar="LABEL",
    help="Take this variant of the project or fail; empty for the non-variant wheel.",
)


def patch_requirements(module: ModuleType) -> None:
    """Add the option to pip's parser of lines, and force its labels."""

    # Also after variants were switched off: a forced label must not be ignored silently.
    @replace(module, "handle_requirement_line", always=True)
    def handle_requirement_line(
        original: Callable[..., Any], line: Any, options: Any = None, **kwargs: Any
    ) -> Any:
        wanted = read_line(line, getattr(options, "build_constraints", None) or ())
        if wanted is not None:
            _force(wanted)
        return original(line, options, **kwargs)

    @replace(module, "handle_option_line", always=True)
    def handle_option_line(
        original: Callable[..., None],
        opts: Any,
        filename: str,
        lineno: int,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        check_option_line(opts, filename, lineno)
        original(opts, filename, lineno, *args, **kwargs)

    module.SUPPORTED_OPTIONS_REQ.append(_OPTION)


def _force(line: LabelLine) -> None:
    """Force the label of a requirement line.

    Ignored with ``--no-variants``, and in commands that install nothing.

    Raises:
        InstallationError: another label is forced as well, or variants are switched off for
            another reason than an option.
    """
    session = last_session()
    reason = ""
    if not switch.on:
        reason = switch.reason if switch.wanted else ""
    elif session is not None:
        if session.is_legacy:
            reason = "the legacy resolver cannot choose among variants"
        else:
            session.options.force(line)
    if reason:
        raise InstallationError(f"{line.where}: --variant={line.label} has no effect: {reason}")
