"""Nothing silent: how each failure ends in every command, and the page with the table."""

from __future__ import annotations

import logging
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pep_variants._model.platform import Platform, Support
from support.environments import ROOT, Environment, Result, clean_environ
from support.failures import COMMANDS, EITHER, ENDINGS, ENDS, LINE, LOG, NONE, SAME, World, world
from support.proxies import running_proxy
from support.uvs import Machine, project
from uv_variants._environments import installed_versions
from variants_proxy.settings import Settings, Upstream
from variants_proxy.urls import Machine as KeyMachine
from variants_proxy.urls import encode

GPU = {"cuda_version_lower_bound": ("12.8", "12.6"), "sm_arch": ("90_real",)}
KEY = encode(KeyMachine(Platform({"nvidia": Support(GPU)})))
WAYS_OUT = ("try again", "--allow-missing-sources", "--variant-catalog-mirror", "does not match")
"""One of these is in a line with which a command goes on."""

QUICK = {
    ("variants.json of another hash", "resolve -o"),
    ("variants.json cut off", "pip install -t"),
    ("place at 404", "proxy uv pip install"),
    ("catalogue URL at 404", "pip install --dry-run"),
    ("catalogue URL broken", "uv sync"),
    ("place at 404", "uv lock"),
    ("TMPDIR read-only", "uv pip install"),
}
"""What `make test` tries; `make test-matrix` tries all."""

CELLS = [
    pytest.param(
        failure,
        command,
        ending,
        marks=() if (failure, command) in QUICK else pytest.mark.nightly,
        id=f"{failure}, {command}",
    )
    for failure, row in ENDINGS.items()
    for column, ending in row.items()
    if ending != NONE
    for command in COMMANDS[column]
]
_MAIN = "from variants_cli.main import main; main()"


class Place:
    """Where commands run, and what they leave there."""

    def __init__(self, world: World, machine: Machine, pips: tuple[Environment, ...]) -> None:
        self.world = world
        self.machine = machine
        self.pips = pips
        self.work = machine.work
        machine.create_environment(sys.executable)
        project(self.work, (world.project,))
        (self.work / "r.in").write_text(f"{world.project}\n")

    def run(self, command: str) -> Result:
        """Run *command*, as `COMMANDS` has it."""
        client, *words = command.split()
        index = ("-i", self.world.index.url)
        options, name = self.world.options, self.world.project
        own = clean_environ({"PIP_NO_CACHE_DIR": "1", **self.world.environ})
        if client == "pip":
            to = {"-t": ["target"], "download": ["-d", "files"], "wheel": ["-w", "files"]}
            given = to.get(words[-1], ["-o", "pylock.toml"] if words == ["lock"] else [])
            pip = (self.pips[0].python, "-m", "pip")
            return self._executed([*pip, *words, *given, *index, *options, name], own)
        if client == "resolve":
            given = {"-o": ["pylock.toml"], "--download": ["files"]}.get(command.split()[-1], [])
            start = (sys.executable, "-c", _MAIN, "resolve")
            return self._executed([*start, *words, *given, *index, *options, name], own)
        if client == "uv":
            given = {"compile": ["r.in", "-o", "requirements.txt"], "lock": [], "sync": []}
            machine = self.machine.with_environ(
                {**self.world.environ, "UV_DEFAULT_INDEX": self.world.index.url}
            )
            line = [*words, *given.get(words[-1], [name])]
            return self._executed([str(machine.program), *options, *line], machine.variables)
        with self._proxy() as url:
            if words[0] == "pip":
                pip = (self.pips[1].python, "-m", *words, "-t", "target")
                return self._executed([*pip, "-i", url, name], clean_environ(self.environ))
            machine = self.machine.with_environ({**self.environ, "UV_DEFAULT_INDEX": url})
            line = words[1:] if words[-1] == "lock" else [*words[1:], name]
            return self._executed([str(machine.uv), *line], machine.variables)

    @property
    def environ(self) -> dict[str, str]:
        """Variables of a plain client of a proxy: the proxy has what concerns the index."""
        return {"PIP_NO_CACHE_DIR": "1", "NO_PROXY": "*"}

    @contextmanager
    def _proxy(self) -> Iterator[str]:
        upstream, environ = Upstream("main", self.world.index.url), dict(self.world.environ)
        cache = self.machine.home / "proxy"
        settings = Settings((upstream,), cache, environ=environ, catalog=self.world.catalog)
        with running_proxy(settings) as url:
            yield f"{url.replace('://', f'://{KEY}:v@')}/simple/"

    def _executed(self, command: list[str], environ: dict[str, str]) -> Result:
        if self.world.setup:
            if sys.platform != "linux" or not shutil.which("unshare"):
                pytest.skip("needs mounts")
            script = f'{self.world.setup} || exit 99\nexec "$@"'
            command = ["unshare", "-m", "sh", "-c", script, "sh", *command]
        done = subprocess.run(
            command, env=environ, cwd=self.work, capture_output=True, text=True, check=False
        )
        if self.world.setup and (done.returncode == 99 or "unshare failed" in done.stderr):
            pytest.skip(f"may not mount: {done.stderr}")
        return Result(done.returncode, done.stdout, done.stderr)

    def left(self) -> str:
        """Return what there is of locks, files and installed projects, as text."""
        names = ("pylock.toml", "uv.lock", "requirements.txt")
        texts = [path.read_text() for name in names if (path := self.work / name).exists()]
        folders = (self.work / "target", self.work / "files")
        texts += [path.name for folder in folders for path in sorted(folder.rglob("*"))]
        labels = self.machine.labels()
        return repr((texts, sorted(installed_versions([self.work / ".venv"])), labels))


@pytest.fixture
def place(
    failure: str, machine: Machine, patched: Environment, plain: Environment, tmp_path: Path
) -> Iterator[Place]:
    """Where *failure* happens."""
    (tmp_path / "mounted").mkdir()
    for found in world(failure, tmp_path):
        yield Place(found, machine, (patched, plain))


@pytest.mark.one
@pytest.mark.parametrize(("failure", "command", "ending"), CELLS)
def test_ending(
    place: Place, failure: str, command: str, ending: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = place.left()
    with caplog.at_level(logging.WARNING):
        done = place.run(command)
    said = done.out + done.err
    if ending == EITHER:
        ending = ENDS if done.code else SAME
    if ending == ENDS:
        assert done.code != 0, done
        # uv has installed by the time that its lock is looked at; such a failure does not pass.
        if (failure, command) == ("place at 404", "uv sync"):
            assert not (place.work / "uv.lock").exists()
        else:
            assert place.left() == before
        # pip names no page without -v, and clients of a proxy only that.
        own_words = command.startswith("proxy") or "page" in failure or "proxy" in failure
        own_words = own_words or failure == "TMPDIR full"
        assert own_words or place.world.root in said, done
        return
    assert done.code == 0, done
    if ending == SAME:
        # Requirements have versions alone.
        good = f"{place.world.project}==" if "compile" in command else place.world.good
        assert good in said + place.left(), done
        return
    text = caplog.text if ending == LOG else said
    assert place.world.root in text, done
    assert any(way in text for way in WAYS_OUT), done
    assert place.world.good not in place.left()


def test_the_page_has_this_table() -> None:
    text = (ROOT / "docs" / "explanation" / "failures.md").read_text()
    rows = [
        [cell.strip().strip("*`") for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| ")
    ]
    head = next(row for row in rows if row[1:] == [*COMMANDS])
    found = {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows if row[0] in ENDINGS}
    assert found == ENDINGS
    assert not re.search(r"\bTODO\b", text)
    assert {LINE, ENDS, SAME, LOG, NONE, EITHER} >= {
        cell for row in found.values() for cell in row.values()
    }
