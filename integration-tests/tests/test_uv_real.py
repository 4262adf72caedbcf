"""Real projects: thirty dependencies from PyPI, numpy among them as variants for CPU levels.

``make test-matrix`` also locks well-known projects with all that they depend on.
"""

from __future__ import annotations

import sys

import pytest

from support.isolation import network
from support.uvs import Machine, project

PYTHON = sys.executable

KNOWN = (
    "ansible apache-airflow azure-storage-blob boto3 celery[redis] dask[complete] django "
    "fastapi[standard] flask[async] google-cloud-storage httpx[http2] jupyterlab kedro litestar "
    "matplotlib mkdocs-material notebook pandas[excel] poetry polars[all] pytest-cov "
    "scikit-learn scrapy sphinx sqlalchemy[asyncio] streamlit"
).split()
"""Projects without variants, with many dependencies: more than a thousand together."""


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
