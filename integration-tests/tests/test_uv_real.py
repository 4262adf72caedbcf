"""Real projects: thirty dependencies from PyPI, numpy among them as variants for CPU levels.

``make test-matrix`` also locks well-known projects with all that they depend on.
"""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.environments import ROOT
from support.index import Index
from support.isolation import network, outside
from support.uvs import Machine, project

PYTHON = sys.executable
Serve = Callable[[Index], Index]
DEPENDENCIES = (
    "attrs blinker certifi charset-normalizer click colorama decorator distlib filelock flask "
    "idna iniconfig itsdangerous jinja2 markdown-it-py markupsafe mdurl packaging platformdirs "
    "pluggy pygments requests rich six sortedcontainers tabulate toolz typing-extensions urllib3"
).split()

KNOWN = (
    "ansible apache-airflow azure-storage-blob boto3 celery[redis] dask[complete] django "
    "fastapi[standard] flask[async] google-cloud-storage httpx[http2] jupyterlab kedro litestar "
    "matplotlib mkdocs-material notebook pandas[excel] poetry polars[all] pytest-cov "
    "scikit-learn scrapy sphinx sqlalchemy[asyncio] streamlit"
).split()
"""Projects without variants, with many dependencies: more than a thousand together."""


def numpy_index(folder: Path) -> Index:
    """Return an index with the current numpy as variants, made as a publisher would."""
    plain, wheels = folder / "plain", folder / "wheels"
    download = ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([PYTHON, *download, "--dest", str(plain), "numpy"], check=True, env=outside())
    (wheel,) = plain.iterdir()
    variants = str(Path(PYTHON).with_name("variants"))
    recipe = str(ROOT / "integration-tests" / "demo" / "numpy.toml")
    common = ["make", str(wheel), "--pyproject", recipe, "-o", str(wheels)]
    for level in ("null", "v2", "v3"):
        options = ["--property", f"x86_64 :: level :: {level}"] if level != "null" else []
        subprocess.run([variants, *common, "--label", level, *options], check=True)
    subprocess.run([variants, "index", str(wheels)], check=True)
    index = Index()
    for path in wheels.glob("*.*"):
        if path.suffix in (".whl", ".json"):
            index.add("numpy", path.name, path.read_bytes())
    return index


@pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="CPU levels")
def test_a_real_project(machine: Machine, serve: Serve, tmp_path: Path) -> None:
    machine = machine.with_environ({**network(), "UV_PYTHON": PYTHON})
    project(machine.work, DEPENDENCIES)
    lock = machine.work / "uv.lock"
    assert machine.plain("lock").code == 0
    plain = lock.read_text()
    lock.unlink()
    done = machine.run("lock")
    assert done.code == 0, done
    assert lock.read_text() == plain

    index = serve(numpy_index(tmp_path))
    more = (
        '[tool.uv.sources]\nnumpy = { index = "levels" }\n'
        f'[[tool.uv.index]]\nname = "levels"\nurl = "{index.url}"\nexplicit = true\n'
    )
    project(machine.work, [*DEPENDENCIES, "numpy"], more)
    pyproject = machine.work / "pyproject.toml"
    here = "{}.{}".format(*sys.version_info)  # the wheel is for this Python alone
    pyproject.write_text(pyproject.read_text().replace(">=3.10", f"=={here}.*"))
    machine = machine.with_environ(
        {"VARIANTS_PLATFORM": "cpu-x86-64-v3", "VARIANTS_LOCK": "pinned"}
    )
    done = machine.run("lock")
    assert done.code == 0, done
    assert re.search(r"/numpy/\.variant/v3/numpy-[^\"]*\", hash = ", lock.read_text())
    done = machine.run("sync")
    assert done.code == 0, done
    assert machine.labels() == {"numpy": "v3"}
    done = machine.run("run", "python", "-c", "import numpy, flask; print(numpy.add(1, 1))")
    assert done.out == "2\n", done


@pytest.mark.nightly
@pytest.mark.parametrize("name", KNOWN)
def test_the_lock_of_a_project_without_variants_is_uvs(machine: Machine, name: str) -> None:
    """Byte for byte, in a folder of its own beside that of plain uv."""
    machine = machine.with_environ({**network(), "UV_PYTHON": PYTHON})
    locks = {}
    # The index may change meanwhile: then the two of plain uv differ as well.
    for _ in range(2):
        for run, folder in ((machine.plain, "before"), (machine.run, "ours"),
                            (machine.plain, "after")):  # fmt: skip
            work = project(machine.work / folder, [name])
            (work / "uv.lock").unlink(missing_ok=True)
            done = run("lock", "--refresh", cwd=work)
            if folder == "before" and "error sending request" in done.err:
                pytest.skip("the public index cannot be reached")
            assert done.code == 0, done
            locks[folder] = (work / "uv.lock").read_bytes()
        if locks["before"] == locks["after"]:
            break
    assert locks["before"] == locks["after"], "the index changes all the time"
    assert locks["ours"] == locks["before"]
    assert not (machine.work / "ours" / "uv.variants.toml").exists()
