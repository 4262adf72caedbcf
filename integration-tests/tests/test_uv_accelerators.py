"""One uv.lock with a group for each accelerator, installed by uv-variants and by plain uv."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.catalog_places import (
    add,
    add_cupy,
    entry,
    family_entries,
    numbered_entry,
    place_url,
    pytorch,
    variant,
)
from support.projects import DRIVER, GPU
from support.published_builds import Field, standing_in
from support.uvs import Machine, project
from support.wheels import PURE, Wheel
from uv_variants._environments import installed_versions

LINUX = "py3-none-manylinux_2_17_x86_64"
WINDOWS, MAC = "py3-none-win_amd64", "py3-none-macosx_11_0_arm64"
BUILDS = {"": "cpu", "12.6": "cu126", "12.8": "cu128", "13.0": "cu130"}
"""Builds of torch that a driver takes of a lock that has all."""
NAMES = ("cpu", "cuda12.6", "cuda12.8", "cuda13.0")
EMBEDDER = ("idna", "onnxruntime>=1.19,!=1.21", "onnx; extra == 'x'")
GROUPS = dict(zip(BUILDS, NAMES, strict=True))


@pytest.fixture
def field() -> Iterator[Field]:
    """PyTorch's places, and the user's own index: with cupy, onnxruntime, and a trainer."""
    found = pytorch(LINUX, WINDOWS, mac=MAC)
    add_cupy(found.index, LINUX, WINDOWS, mac=MAC)
    for wheel in (
        Wheel("trainer", "1.0", requires=("torch>=2.8",)),
        Wheel("onnxruntime", "1.20.0"),
        Wheel("onnxruntime-gpu", "1.20.0"),
        Wheel("idna", "3.0"),
        Wheel(
            "embedder", "0.4", requires=("idna", "onnxruntime>=1.19,!=1.21", "onnx; extra == 'x'")
        ),
    ):
        found.index.add_wheel(wheel, metadata_file=True)
    with standing_in(found):
        yield found


@pytest.fixture
def computer(machine: Machine, field: Field, tmp_path: Path) -> Machine:
    """A machine without GPU, the indexes, and a directory with entries."""
    folder = tmp_path / "catalog"
    family_entries(field.builds, folder)
    gpu = variant("cuda12", 'requires = ["onnxruntime-gpu=={version}"]', cuda="12.0")
    (folder / "onnxruntime.toml").write_text(entry("onnxruntime", [gpu, variant("null", "")]))
    (folder / "cupy.toml").write_text(numbered_entry("cupy", "cupy-cuda{}x=={{version}}"))
    settings = {
        "UV_DEFAULT_INDEX": field.index.url,
        "VARIANTS_CATALOG": str(folder),
        "UV_PYTHON": sys.executable,
    }
    return machine.with_environ(settings)


def driver(machine: Machine, version: str) -> Machine:
    """Return the machine with a GPU and this driver, none for an empty *version*."""
    return machine.with_environ({DRIVER: version, GPU: "9.0"} if version else {})


def versions(machine: Machine) -> dict[str, str]:
    return dict(installed_versions([machine.work / ".venv"]) - {("project", "1.0")})


def files(machine: Machine) -> tuple[str, str]:
    names = ("pyproject.toml", "uv.lock")
    found = [machine.work / name for name in names]
    return found[0].read_text(), found[1].read_text() if found[1].exists() else ""


def accelerated(machine: Machine, *dependencies: str, names: tuple[str, ...] = NAMES) -> str:
    """Make a project with a group for each of *names*; return what was printed."""
    project(machine.work, dependencies)
    done = machine.run("accelerators", *names)
    assert done.code == 0, done
    return done.text


def test_each_machine_takes_its_group_of_one_lock(computer: Machine, field: Field) -> None:
    printed = accelerated(computer, "trainer", "torchvision>=0.8")
    assert 'With plain uv: UV_NO_GROUP="cuda12.6 cuda12.8 cuda13.0" uv sync' in printed
    before = files(computer)
    assert "variants" not in before[1]
    for version, local in BUILDS.items():
        here = driver(computer, version)
        done = here.run("sync", "--locked")
        assert done.code == 0, done
        assert f"uv-variants: group {GROUPS[version]}" in done.err, done
        expected = {"torch": f"2.9.0+{local}", "torchvision": f"0.9.0+{local}", "trainer": "1.0"}
        expected |= {"cudalib": local[2:]} if version else {}
        assert versions(here) == expected, done
        ran = here.run("run", "--locked", "python", "-c", "import torch; print(torch.VERSION)")
        assert local in ran.out + done.err, ran
        others = " ".join(name for name in NAMES if name != GROUPS[version])
        plain = here.with_environ({"UV_NO_GROUP": others})
        assert plain.plain("sync", "--locked", "--reinstall").code == 0
        assert versions(plain) == expected
        assert here.run("sync", "--frozen").code == 0
        assert versions(here) == expected
    assert files(computer) == before
    script = computer.work / "script.py"
    script.write_text("# /// script\n# dependencies = ['idna']\n# ///\nimport idna\n")
    done = computer.run("run", str(script))
    assert done.code == 0, done
    assert "group" not in done.err
    done = computer.plain("sync", "--locked")
    assert done.code == 2
    assert "incompatible" in done.err, done


@pytest.mark.parametrize(
    ("platform", "named", "torch"),
    [
        ("aarch64-apple-darwin", "apple-m1", "2.9.0"),
        ("x86_64-pc-windows-msvc", "laptop-alderlake", "2.9.0+cpu"),
        ("x86_64-pc-windows-msvc", "cuda=12.8,sm=12.0,cpu=zen4", "2.9.0+cu128"),
    ],
)
def test_other_systems_have_their_files_in_the_lock(
    computer: Machine, platform: str, named: str, torch: str
) -> None:
    accelerated(computer, "trainer", "torchvision")
    here = computer.with_environ({"VARIANTS_PLATFORM": named})
    done = here.run("sync", "--locked", "--dry-run", "--python-platform", platform)
    assert done.code == 0, done
    assert f" + torch=={torch}\n" in done.err, done


@pytest.mark.parametrize(
    ("platform", "named", "taken"),
    [
        ("aarch64-unknown-linux-gnu", "gh200-grace", "onnxruntime"),
        ("x86_64-unknown-linux-gnu", "h100-zen4", "onnxruntime-gpu"),
        ("x86_64-pc-windows-msvc", "cuda=12.8,sm=12.0,cpu=zen4", "onnxruntime"),
    ],
)
def test_builds_that_are_not_for_all_systems(
    computer: Machine, field: Field, platform: str, named: str, taken: str
) -> None:
    """Others of the group are for the machine, whose system onnxruntime-gpu has no wheel for."""
    for name, tag in (("onnxruntime", PURE), ("onnxruntime-gpu", LINUX), ("cupy-cuda12x", PURE)):
        version = "15.0" if name == "cupy-cuda12x" else "1.21.0"
        field.index.add_wheel(Wheel(name, version, tag=tag), metadata_file=True)
    tables = [
        variant(
            "cuda12",
            'requires = ["onnxruntime-gpu=={version}"]\nplatforms = ["manylinux_2_17_x86_64"]',
            cuda="12.0",
        ),
        variant("null", ""),
    ]
    catalog = Path(computer.environ["VARIANTS_CATALOG"])
    (catalog / "onnxruntime.toml").write_text(entry("onnxruntime", tables))
    printed = accelerated(computer, "onnxruntime>=1.18", "cupy", names=("cpu", "cuda12.8"))
    line = "onnxruntime, without a build for linux_aarch64, win_amd64, is the one for CPUs there"
    assert f"group cuda12.8: {line}" in printed, printed
    here = computer.with_environ({"VARIANTS_PLATFORM": named})
    done = here.run("sync", "--locked", "--dry-run", "--python-platform", platform)
    assert done.code == 0, done
    assert f" + {taken}==1.21.0\n" in done.err, done
    assert "group cuda12.8" in done.err, done
    assert " + cupy-cuda12x==15.0\n" in done.err, done
    assert computer.run("accelerators", "--check").code == 0


def test_why_not_the_better_one(computer: Machine) -> None:
    accelerated(computer, "torch")
    done = driver(computer, "12.8").run("sync")
    assert "group cuda12.8: torch cuda12.8, CUDA driver 12.8 or newer; cuda13.0" in done.err, done
    assert "needs CUDA driver 13.0 or newer, this one supports up to 12.8" in done.err, done
    assert "group" not in computer.run("--quiet", "sync").err


def test_a_gpu_that_no_group_uses(computer: Machine) -> None:
    accelerated(computer, "torch", names=("cpu", "cuda13.0"))
    line = "cuda12.8 fits this machine: type uv-variants accelerators --add cuda12.8"
    here = driver(computer, "12.8")
    assert line in here.run("sync").err
    text = "no group of uv.lock uses the GPU that is here: cuda12.8 fits it"
    advice = "uv-variants accelerators --add cuda12.8 && uv-variants sync"
    assert f"hint: {text}\n    {advice}\n" in here.run("doctor", "--offline").out
    assert "no group" not in computer.run("doctor", "--offline").out
    assert "fits this machine" not in driver(computer, "13.0").run("sync").err
    assert "fits this machine" not in computer.run("sync").err


def test_tree_and_export_have_one_group(computer: Machine) -> None:
    accelerated(computer, "torch")
    here = driver(computer, "12.6")
    exported = here.run("export", "--no-hashes")
    assert "torch==2.9.0+cu126" in exported.out, exported
    assert "+cu128" not in exported.out
    tree = here.run("tree")
    assert "(group: cuda12-6)" in tree.out, tree
    assert "(group: cuda12-8)" not in tree.out, tree


def test_add_and_remove_keep_the_group(computer: Machine) -> None:
    """uv takes no group away there, and would refuse."""
    accelerated(computer, "trainer")
    here = driver(computer, "12.8")
    done = here.run("add", "idna")
    assert done.code == 0, done
    assert versions(here)["torch"] == "2.9.0+cu128"
    assert versions(here)["idna"] == "3.0"
    assert "type uv-variants accelerators" not in done.err
    done = here.run("add", "torchvision")
    assert done.code == 0, done
    assert "torchvision: builds for the accelerators are in no group yet" in done.err, done
    assert here.run("accelerators", "--check").code == 1
    assert here.run("accelerators").code == 0
    assert here.run("accelerators", "--check").code == 0
    assert here.run("sync").code == 0
    assert versions(here)["torchvision"] == "0.9.0+cu128"
    done = here.run("remove", "idna")
    assert done.code == 0, done
    assert "idna" not in versions(here)
    assert here.run("remove", "torchvision").code == 0
    assert here.run("accelerators").code == 0
    assert "torchvision" not in files(here)[0]
    done = here.run("add", "--no-sync", "--group", "cuda12.6", "torchvision")
    assert done.code == 0, done
    assert here.run("accelerators").code == 0
    assert '"cuda12.8" = ["torchvision", "torch"]' in files(here)[0]
    assert here.run("accelerators", "--check").code == 0
    assert here.run("add", "--no-sync", "idna").code == 0
    assert "idna" not in versions(here)


def test_another_accelerator_and_one_less(computer: Machine) -> None:
    accelerated(computer, "torch", names=("cpu", "cuda12.6"))
    here = driver(computer, "13.0")
    assert "group cuda12.6" in here.run("sync").err
    assert here.run("accelerators", "--add", "native", "--remove", "cuda12.6").code == 0
    assert "group cuda13.0" in here.run("sync").err
    assert versions(here)["torch"] == "2.9.0+cu130"
    text = files(here)[0]
    assert "cu126" not in text
    assert "12.6" not in text


def test_machines_have_the_accelerator_of_their_best_build(computer: Machine) -> None:
    accelerated(computer, "trainer", names=("laptop-alderlake", "cuda=12.8,sm=9.0,cpu=zen4"))
    assert 'accelerators = ["cpu", "cuda12.8"]' in files(computer)[0]
    table = computer.run("accelerators", "--explain")
    rows = {line.split()[0]: line.split()[1] for line in table.out.splitlines()[1:]}
    assert rows["h100-zen4"] == "cuda12.8", table
    assert rows["apple-m1"] == "cpu"


def test_names_are_proposed_and_nothing_is_written(computer: Machine) -> None:
    project(computer.work, ["torch"])
    before = files(computer)
    done = driver(computer, "12.8").run("accelerators")
    assert done.code == 0, done
    assert "type: uv-variants accelerators cpu cuda12.8" in done.err
    assert '+cpu = ["torch"]' in done.out
    assert files(computer) == before
    assert computer.run("accelerators", "--dry-run", "cpu", "cuda13.0").code == 0
    assert files(computer) == before


def test_builds_of_other_names(computer: Machine) -> None:
    """cupy has none for CPUs; onnxruntime has one for CUDA 12, which drivers for 13 run as well."""
    printed = accelerated(
        computer, "onnxruntime>=1.18", "cupy>=14", names=("cpu", "cuda12.8", "cuda13.0")
    )
    assert "onnxruntime>=1.18" in printed
    for version, expected in {
        "": {"onnxruntime": "1.20.0"},
        "12.8": {"onnxruntime-gpu": "1.20.0", "cupy-cuda12x": "14.2.0"},
        "13.0": {"onnxruntime-gpu": "1.20.0", "cupy-cuda13x": "14.2.0"},
    }.items():
        here = driver(computer, version)
        done = here.run("sync")
        assert done.code == 0, done
        assert versions(here) == expected, done
    removed = [text for name in ("cpu", "cuda12.8", "cuda13.0") for text in ("--remove", name)]
    assert computer.run("accelerators", *removed).code == 0
    text = files(computer)[0]
    assert "onnxruntime>=1.18" in text
    assert "cupy>=14" in text
    assert "accelerators" not in text


def test_a_requirement_of_another_project_on_one_of_two_names(computer: Machine) -> None:
    """Both have the same files, and embedder requires the one for CPUs."""
    names = ("cpu", "cuda12.8")
    printed = accelerated(computer, "embedder", names=names)
    assert "embedder 0.4 requires onnxruntime, which the groups have in its place" in printed
    text = files(computer)[0]
    assert """requires-dist = ["idna", "onnx; extra == 'x'"]""" in text
    assert 'cpu = ["onnxruntime!=1.21,>=1.19"]' in text
    assert '"cuda12.8" = ["onnxruntime-gpu!=1.21,>=1.19"]' in text
    for version, name in {"": "onnxruntime", "12.8": "onnxruntime-gpu"}.items():
        here = driver(computer, version)
        assert here.run("sync").code == 0
        assert versions(here) == {"embedder": "0.4", "idna": "3.0", name: "1.20.0"}
    assert computer.run("accelerators", "--check").code == 0
    assert computer.run("accelerators", *names).code == 0
    assert files(computer)[0] == text
    removed = [text for name in names for text in ("--remove", name)]
    assert computer.run("accelerators", *removed).code == 0
    assert "dependency-metadata" not in files(computer)[0]
    assert "onnxruntime-gpu" not in files(computer)[1]


def test_what_a_new_release_requires_is_found(computer: Machine, field: Field) -> None:
    accelerated(computer, "embedder", names=("cpu", "cuda12.8"))
    newer = Wheel("embedder", "0.5", requires=("onnxruntime>=1.20",))
    field.index.add_wheel(newer, metadata_file=True)
    done = computer.run("lock", "--upgrade", "--refresh")
    assert done.code == 0, done
    assert computer.run("accelerators", "--check").code == 1
    assert computer.run("accelerators").code == 0
    assert 'cpu = ["onnxruntime>=1.20"]' in files(computer)[0]
    assert computer.run("accelerators", "--check").code == 0


def test_what_only_the_publishers_index_has(computer: Machine, field: Field) -> None:
    """uv takes it from there if a group names it."""
    folder = Path(computer.environ["VARIANTS_CATALOG"])
    add(field.builds, "rocm7.2", Wheel("torch", "2.9.0+rocm7.2", requires=("triton-rocm",)))
    add(field.builds, "all", Wheel("triton-rocm", "3.5"))
    place = place_url(field.builds, "rocm7.2")
    table = variant("rocm7.2", f'index = "{place}"\nlocal = "rocm7.2"')
    table += 'properties = ["amd :: gfx_arch :: gfx942"]\n'
    path = folder / "torch.toml"
    path.write_text(path.read_text().replace('["nvidia"', '["nvidia", "amd"') + table)
    null = variant("null", f'index = "{place_url(field.builds, "all")}"')
    (folder / "triton-rocm.toml").write_text(entry("triton-rocm", [null]))
    accelerated(computer, "trainer", names=("cpu", "rocm7.2"))
    assert "rocm7.2" in files(computer)[0]
    here = computer.with_environ({"VARIANTS_PLATFORM": "mi300x-rocm7.1"})
    done = here.run("sync")
    assert done.code == 0, done
    assert versions(here) == {"trainer": "1.0", "torch": "2.9.0+rocm7.2", "triton-rocm": "3.5"}


def test_projects_that_are_alike_in_two_groups_decide_nothing(computer: Machine) -> None:
    """onnxruntime comes first, and has one build for all of CUDA 12."""
    accelerated(computer, "onnxruntime", "trainer", names=("cuda12.6", "cuda12.8"))
    assert "group cuda12.8" in driver(computer, "12.8").run("sync").err
    assert "group cuda12.6" in driver(computer, "12.6").run("sync").err


@pytest.mark.parametrize(
    ("variables", "arguments", "torch"),
    [
        ({}, ["--group", "cuda12.6"], "2.9.0+cu126"),
        ({}, ["--only-group", "cuda13.0"], "2.9.0+cu130"),
        ({}, ["--no-default-groups"], "2.9.0"),
        ({"UV_NO_GROUP": "cpu cuda12.6 cuda13.0"}, [], "2.9.0+cu128"),
        ({}, ["--no-group", "cpu", "--no-group", "cuda12.6", "--no-group=cuda12.8"], "2.9.0+cu130"),
    ],
)
def test_what_the_user_names_counts(
    computer: Machine, variables: dict[str, str], arguments: list[str], torch: str
) -> None:
    accelerated(computer, "trainer")
    here = computer.with_environ(variables)
    done = here.run("sync", *arguments)
    assert done.code == 0, done
    assert versions(here)["torch"] == torch, done


def test_options_about_variants(computer: Machine) -> None:
    """Each of them counts, is an error, or has a line."""
    accelerated(computer, "torch", "idna", names=("cpu", "cuda12.6", "cuda12.8"))
    here = driver(computer, "12.8")
    sync = ("sync", "--dry-run")
    for options, torch in (
        (["--variant", "torch=cuda12.6"], "2.9.0+cu126"),
        (["--variant", "torch=cuda12.6", "--group", "cuda12.6"], "2.9.0+cu126"),
        (["--variant", "torch=null"], "2.9.0+cpu"),
        (["--variant", "torch="], "2.9.0+cpu"),
        (["--no-variants"], "2.9.0+cpu"),
        (["--variant-exclude", "nvidia"], "2.9.0+cpu"),
        (["--variant-platform", "cuda=12.6,sm=9.0"], "2.9.0+cu126"),
    ):
        done = here.run(*sync, *options)
        assert f" + torch=={torch}\n" in done.err, (options, done)
        assert "no effect" not in done.err
    for options, line in (
        (["--variant", "torch=cuda13.0"], "group: uv-variants accelerators --add cuda13.0"),
        (["--variant", "idna=x"], "no group of uv.lock has a build of idna; there are groups with"),
        (
            ["--variant", "torch=cuda12.6", "--group", "cuda12.8"],
            "--variant with --group cuda12.8: dependency group cuda12.8 is not for this machine",
        ),
    ):
        done = here.run(*sync, *options)
        assert (done.code, line in done.err) == (2, True), done
    for arguments, option in (
        (["--variant-before-version", "torch", *sync], "--variant-before-version"),
        (["--variant", "torch=cuda12.6", "lock"], "--variant"),
        (["--variant", "torch=cuda12.6", *sync, "--no-group", "cpu"], "--variant"),
    ):
        done = here.run(*arguments)
        assert f"{option} has no effect: uv.lock has a group for each" in done.err, done
    for form in ("requirements.txt", "pylock.toml"):
        done = here.run("--variant=torch=cuda12.6", "export", "--no-hashes", "--format", form)
        assert "2.9.0+cu126" in done.out, done
        assert "2.9.0+cpu" not in done.out


def test_the_group_for_cpus_where_none_fits(computer: Machine) -> None:
    accelerated(computer, "torch", names=("cpu", "cuda12.8"))
    path = computer.work / "pyproject.toml"
    path.write_text(path.read_text().replace('cpu = ["torch"', 'cpu = ["cupy-cuda12x", "torch"'))
    assert computer.run("lock").code == 0
    done = computer.run("sync", "--dry-run")
    assert "group cpu (no group fits: cupy cuda12 needs CUDA driver 12.0" in done.err, done
    assert " + torch==2.9.0+cpu\n" in done.err, done


def test_no_group_fits(computer: Machine) -> None:
    accelerated(computer, "torch", names=("cuda12.8", "cuda13.0"))
    done = computer.run("sync")
    assert done.code == 2
    assert "none of the dependency groups cuda12-8, cuda13-0 is for this machine: torch" in done.err
    assert "uv-variants accelerators --add native" in done.err, done
    assert not (computer.work / ".venv").exists()


def test_nothing_is_changed_where_uv_finds_no_solution(computer: Machine) -> None:
    accelerated(computer, "torch", names=("cpu",))
    before = files(computer)
    offline = computer.with_environ({"UV_OFFLINE": "1"})
    done = offline.run("accelerators", "cpu", "cuda12.8")
    assert done.code != 0
    assert "pyproject.toml and uv.lock are as before" in done.err, done
    assert files(computer) == before


def test_a_newer_release_for_one_accelerator_alone(computer: Machine, field: Field) -> None:
    add(field.builds, "cu130", Wheel("torch", "2.10.0+cu130", tag=LINUX))
    printed = accelerated(computer, "torch", names=("cpu", "cuda12.8", "cuda13.0"))
    assert (
        "torch is 2.9.0 in cpu, 2.9.0 in cuda12.8, 2.10.0 in cuda13.0: require one version of it"
    ) in printed
    printed = accelerated(computer, "torch==2.9.0", names=("cpu", "cuda12.8", "cuda13.0"))
    assert "require one version" not in printed


def test_unknown_accelerators(computer: Machine) -> None:
    project(computer.work, ["torch"])
    done = computer.run("accelerators", "cpu", "rocm9.9")
    assert done.code == 2
    assert "no project has a build for rocm9.9; there are cpu, cuda13.0" in done.err, done
    project(computer.work, ["idna"])
    done = computer.run("accelerators", "cuda12.8")
    assert done.code == 2
    assert "nothing that this project requires has builds for accelerators" in done.err, done
    done = computer.run("accelerators", "--directory", str(computer.home), "cpu")
    assert done.code == 2
    assert "no pyproject.toml here or above" in done.err, done


def test_an_old_uv_is_refused(every_machine: Machine, computer: Machine) -> None:
    project(computer.work, ["torch"])
    release = tuple(map(int, every_machine.uv.parent.name.split("-")[-1].split(".")[:2]))
    here = computer.with_environ({"VARIANTS_UV": str(every_machine.uv)})
    done = here.run("accelerators", "cpu", "cuda12.8")
    if release >= (0, 11):
        assert done.code == 0, done
    else:
        assert done.code == 2
        assert "locks groups in conflict wrongly: use uv 0.10.12 or newer" in done.err, done


def test_the_members_of_a_workspace(computer: Machine) -> None:
    """uv gives a member the torch of its own index where groups of two of them could meet."""
    more = "[tool.uv.workspace]\nmembers = ['packages/*']\n[tool.uv.sources]\n"
    more += "train = { workspace = true }\nserve = { workspace = true }\n"
    project(computer.work, ["train"], more)
    for name, dependency in (("train", "trainer"), ("serve", "torchvision"), ("tools", "idna")):
        folder = project(computer.work / "packages" / name, [dependency])
        path = folder / "pyproject.toml"
        text = path.read_text().replace('name = "project"', f'name = "{name}"')
        path.write_text(f"{text}\n[tool.uv]\npackage = false\n")
    tools = path.read_text()
    done = computer.run("accelerators", "cpu", "cuda12.8")
    assert done.code == 0, done
    assert path.read_text() == tools
    assert (
        '{package = "project", group = "cpu"}, {package = "serve", group = "cuda12.8"}'
        in (files(computer)[0])
    )
    assert computer.run("accelerators", "--check").code == 0
    for version, local in {"": "cpu", "12.8": "cu128"}.items():
        here = driver(computer, version)
        for name in ("project", "train", "serve"):
            done = here.run("sync", "--package", name)
            assert done.code == 0, done
            assert versions(here)["torch"] == f"2.9.0+{local}", (name, done)
        assert here.run("sync", "--all-packages").code == 0
        assert versions(here)["torchvision"] == f"0.9.0+{local}"
    assert computer.run("accelerators", "--remove", "cpu", "--remove", "cuda12.8").code == 0
    for text in computer.work.rglob("pyproject.toml"):
        assert "cuda12.8" not in text.read_text()


def test_what_is_added_stays_where_nothing_tells_of_the_groups(computer: Machine) -> None:
    """The environment is not left as it was because an index does not answer."""
    accelerated(computer, "embedder", names=("cpu", "cuda12.8"))
    assert computer.run("sync").code == 0
    offline = computer.with_environ({"UV_OFFLINE": "1"})
    done = offline.run("add", "idna")
    assert done.code == 0, done
    assert "the groups of accelerators are not known to be up to date: embedder 0.4" in done.err
    assert "group cpu" in done.err


def test_doctor_compares_the_group_that_is_installed(computer: Machine) -> None:
    accelerated(computer, "torch", "torchvision", names=("cpu", "cuda12.6", "cuda12.8"))
    here = driver(computer, "12.8")

    def told(of: Machine) -> str:
        out = of.run("doctor", "--offline").out
        found = re.findall(r"(?m)^problem: (.*)\n    (.*)$", out)
        assert "takes packages from" not in out
        assert {command for _, command in found} <= {"uv-variants sync"}
        return "; ".join(text for text, _ in found)

    assert computer.run("sync").code == 0
    assert told(computer) == ""
    fits = "of uv.lock, while cuda12.8 fits: torch cuda12.8, CUDA driver 12.8 or newer"
    assert told(here) == f"the environment has group cpu {fits}"
    assert told(here.with_environ({"UV_NO_GROUP": "cuda12.6 cuda12.8"})) == ""
    half = ("pip", "install", "--no-deps", "--python", ".venv", "torch==2.8.0")
    assert here.plain(*half).code == 0
    assert f"the environment has no group as a whole {fits}" in told(here)
    assert here.run("sync").code == 0
    assert told(here) == ""
    assert here.run("sync", "--group", "cuda12.6").code == 0
    assert told(here) == ""
    assert computer.run("sync").code == 0
    assert told(here) == f"the environment has group cpu {fits}"
