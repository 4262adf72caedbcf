"""Build hook: bundles what pip imports into the wheel.

pip must keep working whatever the user installs, upgrades or removes beside it, so the shim has
no runtime dependency: the engine, the resolver extension and the libraries they use are copied
into ``pep_variants_shim/_vendor`` and their absolute imports rewritten to that place. The
libraries come from the build environment, pinned in pyproject.toml; `resolvelib` is pip's own.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TARGET = "pep_variants_shim/_vendor"
IMPORT_ROOT = "pep_variants_shim._vendor"

# Import name to the folder of our source, relative to this file.
OWN = {
    "pep_variants": "../packages/pep-variants/src/pep_variants",
    "resolvelib_variants": "../resolver-ext/src/resolvelib_variants",
}
# Import name to distribution.
LIBRARIES = {
    "archspec": "archspec",
    "packaging": "packaging",
    "platformdirs": "platformdirs",
    "pynvml": "nvidia-ml-py",
    "tomli": "tomli",
}
# Neither code nor data that is read at run time.
SKIPPED = re.compile(r"(^|/)(tests?|__pycache__)/|archspec/(cli|__main__)\.py$|/example\.py$")


class BundleHook(BuildHookInterface[Any]):
    """Adds the bundled copies to the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Collect the copies in a temporary folder and hand their paths to the builder."""
        self._folder = Path(tempfile.mkdtemp(prefix="pep-variants-bundle-"))
        (self._folder / "__init__.py").write_text('"""Bundled libraries; see hatch_build.py."""\n')
        for name, relative in OWN.items():
            source = (Path(self.root) / relative).resolve()
            for path in sorted(source.rglob("*")):
                if path.is_file():
                    self._copy(path, Path(name) / path.relative_to(source))
        for name, project in LIBRARIES.items():
            self._copy_library(name, project)
        build_data["force_include"].update(
            {
                str(path): f"{TARGET}/{path.relative_to(self._folder).as_posix()}"
                for path in sorted(self._folder.rglob("*"))
                if path.is_file()
            }
        )

    def finalize(self, version: str, build_data: dict[str, Any], artifact: str) -> None:  # noqa: ARG002
        """Remove the temporary folder."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _copy_library(self, name: str, project: str) -> None:
        dist = distribution(project)
        for file in dist.files or ():
            text = file.as_posix()
            path = Path(str(dist.locate_file(file)))
            if text == f"{name}.py" or text.startswith(f"{name}/"):
                self._copy(path, Path(text))
            elif re.search(r"\.dist-info/(licenses/.*|LICEN[CS]E[^/]*|COPYING[^/]*)$", text):
                self._copy(path, Path("licenses") / project / path.name)

    def _copy(self, source: Path, relative: Path) -> None:
        text = relative.as_posix()
        if SKIPPED.search(text) or source.suffix in (".pyc", ".so", ".pyd"):
            return
        target = self._folder / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".py":
            target.write_text(rewritten(source.read_text("utf-8")), "utf-8")
        else:
            target.write_bytes(source.read_bytes())


def rewritten(code: str) -> str:
    """Return *code* with absolute imports of bundled packages pointing into the bundle."""
    names = "|".join([*OWN, *LIBRARIES])
    code = re.sub(
        rf"^(\s*)from ({names})((?:\.\w+)*) import ",
        rf"\1from {IMPORT_ROOT}.\2\3 import ",
        code,
        flags=re.MULTILINE,
    )
    code = re.sub(
        rf"^(\s*)import ({names})( as \w+)?$",
        rf"\1from {IMPORT_ROOT} import \2\3",
        code,
        flags=re.MULTILINE,
    )
    code = re.sub(
        rf"^(\s*)import ({names})((?:\.\w+)+) as (\w+)$",
        rf"\1import {IMPORT_ROOT}.\2\3 as \4",
        code,
        flags=re.MULTILINE,
    )
    code = re.sub(
        rf"^(\s*)import ({names})((?:\.\w+)+)$",
        rf"\1import {IMPORT_ROOT}.\2\3; from {IMPORT_ROOT} import \2",
        code,
        flags=re.MULTILINE,
    )
    left = re.search(rf"^\s*import .*\b({names})\b(?!.*{re.escape(IMPORT_ROOT)})", code, re.MULTILINE)
    if left and IMPORT_ROOT not in left[0]:
        raise ValueError(f"cannot rewrite {left[0].strip()!r}: write one import per line")
    # The wrapper subclasses the provider of the resolvelib that pip resolves with.
    return re.sub(
        r"^(\s*)from resolvelib((?:\.\w+)*) import ",
        r"\1from pip._vendor.resolvelib\2 import ",
        code,
        flags=re.MULTILINE,
    )
