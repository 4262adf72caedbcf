"""From one build to another: what each client leaves of torch and its family on each machine.

The cells of `support.switching_table`: some in ``make test``, all in ``make test-matrix``.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.choices import by_resolve
from support.environments import ROOT, Environments, Result
from support.pip_commands import versions
from support.published_builds import LINUX
from support.switching_table import (
    CLIENTS,
    INSTALLED,
    MACHINES,
    PAGE_ROWS,
    PAGE_WORDS,
    SHARED,
    World,
    cases,
    damage,
    environment_for,
    imported,
    page,
    problem,
    put,
    running,
    tried,
)
from support.wheels import Wheel

PIP = "pip with the shim"

STEP = 41
UV_STEP = 151
"""One in so many cells is tried by ``make test``."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test its share of the cells; of one client after the other by turns."""
    if "cell" in metafunc.fixturenames:
        full = metafunc.config.getoption("full_matrix")
        known = [(client, *case) for case in cases() for client in CLIENTS]
        tried_always = [each for each in known if not each[0].startswith("uv")][::STEP]
        tried_always += [each for each in known if each[0].startswith("uv")][::UV_STEP]
        cells = known if full else tried_always
        ids = [
            f"{client}, {before}, {on}, {' '.join(words)}" for client, before, on, words in cells
        ]
        metafunc.parametrize("cell", cells, ids=ids)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, environments: Environments) -> Iterator[World]:
    with running(tmp_path_factory.mktemp("switching"), environments) as found:
        yield found


def test_what_is_left(cell: tuple[str, str, str, tuple[str, ...]], world: World) -> None:
    found = tried(world, *cell)
    assert not found.wrong, f"{dict(found.after)}: {found.wrong}\n{found.result}"


def typed(world: World, machine: str, *words: str) -> Result:
    """Type a command of pip; nothing that is required is damaged by it."""
    environment = environment_for(world, PIP)
    done = CLIENTS[PIP](world, environment, world.targets[machine], ["install", *words])
    assert damage(environment, clean=False) == [], done
    assert environment.pip("check").code == 0, done
    return done


def torch(world: World, machine: str) -> str:
    """Return which torch is installed; the family can be imported."""
    environment = environment_for(world, PIP)
    assert not any(imported(environment, world.targets[machine]).values())
    return versions(environment)["torch"]


def test_a_newer_release_that_does_not_run(world: World) -> None:
    """The hint names build and release; the switch takes them; again there is nothing to do."""
    put(environment_for(world, PIP), INSTALLED["family of PyPI"])
    done = typed(world, "driver 12.8", "torch")
    assert "torch 2.15.0 is installed as variant cuda13.2, which does not fit" in done.out, done
    assert "variant cuda12.6 of 2.14.0 does: to switch, add --variant-switch\n" in done.out, done
    done = typed(world, "driver 12.8", "--variant-switch", "--dry-run", "torch")
    assert "Would uninstall nvidia-cublas-13.1.0.3 nvidia-nccl-cu13-2.28.3\n" in done.out, done
    done = typed(world, "driver 12.8", "--variant-switch", "torch")
    assert "2.15.0 has no build for the accelerator that is here: switching\n" in done.out, done
    lines = done.out.splitlines()
    removed = lines.index("No longer required: nvidia-nccl-cu13 2.28.3")
    assert removed < next(n for n, line in enumerate(lines) if line.startswith("Installing coll"))
    assert torch(world, "driver 12.8") == "2.14.0+cu126"
    done = typed(world, "driver 12.8", "--variant-switch", "torch")
    assert (done.err, "switch" in done.out, "nstall" in done.out) == ("", False, False), done


def test_what_is_excluded(world: World) -> None:
    """Nothing breaks, and it ends: what requirements exclude is said each time."""
    environment, machine = environment_for(world, PIP), "driver 12.8"
    constraints = world.folder / "constraints.txt"
    constraints.write_text("torch>=2.15\n")
    for words in (["-c", str(constraints), "torch"], ["torch==2.15.0"], ["torch==2.15.0", "-U"]):
        put(environment, INSTALLED["family +cpu"])
        for _ in range(2):
            done = typed(world, machine, "--variant-switch", *words)
            assert done.code == 0, done
            assert "of 2.14.0 fits better" in done.out, done
            assert "but other requirements exclude that" in done.out, done
            assert torch(world, machine) == "2.15.0+cpu"


def test_an_invisible_driver(world: World) -> None:
    """The build for it stays, with a line that names the option for others; new ones go with it."""
    machine = "driver invisible"
    put(environment_for(world, PIP), INSTALLED["torch +cu126"])
    done = typed(world, machine, "--variant-switch", "torch")
    assert "builds for it are kept: this container (docker) sees no GPU" in done.out, done
    assert "(--variant-exclude nvidia takes others)\n" in done.out, done
    assert typed(world, machine, "torch").out.count("\n") == 4
    assert torch(world, machine) == "2.14.0+cu126"
    typed(world, machine, "torchvision", "-U", "torch")
    assert torch(world, machine) == "2.14.0+cu126"
    done = typed(world, machine, "--variant-switch", "--variant-exclude", "nvidia", "torch")
    assert "are kept" not in done.out, done
    assert torch(world, machine) == "2.14.0+cpu"


def test_a_machine_that_is_described(world: World) -> None:
    """It has what the description says."""
    put(environment_for(world, PIP), INSTALLED["torch +cu126"])
    typed(world, "driver invisible", "--variant-switch", "--variant-platform=cpu-zen4", "torch")
    assert torch(world, "driver invisible") == "2.14.0+cpu"


def test_pins_to_and_fro(world: World) -> None:
    """Without a switch nothing is removed, and the shared file is that of what is required."""
    environment = environment_for(world, PIP)
    put(environment, INSTALLED["torch +cu126"])
    for build in ("cu132", "cu126", "cu132"):
        typed(world, "driver 13.0", f"torch==2.14.0+{build}")
        assert torch(world, "driver 13.0") == f"2.14.0+{build}"
    assert {"nvidia-nccl-cu12", "nvidia-nccl-cu13"} <= versions(environment).keys()


def test_what_the_user_asked_for_stays(world: World) -> None:
    """A library that pip was told to install, and one that another project requires."""
    environment = environment_for(world, PIP)
    put(environment, INSTALLED["torch +cu126"])
    (info,) = environment.site_packages.glob("nvidia_cublas_cu12-*.dist-info")
    (info / "REQUESTED").touch()
    typed(world, "driver 13.0", "--variant-switch", "torch")
    found = versions(environment)
    assert ("nvidia-cublas-cu12" in found, "nvidia-nccl-cu12" in found) == (True, False)


def test_a_failing_installation(world: World) -> None:
    """What was removed first comes back."""
    environment = environment_for(world, PIP)
    put(environment, INSTALLED["torch +cu126"])
    in_the_way = environment.site_packages / "nvidia_nccl_cu13" / "__init__.py"
    in_the_way.mkdir(parents=True)
    done = typed(world, "driver 13.0", "--variant-switch", "torch")
    in_the_way.rmdir()
    assert done.code == 1, done
    assert torch(world, "driver 13.0") == "2.14.0+cu126"


def test_builds_that_share_a_file(world: World) -> None:
    """They agree where there is a choice, also with what is installed; else a line names it."""
    environment = environment_for(world, PIP)
    requires = ("nvidia-nccl-cu12>=2.25; extra == 'and-cuda'",)
    index = world.field.index
    index.add_wheel(
        Wheel("tensorflow", "2.20.0", tag=LINUX, requires=requires, extras=("and-cuda",))
    )
    index.add_wheel(Wheel("tensorflow-cpu", "2.20.0", tag=LINUX))
    for commands in ((("torch", "tensorflow"),), (("tensorflow",), ("torch",))):
        put(environment, {})
        for words in commands:
            done = typed(world, "driver 13.0", *words)
        text = "is left out: it requires nvidia-nccl-cu13, which has the files of nvidia-nccl-cu12"
        assert text in done.out, done
        # The choices of rounds that were given up are not said.
        lines = [line.strip() for line in done.out.splitlines()]
        said = [line for line in lines if line.startswith("Variant ") and " for " in line]
        assert len(said) == len({*said}) <= len(words) + 1, done
        assert "allowed hash" not in done.out
        assert torch(world, "driver 13.0") == "2.14.0+cu126"
        done = typed(world, "driver 13.0", "--variant-switch", "torch")
        assert torch(world, "driver 13.0") == "2.14.0+cu126"
    done = CLIENTS[PIP](
        world, environment, world.targets["driver 13.0"],
        ["install", "--variant-switch", "--variant", "torch=cuda13.2", "torch"],
    )  # fmt: skip
    line = f"{SHARED} is a file of nvidia-nccl-cu12 and nvidia-nccl-cu13, and is right for one"
    assert line in done.err, done
    options = ["-i", index.url, "--variant-catalog=default", *world.field.options]
    options += ["--platform=cuda=13.0,sm=9.0", "--python-platform=linux", "torch", "tensorflow"]
    for label, chosen in ((None, "2.14.0+cu126"), ("torch=cuda13.2", "2.15.0+cu132")):
        more = [f"--variant={label}"] if label else []
        (tree,) = by_resolve(world.folder, *options, *more)
        assert {each["name"]: each["version"] for each in tree["packages"]}["torch"] == chosen
        same = "nvidia-nccl-cu12 and nvidia-nccl-cu13 have the same files, and both are required"
        assert (same in tree["warnings"]) is bool(label), tree["warnings"]


def test_the_page(world: World) -> None:
    """Its table follows from the publishers' facts; ``make test-matrix`` makes it anew."""
    text = (ROOT / "docs/explanation/switching.md").read_text("utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    (header, *found) = rows[rows.index(["installed", *MACHINES]) :]
    assert [row[0] for row in found] == PAGE_ROWS
    for installed, *versions_of_torch in found:
        for machine, version in zip(header[1:], versions_of_torch, strict=True):
            target, after = world.targets[machine], {"torch": version}
            wrong = problem(INSTALLED[installed], after, target, PAGE_WORDS)
            assert not wrong, (installed, machine, version, wrong)


@pytest.mark.nightly
def test_the_page_anew(world: World) -> None:
    assert page(world) in (ROOT / "docs/explanation/switching.md").read_text("utf-8")
