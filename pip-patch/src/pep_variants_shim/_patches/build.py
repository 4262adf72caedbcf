"""Build requirements: installed with the variants that the command itself would choose.

By a subprocess of pip, which gets the variant options; or with ``--use-feature
inprocess-build-deps``, since pip 25.3, in the middle of a resolution, by another resolver with the
same finder. Its choices are not those of the command.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from .._build_cache import folder_for, kept_or_built, usable
from .._guard import Original, replace
from .._markers import preparing
from .._options import Labels, build_command
from .._session import current_session, last_session, nested_session
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
            labels: Labels = {}
            if session is not None:
                session.options.builds = True
                labels = session.labels_for_build()
            cmd, variables = build_command(cmd, labels)
            kwargs["extra_environ"] = {**(kwargs.get("extra_environ") or {}), **variables}
            return original(cmd, *args, **kwargs)

    patch_runner(module)


def patch_cache(module: ModuleType) -> None:
    """Find built wheels again where they were built with the variants that a build would get."""

    @replace(module.Cache, "_get_candidates")
    def get_candidates(original: Original, self: Any, *args: Any, **kwargs: Any) -> list[Any]:
        found: list[Any] = original(self, *args, **kwargs)
        session = current_session()
        return found if session is None else usable(session, found)


def patch_builder(module: ModuleType) -> None:
    """Keep a built wheel with the variants that it was built with."""

    @replace(module, "_get_cache_dir", checks=True)
    def get_cache_dir(original: Original, req: Any, *args: Any, **kwargs: Any) -> str:
        place: str = original(req, *args, **kwargs)
        session = current_session()
        return place if session is None else folder_for(session, req, place)

    @replace(module, "_build_one")
    def build_one(original: Original, req: Any, output_dir: str, *args: Any, **kwargs: Any) -> Any:
        def build() -> Any:
            return original(req, output_dir, *args, **kwargs)

        if current_session() is None or req.editable:
            return build()
        return kept_or_built(req, output_dir, build)
