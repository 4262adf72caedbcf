"""``uv-variants pip install`` with an unmodified uv."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from support.environments import Environments
from support.isolation import isolated
from support.uvs import UVS, downloaded_uv

from ..case import Case
from ..outcome import Outcome
from ..place import Place
from ..program import PythonProgram
from .arguments import TARGET_VARIABLES, uv_target, variant_options
from .installer import Installer


class UvVariants(Installer):
    """``uv-variants pip install --target``, of this environment, with a uv of some version."""

    command = "uv-variants"

    def __init__(self, environments: Environments, name: str, version: str) -> None:
        """Use uv *version*."""
        self.name = name
        self.title = f"uv-variants with uv {version}"
        self._uv = downloaded_uv(version, environments.wheelhouse)
        self._cache = new_cache(self._uv, environments.folder / f"uv-cache-{version}")
        super().__init__(PythonProgram(sys.executable, "uv_variants.main:main"))

    def refuses(self, case: Case) -> str:
        """Refuse what is not about an index, and `abi_dependency`, of which uv knows nothing."""
        if "abi-dependency" in case.needs:
            return "leaves variants with abi_dependency out"
        return super().refuses(case)

    def play(self, case: Case, place: Place) -> Outcome:
        """Install."""
        shutil.copytree(self._cache, place.root / "uv-cache")
        arguments = [*variant_options(case, place), *uv_install(case, place)]
        more = {
            "VARIANTS_UV": str(self._uv),
            "UV_CACHE_DIR": str(place.root / "uv-cache"),
            **TARGET_VARIABLES,
        }
        return self.run(place, arguments, more=more)


def new_cache(uv: Path, folder: Path) -> Path:
    """Return the cache *folder*, in which *uv* has noted this interpreter, and nothing else."""
    if not folder.exists():
        command = [str(uv), "python", "find", "--no-config", "--cache-dir", str(folder)]
        variables = isolated(os.environ, folder.parent)
        subprocess.run([*command, sys.executable], env=variables, check=True, capture_output=True)
    return folder


def uv_install(case: Case, place: Place, more: Sequence[str] = ()) -> list[str]:
    """Return uv's arguments that install what *case* wants.

    uv asks its default index last, so the main index of the case is an index of first rank if
    there are others.
    """
    served = place.served
    *first, last = [served.index, *served.extra_indexes]
    arguments = ["pip", "install", "--python", sys.executable, "--target", str(place.target)]
    arguments += ["--no-config", "--link-mode", "copy", *more]
    for url in first:
        arguments += ["--index", url]
    arguments += ["--default-index", last]
    for url in served.find_links:
        arguments += ["--find-links", url]
    return [*arguments, *uv_target(case), *place.install]


def oldest(environments: Environments) -> UvVariants:
    """Return it with the oldest uv that is tried."""
    return UvVariants(environments, "uv-variants-oldest", UVS[0])


def newest(environments: Environments) -> UvVariants:
    """Return it with the newest uv that is tried."""
    return UvVariants(environments, "uv-variants-newest", UVS[-1])
