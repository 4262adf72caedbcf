"""A project's own wheel that is a build for an accelerator: in no client is it for everyone.

2.0 and 1.0 have such a wheel and sources, 0.1 has sources alone, which nobody asked to compile.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.catalog_places import entry, variant
from support.environments import Environment
from support.index import Index, served
from support.pip_commands import dry_run, installs
from support.projects import DRIVER
from support.uvs import Machine
from support.wheels import SourceDistribution, Wheel

NO_GPU, GPU = ({DRIVER: version} for version in ("12.8", "13.0"))
WHY = ("cuda13.0  needs CUDA driver 13.0 or newer", "take its wheel anyway with --variant app=")
BUILD = Wheel("app", "2.0")


@pytest.fixture
def index() -> Iterator[Index]:
    with served() as found:
        for version in ("1.0", "2.0"):
            found.add_wheel(Wheel("app", version), metadata_file=True)
        for version in ("0.1", "1.0", "2.0"):
            source = SourceDistribution("app", version)
            found.add("app", source.filename, source.build())
        yield found


@pytest.fixture
def catalog(tmp_path: Path) -> str:
    """A directory with the entry of `app`."""
    folder = tmp_path / "catalog"
    folder.mkdir()
    (folder / "app.toml").write_text(entry("app", [variant("cuda13.0", 'local = ""', cuda="13.0")]))
    return str(folder)


def resolve(index: Index, catalog: str, *wanted: str, driver: str) -> tuple[int, str]:
    """Run ``variants resolve``; return its exit status and output."""
    variants = Path(sys.executable).with_name("variants")
    options = ("-i", index.url, "--variant-catalog", catalog, "--platform", f"cuda={driver}")
    command = [variants, "resolve", *options, *wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, f"{done.stdout}\n{done.stderr}"


def test_resolve(index: Index, catalog: str, tmp_path: Path) -> None:
    code, text = resolve(index, catalog, "app", driver="12.8")
    assert code == 1, text
    assert "None of the variants of app 2.0 fits" in text
    assert all(line in text for line in WHY), text
    code, text = resolve(index, catalog, "app==1.0", driver="12.8")
    assert code == 1, text
    for wanted in (["app"], ["app==1.0"]):
        code, text = resolve(index, catalog, *wanted, driver="13.0")
        assert (code, "cuda13.0" in text) == (0, True), text
    # What the user names is taken: the wheel without variant, one by its hash, the very version.
    given = tmp_path / "given.txt"
    given.write_text(f"app==2.0 --hash=sha256:{hashlib.sha256(BUILD.build()).hexdigest()}\n")
    for asked in (["app", "--variant", "app="], ["-r", str(given)], ["app===2.0"]):
        code, text = resolve(index, catalog, *asked, driver="12.8")
        assert (code, "2.0" in text) == (0, True), text


def test_an_entry_may_say_that_it_is_for_everyone(index: Index, catalog: str) -> None:
    path = Path(catalog) / "app.toml"
    path.write_text(path.read_text() + variant("null", ""))
    code, text = resolve(index, catalog, "app", driver="12.8")
    assert (code, "2.0" in text) == (0, True), text


@pytest.mark.one
def test_pip(patched: Environment, index: Index, catalog: str, tmp_path: Path) -> None:
    options = ("--variant-catalog", catalog)
    for wanted in ("app", "app==1.0"):
        done = dry_run(patched, index, *options, wanted, **NO_GPU)
        assert done.code == 1, done
        assert all(line in done.err for line in WHY), done
    installs(dry_run(patched, index, *options, "app", **GPU), "app-2.0-cuda13.0")
    installs(dry_run(patched, index, *options, "app==1.0", **GPU), "app-1.0-cuda13.0")
    given = tmp_path / "given.txt"
    given.write_text(f"app==2.0 --hash=sha256:{hashlib.sha256(BUILD.build()).hexdigest()}\n")
    for asked in (["app", "--variant", "app="], ["-r", str(given)], ["app===2.0"]):
        installs(dry_run(patched, index, *options, *asked, **NO_GPU), "app-2.0")
    installs(dry_run(patched, index, *options, "--no-binary", "app", "app", **NO_GPU), "app-2.0")


def test_uv(machine: Machine, index: Index, catalog: str) -> None:
    settings = {"UV_DEFAULT_INDEX": index.url, "VARIANTS_CATALOG": catalog}
    here = machine.with_environ({**settings, **NO_GPU})
    here.create_environment(sys.executable)
    for wanted in ("app", "app==1.0"):
        done = here.run("pip", "install", "--dry-run", wanted)
        assert done.code != 0, done
        assert all(line in done.err for line in WHY), done
    done = here.run("--variant", "app=", "pip", "install", "--dry-run", "app")
    assert (done.code, "app==2.0" in done.err) == (0, True), done
    done = machine.with_environ({**settings, **GPU}).run("pip", "install", "app")
    assert (done.code, "cuda13.0 for app 2.0" in done.err) == (0, True), done
