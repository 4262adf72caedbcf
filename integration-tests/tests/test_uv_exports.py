"""Exports: what uv writes for others, installed by them with uv, pip, and pip with the shim."""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pep_variants.formats import toml
from support.environments import Environments
from support.index import Index
from support.projects import CUDA_12_8, DRIVER, GPU, cuda
from support.uvs import Machine, installed_labels, project
from support.wheels import Release, Wheel

Serve = Callable[[Index], Index]
CUDA_12_6 = {DRIVER: "12.6", GPU: "9.0"}


def gpu_files(requires: tuple[str, ...] = ("always",)) -> Index:
    index = Index()
    index.add_release(Release("gpu", "2.0", cuda("12.6", "12.8"), requires, non_variant=True))
    index.add_wheel(Wheel("always", "1.0"))
    index.add_wheel(Wheel("plain", "1.0"))
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


def of_uv(text: str) -> str:
    """Return a requirements file as uv writes it for an index with one of the hashes."""
    return re.sub(r"(?m)^    --hash=.*\n", "", text)


class TestRequirements:
    @pytest.mark.matrix
    def test_hashes_of_every_label(self, every_machine: Machine, index: Index) -> None:
        machine = on(every_machine, index)
        done = machine.run("export", "-o", "req.txt")
        assert done.code == 0, done
        text = (machine.work / "req.txt").read_text()
        assert done.out == text
        assert listed_hashes(text, "gpu") == hashes_of(index, "gpu")
        assert listed_hashes(text, "plain") == hashes_of(index, "plain")
        assert "uv export -o req.txt" in text
        # All else is what plain uv writes of a lock without variants.
        other = Machine(machine.uv, machine.program, machine.home, machine.work / "other")
        plain_index = {"UV_DEFAULT_INDEX": index.url, "UV_PYTHON": sys.executable}
        other = other.with_environ(plain_index)
        project(other.work, ["gpu", "plain"])
        plain = other.plain("export", "-o", "req.txt")
        assert of_uv(plain.out) == of_uv(text), plain
        # The same again, from a file that is there and without asking uv to print.
        (machine.work / "req.txt").write_text("old\n")
        done = machine.run("export", "-q", "--frozen", "--no-header", "-o", "req.txt")
        assert (done.code, done.out) == (0, ""), done
        again = (machine.work / "req.txt").read_text()
        assert again == "".join(line for line in text.splitlines(True) if line[0] != "#")

    @pytest.mark.matrix
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
        assert "--generate-hashes -o req.txt" in text
        done = machine.run(*arguments)
        assert "gpu==2.0\n" in done.out, done
        assert "--hash" not in done.out

    def test_they_install_everywhere(
        self, machine: Machine, index: Index, environments: Environments, tmp_path: Path
    ) -> None:
        """Another GPU by uv-variants and pip with the shim; plain pip and uv take plain wheels."""
        machine = on(machine, index)
        done = machine.run("export", "--no-emit-project", "-o", "req.txt")
        assert done.code == 0, done
        file = str(machine.work / "req.txt")
        arguments = ("install", "--index-url", index.url, "--require-hashes", "-r", file)
        python = f"{sys.version_info[0]}.{sys.version_info[1]}"
        shim = environments.patched(python, "26.3").copied(tmp_path / "shim")
        found = shim.pip(*arguments, env=CUDA_12_6)
        assert found.code == 0, found
        assert installed_labels(shim.path) == {"gpu": "cu126"}
        other = machine.with_environ(CUDA_12_6)
        other.create_environment(sys.executable, tmp_path / "uv")
        where = {"VIRTUAL_ENV": str(tmp_path / "uv"), "UV_PYTHON": ""}
        done = other.with_environ(where).run("pip", "install", "--require-hashes", "-r", file)
        assert done.code == 0, done
        assert installed_labels(tmp_path / "uv") == {"gpu": "cu126"}
        plain = environments.plain(python, "26.3").copied(tmp_path / "plain")
        assert plain.pip(*arguments).code == 0
        other.create_environment(sys.executable, tmp_path / "plain-uv")
        where = {"VIRTUAL_ENV": str(tmp_path / "plain-uv"), "UV_PYTHON": ""}
        done = other.with_environ(where).plain("pip", "install", "--require-hashes", "-r", file)
        assert done.code == 0, done
        assert installed_labels(plain.path) == installed_labels(tmp_path / "plain-uv") == {}

    def test_groups_extras_and_packages(self, machine: Machine, index: Index) -> None:
        machine = on(machine, index, "plain")
        (machine.work / "pyproject.toml").write_text(
            (machine.work / "pyproject.toml").read_text()
            + '[project.optional-dependencies]\nfast = ["gpu"]\n'
            '[dependency-groups]\nother = ["gpu"]\n'
        )
        for arguments in (["--extra", "fast"], ["--group", "other"], ["--only-group", "other"]):
            done = machine.run("export", *arguments)
            assert listed_hashes(done.out, "gpu") == hashes_of(index, "gpu"), done
        done = machine.run("export", "--package", "project", "--locked")
        assert done.code == 0, done
        assert "gpu" not in done.out

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


def pylock(text: str) -> dict[str, Any]:
    """Return the packages of a pylock.toml by name."""
    return {package["name"]: package for package in toml.loads(text)["packages"]}


def with_pylock(machine: Machine) -> bool:
    return machine.plain("export", "--format", "pylock.toml", "--help").code == 0


class TestPylock:
    @pytest.mark.matrix
    def test_the_files_of_the_index(self, every_machine: Machine, index: Index) -> None:
        machine = on(every_machine, index)
        if not with_pylock(machine):
            pytest.skip("this uv has no pylock.toml")
        done = machine.run("export", "-o", "pylock.toml")
        assert done.code == 0, done
        text = (machine.work / "pylock.toml").read_text()
        assert done.out == text
        assert "/.variant/" not in text
        packages = pylock(text)
        gpu = packages["gpu"]
        assert gpu["index"] == index.url
        files = {
            f"{index.url.replace('/simple/', '/files/')}gpu/{name}": (
                hashlib.sha256(data).hexdigest()
            )
            for name, data in index.files["gpu"].items()
            if name.endswith(".whl")
        }
        assert {wheel["url"]: wheel["hashes"]["sha256"] for wheel in gpu["wheels"]} == files
        document = cuda("12.6", "12.8")
        assert gpu["variants-json"] == document
        assert "variants-json" not in packages["plain"]
        # All else is as uv writes it, apart from the block of the package.
        theirs = machine.work / "plain"
        project(theirs, ["gpu", "plain"])
        plain = machine.plain("export", "--format", "pylock.toml", "--no-header", cwd=theirs)
        assert plain.code == 0, plain
        mine = machine.run("export", "--format", "pylock.toml", "--no-header").out
        ours, others = (re.split(r"(?m)^(?=\[\[packages\]\]$)", each) for each in (mine, plain.out))
        assert [part for part in ours if '"gpu"' not in part] == [
            part for part in others if '"gpu"' not in part
        ]

    def test_it_installs(
        self, machine: Machine, index: Index, environments: Environments, tmp_path: Path
    ) -> None:
        """By pip with the shim, on two machines; pip and uv install what has no labels."""
        machine = on(machine, index)
        done = machine.run("export", "--no-emit-project", "-o", "pylock.toml")
        assert done.code == 0, done
        file = str(machine.work / "pylock.toml")
        python = f"{sys.version_info[0]}.{sys.version_info[1]}"
        for environ, label in ((CUDA_12_8, "cu128"), (CUDA_12_6, "cu126"), ({}, "null")):
            shim = environments.patched(python, "26.3").copied(tmp_path / f"shim-{label}")
            done = shim.pip("install", "--no-index", "-r", file, env=environ)
            assert done.code == 0, done
            assert installed_labels(shim.path) == {"gpu": label}
        # uv takes what has no label, which uv-variants says; plain pip refuses the file.
        for warned in (False, True):
            folder = machine.work / "env"
            machine.create_environment(sys.executable, folder)
            where = {"VIRTUAL_ENV": str(folder), "UV_PYTHON": ""}
            own = machine.with_environ(where)
            done = (own.run if warned else own.plain)("pip", "sync", file)
            assert done.code == 0, done
            assert installed_labels(folder) == {}
            assert ("uv takes no variants from it: it installs gpu without" in done.err) == warned
            shutil.rmtree(folder)
        plain = environments.plain(python, "26.3").copied(tmp_path / "plain")
        done = plain.pip("install", "--no-index", "-r", file)
        assert done.code == 1
        assert "Invalid wheel filename 'gpu-2.0-py3-none-any-null.whl'" in done.err

    def test_an_explicit_index_with_a_password(self, machine: Machine, serve: Serve) -> None:
        index = gpu_files()
        index.credentials = "me:secret"
        index = serve(index)
        sources = 'gpu = { index = "own" }\nalways = { index = "own" }\nplain = { index = "own" }'
        project(
            machine.work,
            ["gpu", "plain", "always"],
            f'[tool.uv.sources]\n{sources}\n[[tool.uv.index]]\nname = "own"\n'
            f'url = "{index.url}"\nexplicit = true\n',
        )
        given = {"UV_INDEX_OWN_USERNAME": "me", "UV_INDEX_OWN_PASSWORD": "secret"}
        own = machine.with_environ({**given, **CUDA_12_8, "UV_PYTHON": sys.executable})
        done = own.run("export", "--format", "pylock.toml")
        assert done.code == 0, done
        assert len(pylock(done.out)["gpu"]["wheels"]) == 4
        assert "secret" not in done.text
        assert listed_hashes(own.run("export").out, "gpu") == hashes_of(index, "gpu")

    def test_a_page_of_links(self, machine: Machine, index: Index, serve: Serve) -> None:
        machine = on(machine, serve(Index()), "gpu").with_environ(
            {"UV_FIND_LINKS": index.links_url}
        )
        done = machine.run("export", "--format", "pylock.toml")
        assert done.code == 0, done
        assert len(pylock(done.out)["gpu"]["wheels"]) == 4
        assert "/.variant/" not in done.out

    def test_pip_compile(self, machine: Machine, index: Index) -> None:
        machine = on(machine, index)
        (machine.work / "req.in").write_text("gpu\nplain\n")
        done = machine.run("pip", "compile", "--universal", "req.in", "-o", "pylock.toml")
        assert done.code == 0, done
        gpu = pylock((machine.work / "pylock.toml").read_text())["gpu"]
        assert len(gpu["wheels"]) == 4
        assert set(gpu["variants-json"]["variants"]) == {"null", "cu126", "cu128"}
        assert "/.variant/" not in done.out


@pytest.mark.matrix
def test_a_bill_of_materials_is_refused(every_machine: Machine, index: Index) -> None:
    """uv would list the URLs of the proxy; before 0.13 it lists no files at all."""
    machine = on(every_machine, index)
    done = machine.run("export", "--format", "cyclonedx1.5", "-o", "bom.json")
    if "invalid value" in done.err:
        pytest.skip("this uv has no CycloneDX")
    if done.code == 0:
        assert "/.variant/" not in (machine.work / "bom.json").read_text()
        return
    assert (done.code, done.out) == (2, ""), done
    assert "gpu is locked with variants" in done.err
    assert not (machine.work / "bom.json").exists()


def test_hashes_of_wheels_with_markers(machine: Machine, serve: Serve, tmp_path: Path) -> None:
    """Both hashes: of the index's file, for pip, and of what uv-variants installs elsewhere."""
    index = gpu_files(("always", "for-gpu; 'nvidia' in variant_namespaces"))
    index.add_wheel(Wheel("for-gpu", "1.0"))
    index = serve(index)
    machine = on(machine, index, "gpu")
    done = machine.run("export", "--no-emit-project", "-o", "req.txt")
    assert done.code == 0, done
    assert set(hashes_of(index, "gpu")) < set(listed_hashes(done.out, "gpu"))
    other = machine.with_environ({**CUDA_12_6, "UV_PYTHON": ""})
    other.create_environment(sys.executable, tmp_path / "uv")
    other = other.with_environ({"VIRTUAL_ENV": str(tmp_path / "uv")})
    file = str(machine.work / "req.txt")
    done = other.run("pip", "install", "--require-hashes", "-r", file)
    assert done.code == 0, done
    assert installed_labels(tmp_path / "uv") == {"gpu": "cu126"}
