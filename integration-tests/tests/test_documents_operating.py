"""The how-to pages for people who run other people's machines: containers, CI, clusters."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.documents import File, Page, Reader
from support.environments import PIPS, ROOT
from support.nvidia_drivers import driver_library, driver_variables
from support.published_builds import TORCH, Field, published, standing_in
from support.wheels import Wheel

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(sys.platform != "linux", reason="the pages are about Linux"),
]


@pytest.fixture
def field() -> Iterator[Field]:
    """PyPI and PyTorch's indexes, with torch alone."""
    with standing_in(published(torch=TORCH)) as field:
        yield field


def goes_to(reader: Reader, field: Field) -> None:
    """Let everything that *reader* types find *field* in place of the network."""
    reader.environ |= {
        "PIP_INDEX_URL": field.index.url,
        "UV_DEFAULT_INDEX": field.index.url,
        "VARIANTS_CATALOG_MIRROR": " ".join(field.mirrors),
    }


def test_login_node(reader: Reader, field: Field) -> None:
    reader.use_python()
    reader.use_pip(PIPS[-1])
    reader.use_variants()
    goes_to(reader, field)
    (reader.home / "dist").symlink_to(reader.environments.shim_wheel.parent)
    library = driver_library(reader.environments)
    nodes = {
        "h100": driver_variables(library, "12.8", "9.0"),
        "a100": driver_variables(library, "12.4", "8.0"),
    }
    cases = "\n".join(
        f"--partition={name}) export {' '.join(map(shlex.quote, map('='.join, found.items())))};;"
        for name, found in nodes.items()
    )
    # Without --gpus a job has no devices, and the driver finds none.
    reader.tool(
        "srun",
        f'export SLURM_JOB_ID=4711\ncase "$1" in\n{cases}\nesac\nshift\n'
        'case "$1" in --gpus=*) shift;; *) export FAKE_NVML_DEVICES=;; esac\nexec "$@"',
    )
    reader.tool("sbatch", "exit 1")
    reader.follow(Page(ROOT / "docs/how-to/login-node.md"))


def put_wheels(reader: Reader) -> None:
    """Put what ``make wheels`` writes into ``dist``; the programs are those of the reader."""
    dist = reader.work / "dist"
    dist.mkdir()
    path = reader.variables["PATH"]
    for name, program in (
        ("variants-cli", "variants"),
        ("uv-variants", "uv-variants"),
        ("uv", "uv"),
    ):
        found = shutil.which(program, path=path)
        start = f"import os, sys\n\n\ndef main():\n    os.execv({found!r}, sys.argv)\n"
        points = f"[console_scripts]\n{program} = start_{program.replace('-', '_')}:main\n"
        files = {
            f"start_{program.replace('-', '_')}.py": start,
            f"{name.replace('-', '_')}-1.0.dist-info/entry_points.txt": points,
        }
        wheel = Wheel(name, "1.0", files=files)
        (dist / wheel.filename).write_bytes(wheel.build())
    shim = reader.environments.shim_wheel
    (dist / shim.name).symlink_to(shim)


def test_docker(reader: Reader, field: Field) -> None:
    reader.use_python()
    reader.use_pip(PIPS[-1])
    reader.use_uv()
    reader.use_variants()
    goes_to(reader, field)
    put_wheels(reader)
    state = reader.home / "docker"
    state.mkdir()
    driver = driver_variables(driver_library(reader.environments), "12.8", "9.0")
    (state / "gpus.json").write_text(json.dumps({"NVIDIA_VISIBLE_DEVICES": "all", **driver}))
    program = ROOT / "integration-tests/support/containers.py"
    reader.tool("docker", f'exec {sys.executable} {program} {state} "$@"')
    reader.follow(
        Page(ROOT / "docs/how-to/docker.md"),
        replaced={place: f"{state}/rootfs{place}" for place in ("/app", "/opt", "/wheels")},
    )


def workflow_steps(text: str) -> tuple[dict[str, str], list[str]]:
    """Return the variables and the scripts of a file for GitHub Actions or GitLab CI."""
    tree: Any = yaml.safe_load(text)
    if "jobs" in tree:
        (job,) = tree["jobs"].values()
        return tree["env"], [step["run"] for step in job["steps"] if "run" in step]
    (job,) = (value for name, value in tree.items() if name not in ("variables", "default"))
    return tree["variables"], job["script"]


def test_ci(reader: Reader, field: Field, tmp_path: Path) -> None:
    reader.use_python()
    reader.use_pip(PIPS[-1])
    reader.use_variants()
    goes_to(reader, field)
    put_wheels(reader)
    page = Page(ROOT / "docs/how-to/ci.md")
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    other = "variants resolve --python-version 3.14 --from pylock.toml"
    reader.follow(page, replaced={"3.13": python}, failing=[other])
    files = [step for step in page.steps if isinstance(step, File) and "yml" in step.name]
    for file in files:
        variables, scripts = workflow_steps(file.text)
        runner = reader.environments.patched(python, PIPS[-1]).copied(tmp_path / file.name)
        environ = {
            **reader.variables,
            "CI_PROJECT_DIR": str(reader.work),
            "PATH": f"{Path(runner.python).parent}{os.pathsep}{reader.variables['PATH']}",
        }
        environ |= {name: os.path.expandvars(value) for name, value in variables.items()}
        for script in scripts:
            done = subprocess.run(
                ["bash", "-ec", script], cwd=reader.work, env=environ,
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stdout + done.stderr
    assert len(files) == 2
