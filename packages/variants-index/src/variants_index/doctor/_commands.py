"""What to type in the environment that is looked at, with the installer that is there.

A pip that knows variants comes first, then `uv-variants`, which needs no pip in the environment.
"""

from __future__ import annotations

import ast
import contextlib
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pep_variants import preferences as user_preferences

from .. import uv_files
from ._environment import Environment
from ._installers import Pip, output_of

SYSTEM = "--break-system-packages"
"""What pip and uv ask for in an environment that a package manager of the system owns."""

_SETTING = re.compile(
    r"^(?P<place>:env:|global|install)\.(?P<name>[a-z-]+)=(?P<value>['\"].*)$", re.MULTILINE
)


@dataclass(frozen=True)
class Commands:
    """Command lines, or their beginnings.

    Attributes:
        install: installs the requirements that follow.
        switch: installs what fits, in place of what is there of the projects that follow.
        uninstall: removes the projects that follow, without a question.
        catalog: turns the catalogue on.
        explain: shows every build of the requirement that follows.
        doctor: asks again.
        knows_variants: whether the installer does.
        sync: installs what a lock has for the machine, empty without such a lock.
    """

    install: str = "pip install"
    switch: str = "pip install --variant-switch"
    uninstall: str = "pip uninstall --yes"
    catalog: str = f"pip config set global.variant-catalog {user_preferences.DEFAULT_CATALOG}"
    explain: str = "variants explain"
    doctor: str = "variants doctor"
    knows_variants: bool = True
    sync: str = ""

    def of_project(self, folder: Path) -> Commands:
        """Return those for the environment of the project in *folder*, whose lock may decide."""
        tool = uv_files.table_of((uv_files.read_toml(folder / "pyproject.toml") or {}).get("tool"))
        is_grouped = "accelerators" in uv_files.table_of(tool.get("uv-variants"))
        return replace(self, sync="uv-variants sync" if is_grouped else "")

    def switched(self, projects: Iterable[str]) -> str:
        """Return the command that installs what fits in place of *projects*."""
        return self.sync or f"{self.switch} {shlex.join(projects)}"

    def reinstalled(self, requirement: str) -> str:
        """Return the command that writes the files of *requirement* anew, which is installed."""
        return f"{self.install} --force-reinstall --no-deps {shlex.quote(requirement)}"

    def removed(self, projects: Iterable[str]) -> str:
        """Return the command that removes *projects*."""
        return f"{self.uninstall} {shlex.join(projects)}"


def pip_commands(
    words: Sequence[str], options: Sequence[str] = (), *, explain: str, doctor: str, knows: bool
) -> Commands:
    """Return those of a pip.

    Args:
        words: that start it.
        options: of its ``install``.
        explain, doctor: see `Commands`.
        knows: whether it knows variants.
    """
    system = [option for option in options if option == SYSTEM]
    return Commands(
        shlex.join((*words, "install", *options)),
        shlex.join((*words, "install", "--variant-switch", *options)),
        shlex.join((*words, "uninstall", "--yes", *system)),
        shlex.join(
            (*words, "config", "set", "global.variant-catalog", user_preferences.DEFAULT_CATALOG)
        ),
        explain,
        doctor,
        knows,
    )


def uv_commands(
    options: Sequence[str], given: Sequence[str] = (), *, explain: str, doctor: str
) -> Commands:
    """Return those of `uv-variants`.

    Args:
        options: of `uv-variants`.
        given: to ``uv pip``, such as the environment and indexes.
        explain, doctor: see `Commands`.
    """
    own, pip = shlex.join(("uv-variants", *options)), shlex.join(("pip", "install", *given))
    python = given[:2] if given[:1] == ("--python",) else ()
    system = [option for option in given if option == SYSTEM]
    return Commands(
        f"{own} {pip}",
        f"{own} --variant-switch {pip}",
        shlex.join(("uv", "pip", "uninstall", *python, *system)),
        "uv-variants catalog enable",
        explain,
        doctor,
    )


def choose_pip(environment: Environment, pips: Sequence[Pip]) -> tuple[tuple[str, ...], Pip | None]:
    """Return the words that start a pip on *environment*, and which one it is; None without one.

    The one in the environment is preferred if it knows variants, and else another one that does,
    with ``--python``.

    Args:
        environment: to install in.
        pips: from `find_pips`.
    """
    own = [pip for pip in pips if pip.is_own and pip.version]
    others = [pip for pip in pips if pip.patched and not pip.is_own]
    is_virtual = (environment.root / "pyvenv.cfg").is_file()
    target = "--python", str(environment.root if is_virtual else environment.python)
    for pip in sorted([*own, *others], key=lambda pip: not pip.patched):
        words = ("pip",) if pip is pips[0] and len(pip.command) == 1 else pip.command
        return (words if pip.is_own else (*words, *target)), pip
    return ("pip", *target), None


def pip_settings(words: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return what pip's files and variables set, by the names of options.

    Args:
        words: from `choose_pip`.
        environ: environment variables.
    """
    found: dict[str, str] = {}
    settings = list(_SETTING.finditer(output_of([*words, "config", "list"], environ)))
    # Those of a command count before those of all commands, and variables before both.
    for place in ("global", "install", ":env:"):
        for match in settings:
            if match["place"] == place:
                with contextlib.suppress(ValueError, SyntaxError):
                    found[match["name"]] = str(ast.literal_eval(match["value"]))
    return found
