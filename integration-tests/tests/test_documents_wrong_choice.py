"""The how-to about wrong choices: its blocks are run, on a machine with a driver for CUDA 12.4."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from pep_variants.providers.nvidia import DRIVER_OVERRIDE
from support.documents import Page, Reader
from support.environments import PIPS, ROOT
from support.nvidia_drivers import driver_library, driver_variables
from support.published_builds import TORCH, Field, published, standing_in
from variants_index.doctor.findings import CODES

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the machine has Linux")


@pytest.fixture
def field() -> Iterator[Field]:
    """PyPI and PyTorch's indexes, with torch alone."""
    with standing_in(published(torch=TORCH)) as field:
        yield field


@pytest.mark.nightly
@LINUX
def test_wrong_choice(reader: Reader, field: Field) -> None:
    reader.use_python()
    reader.use_variants()
    environment = reader.environments.patched("3.12", PIPS[-1]).copied(reader.home / "env")
    for name in ("python", "pip"):
        reader.tool(name, f'exec {environment.python} {"-m pip" if name == "pip" else ""} "$@"')
    reader.environ |= {
        "PIP_INDEX_URL": field.index.url,
        "UV_DEFAULT_INDEX": field.index.url,
        "VARIANTS_CATALOG_MIRROR": " ".join(field.mirrors),
        "VARIANTS_CATALOG": "default",
        "VIRTUAL_ENV": str(environment.path),
        DRIVER_OVERRIDE: "11.8",
        **driver_variables(driver_library(reader.environments), "12.4", "9.0"),
    }
    subprocess.run(
        ["bash", "-c", "pip install --quiet torch==2.14.0"], env=reader.variables, check=True
    )
    page = Page(ROOT / "docs/how-to/wrong-choice.md")
    reader.follow(page, failing=["variants doctor torch", "variants doctor torch"])


def test_every_problem_is_in_the_reference() -> None:
    text = (ROOT / "docs/reference/doctor.md").read_text("utf-8").partition("## Problems")[2]
    listed = re.findall(r"^\| `([a-z-]+)` \| [^|]+ \|$", text, re.MULTILINE)
    assert sorted(listed) == sorted(CODES)


def test_every_code_is_that_of_a_problem() -> None:
    """In the sources of both commands; nothing is kept for problems of the past."""
    folders = ("variants-index/src/variants_index/doctor", "variants-cli/src/variants_cli",
               "uv-variants/src/uv_variants/doctor")  # fmt: skip
    files = [path for name in folders for path in (ROOT / "packages" / name).glob("*.py")]
    text = "".join(path.read_text("utf-8") for path in files if path.name != "findings.py")
    assert {code for code in CODES if f'"{code}"' not in text} == set()
