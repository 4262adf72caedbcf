"""The server of the page about simple-repository, with released installers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.documents import File, Page
from support.environments import (
    PIPS,
    ROOT,
    Environment,
    Environments,
    built_wheel,
    once,
    uv_command,
)
from support.index import Index
from support.isolation import outside
from support.projects import cuda
from support.servers import free_port, running
from support.wheels import Release, Wheel

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="simple-repository-server needs Python 3.11"
)
SERVER = "simple-repository-server==0.10.0"


@pytest.fixture
def url(
    environments: Environments, serve: Callable[[Index], Index], tmp_path: Path
) -> Iterator[str]:
    """The address of the page's server, in front of an index with variants of ``app``."""
    index = Index()
    release = Release("app", "1.0", cuda("12.6", "12.8", "13.0"), ("always",), non_variant=True)
    index.add_release(release, metadata_file=True)
    index.add_wheel(Wheel("app", "0.9"))
    index.add_wheel(Wheel("always", "1.0"), metadata_file=True)
    page = Page(ROOT / "docs/how-to/simple-repository.md")
    (file,) = [step for step in page.steps if isinstance(step, File)]
    port = free_port()
    text = file.text.replace("https://variants.example/simple/", serve(index).url)
    script = tmp_path / file.name
    script.write_text(text.replace("port=8000", f"port={port}"))
    python = Environment(once(environments.folder / "simple-repository", installed)).python
    with running([python, str(script)], tmp_path, port):
        yield f"http://127.0.0.1:{port}"


def installed(path: Path) -> None:
    """Make an environment with the server, and our distributions from their wheels."""
    command = [*uv_command(), "venv", "--quiet", "--relocatable", "--python", sys.executable]
    subprocess.run([*command, str(path)], check=True)
    names = ("pep-variants", "variants-catalog", "variants-index", "variants-proxy")
    wheels = [built_wheel(f"packages/{name}", path / name) for name in names]
    wanted = [f"{wheel}[simple-repository]" if "proxy" in wheel.name else wheel for wheel in wheels]
    add = [*uv_command(), "pip", "install", "--quiet", "--python", path, *wanted, SERVER]
    subprocess.run(list(map(str, add)), check=True, env=outside())


@pytest.mark.parametrize(("machine", "label"), [("h100", "cu128"), ("cpu", "null")])
@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_installers_take_the_variant(environments, url, tmp_path, installer, machine, label):
    plain = environments.plain("3.12", PIPS[0]).copied(tmp_path / "environment")
    index = f"{url}/{machine}/simple/"
    if installer == "pip":
        done = plain.pip("install", "--index-url", index, "app")
        assert done.code == 0, done
    else:
        command = ["pip", "install", "--no-cache", "--python", plain.python, "--default-index"]
        subprocess.run([*uv_command(), *command, index, "app"], check=True)
    module = (plain.site_packages / "app/__init__.py").read_text()
    assert module == f"LABEL = {label!r}\n"
    assert (plain.site_packages / "always").is_dir()
