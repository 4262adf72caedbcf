"""Projects: lock files that hold for everybody, or for every machine its own."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.index import Index
from support.projects import CUDA_12_8, DRIVER, app_index, cuda
from support.published_builds import published, standing_in
from support.uvs import Machine, project
from support.wheels import Release, Wheel

PYTHON = sys.executable
Serve = Callable[[Index], Index]

LABEL = "import app; print(app.LABEL)"


@pytest.fixture
def index(serve: Serve) -> Index:
    index = app_index(metadata_file=True)
    index.add_wheel(Wheel("plain", "1.0"), metadata_file=True)
    return serve(index)


def working_on(machine: Machine, index: Index, *dependencies: str, more: str = "") -> Machine:
    """Let *machine* have a project."""
    project(machine.work, dependencies, more)
    return machine.with_environ({"UV_DEFAULT_INDEX": f"own={index.url}", "UV_PYTHON": PYTHON})


def lock_of(machine: Machine) -> str:
    return (machine.work / "uv.lock").read_text()


@pytest.mark.everywhere
def test_a_pinned_lock_is_the_same_everywhere(every_machine: Machine, index: Index) -> None:
    machine = working_on(every_machine, index, "app")
    gpu = machine.with_environ(CUDA_12_8)
    done = gpu.run("lock")
    assert done.code == 0, done
    assert "Variant cu128 for app 1.0: CUDA driver 12.8 or newer" in done.err
    lock = lock_of(machine)
    assert "for-cu128" in lock
    begins = f'"{index.url}app/.variant/cu128/app-1.0-0_cu128-py3-none-any.whl", hash = "sha256:'
    assert begins in lock
    assert {*re.findall(r'registry = "([^"]*)"', lock)} == {index.url}
    # A machine without such a GPU gets what was pinned, and leaves the lock file alone.
    done = machine.run("sync", "--locked")
    assert done.code == 0, done
    assert (
        "uv-variants: app 1.0 is installed as variant 'cu128', which uv.lock has and which does "
        "not fit this machine: needs CUDA driver 12.8 or newer"
    ) in done.err
    assert "--upgrade-package" not in done.err  # it would break the lock for the others
    assert machine.labels() == {"app": "cu128"}
    assert lock_of(machine) == lock
    done = machine.run("run", "python", "-c", LABEL)
    assert done.out == "cu128\n", done
    assert lock_of(machine) == lock
    done = gpu.run("lock", "--check") if "0.5" not in str(machine.uv) else gpu.run("sync")
    assert done.code == 0, done


def test_a_lock_says_for_which_machine_it_was_made(machine: Machine, index: Index) -> None:
    """V6: a change of the lock chooses for that machine, unless another one is asked for."""
    machine = working_on(machine, index, "app")
    gpu = machine.with_environ(CUDA_12_8)
    record = machine.work / "uv.variants.toml"
    assert gpu.run("lock", "--dry-run").code == 0
    assert not record.exists()
    done = gpu.run("lock")
    assert "uv.lock is for this machine, as uv.variants.toml beside it says: keep both" in done.err
    said = record.read_text()
    assert 'cuda_version_lower_bound = ["12.8"' in said
    assert "detected = true" in said
    # Others keep and extend it, and are told what they have.
    assert machine.run("lock", "--upgrade").code == 0
    assert "/app/.variant/cu128/" in lock_of(machine)
    done = machine.run("add", "plain")
    assert done.code == 0, done
    assert "/app/.variant/cu128/" in lock_of(machine)
    assert "uv.lock was locked for the machine of uv.variants.toml, which is not" in done.err
    done = machine.run("sync")
    (line,) = (each for each in done.err.splitlines() if "does not fit this machine" in each)
    assert "as variant 'cu128', which uv.lock has for the machine of uv.variants.toml" in line
    assert "--upgrade-package" not in done.err
    assert "fit" not in gpu.run("sync").err
    assert record.read_text() == said
    # What is not locked is for the machine at hand.
    done = machine.run("run", "--isolated", "--no-project", "--with", "app", "python", "-c", LABEL)
    assert done.out == "null\n", done
    # Another machine is asked for by name.
    done = machine.run("--variant-platform", "native", "lock")
    assert "uv.lock is for this machine" in done.err
    assert "/app/.variant/null/" in lock_of(machine)
    assert "cu128" not in lock_of(machine)
    done = gpu.run("--variant", "app=cu126", "lock")
    assert done.code == 2
    assert "uv.variants.toml says that the lock is for another machine than this one" in done.err
    done = machine.run("--variant-platform", "h100-zen4", "lock")
    assert "uv.lock is for h100-zen4, as uv.variants.toml" in done.err
    assert "/app/.variant/cu130/" in lock_of(machine) or "/cu128/" in lock_of(machine)
    assert 'machine = "h100-zen4"' in record.read_text()


def test_a_lock_that_does_not_say_its_machine(machine: Machine, index: Index) -> None:
    """V6: of an older release; its labels stay, and nothing is said for it afterwards."""
    machine = working_on(machine, index, "app")
    record = machine.work / "uv.variants.toml"
    assert machine.with_environ(CUDA_12_8).run("lock").code == 0
    record.unlink()
    done = machine.run("add", "plain")
    assert done.code == 0, done
    assert "/app/.variant/cu128/" in lock_of(machine)
    assert not record.exists()
    record.write_text("<<<<<<< HEAD\n")
    done = machine.run("lock")
    assert done.code == 2
    assert "uv.variants.toml: not valid TOML: " in done.err
    assert "it says which machine uv.lock is for: mend it, or lock with --variant-pl" in done.err
    done = machine.run("sync")
    assert done.code == 0, done
    assert "mend it, or lock with --variant-platform, which writes it anew; it is left" in done.err
    assert record.read_text() == "<<<<<<< HEAD\n"


def test_a_lock_without_variants_says_so(machine: Machine, index: Index) -> None:
    """V10, U5: what ``--no-variants`` locked stays; each sync says what to type."""
    index.add_wheel(Wheel("app", "1.0", requires=("always",)), metadata_file=True)
    gpu = working_on(machine, index, "app").with_environ(CUDA_12_8)
    record = machine.work / "uv.variants.toml"
    assert gpu.run("--no-variants", "sync").code == 0
    assert not record.exists()
    cpu = working_on(machine, index, "app")
    assert ["there are some" in cpu.run("sync").err for _ in range(2)] == [True, False]
    for words in ((), (), ("--frozen",), ("--locked", "--offline")):
        done = gpu.run("sync", *words)
        assert "the lock has no variants; there are some that fit this machine: app 1.0" in done.err
        assert "uv-variants lock --upgrade-package app takes them, for everybody" in done.err
        index.requests.clear()  # of the first sync alone
    assert index.requests == []
    assert "uv-variants" not in gpu.run("sync", "-q").err
    assert gpu.run("lock", "--upgrade-package", "app").code == 0
    # And back: the machine of the lock is still known.
    done = gpu.run("--no-variants", "sync")
    assert (done.code, ".variant" in lock_of(machine)) == (0, False), done
    assert record.exists()


IDLE = {
    "of a dependency": ('dependencies = ["top"]', ()),
    "of a group": ('dependencies = []\n[dependency-groups]\ndev = ["app"]', ()),
    "of a member": (
        'dependencies = []\n[tool.uv.workspace]\nmembers = ["member"]',
        ("--all-packages",),
    ),
    "of a script": ("", ("--script", "script.py")),
    "of an older release": ('dependencies = ["older"]', ()),
    "none, as it is excluded": ('dependencies = ["older", "excludes"]', ()),
}


@pytest.mark.parametrize("name", IDLE)
def test_each_sync_says_what_stays_idle(machine: Machine, index: Index, name: str) -> None:
    """U5: in one line, whose command takes it; the index is asked by the first one."""
    index.add_wheel(Wheel("top", "1.0", requires=("app",)), metadata_file=True)
    index.add_wheel(Wheel("excludes", "1.0", requires=("older>=2",)), metadata_file=True)
    for version, driver in (("1.0", "12.8"), ("2.0", "13.0")):
        index.add_release(Release("older", version, cuda(driver)), metadata_file=True)
    more, words = IDLE[name]
    head = 'version = "1.0"\nrequires-python = ">=3.10"\n'
    member = f'[project]\nname = "member"\n{head}dependencies = ["app"]\n'
    (machine.work / "member").mkdir()
    (machine.work / "member" / "pyproject.toml").write_text(member)
    (machine.work / "pyproject.toml").write_text(f'[project]\nname = "p"\n{head}{more}\n')
    script = machine.work / "script.py"
    script.write_text(
        '# /// script\n# dependencies = ["app"]\n# ///\nimport app\nprint(app.LABEL)\n'
    )
    machine = machine.with_environ({"UV_DEFAULT_INDEX": index.url, "UV_PYTHON": PYTHON})
    of_script = words if name == "of a script" else ()
    assert machine.run("lock", *of_script).code == 0
    gpu = machine.with_environ(CUDA_12_8)
    for number, how in enumerate(((), (), ("--frozen",), ("--locked",))):
        done = gpu.run("sync", *words, *how)
        lines = [line for line in done.err.splitlines() if "variant cu128" in line]
        assert (done.code, len(lines)) == (0, "excludes" not in more), done
        if number == 0:
            index.requests.clear()
    assert index.requests == []
    assert "variant cu128" not in gpu.run("sync", *words, "-q").err
    if "older" in more:
        assert all(": to take it, require older==1.0" in line for line in lines), lines
        return
    relock, sync = lines[0].rpartition(": uv-variants ")[2].split(" takes it")[0].split(" && ")
    assert gpu.run(*relock.split()).code == 0
    done = gpu.run(*sync.removeprefix("uv-variants ").split(), *(() if of_script else words))
    assert (done.code, "cu128 fits better" in done.err) == (0, False), done
    assert (
        ("/cu128/" in (machine.work / "uv.lock").read_text())
        if not of_script
        else ("/cu128/" in (machine.work / "script.py.lock").read_text())
    )


def test_each_sync_says_that_the_catalogue_has_a_build(machine: Machine) -> None:
    """U5: where it is off, of a lock that was made with it for another machine."""
    with standing_in(published(torch=("2.14.0",))) as field:
        settings = {"VARIANTS_CATALOG_MIRROR": " ".join(field.mirrors)}
        settings |= {"UV_DEFAULT_INDEX": field.index.url, "UV_PYTHON": PYTHON}
        machine = machine.with_environ(settings)
        project(machine.work, ["torch"])
        assert machine.with_environ({"VARIANTS_CATALOG": "default"}).run("lock").code == 0
        machine = machine.with_environ(CUDA_12_8)
        relock = "--variant-platform native lock --upgrade-package torch"
        for words in ((), (), ("--frozen",)):
            done = machine.run("sync", *words)
            assert (
                "torch 2.14.0+cpu does not use the NVIDIA GPU that is here: uv-variants catalog "
                f"enable, then uv-variants {relock} && uv-variants sync, takes a build that does"
            ) in done.err
        assert "uv-variants" not in machine.run("sync", "-q").err
        machine = machine.with_environ({"VARIANTS_CATALOG": "default"})
        for line in (relock, "sync"):
            assert machine.run(*line.split()).code == 0
        assert "2.14.0+cu126" in (machine.work / "uv.lock").read_text()
        assert "uv-variants" not in machine.run("sync").err


def test_a_dry_run_names_variants(machine: Machine, index: Index) -> None:
    """U10: those of the lock, without a request for what has none, and those to be locked."""
    machine = working_on(machine, index, "app", "plain").with_environ(CUDA_12_8)
    assert "Variant cu128 for app 1.0: CUDA driver" in machine.run("sync", "--dry-run").err
    assert not (machine.work / "uv.lock").exists()
    assert machine.run("lock").code == 0
    index.requests.clear()
    for words in ((), ("--frozen",)):
        done = machine.with_environ({DRIVER: "12.6"}).run("sync", "--dry-run", *words)
        assert (done.code, "Variant cu128 for app 1.0: " in done.err) == (0, True)
    assert {*index.requests} == {"/simple/app/"}
    done = machine.run("--variant", "app=cu126", "sync", "--dry-run")
    assert "Variant cu126 for app 1.0: asked for" in done.err, done
    assert machine.run("sync").code == 0
    assert "Variant" not in machine.run("sync", "--dry-run").err
    requirements = machine.work / "r.txt"
    requirements.write_text("app\n")
    done = machine.run("pip", "sync", "--dry-run", "--target", "there", str(requirements))
    assert "Variant cu128 for app 1.0" in done.err, done


def test_a_lock_without_variants_is_for_no_machine(machine: Machine, serve: Serve) -> None:
    """U10: a local version is no build of the catalogue."""
    index = Index()
    index.add_wheel(Wheel("private", "1.0+local.1"), metadata_file=True)
    machine = working_on(machine, serve(index), "private").with_environ(CUDA_12_8)
    for words in ((), ("--variant-platform", "h100-zen4")):
        assert machine.run("--variant-catalog", "default", *words, "lock").code == 0
        assert sorted(path.name for path in machine.work.iterdir()) == ["pyproject.toml", "uv.lock"]


def test_builds(machine: Machine, index: Index) -> None:
    machine = machine.with_environ({**CUDA_12_8, "UV_DEFAULT_INDEX": index.url})
    folder = machine.work / "built"
    folder.mkdir()
    (folder / "pyproject.toml").write_text(
        '[project]\nname = "built"\nversion = "1.0"\n'
        '[build-system]\nrequires = ["app"]\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    (folder / "backend.py").write_text(
        "import pathlib\nimport app\n"
        "def build_wheel(folder, config_settings=None, metadata_directory=None):\n"
        "    name = f'built-1.0-py3-none-any.whl'\n"
        "    pathlib.Path(folder, name).write_bytes(b'')\n"
        "    pathlib.Path('label').write_text(app.LABEL)\n"
        "    return name\n"
    )
    done = machine.run("build", "--wheel", "--python", PYTHON, cwd=folder)
    assert done.code == 0, done
    assert (folder / "label").read_text() == "cu128"


def test_an_old_version_that_is_required_has_its_variant(machine: Machine, serve: Serve) -> None:
    """V10: more versions are on the index than the proxy looks at."""
    many = Index()
    for number in range(205):
        many.add_release(Release("many", f"1.{number}", cuda("12.8")))
    machine = working_on(machine, serve(many), "many==1.2").with_environ(CUDA_12_8)
    done = machine.run("lock")
    assert done.code == 0, done
    assert "/many/.variant/cu128/many-1.2-0_cu128-" in lock_of(machine)


@pytest.mark.skipif(sys.platform == "win32", reason="the program is a shell script")
def test_a_sync_with_nothing_to_do_asks_nothing(
    machine: Machine, index: Index, tmp_path: Path
) -> None:
    """uv says itself that it has nothing to do, and has no session then."""
    log, uv = tmp_path / "log", tmp_path / "uv-logged"
    uv.write_text(f'#!/bin/sh\necho "$UV_OFFLINE $@" >> {log}\nexec {machine.uv} "$@"\n')
    uv.chmod(0o755)
    machine = working_on(machine, index, "app", "plain").with_environ(CUDA_12_8)
    assert machine.run("sync").code == 0
    logged = machine.with_environ({"VARIANTS_UV": str(uv)})

    def runs(*arguments: str) -> list[str]:
        log.write_text("")
        done = logged.run(*arguments)
        assert done.code == 0, done
        lines = log.read_text().splitlines()
        return [line for line in lines if "--version" not in line]

    assert runs("sync", "--frozen") == ["1 sync --frozen --check --offline", "1 sync --frozen"]
    theirs = machine.plain("sync", "--frozen")
    ours = machine.run("sync", "--frozen")
    assert re.sub(r"[0-9.]+m?s", "", ours.err) == re.sub(r"[0-9.]+m?s", "", theirs.err)
    # With something to do it has one, and what is installed is the variant of the lock.
    environment = str(machine.work / ".venv")
    assert machine.plain("pip", "uninstall", "--python", environment, "app").code == 0
    assert machine.labels() == {}
    assert runs("sync", "--frozen")[1:] == [" sync --frozen"]
    assert machine.labels() == {"app": "cu128"}
    # A variant that the lock has no more is replaced, though its version is the same.
    assert machine.run("--variant-platform", "native", "--variant", "app=cu126", "lock").code == 0
    assert runs("sync", "--frozen")[1:] == [" sync --frozen --reinstall-package app"]
    assert machine.labels() == {"app": "cu126"}
    # What has to be checked is checked by a session.
    assert runs("--variant", "app=cu126", "sync", "--frozen") == [" sync --frozen"]
