"""Build requirements: installed with the variants that the command itself would choose.

By a subprocess of pip, which gets the variant options; or with ``--use-feature
inprocess-build-deps``, since pip 25.3, in the middle of a resolution, by another resolver with the
same finder. Its choices are not those of the command.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from ..guard import Original, replace
from ..markers import preparing
from ..options import build_command
from ..session import last_session, nested_session
from .start import patch_runner


def patch_build(module: ModuleType) -> None:
    """Give build requirements their own session, or options; patch the runner, too."""
    installer = getattr(module, "InprocessBuildEnvironmentInstaller", None)
    if installer is not None:

        @replace(installer, "install")
        def install(original: Original, self: Any, *args: Any, **kwargs: Any) -> None:
            with nested_session(), preparing(None):
                original(self, *args, **kwargs)

    if hasattr(module, "call_subprocess"):

        @replace(module, "call_subprocess")
        def call_subprocess(original: Original, cmd: list[str], *args: Any, **kwargs: Any) -> Any:
            session = last_session()
            labels = {} if session is None else session.labels_for_build()
            cmd, variables = build_command(cmd, labels)
            kwargs["extra_environ"] = {**(kwargs.get("extra_environ") or {}), **variables}
            return original(cmd, *args, **kwargs)

    patch_runner(module)
