"""From one build to another with uv: what is said, and what is left after each step.

Which builds come is in `support.switching_table`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.environments import PIPS, Environment, Environments, Result
from support.pip_commands import versions
from support.published_builds import LINUX
from support.switching_table import INSTALLED, World, damage, put, running
from support.uvs import UVS, Machine, downloaded_uv, project, uv_variants
from support.wheels import Wheel

TENSORFLOW = Wheel(
    "tensorflow",
    "2.20.0",
    tag=LINUX,
    extras=("and-cuda",),
    requires=("nvidia-nccl-cu12>=2.25; extra == 'and-cuda'",),
)
CU12 = {"nvidia-nccl-cu12": "2.27.5", "nvidia-cublas-cu12": "12.6.4.1"}
CU13 = {"nvidia-nccl-cu13": "2.28.3", "nvidia-cublas": "13.1.0.3"}


class Person:
    """Someone who types uv's commands into an environment, on one machine after the other."""

    def __init__(self, world: World, environment: Environment, work: Path) -> None:
        self.world, self.environment, self.work = world, environment, work

    def has(self, installed: str) -> None:
        """Have builds of `INSTALLED` there."""
        put(self.environment, INSTALLED[installed], "uv")

    @property
    def there(self) -> dict[str, str]:
        return versions(self.environment)

    def on(self, target: str, *words: str) -> Result:
        """Run uv-variants on a machine of the table."""
        made = self.world.environments
        shown = {**self.world.variables, **self.world.targets[target].variables}
        shown |= dict.fromkeys(
            ("VIRTUAL_ENV", "UV_PROJECT_ENVIRONMENT"), str(self.environment.path)
        )
        shown["UV_PYTHON"] = str(self.environment.python)
        uv = downloaded_uv(UVS[-1], made.wheelhouse)
        home = self.world.folder / "home"
        home.mkdir(exist_ok=True)
        machine = Machine(uv, uv_variants(made.folder), home, self.work, shown)
        done = machine.run(*words)
        assert done.code == 0, done
        return done


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, environments: Environments) -> Iterator[World]:
    with running(tmp_path_factory.mktemp("switching"), environments) as found:
        found.field.index.add_wheel(TENSORFLOW)
        found.field.index.add_wheel(Wheel("tensorflow-cpu", "2.20.0", tag=LINUX))
        yield found


@pytest.fixture
def person(world: World, tmp_path: Path) -> Person:
    made = world.environments.plain("{}.{}".format(*sys.version_info), PIPS[-1])
    return Person(world, Environment(made.copied(tmp_path / "env").path), tmp_path)


def test_driver_after_driver(person: Person) -> None:
    """The libraries are those of the build that is there; asked again, there is nothing to do."""
    person.has("torch +cpu")
    (person.work / "r.txt").write_text("torch\n")
    switch = ("--variant-switch", "pip", "install", "-r", "r.txt")
    for target, torch, libraries in (
        ("driver 12.8", "2.14.0+cu126", CU12),
        ("driver 13.0", "2.14.0+cu132", CU13),
        ("driver 12.4", "2.14.0+cu126", CU12),
        ("no GPU", "2.14.0+cpu", {}),
    ):
        done = person.on(target, *switch)
        assert ": switching" in done.err, done
        assert person.there == {"torch": torch, **libraries}, done
        assert damage(person.environment, clean=True) == []
        done = person.on(target, *switch)
        assert "torch" not in done.err, done


def test_what_stays_is_said(person: Person) -> None:
    """Without the option one line names what fits better; a hidden driver is no reason."""
    person.has("family of PyPI")
    before = person.there
    done = person.on("driver 12.8", "pip", "install", "torch", "torchvision")
    (line,) = (line for line in done.err.splitlines() if "uv-variants:" in line)
    assert "torch 2.15.0 is installed as variant cuda13.2, which does not fit this" in line, done
    assert line.endswith("variant cuda12.6 of 2.14.0 does: to switch, add --variant-switch"), done
    hidden = "driver invisible"
    assert "uv-variants:" not in person.on(hidden, "pip", "install", "torch").err
    done = person.on(hidden, "--variant-switch", "pip", "install", "torchvision")
    stays = "torchvision 0.30.0 (cuda13.2) stays as it is, though nothing that it runs on is seen: "
    assert f"{stays}this container (docker) sees no GPU" in done.err, done
    assert person.there == before
    done = person.on(hidden, "pip", "install", "torch==2.14.0")
    assert person.there["torch"] == "2.14.0+cu132", done
    assert person.there["torchvision"] == "0.29.0+cu132", done
    done = person.on(hidden, "--variant", "torch=null", "pip", "install", "torch")
    assert person.there["torch"] == "2.14.0+cpu", done


def test_what_others_need_of_the_old_build(person: Person) -> None:
    """It stays, and the file of two packages is that of the one that is required."""
    person.has("torch +cu126")
    done = person.on("driver 13.0", "pip", "install", "-U", "torch")
    assert person.there == {"torch": "2.15.0+cu132", **CU12, **CU13}, done
    assert "nothing requires nvidia-cublas-cu12 12.6.4.1, nvidia-nccl-cu12 2.27.5 any more" in (
        done.err
    )
    assert damage(person.environment, clean=False) == []
    switch = ("--variant-switch", "pip", "install", "torch", "nvidia-cublas-cu12")
    done = person.on("driver 12.8", *switch)
    assert person.there == {"torch": "2.14.0+cu126", **CU12}, done
    assert damage(person.environment, clean=True) == []


def test_projects_that_need_the_same_libraries(person: Person) -> None:
    """They agree where there is a build, else a line names the file."""
    install = ("pip", "install", "tensorflow", "torch==2.14.0")
    done = person.on("driver 13.0", *install)
    assert "torch: variant cuda12.6, for the libraries that tensorflow needs" in done.err, done
    assert person.there == {"torch": "2.14.0+cu126", "tensorflow": "2.20.0", **CU12}
    assert damage(person.environment, clean=True) == []
    done = person.on("driver 13.0", "--variant-switch", *install)
    stays = "torch 2.14.0+cu126 (cuda12.6) stays as it is, for the libraries that tensorflow needs"
    assert stays in done.err, done
    done = person.on("driver 13.0", "pip", "install", "-U", "torch")
    assert person.there["torch"] == "2.15.0+cu132", done
    (line,) = (line for line in done.err.splitlines() if "only one of them works" in line)
    assert "libnccl.so.2 is in nvidia-nccl-cu12==2.27.5 (for tensorflow) and nvidia-ncc" in line


def test_a_lock_that_leaves_a_gpu_idle(person: Person) -> None:
    """U5: a line at each sync says what to type, and that is right."""
    project(person.work, ["torch", "torchvision"])
    assert "takes it" not in person.on("no GPU", "sync").err
    assert person.there == {"torch": "2.15.0+cpu", "torchvision": "0.30.0+cpu"}
    for words in (("sync",), ("sync",), ("sync", "--frozen")):
        done = person.on("driver 12.8", *words)
        (line,) = (line for line in done.err.splitlines() if "takes it" in line)
        assert line.startswith("uv-variants: torch 2.15.0+cpu is installed as variant null; "), line
    command = line.partition(": uv-variants ")[2].partition(" && uv-variants sync takes it")[0]
    person.on("driver 12.8", *command.split())
    for target in ("driver 12.8", "driver 13.0", "driver invisible"):
        assert "takes it" not in person.on(target, "sync").err
        assert person.there == {"torch": "2.14.0+cu126", "torchvision": "0.29.0+cu126", **CU12}


def test_a_family_moves_with_any_member(person: Person) -> None:
    """Also where a requirement moves it; one that forbids the better release is kept."""
    person.has("family of PyPI")
    done = person.on("driver 12.8", "--variant-switch", "pip", "install", "torchaudio")
    assert ": switching, with torch and torchvision" in done.err, done
    family = {"torch": "2.14.0+cu126", "torchvision": "0.29.0+cu126"}
    assert person.there == {**family, "torchaudio": "2.11.0+cu128", **CU12}, done
    done = person.on("driver 12.8", "pip", "install", "torch==2.13.0")
    assert person.there["torchvision"] == "0.28.0+cu126", done
    person.has("torch of PyPI")
    (person.work / "c.txt").write_text("torch>=2.15\n")
    person.on("driver 12.8", "--variant-switch", "pip", "install", "-c", "c.txt", "torch")
    assert person.there == {"torch": "2.15.0+cpu"}
    person.has("torch +cu126")
    wheel = Wheel("torch", "9.0")
    (person.work / wheel.filename).write_bytes(wheel.build())
    done = person.on("driver 13.0", "--variant-switch", "pip", "install", f"torch@{wheel.filename}")
    assert person.there["torch"] == "9.0", done
    person.has("torch +cu126")
    done = person.on("driver 12.8", "pip", "install", "torchvision")
    assert person.there == {**family, **CU12}, done


def test_pip_sync(person: Person) -> None:
    """The file has the versions; builds are replaced with the option, but for a hidden driver."""
    person.has("torch +cpu")
    lines = ["torch==2.15.0", *(f"{name}=={version}" for name, version in CU13.items())]
    (person.work / "r.txt").write_text("\n".join(lines))
    for target, words, torch in (
        ("driver 13.0", (), "2.15.0+cpu"),
        ("driver 13.0", ("--variant-switch",), "2.15.0+cu132"),
        ("driver invisible", ("--variant-switch",), "2.15.0+cu132"),
        ("no GPU", ("--variant-switch",), "2.15.0+cpu"),
    ):
        done = person.on(target, *words, "pip", "sync", "r.txt")
        assert person.there == {"torch": torch, **CU13}, done


def test_a_program_runs_with_its_own_libraries(person: Person) -> None:
    """`uv run` removes nothing, so the packages of both builds are there when it starts one."""
    project(person.work, ["torch==2.14.0"])
    code = "import torch, pathlib; print(pathlib.Path(torch.__file__).parents[1].joinpath(*'"
    code += "nvidia/nccl/lib/libnccl.so.2'.split('/')).read_text())"
    for target, cuda in (("driver 12.8", 12), ("driver 13.0", 13), ("driver 12.8", 12)):
        words = ("--variant-platform", "native", "lock", "--upgrade-package", "torch")
        person.on(target, *words)
        done = person.on(target, "run", "python", "-c", code)
        assert done.out == f"for CUDA {cuda}\n", done
    assert damage(person.environment, clean=False) == []
