"""The tutorials of the site: every console block is run, in order, and its output compared.

The programs are real. What they would fetch from the network is a stand-in on loopback: tiny wheels
on pages laid out as those of the catalogue's places.
"""

from __future__ import annotations

import platform
import sys

import pytest

from support.documents import Command, Page
from support.environments import PIPS, ROOT
from support.published_builds import TORCH, published, standing_in
from support.servers import free_port

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the machines of the tutorials have Linux"
)


def test_torch(reader):
    reader.use_python()
    reader.use_pip(PIPS[-1])
    (reader.work / "dist").symlink_to(reader.environments.shim_wheel.parent)
    with standing_in(published(torch=TORCH)) as field:
        reader.environ |= {
            "PIP_INDEX_URL": field.index.url,
            "VARIANTS_CATALOG_MIRROR": " ".join(field.mirrors),
            # Whatever this machine has.
            "VARIANTS_PLATFORM": "h100-sapphirerapids",
        }
        reader.follow(Page(ROOT / "docs/tutorials/torch.md"))


def test_publish(reader):
    reader.use_python()
    reader.use_pip(PIPS[-1])
    reader.use_shim()
    reader.use_uv()
    reader.use_variants()
    reader.environ["VARIANTS_PLATFORM"] = "cpu-x86-64-v3"
    port = str(free_port())
    reader.environ["PIP_INDEX_URL"] = f"http://127.0.0.1:{port}/simple/"  # has no other pip
    reader.follow(Page(ROOT / "docs/tutorials/publish.md"), replaced={"8000": port})


def test_provider_plugin(reader):
    reader.use_python()
    reader.use_pip(PIPS[-1])
    reader.use_shim()
    reader.use_uv()
    reader.use_variants()
    page = Page(ROOT / "docs/tutorials/provider-plugin.md")
    port = str(free_port())
    reader.environ["PIP_INDEX_URL"] = f"http://127.0.0.1:{port}/simple/"  # has no other pip
    failing = _commands(page, "pip install --force-reinstall", "uv-env --reinstall")
    reader.follow(page, replaced={"8000": port}, failing=failing)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the server and the laptop have x86-64")
def test_team(reader):
    reader.use_python()
    reader.use_pip(PIPS[-1])
    reader.use_uv()
    reader.use_variants()
    page = Page(ROOT / "docs/tutorials/team.md")
    failing = _commands(page, "check --python laptop", "git diff --exit-code --stat")
    with standing_in(published(torch=TORCH)) as field:
        reader.environ |= {
            "PIP_INDEX_URL": field.index.url,
            "UV_DEFAULT_INDEX": field.index.url,
            "VARIANTS_CATALOG_MIRROR": " ".join(field.mirrors),
        }
        files = f"{field.builds.files_url}/files/hosts/download.pytorch.org"
        reader.follow(
            page,
            replaced={"https://download.pytorch.org": files},
            failing=failing,
        )


def _commands(page: Page, *words: str) -> list[str]:
    """Return the commands of *page* that contain one of *words*."""
    return [
        step.text
        for step in page.steps
        if isinstance(step, Command) and any(each in step.text for each in words)
    ]
