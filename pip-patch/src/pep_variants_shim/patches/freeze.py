"""``pip freeze``: lines that any pip can install; with ``--variants`` those with the variant.

Of a build that its publisher has under another name that is the publisher's requirement.
"""

from __future__ import annotations

import optparse
import re
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from contextlib import suppress
from contextvars import ContextVar
from types import ModuleType
from typing import Any

from .. import BUILT_IN
from ..distributions import label_of, origin_of
from ..guard import replace

_DEST = "pep_variants_freeze"
_with_labels: ContextVar[bool] = ContextVar("with labels", default=False)
_OPTION_OF_LINE = re.compile(r" --variant[= ][0-9a-z_.]*")


def patch_command(module: ModuleType) -> None:
    """Add the option; leave out the shim where pip leaves out itself."""

    @replace(module.FreezeCommand, "add_options")
    def add_options(original: Callable[..., None], self: Any) -> None:
        original(self)
        self.cmd_opts.add_option(
            "--variants",
            dest=_DEST,
            action="store_true",
            default=False,
            help="Add the variant label to the line of each variant, for pip with variant support.",
        )

    @replace(module.FreezeCommand, "run")
    def run(original: Callable[..., Any], self: Any, options: optparse.Values, args: Any) -> Any:
        token = _with_labels.set(bool(getattr(options, _DEST, False)))
        try:
            return original(self, options, args)
        finally:
            _with_labels.reset(token)

    if not BUILT_IN:
        with suppress(AttributeError):

            @replace(module, "_dev_pkgs", shows=True)
            def dev_pkgs(original: Callable[[], AbstractSet[str]]) -> AbstractSet[str]:
                return {*original(), "pep-variants-shim"}


def patch_freeze(module: ModuleType) -> None:
    """Write labels or origins in lines ``name==version``; read such lines in the files of ``-r``.

    Editable projects and those from a URL have no such line: the URL has the label already.
    """

    @replace(module.FrozenRequirement, "from_dist", shows=True)
    def from_dist(original: Callable[..., Any], cls: Any, dist: Any) -> Any:
        frozen = original(cls, dist)
        if frozen.editable or dist.direct_url is not None:
            return frozen
        if _with_labels.get():
            label = label_of(dist)
            req = f"{frozen.req} --variant={label}" if label else ""
        else:
            origin = origin_of(dist)
            req = origin.requirement if origin is not None else ""
        return cls(frozen.name, req, frozen.editable, frozen.comments) if req else frozen

    @replace(module, "install_req_from_line", shows=True)
    def install_req_from_line(
        original: Callable[..., Any], name: str, *args: Any, **kwargs: Any
    ) -> Any:
        return original(_OPTION_OF_LINE.sub("", name), *args, **kwargs)
