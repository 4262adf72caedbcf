"""Documents whose console blocks are run as their readers type them, with the output compared.

In a block of the language ``console``, a line after ``$ `` is a command, lines after ``> ``
continue it, and the other lines are what it prints; ``…`` stands for any text of a line, alone for
any number of lines. The contents of a fenced block after a paragraph that ends in a name in
backquotes and a colon are that file, relative to where the commands run; it is written when the
reader comes to it.

Commands run in one shell, so folders and variables last until the end of the page.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import click

from .environments import PIPS, Environment, Environments, clean_environ
from .isolation import places
from .uvs import UVS, downloaded_uv

_FENCE = re.compile(r"^(?P<fence>`{3,})(?P<kind>[^\n`]*)\n(?P<text>.*?)^(?P=fence)$", re.M | re.S)
_NAMED = re.compile(r"`([^`\s]+)`[^`\n]*:\s*\Z")
_MARK = "\x1e"


@dataclass(frozen=True)
class File:
    """A file that the reader writes."""

    name: str
    text: str


@dataclass(frozen=True)
class Command:
    """A command that the reader types.

    Attributes:
        text: one line, or several for a here-document or a continued line.
        lines: what it prints.
    """

    text: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Page:
    """A document."""

    path: Path

    @property
    def steps(self) -> list[File | Command]:
        """What the reader does, in order."""
        found: list[File | Command] = []
        text = self.path.read_text("utf-8")
        before = 0
        for block in _FENCE.finditer(text):
            named = _NAMED.search(text[before : block.start()])
            before = block.end()
            if block["kind"] == "console":
                found += _commands(block["text"])
            elif named:
                found.append(File(named[1], block["text"]))
        return found

    @property
    def commands(self) -> list[Command]:
        """The steps that are commands."""
        return [step for step in self.steps if isinstance(step, Command)]


def _commands(block: str) -> list[Command]:
    found: list[tuple[list[str], list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append(([line[2:]], []))
        elif line.startswith("> ") and found and not found[-1][1]:
            found[-1][0].append(line[2:])
        else:
            found[-1][1].append(line)
    return [Command("\n".join(typed), tuple(printed)) for typed, printed in found]


def commands(group: click.Group, name: str) -> Iterator[tuple[str, click.Command]]:
    """Yield the commands of *group* and of its groups, with their names, but hidden ones."""
    context = click.Context(group, info_name=name)
    for each in group.list_commands(context):
        command = group.get_command(context, each)
        if command is not None and not command.hidden:
            yield f"{name} {each}", command
            if isinstance(command, click.Group):
                yield from commands(command, f"{name} {each}")


def expression(lines: Collection[str]) -> re.Pattern[str]:
    """Return what matches an output."""
    parts = (
        r"(?:[^\n]*\n)*?" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + r"[ ]*\n"
        for line in lines
    )
    return re.compile("".join(parts))


@dataclass
class Reader:
    """A person at a machine with nothing of ours on it but what is put on `PATH` here.

    Attributes:
        home: home directory; everything is below it.
        work: where the commands run at first.
        environ: what is set besides.
    """

    home: Path
    work: Path
    environments: Environments
    environ: dict[str, str] = field(default_factory=dict)
    _path: list[Path] = field(default_factory=list)

    @property
    def programs(self) -> Path:
        """First folder of ``PATH``: `tool` and `link` put programs there."""
        folder = self.home / "programs"
        folder.mkdir(exist_ok=True)
        return folder

    def tool(self, name: str, script: str) -> None:
        """Put a program on ``PATH`` that runs *script* in a shell."""
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def link(self, name: str, target: Path | str) -> None:
        """Put a program on ``PATH`` under *name*."""
        (self.programs / name).unlink(missing_ok=True)
        (self.programs / name).symlink_to(target)

    def activate(self, environment: Environment) -> None:
        """Put the programs of *environment* on ``PATH``."""
        self._path.insert(0, Path(environment.python).parent)

    def use_python(self) -> None:
        """Put ``python3`` on ``PATH``; its environments have no pip but by `use_pip`."""
        self.link("python3", sys.executable)

    def use_pip(self, version: str = PIPS[-1]) -> None:
        """Let ``pip install --upgrade pip`` find this pip, without an index that has one."""
        self._offer(self.environments.pip_wheel(version))

    def with_pip(self, *, shim: bool) -> None:
        """Activate an environment with a pip: its programs are on ``PATH``."""
        made = self.environments.patched if shim else self.environments.plain
        environment = made("3.12", PIPS[-1]).copied(self.home / "env")
        self.environ["VIRTUAL_ENV"] = str(environment.path)
        self.tool("python", f'exec {environment.python} "$@"')
        self.tool("pip", f'exec {environment.python} -m pip "$@"')

    def use_shim(self) -> None:
        """Let ``pip install pep-variants-shim`` find it, as it will be found once released."""
        self._offer(self.environments.shim_wheel)

    def _offer(self, wheel: Path) -> None:
        links = self.home / "links"
        links.mkdir(exist_ok=True)
        (links / wheel.name).symlink_to(wheel)
        self.environ["PIP_FIND_LINKS"] = str(links)

    def use_uv(self, version: str = UVS[-1]) -> None:
        """Put this uv on ``PATH``."""
        uv = downloaded_uv(version, self.environments.wheelhouse)
        self._path.append(uv.parent)

    def use_variants(self) -> None:
        """Put ``variants``, ``uv-variants`` and ``variants-proxy`` on ``PATH``, from wheels."""
        scripts = Path(self.environments.programs().python).parent
        for name in ("variants", "uv-variants", "uvx-variants", "variants-proxy"):
            self.link(name, scripts / name)

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables of the commands."""
        path = os.pathsep.join(map(str, (self.programs, *self._path)))
        cleaned = clean_environ(places(self.home))
        del cleaned["UV_NO_CONFIG"], cleaned["PIP_CONFIG_FILE"]
        return {
            **cleaned,
            "PATH": f"{path}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": "120",
            "PIP_NO_CACHE_DIR": "1",
            "UV_PYTHON_DOWNLOADS": "never",
            **self.environ,
        }

    def type_in(self, command: str) -> None:
        """Do what was done before the reader came to the page."""
        status, everything = self._run(command)
        assert status == 0, everything

    def follow(
        self,
        page: Page,
        *,
        replaced: Mapping[str, str] | None = None,
        failing: Collection[str] = (),
    ) -> None:
        """Do what *page* says.

        Args:
            replaced: what stands for a URL or path of the page here; put back in outputs.
            failing: commands that end with an exit code other than 0; of one that is on the page
                several times the first, and one more each time that it is listed.

        Raises:
            AssertionError: a command ends otherwise, or prints something else.
        """
        steps, listed = page.steps, page.commands
        assert listed, f"{page.path}: no commands"
        left = Counter(failing)
        assert left <= Counter(command.text for command in listed)
        staged = self.home / "files"
        staged.mkdir()
        script = ""
        for number, step in enumerate(steps):
            if isinstance(step, File):
                file = staged / str(number)
                file.write_text(_substituted(step.text, replaced or {}), "utf-8")
                name = shlex.quote(step.name)
                script += f'mkdir -p "$(dirname {name})" && cp {file} {name} || exit 1\n'
            else:
                end = "&& exit 1" if left[step.text] > 0 else "|| exit 1"
                left[step.text] -= 1
                typed = _substituted(step.text, replaced or {})
                script += f"{{ {typed}\n}} {end}\nprintf '{_MARK}'\n"
        status, everything = self._run(script)
        back = {value: key for key, value in (replaced or {}).items()}
        outputs = _substituted(everything, back).split(_MARK)
        for command, output in zip(listed, outputs, strict=False):
            if not any("WARNING" in line for line in command.lines):
                assert "WARNING" not in output, f"{command.text}\n{output}"
            assert expression(command.lines).fullmatch(output), f"{command.text}\n{output}"
        assert (status, len(outputs)) == (0, len(listed) + 1), everything

    def _run(self, script: str) -> tuple[int, str]:
        """Run *script*, and end what it leaves running; return its status and what it printed."""
        with subprocess.Popen(
            ["bash", "-c", script],
            cwd=self.work,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            start_new_session=True,
        ) as shell:
            try:
                output, _ = shell.communicate(timeout=300)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(shell.pid, signal.SIGKILL)
        return shell.returncode, output


def _substituted(text: str, replaced: Mapping[str, str]) -> str:
    for old, new in replaced.items():
        text = text.replace(old, new)
    return text
