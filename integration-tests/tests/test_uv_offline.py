"""``--offline``: nothing is asked, and a choice that cannot be met without the network is an error.

What is locked, installed or in the caches already counts where it is what the command asks for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.index import Index
from support.plugins import PLUGIN, acme_index
from support.projects import CUDA_12_8, app_index
from support.published_builds import published, standing_in
from support.uvs import Machine, project
from support.wheels import Wheel

PYTHON = sys.executable
Serve = Callable[[Index], Index]
ONLINE = "can only be chosen online: run it again without "
INSTALL = "pip install --python .venv"


@pytest.fixture
def index(serve: Serve) -> Index:
    index = app_index(metadata_file=True, plain=True)
    index.add_wheel(Wheel("plain", "1.0"), metadata_file=True)
    return serve(index)


@contextmanager
def nothing_asked(*indexes: Index) -> Iterator[None]:
    """Fail if one of the indexes is asked for something."""
    before = [len(each.requests) for each in indexes]
    yield
    assert [len(each.requests) for each in indexes] == before


def synced(machine: Machine, index: Index, **environ: str) -> Machine:
    """Return the machine after a sync with a GPU: `app` is cu128."""
    project(machine.work, ["app"])
    environ = {"UV_DEFAULT_INDEX": index.url, "UV_PYTHON": PYTHON, **CUDA_12_8, **environ}
    machine = machine.with_environ(environ)
    done = machine.run("sync")
    assert done.code == 0, done
    return machine


CHOICES = {
    "lock": 0,
    "sync": 0,
    "sync --frozen": 0,
    "sync --locked": 0,
    "tree": 0,
    "export": 0,
    "run python -c 1": 0,
    f"{INSTALL} app": 0,
    f"{INSTALL} -v app": 0,
    f"{INSTALL} --dry-run --reinstall app": 0,
    "pip compile -q pyproject.toml": 0,
    "doctor": 0,
    # What is there is what is asked for.
    "--variant app=cu128 lock": 0,
    "--variant app=cu128 sync --frozen": 0,
    f"--variant app=cu128 {INSTALL} app": 0,
    "--variant-platform native lock": 0,
    "--variant-exclude amd sync": 0,
    "--variant-prefer nvidia lock": 0,
    "--variant-switch lock": 0,
    "--variant-switch sync": 0,
    f"--variant-switch {INSTALL} app": 0,
    # It is not.
    "--no-variants tree --frozen": 2,
    "--variant app=cu126 lock": 2,
    "--variant app=cu126 sync": 2,
    "--variant app=cu126 sync --frozen": 2,
    "--variant app=cu126 sync --locked": 2,
    "--variant app=cu126 run python -c 1": 2,
    "--variant app=cu126 add plain": 2,
    "--variant app=cu126 remove app": 2,
    "--variant app=cu126 export": 2,
    "--variant app=cu126 tree": 2,
    "--variant app= lock": 2,
    "--no-variants lock": 2,
    "--variant-platform cpu-haswell lock": 2,
    "--variant-platform cpu-haswell sync": 2,
    "--variant-exclude nvidia lock": 2,
    f"--variant app=cu126 {INSTALL} app": 2,
    "--variant app=cu126 pip install --target there app": 2,
    "--variant app=cu126 pip install --target there --dry-run app": 2,
    "--variant app=cu126 pip compile -q pyproject.toml": 2,
    "--variant app=cu126 run --no-project --with app python -c 1": 2,
    "--variant app=cu126 tool run --from app python -c 1": 2,
    "--variant app=cu128 tool run --from app python -c 1": 0,
    f"--variant-switch --variant-exclude nvidia {INSTALL} app": 2,
}


def test_choices_without_the_network(machine: Machine, index: Index) -> None:
    """U7, S4: what is there stays as it is, and exit 2 says what to type."""
    machine = synced(machine, index)
    kept = {name: (machine.work / name).read_text() for name in ("uv.lock", "uv.variants.toml")}
    for line, code in CHOICES.items():
        words = line.split()
        place = words.index("python") if "run" in words else len(words)
        with nothing_asked(index):
            done = machine.run(*words[:place], "--offline", *words[place:])
        assert done.code == code, (line, done)
        said = ONLINE if "--frozen" not in line and "--locked" not in line else "lock without them"
        assert (said in done.err) is (code == 2), (line, done)
        assert {name: (machine.work / name).read_text() for name in kept} == kept, line
        assert machine.labels() == {"app": "cu128"}, line


@pytest.mark.matrix
def test_all_that_keeps_uv_offline(every_machine: Machine, index: Index) -> None:
    """The last option, else the variable, else a file; and what comes after it."""
    machine = synced(every_machine, index)
    wrong = ("--variant", "app=cu126", "lock")
    pyproject = machine.work / "pyproject.toml"
    for words, environ, file in (
        (("--offline", *wrong), {}, ""),
        ((*wrong, "--no-offline", "--offline"), {}, ""),
        (wrong, {"UV_OFFLINE": "1"}, ""),
        (wrong, {"UV_OFFLINE": "true"}, ""),
        (wrong, {}, "offline = true\n"),
    ):
        (machine.work / "uv.toml").write_text(file)
        with nothing_asked(index):
            done = machine.with_environ(environ).run(*words)
        by = "--offline" if not environ else "UV_OFFLINE"
        assert (done.code, ONLINE + ("the setting offline" if file else by) in done.err) == (2, 1)
    pyproject.write_text(f"{pyproject.read_text()}[tool.uv]\noffline = true\n")
    (machine.work / "uv.toml").unlink()
    with nothing_asked(index):
        assert machine.run(*wrong).code == 2
    assert machine.run(*wrong, "--no-offline").code == 0
    assert "/.variant/cu126/" in (machine.work / "uv.lock").read_text()


def test_what_uv_has_in_its_cache_counts(machine: Machine, index: Index) -> None:
    """A lock that uv makes of it must be what was asked for; else there is none."""
    machine = synced(machine, index)
    lock = machine.work / "uv.lock"
    lock.unlink()
    with nothing_asked(index):
        done = machine.run("--variant", "app=cu126", "lock", "--offline")
        assert (done.code, lock.exists()) == (2, False), done
        assert "uv's cache has no cu126 of app, and another one can only be chosen onl" in done.err
        done = machine.run("--variant", "app=cu128", "lock", "--offline")
        assert (done.code, "/cu128/" in lock.read_text()) == (0, True), done
        assert machine.plain("pip", "uninstall", "--python", ".venv", "app").code == 0
        done = machine.run("--variant", "app=cu128", *INSTALL.split(), "app", "--offline")
        assert (done.code, machine.labels()) == (0, {"app": "cu128"}), done
        assert machine.run("--variant", "app=cu126", "remove", "app", "--offline").code == 2
    # Of what it does not name it is known afterwards.
    index.add_wheel(Wheel("top", "1.0", requires=("app",)), metadata_file=True)
    project(machine.work, ["top"])
    assert machine.run("sync").code == 0
    lock.unlink()
    with nothing_asked(index):
        done = machine.run("--variant", "app=cu126", "lock", "--offline")
        assert (done.code, lock.exists()) == (2, False), done
        assert "; uv.lock is not written" in done.err
        assert machine.run("--variant", "app=cu128", "lock", "--offline").code == 0
        # Without the pages, what is locked is what is named, or is not known to be.
        machine = machine.with_environ({"VARIANTS_CACHE_DIR": str(machine.home / "other")})
        assert machine.run("--variant", "app=cu128", "lock", "--offline").code == 0
        assert machine.run("--variant", "app=cu126", "lock", "--offline").code == 2
        assert machine.run("--variant-exclude", "amd", "lock", "--offline").code == 2


def test_builds_of_the_catalogue(machine: Machine) -> None:
    """Their labels are known from the cached pages; a catalogue at a URL is not fetched either."""
    with standing_in(published(torch=("2.9.1", "2.14.0"))) as field:
        settings = {"VARIANTS_CATALOG_MIRROR": " ".join(field.mirrors), **CUDA_12_8}
        settings |= {"VARIANTS_CATALOG": "default", "UV_DEFAULT_INDEX": field.index.url}
        machine = machine.with_environ({**settings, "UV_PYTHON": PYTHON})
        project(machine.work, ["torch==2.9.1"])
        assert machine.run("sync").code == 0
        lock = machine.work / "uv.lock"
        before = lock.read_text()
        assert "torch-2.9.1%2Bcu128" in before
        everywhere = (field.index, field.builds, field.files)
        for words, code in {
            "--variant torch=cuda12.8 lock": 0,
            "--variant-platform native lock": 0,
            "--variant torch=cuda12.6 lock": 2,
            "--variant-exclude nvidia lock": 2,
            "--variant torch=cuda12.6 sync --frozen": 2,
            "--variant torch=cuda12.6 export --frozen": 2,
            f"--variant torch=cuda12.8 {INSTALL} torch": 0,
            f"--variant torch=cuda12.6 {INSTALL} torch==2.9.1": 2,
            "sync": 0,
            "tree": 0,
        }.items():
            with nothing_asked(*everywhere):
                done = machine.run(*words.split(), "--offline")
            assert (done.code, lock.read_text() == before) == (code, True), (words, done)
            assert "uv-variants: " in done.err or not code, (words, done)
        url = f"{field.builds.root}/catalog.toml"
        with nothing_asked(*everywhere):
            for words in ("sync", "lock", f"{INSTALL} torch", "doctor", "-v tree"):
                done = machine.run("--variant-catalog", url, *words.split(), "--offline")
            assert machine.run("--offline", "sync").code == 0


def test_plugins_are_not_installed(machine: Machine, serve: Serve, tmp_path: Path) -> None:
    """One that is installed runs; what cannot be had is an error that names it."""
    index = serve(acme_index(PLUGIN))
    allowed = {"UV_DEFAULT_INDEX": index.url, "VARIANTS_ALLOW_PROVIDER": "acme-provider"}
    machine = machine.with_environ(allowed)
    machine.create_environment(PYTHON)
    assert machine.run("pip", "install", "app").code == 0
    assert machine.labels() == {"app": "fast"}
    with nothing_asked(index):
        assert machine.run("pip", "install", "app", "--offline").code == 0
        other = machine.with_environ({"VARIANTS_CACHE_DIR": str(tmp_path / "cache")})
        other = other.with_environ({"UV_CACHE_DIR": str(tmp_path / "uv")})
        for words in (("pip", "install", "app"), ("doctor",)):
            other.run(*words, "--offline")
