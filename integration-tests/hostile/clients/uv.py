"""uv: stock, or through ``uv-variants``."""

from __future__ import annotations

import subprocess
import sys

from ..cases import Command
from ..measure import Place, Run, run
from . import options


class Uv:
    """``uv pip install`` into an environment of its own.

    Attributes:
        name: of the client.
    """

    def __init__(self, uv: str, name: str = "uv", *, variants: str | None = None) -> None:
        """Use the program *uv*, started by the program *variants* (``uv-variants``) if given."""
        self.name = name
        self._uv = uv
        self._variants = variants

    def install(self, command: Command, place: Place, seconds: float) -> Run:
        """Install with uv."""
        variables = {
            "UV_CACHE_DIR": str(place.root / "uv-cache"),
            "UV_HTTP_TIMEOUT": "20",
            "UV_HTTP_RETRIES": "0",
            "UV_PYTHON_DOWNLOADS": "never",
            "XDG_CONFIG_HOME": str(place.home / ".config"),
        }
        create = [self._uv, "venv", "--quiet", "--no-config", "--clear", "--python"]
        create += [sys.executable, str(place.target)]
        subprocess.run(create, check=True, env=place.variables(variables), cwd=place.root)
        arguments = [self._uv]
        if self._variants is not None:
            variables["VARIANTS_UV"] = self._uv
            arguments = [self._variants, *options(command)]
        python = place.target / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        arguments += ["pip", "install", "--python", str(python)]
        # The default index is the one of least rank.
        *first, last = [command.index, *command.extra_indexes]
        for url in first:
            arguments += ["--index", url]
        arguments += ["--default-index", last]
        for url in command.find_links:
            arguments += ["--find-links", url]
        arguments += [*command.arguments.get("uv", []), *command.requirements]
        return run(arguments, place, {**variables, **command.variables}, seconds)
