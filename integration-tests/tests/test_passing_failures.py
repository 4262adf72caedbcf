"""Failures that may pass: asked again; while they last nothing is written, and nothing replaced."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from support.catalog_places import family_entries, page, pytorch
from support.environments import Environment, Result, clean_environ
from support.index import Answer, Index
from support.projects import CUDA_12_8, DRIVER, app, app_index
from support.published_builds import Field, standing_in
from support.uvs import Machine, installed_labels, project
from support.wheels import Wheel
from uv_variants._environments import installed_versions

DOCUMENT = "app-2.0-variants.json"
DOWN = Answer(503, b"try later")
ALLOWED = "--allow-missing-sources"


def document(index: Index, make: Callable[[bytes], Answer]) -> dict[str, Answer]:
    return {DOCUMENT: make(index.files["app"][DOCUMENT])}


def wheels(index: Index, suffix: str, answer: Answer = DOWN) -> dict[str, Answer]:
    names = [name for name in index.files["app"] if name.startswith("app-2.0-py3")]
    return {name + suffix: answer for name in names}


def refused(index: Index) -> dict[str, Answer]:
    index.attributes[DOCUMENT] = {"url": f"http://127.0.0.1:9/{DOCUMENT}"}
    return {}


def from_wheels(index: Index) -> dict[str, Answer]:
    index.unlisted.add(DOCUMENT)
    return wheels(index, "")


FAULTS: dict[str, Callable[[Index], dict[str, Answer]]] = {
    "variants.json at 503": lambda index: document(index, lambda _: DOWN),
    "variants.json at 429": lambda index: document(index, lambda _: Answer(429)),
    "variants.json cut off": lambda index: document(index, lambda data: Answer.cut_off(data[:-9])),
    "variants.json refused": refused,
    "METADATA at 503": lambda index: wheels(index, ".metadata"),
    "METADATA at 507": lambda index: wheels(index, ".metadata", Answer(507)),
    "ranges at 503": from_wheels,
    "page at 503": lambda _: {"/simple/app/": DOWN},
}
"""What the index does to version 2.0, or to the page: answers by path or filename."""

COMMANDS = {
    "lock": "lock --upgrade",
    "add": "add --upgrade-package app other",
    "remove": "remove --upgrade-package app always",
    "sync": "sync --upgrade",
    "run": "run --upgrade python -c pass",
    "export": "export --upgrade -o requirements.txt",
    "tree": "tree --upgrade",
    "compile": "pip compile --upgrade r.in -o requirements.txt",
    "pylock": "pip compile --upgrade r.in -o pylock.toml",
    "pip install": "pip install --upgrade app",
    "pip sync": "pip sync pinned.txt",
}


def sampled(cells: Iterable[tuple[Any, ...]], every: int) -> list[Any]:
    """Return parameters, of which ``make test`` takes one in *every*."""
    return [
        pytest.param(*cell, marks=pytest.mark.nightly if number % every else ())
        for number, cell in enumerate(cells)
    ]


def put(index: Index, fault: str, *, once: bool = False) -> None:
    found = FAULTS[fault](index)
    index.faults.update({name: [answer] if once else answer for name, answer in found.items()})


def publish(index: Index) -> None:
    index.add_release(app("2.0"), metadata_file=True)
    index.add_wheel(Wheel("other", "1.0"), metadata_file=True)


def state(work: Path, *left_out: str) -> dict[str, object]:
    names = {"uv.lock", "pyproject.toml", "requirements.txt", "pylock.toml"} - {*left_out}
    found: dict[str, object] = {
        name: path.read_bytes() for name in names if (path := work / name).exists()
    }
    found["installed"] = sorted(installed_versions([work / ".venv"]))
    found["labels"] = installed_labels(work / ".venv")
    return found


def refusal(done: Result) -> str:
    """Return the line with which a command of uv-variants refuses to go on."""
    assert done.code == 1, done
    (line,) = (line for line in done.err.splitlines() if ALLOWED in line)
    assert line.startswith("uv-variants: "), done
    return line


@pytest.fixture
def index(serve: Callable[[Index], Index]) -> Index:
    return serve(app_index(metadata_file=True, ranges=True))


def prepared(machine: Machine, index: Index, *, old: bool) -> Machine:
    """Return a machine with a project, and all that there is of version 1.0 if *old*."""
    machine = machine.with_environ({**CUDA_12_8, "UV_DEFAULT_INDEX": index.url})
    machine.create_environment(sys.executable)
    project(machine.work, ("app", "always"))
    (machine.work / "r.in").write_text("app\nalways\n")
    if old:
        for text in (COMMANDS["compile"], COMMANDS["pylock"], "sync"):
            done = machine.run(*text.split())
            assert done.code == 0, done
    publish(index)
    (machine.work / "pinned.txt").write_text("app==2.0\nalways==1.0\n")
    return machine


CELLS = product(FAULTS, COMMANDS, (False, True))


@pytest.mark.everywhere
@pytest.mark.parametrize(("fault", "command", "old"), sampled(CELLS, 23))
def test_uv(every_machine: Machine, index: Index, fault: str, command: str, old: bool) -> None:
    machine = prepared(every_machine, index, old=old)
    # uv itself leaves what `remove` has changed.
    left_out = ["pyproject.toml"] if command == "remove" else []
    before = state(machine.work, *left_out)
    put(index, fault)
    done = machine.run(*COMMANDS[command].split())
    if fault == "page at 503":  # uv's own words and exit code
        assert done.code == 2, done
        assert f"{index.url}app/" in done.err
    else:
        line = refusal(done)
        assert index.root in line or "127.0.0.1:9" in line
    assert state(machine.work, *left_out) == before


@pytest.mark.parametrize("command", ["lock", "sync"])
def test_wheels_that_a_lock_needs_for_their_hash(
    machine: Machine, index: Index, command: str
) -> None:
    machine = prepared(machine, index, old=True)
    before = state(machine.work)
    index.faults.update(wheels(index, ""))
    line = refusal(machine.run(*COMMANDS[command].split()))
    assert line.startswith("uv-variants: uv.lock is left as it was: ")
    assert index.root in line
    assert state(machine.work) == before


@pytest.mark.parametrize(
    ("fault", "command"), sampled(product([*FAULTS][:3] + [*FAULTS][:3:-1], COMMANDS), 11)
)
def test_uv_asks_again(machine: Machine, index: Index, fault: str, command: str) -> None:
    """What passes changes nothing."""
    machine = prepared(machine, index, old=True)
    before = {path.name: path.read_bytes() for path in machine.work.iterdir() if path.is_file()}
    put(index, fault, once=True)
    done = machine.run(*COMMANDS[command].split())
    assert done.code == 0, done
    found = state(machine.work)
    assert not all(index.faults.values())  # some METADATA is not read
    index.faults.clear()
    for name, data in before.items():
        (machine.work / name).write_bytes(data)
    if command != "pip install":
        shutil.rmtree(machine.home)
    done = machine.run("pip", "sync", "requirements.txt")
    assert done.code == 0, done
    done = machine.run(*COMMANDS[command].split())
    assert done.code == 0, done
    assert state(machine.work) == found


@pytest.mark.parametrize("fault", sampled([("variants.json at 503",), ("ranges at 503",)], 2))
def test_uv_goes_on(machine: Machine, index: Index, fault: str) -> None:
    """With the option or the variable, with a line."""
    machine = prepared(machine, index, old=False)
    put(index, fault)
    done = machine.run(ALLOWED, "lock")
    assert done.code == 0, done
    assert "the variant wheels of app 2.0 are ignored: " in done.err
    assert index.root in done.err
    (machine.work / "uv.lock").unlink()
    done = machine.with_environ({"VARIANTS_ALLOW_MISSING_SOURCES": "1"}).run("lock")
    assert done.code == 0, done


@pytest.mark.parametrize("status", [404, 200])
def test_a_fault_that_lasts(machine: Machine, index: Index, status: int) -> None:
    """It costs the version its variants, with a line."""
    machine = prepared(machine, index, old=False)
    index.faults.update(wheels(index, "", Answer(404)))
    index.faults[DOCUMENT] = Answer(status, b"{")
    done = machine.run("lock")
    assert done.code == 0, done
    assert "the variant wheels of app 2.0 are ignored: " in done.err
    assert "app-1.0" in (machine.work / "uv.lock").read_text()


@pytest.mark.one
@pytest.mark.parametrize(
    ("client", "fault", "old"), sampled(product(("pip", "resolve"), FAULTS, (False, True)), 5)
)
def test_pylock(
    client: str, patched: Environment, index: Index, fault: str, old: bool, tmp_path: Path
) -> None:
    """What `pip lock` and `variants resolve` write."""
    path = tmp_path / "pylock.toml"
    given = ("-i", index.url, "-o", str(path), "app")

    def run(*more: str) -> Result:
        if client == "pip":
            return patched.pip("lock", *given, *more, env=CUDA_12_8)
        command = [sys.executable, "-c", "from variants_cli.main import main; main()", "resolve"]
        env = clean_environ({**CUDA_12_8, "VARIANTS_CACHE_DIR": str(tmp_path / "cache")})
        return executed([*command, *given, *more], env=env)

    if old:
        assert run().code == 0
    before = path.read_bytes() if old else None
    publish(index)
    put(index, fault)
    done = run()
    # pip has no word for METADATA that it does not get.
    assert done.code == 1 or (done.code == 2 and client == "pip" and "METADATA" in fault), done
    assert (path.read_bytes() if path.exists() else None) == before
    assert index.root in done.err or fault == "page at 503"  # pip shows it with -v only
    if fault.startswith(("variants.json", "ranges")):
        assert ALLOWED in done.err
        done = run(ALLOWED)
        assert done.code == 0, done
        assert path.exists()


def executed(command: list[str], **options: Any) -> Result:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    return Result(done.returncode, done.stdout, done.stderr)


class TestPlaces:
    """A place of the catalogue that is down."""

    @pytest.fixture
    def field(self) -> Iterator[Field]:
        with standing_in(pytorch()) as found:
            yield found

    @pytest.fixture
    def machine(self, machine: Machine, field: Field) -> Machine:
        folder = machine.home / "catalog"
        family_entries(field.builds, folder)
        settings = {DRIVER: "12.8", "UV_DEFAULT_INDEX": field.index.url}
        machine = machine.with_environ({**settings, "VARIANTS_CATALOG": str(folder)})
        machine.create_environment(sys.executable)
        project(machine.work, ("torch<2.9",))
        done = machine.run("sync")
        assert done.code == 0, done
        project(machine.work, ("torch",))
        (machine.work / "r.in").write_text("torch\n")
        (machine.work / "pinned.txt").write_text("torch==2.9.0\ncudalib==128\n")
        return machine

    @pytest.mark.parametrize("command", sampled([(name,) for name in COMMANDS], 4))
    def test_uv(self, machine: Machine, field: Field, command: str) -> None:
        before = state(machine.work)
        assert before["labels"] == {}
        field.builds.faults[page("cu126")] = DOWN
        words = COMMANDS[command].replace("app", "torch").replace("other", "cudalib").split()
        if command == "remove":
            project(machine.work, ("torch", "cudalib"))
            words[-1] = "cudalib"
        line = refusal(machine.run(*words))
        assert field.builds.root in line
        left_out = ["pyproject.toml"] if command == "remove" else []
        assert state(machine.work, *left_out) == {
            name: each for name, each in before.items() if name not in left_out
        }

    def test_versions_that_are_not_asked_for(self, machine: Machine, field: Field) -> None:
        """A place without a build of the version that is required does not matter."""
        path = machine.home / "catalog" / "torch.toml"
        cu126 = 'local = "cu126"'
        path.write_text(path.read_text().replace(cu126, f'{cu126}\nversions = "<2.9"'))
        field.builds.faults[page("cu126")] = DOWN
        assert refusal(machine.run("lock", "--upgrade"))
        project(machine.work, ("torch==2.9.0",))
        done = machine.run("lock", "--upgrade")
        assert done.code == 0, done
        assert "torch" in done.err

    def test_nothing_to_do(self, machine: Machine, field: Field) -> None:
        """What is locked and installed needs no index."""
        project(machine.work, ("torch<2.9",))
        field.index.faults[""] = lambda: DOWN
        field.index.faults["/simple/torch/"] = DOWN
        field.builds.faults[page("cu126")] = DOWN
        for words in ("sync", "sync --frozen", "lock --check", "run python -c pass", "tree"):
            done = machine.run(*words.split())
            assert done.code == 0, (words, done)


def full(path: Path, command: list[str], **options: Any) -> Result:
    """Run *command* where the folder *path* is on a disk that is nearly full."""
    if sys.platform != "linux" or not shutil.which("unshare"):
        pytest.skip("needs mounts")
    path.mkdir()
    setup = f"mount -t tmpfs -o size=32k,mode=777 tmpfs {path} || exit 99"
    done = executed(["unshare", "-m", "sh", "-c", f'{setup}\nexec "$@"', "sh", *command], **options)
    if done.code == 99 or "unshare failed" in done.err:
        pytest.skip(f"may not mount: {done.err}")
    return done


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no such device")
@pytest.mark.parametrize(
    ("main", "arguments"),
    [
        ("variants_cli.main", "detect"),
        ("uv_variants.main", "doctor"),
        ("variants_proxy._commands.cli", "url"),
    ],
)
def test_no_room_for_what_is_printed(main: str, arguments: str) -> None:
    """One line that says what did not fit, and that is no bug."""
    command = [sys.executable, "-c", f"from {main} import main; main()", arguments]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode != 0
    said, _, problem = done.stderr.partition("\n")[0].partition(": ")
    assert said in ("error", "uv-variants", "variants-proxy")
    assert problem.startswith("standard output, or the temporary folder")
    assert problem.endswith(": No space left on device")


@pytest.mark.parametrize(("command", "old"), sampled(product(COMMANDS, (False, True)), 7))
def test_a_full_disk(
    machine: Machine, index: Index, command: str, old: bool, tmp_path: Path
) -> None:
    machine = prepared(machine, index, old=old)
    before = state(machine.work)
    words = COMMANDS[command].split()
    env = {**machine.variables, "TMPDIR": str(tmp_path / "full")}
    done = full(tmp_path / "full", [str(machine.program), *words], env=env, cwd=machine.work)
    assert f"{tmp_path / 'full'}: No space left on device" in refusal(done)
    assert state(machine.work) == before
