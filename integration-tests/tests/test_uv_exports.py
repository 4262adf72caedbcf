"""Exports: what uv writes for others, installed by them with uv, pip, and pip with the shim."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pep_variants._formats import toml
from support.environments import Environments
from support.index import Index
from support.projects import CUDA_12_8, DRIVER, GPU, cuda
from support.uvs import Machine, installed_labels, project
from support.wheels import Release, Wheel

Serve = Callable[[Index], Index]
CUDA_12_6 = {DRIVER: "12.6", GPU: "9.0"}
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"


def gpu_files(requires: tuple[str, ...] = ("always",)) -> Index:
    index = Index()
    index.add_release(Release("gpu", "2.0", cuda("12.6", "12.8"), requires, non_variant=True))
    for name in ("always", "plain", "for-gpu"):
        index.add_wheel(Wheel(name, "1.0"))
    return index


@pytest.fixture
def index(serve: Serve) -> Index:
    return serve(gpu_files())


def on(machine: Machine, index: Index, *dependencies: str) -> Machine:
    project(machine.work, dependencies or ("gpu", "plain"))
    variables = {"UV_DEFAULT_INDEX": index.url, "UV_PYTHON": sys.executable}
    return machine.with_environ({**variables, **CUDA_12_8})


def hashes_of(index: Index, project: str) -> list[str]:
    """Return the hashes of all wheels, as a requirements file has them."""
    return sorted(
        f"sha256:{hashlib.sha256(data).hexdigest()}"
        for name, data in index.files[project].items()
        if name.endswith(".whl")
    )


def listed_hashes(text: str, project: str) -> list[str]:
    (block,) = re.findall(rf"(?m)^{project}==\S+ \\\n((?:    --hash=.*\n)+)", text)
    return re.findall(r"--hash=(\S+)", block)


def without_hashes(text: str) -> str:
    return re.sub(r"(?m)^    --hash=.*\n", "", text)


def installed_by(run: Callable[..., Any], machine: Machine, path: Path, file: str) -> dict:
    """Return the labels that ``pip install`` with required hashes has in a new environment."""
    machine.create_environment(sys.executable, path)
    where = machine.with_environ({"VIRTUAL_ENV": str(path), "UV_PYTHON": ""})
    done = run(where, "pip", "install", "--require-hashes", "-r", file)
    assert done.code == 0, done
    return installed_labels(path)


class TestRequirements:
    @pytest.mark.everywhere
    def test_hashes_of_every_label(self, every_machine: Machine, index: Index) -> None:
        machine = on(every_machine, index)
        done = machine.run("export", "-o", "req.txt")
        assert done.code == 0, done
        text = (machine.work / "req.txt").read_text()
        assert done.out == text
        assert listed_hashes(text, "gpu") == hashes_of(index, "gpu")
        assert listed_hashes(text, "plain") == hashes_of(index, "plain")
        # All else is what plain uv writes of a lock without variants.
        other = machine.work / "other"
        project(other, ["gpu", "plain"])
        plain = machine.plain("export", "-o", "req.txt", cwd=other)
        assert without_hashes(plain.out) == without_hashes(text), plain
        # The same again, from a file that is there and without asking uv to print.
        (machine.work / "req.txt").write_text("old\n")
        done = machine.run("export", "-q", "--frozen", "--no-header", "-o", "req.txt")
        assert (done.code, done.out) == (0, ""), done
        again = (machine.work / "req.txt").read_text()
        assert again == "".join(line for line in text.splitlines(True) if line[0] != "#")

    @pytest.mark.everywhere
    def test_pip_compile(self, every_machine: Machine, index: Index) -> None:
        machine = on(every_machine, index)
        (machine.work / "req.in").write_text("gpu\nplain\n")
        arguments = ["pip", "compile", "req.in", "--universal", "--emit-index-url"]
        done = machine.run(*arguments, "--generate-hashes", "-o", "req.txt")
        assert done.code == 0, done
        text = (machine.work / "req.txt").read_text()
        assert listed_hashes(text, "gpu") == hashes_of(index, "gpu")
        assert text.count("127.0.0.1") == 1
        assert f"--index-url {index.url}" in text
        done = machine.run(*arguments)
        assert "gpu==2.0\n" in done.out, done
        assert "--hash" not in done.out

    def test_they_install_everywhere(
        self, machine: Machine, index: Index, environments: Environments, tmp_path: Path
    ) -> None:
        """Another GPU by pip with the shim; plain pip and uv take plain wheels."""
        machine = on(machine, index)
        done = machine.run("export", "--no-emit-project", "-o", "req.txt")
        assert done.code == 0, done
        file = str(machine.work / "req.txt")
        assert installed_by(Machine.plain, machine, tmp_path / "plain-uv", file) == {}
        shim = environments.patched(PYTHON, "26.3").copied(tmp_path / "shim")
        plain = environments.plain(PYTHON, "26.3").copied(tmp_path / "plain")
        arguments = ("install", "--index-url", index.url, "--require-hashes", "-r", file)
        for pip, labels in ((shim, {"gpu": "cu126"}), (plain, {})):
            found = pip.pip(*arguments, env=CUDA_12_6)
            assert found.code == 0, found
            assert installed_labels(pip.path) == labels

    def test_hashes_of_wheels_with_markers(
        self, machine: Machine, serve: Serve, tmp_path: Path
    ) -> None:
        """Both hashes: of the index's file, for pip, and of what uv-variants installs elsewhere."""
        index = serve(gpu_files(("always", "for-gpu; 'nvidia' in variant_namespaces")))
        machine = on(machine, index, "gpu")
        done = machine.run("export", "--no-emit-project", "-o", "req.txt")
        assert done.code == 0, done
        assert set(hashes_of(index, "gpu")) < set(listed_hashes(done.out, "gpu"))
        file, other = str(machine.work / "req.txt"), machine.with_environ(CUDA_12_6)
        assert installed_by(Machine.run, other, tmp_path / "uv", file) == {"gpu": "cu126"}

    def test_a_failure_leaves_the_file(self, machine: Machine, index: Index) -> None:
        machine = on(machine, index)
        assert machine.run("lock").code == 0
        (machine.work / "req.txt").write_text("old\n")
        for name in list(index.files["gpu"]):
            index.remove("gpu", name)
        index.add("gpu", "gpu-1.0-py3-none-any.whl", Wheel("gpu", "1.0").build())
        clean = machine.with_environ({"VARIANTS_CACHE_DIR": str(machine.home / "empty-cache")})
        done = clean.run("export", "--frozen", "-o", "req.txt")
        assert (done.code, done.out) == (2, ""), done
        assert "gpu 2.0" in done.err
        assert (machine.work / "req.txt").read_text() == "old\n"
        done = clean.run("export", "--frozen", "-o", "new.txt")
        assert done.code == 2
        assert not (machine.work / "new.txt").exists()
        # Without hashes no index is asked.
        assert clean.run("export", "--frozen", "--no-hashes", "-o", "new.txt").code == 0


class TestPylock:
    def test_it_installs(
        self, machine: Machine, index: Index, environments: Environments, tmp_path: Path
    ) -> None:
        """By pip with the shim, on two machines; pip and uv install what has no labels."""
        machine = on(machine, index)
        (machine.work / "req.in").write_text("gpu\nplain\n")
        done = machine.run("pip", "compile", "--universal", "req.in", "-o", "pylock.toml")
        assert done.code == 0, done
        file = str(machine.work / "pylock.toml")
        assert done.out == Path(file).read_text()
        assert "/.variant/" not in done.out
        for environ, label in ((CUDA_12_8, "cu128"), ({}, "null")):
            shim = environments.patched(PYTHON, "26.3").copied(tmp_path / f"shim-{label}")
            done = shim.pip("install", "--no-index", "-r", file, env=environ)
            assert done.code == 0, done
            assert installed_labels(shim.path) == {"gpu": label}
        # uv takes what has no label, which uv-variants says; plain pip refuses the file.
        machine.create_environment(sys.executable, tmp_path / "uv")
        where = machine.with_environ({"VIRTUAL_ENV": str(tmp_path / "uv"), "UV_PYTHON": ""})
        done = where.run("pip", "sync", file)
        assert done.code == 0, done
        assert installed_labels(tmp_path / "uv") == {}
        assert "uv takes no variants from it: it installs gpu without" in done.err
        plain = environments.plain(PYTHON, "26.3").copied(tmp_path / "plain")
        done = plain.pip("install", "--no-index", "-r", file)
        assert done.code == 1
        assert "Invalid wheel filename 'gpu-2.0-py3-none-any-null.whl'" in done.err

    @pytest.mark.matrix
    def test_an_explicit_index_with_a_password(self, every_machine: Machine, serve: Serve) -> None:
        machine = every_machine
        if machine.plain("export", "--format", "pylock.toml", "--help").code:
            pytest.skip("this uv has no pylock.toml")
        index = gpu_files()
        index.credentials = "me:secret"
        index = serve(index)
        sources = 'gpu = { index = "own" }\nalways = { index = "own" }'
        project(
            machine.work,
            ["gpu", "always"],
            f'[tool.uv.sources]\n{sources}\n[[tool.uv.index]]\nname = "own"\n'
            f'url = "{index.url}"\nexplicit = true\n',
        )
        given = {"UV_INDEX_OWN_USERNAME": "me", "UV_INDEX_OWN_PASSWORD": "secret"}
        own = machine.with_environ({**given, **CUDA_12_8, "UV_PYTHON": sys.executable})
        done = own.run("export", "--format", "pylock.toml")
        assert done.code == 0, done
        packages = {package["name"]: package for package in toml.read_toml(done.out)["packages"]}
        hashes = [wheel["hashes"]["sha256"] for wheel in packages["gpu"]["wheels"]]
        assert sorted(f"sha256:{each}" for each in hashes) == hashes_of(index, "gpu")
        assert packages["gpu"]["variants-json"] == cuda("12.6", "12.8")
        assert "variants-json" not in packages["always"]
        assert "secret" not in done.text
        assert listed_hashes(own.run("export").out, "gpu") == hashes_of(index, "gpu")
