"""Builds get the variants that the command installs or has locked, also from a cache."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.catalog_places import family_entries, pytorch
from support.environments import Environment
from support.index import Index
from support.projects import CUDA_12_8, DRIVER, gpu_index
from support.published_builds import Field, standing_in
from support.uvs import Machine, project
from support.wheels import Wheel

PYTHON = sys.executable
Serve = Callable[[Index], Index]

BACKEND = """
import importlib.metadata, os, zipfile
def build_wheel(folder, config_settings=None, metadata_directory=None):
    from {name} import LABEL
    built = LABEL or importlib.metadata.version("{name}")
    with open(os.environ["BUILDS"], "a") as log:
        log.write(built + " ")
    info = "native-1.0.dist-info"
    files = {{
        "native.py": f"BUILT = {{built!r}}",
        f"{{info}}/METADATA": "Metadata-Version: 2.1\\nName: native\\nVersion: 1.0\\n"
        "Requires-Dist: {name}\\n",
        f"{{info}}/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }}
    record = "".join(f"{{path}},,\\n" for path in (*files, f"{{info}}/RECORD"))
    with zipfile.ZipFile(os.path.join(folder, "native-1.0-py3-none-any.whl"), "w") as wheel:
        for path, text in {{**files, f"{{info}}/RECORD": record}}.items():
            wheel.writestr(path, text)
    return "native-1.0-py3-none-any.whl"
build_editable = build_wheel
"""


def source(folder: Path, name: str = "gpu") -> Path:
    """Write a project that is built with *name*, and requires it, into *folder*."""
    folder.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(
        f'[project]\nname = "native"\nversion = "1.0"\ndependencies = ["{name}"]\n'
        f'requires-python = ">=3.10"\n[build-system]\nrequires = ["{name}"]\n'
        'build-backend = "backend"\nbackend-path = ["."]\n'
    )
    (folder / "backend.py").write_text(BACKEND.format(name=name))
    return folder


def committed(folder: Path) -> str:
    """Return the URL of a repository with what is in *folder*."""
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        who = ["-c", "user.name=user", "-c", "user.email=user@example.org"]
        subprocess.run(["git", *who, *words], cwd=folder, check=True)
    return folder.as_uri()


def sdist(folder: Path) -> bytes:
    """Return a source distribution of what is in *folder*."""
    about = b"Metadata-Version: 2.2\nName: native\nVersion: 1.0\nRequires-Dist: gpu\n"
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name in ("pyproject.toml", "backend.py"):
            archive.add(folder / name, f"native-1.0/{name}")
        entry = tarfile.TarInfo("native-1.0/PKG-INFO")
        entry.size = len(about)
        archive.addfile(entry, io.BytesIO(about))
    return buffer.getvalue()


def imported(machine: Machine) -> str:
    """Return what `native` was built with, and what there is, in the environment."""
    code = "import gpu, native; print(native.BUILT, gpu.LABEL)"
    python = Environment(machine.work / ".venv").python
    return subprocess.run([python, "-c", code], capture_output=True, text=True).stdout.strip()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "builds").touch()
    return tmp_path / "builds"


def ready(machine: Machine, index: Index, log: Path) -> Machine:
    return machine.with_environ(
        {**CUDA_12_8, "UV_DEFAULT_INDEX": index.url, "UV_PYTHON": PYTHON, "BUILDS": str(log)}
    )


CU126 = ("--variant", "gpu=cu126")


@pytest.mark.everywhere
@pytest.mark.parametrize("kind", ["path", "editable", "workspace", "git", "url", "index"])
def test_locked(every_machine: Machine, serve: Serve, log: Path, tmp_path: Path, kind: str) -> None:
    """A wheel that uv keeps is for the label that it was built with, wherever it is from."""
    index = serve(gpu_index())
    machine = ready(every_machine, index, log)
    folder = source(machine.work / "ext" if kind != "git" else tmp_path / "ext")
    index.add("native", "native-1.0.tar.gz", sdist(folder))
    table = {
        "path": '{path = "ext"}',
        "editable": '{path = "ext", editable = true}',
        "workspace": "{workspace = true}",
        "git": f'{{git = "{committed(folder)}"}}' if kind == "git" else "",
        "url": f'{{url = "{index.root}/files/native/native-1.0.tar.gz"}}',
        "index": "",
    }[kind]
    more = f"[tool.uv.sources]\nnative = {table}\n" if table else ""
    more += '[tool.uv.workspace]\nmembers = ["ext"]\n' if kind == "workspace" else ""
    project(machine.work, ["native"], more)
    for options, label in (((), "cu128"), (CU126, "cu126"), ((), "cu126"), ((), "cu126")):
        # The lock changes in an environment that there is; then it is installed into new ones.
        if (machine.work / "uv.lock").exists() and not options:
            shutil.rmtree(machine.work / ".venv")
        done = machine.run(*options, "sync")
        assert (done.code, imported(machine)) == (0, f"{label} {label}"), done
    # The server does not allow caching without revalidation, and old uvs have one cache for each
    # machine.
    if kind not in ("url", "index") and "0.5" not in str(machine.uv):
        assert log.read_text().split() == ["cu128", "cu126"]


@pytest.mark.parametrize("place", [["./ext"], ["-e", "./ext"], ["native"]])
def test_installed(machine: Machine, serve: Serve, log: Path, place: list[str]) -> None:
    index = serve(gpu_index())
    machine = ready(machine, index, log).with_environ({"UV_PYTHON": ""})
    index.add("native", "native-1.0.tar.gz", sdist(source(machine.work / "ext")))
    for options, label in (((), "cu128"), (CU126, "cu126"), ((), "cu128"), (CU126, "cu126")):
        shutil.rmtree(machine.work / ".venv", ignore_errors=True)
        machine.create_environment(PYTHON)
        done = machine.run(*options, "pip", "install", *place)
        assert (done.code, imported(machine)) == (0, f"{label} {label}"), done


def test_programs(machine: Machine, serve: Serve, log: Path) -> None:
    """Scripts, ``--with``, and what ``build`` writes."""
    machine = ready(machine, serve(gpu_index()), log)
    source(machine.work / "ext")
    script = machine.work / "script.py"
    code = "import gpu, native; print(native.BUILT, gpu.LABEL)"
    script.write_text(
        '# /// script\n# requires-python = ">=3.10"\n# dependencies = ["native"]\n'
        f'# [tool.uv.sources]\n# native = {{path = "ext"}}\n# ///\n{code}\n'
    )
    for words in (["script.py"], ["--no-project", "--with", "./ext", "python", "-c", code]):
        for options, label in (((), "cu128"), (CU126, "cu126"), ((), "cu128")):
            done = machine.run(*options, "run", *words)
            assert done.out == f"{label} {label}\n", done
    # A note that is damaged costs no more than a build.
    for note in machine.home.rglob("uv-cache-variants/*/sdists*/**/.*.variants.json"):
        note.write_text('["?"]')
    assert machine.run("run", "--no-project", "--with", "./ext", "python", "-c", "").code == 0
    log.write_text("")
    folder = machine.work / "ext"
    assert machine.run(*CU126, "lock", cwd=folder).code == 0
    assert machine.run("build", "--wheel", cwd=folder).code == 0
    assert machine.run("build", "--wheel", "ext").code == 0
    assert log.read_text().split() == ["cu126", "cu126"]


@pytest.fixture
def field() -> Iterator[Field]:
    tags = "py3-none-manylinux_2_17_x86_64", "py3-none-win_amd64"
    with standing_in(pytorch(*tags, mac="py3-none-macosx_11_0_arm64")) as field:
        yield field


@pytest.mark.parametrize("installed", ["torch==2.9.0+cu126", "torch===2.9.0"])
def test_installed_builds_that_stay(
    machine: Machine, field: Field, log: Path, tmp_path: Path, installed: str
) -> None:
    """Of the catalogue, also the index's own: another would be chosen for this machine."""
    family_entries(field.builds, tmp_path / "catalog")
    machine = ready(machine, field.index, log).with_environ(
        {DRIVER: "12.8", "VARIANTS_CATALOG": str(tmp_path / "catalog"), "UV_PYTHON": ""}
    )
    source(machine.work / "ext", "torch")
    field.index.add_wheel(Wheel("plain", "1.0"))
    assert machine.create_environment(PYTHON)
    assert machine.run("pip", "install", installed).code == 0
    done = machine.run("pip", "install", "./ext", "plain")
    assert done.code == 0, done
    version = installed.rpartition("=")[2]
    assert log.read_text().split() == [version], done
    assert f"torch=={version}" in machine.run("pip", "freeze").out
    assert "left out" not in done.err


def test_another_version_is_built_with(machine: Machine, field: Field, log: Path) -> None:
    """Not the newest one, of the build that is locked; a lock changes it, from there and back."""
    catalog = machine.home / "catalog"
    family_entries(field.builds, catalog)
    field.builds.unhashed.clear()
    machine = ready(machine, field.index, log).with_environ(
        {DRIVER: "12.8", "VARIANTS_CATALOG": str(catalog)}
    )
    folder = source(machine.work / "ext", "torch")
    text = (folder / "pyproject.toml").read_text()
    (folder / "pyproject.toml").write_text(text.replace('["torch"]', '["torch<2.9"]'))
    project(machine.work, ["native"], '[tool.uv.sources]\nnative = {path = "ext"}\n')
    expected = []
    for build in ("cu128", "cu126", "cu128"):
        label = f"torch=cuda{build[2:4]}.{build[4:]}"
        for words in (["--variant", label, "lock"], ["sync"], ["sync"]):
            done = machine.run(*words)
            assert done.code == 0, done
        expected.append(f"2.8.0+{build}")
        code = "import importlib.metadata as m, native; print(native.BUILT, m.version('torch'))"
        python = Environment(machine.work / ".venv").python
        said = subprocess.run([python, "-c", code], capture_output=True, text=True).stdout
        assert said == f"{expected[-1]} {expected[-1]}\n"
    assert log.read_text().split() == expected
