"""pip: stock, with the shim, or patched, whichever the given Python has."""

from __future__ import annotations

from ..cases import Command
from ..measure import Place, Run, run
from . import options


class Pip:
    """``python -m pip install --target``.

    Attributes:
        name: of the client.
        variants: whether this pip knows variant options; without, they are left out.
    """

    def __init__(self, python: str, name: str = "pip", *, variants: bool = True) -> None:
        """Use the pip of the interpreter *python*."""
        self.name = name
        self._python = python
        self._variants = variants

    def install(self, command: Command, place: Place, seconds: float) -> Run:
        """Install with pip."""
        arguments = [self._python, "-m", "pip", "install", "--no-cache-dir", "--no-compile"]
        arguments += ["--target", str(place.target), "--timeout", "3", "--retries", "0"]
        arguments += ["--disable-pip-version-check", "--no-input", "--index-url", command.index]
        for url in command.extra_indexes:
            arguments += ["--extra-index-url", url]
        for url in command.find_links:
            arguments += ["--find-links", url]
        for host in command.trusted_hosts:
            arguments += ["--trusted-host", host]
        if self._variants:
            arguments += options(command)
        arguments += [*command.arguments.get("pip", []), *command.requirements]
        variables = {"PIP_CONFIG_FILE": "/dev/null", **command.variables}
        return run(arguments, place, variables, seconds)
