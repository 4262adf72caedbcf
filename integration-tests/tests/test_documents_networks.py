"""The how-to pages about machines without a network, and those behind a company's proxy."""

from __future__ import annotations

import base64
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from support.certificates import certified
from support.documents import Command, Page, Reader
from support.environments import PIPS, ROOT
from support.index import Answer, served
from support.proxied_network import http_proxy
from support.published_builds import TORCH, Field, published, standing_in

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(sys.platform != "linux", reason="the pages are about Linux"),
]


def prepare(reader: Reader) -> None:
    """Put uv and the commands on ``PATH``, and activate an environment with the shim."""
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    environment = reader.environments.patched(python, PIPS[-1])
    reader.activate(environment.copied(reader.home / "env"))
    reader.use_uv()
    reader.use_variants()


def test_air_gap(reader: Reader) -> None:
    prepare(reader)
    with standing_in(published(torch=TORCH)) as field:
        reader.environ |= {
            "PIP_INDEX_URL": field.index.url,
            "VARIANTS_PROXY_INDEX": field.index.url,
            "VARIANTS_CATALOG_MIRROR": " ".join(field.mirrors),
            "VARIANTS_PROXY_CATALOG_MIRROR": " ".join(field.mirrors),
        }
        check = "(cd carry && sha256sum --check SHA256SUMS)"
        missing = "python -m pip install --no-index --find-links carry/wheels torch torchvision"
        reader.follow(Page(ROOT / "docs/how-to/air-gap.md"), failing=[check, missing])


class Repository:
    """The company's own server: everything at one host, for those who have a password."""

    def __init__(self, field: Field, credentials: str) -> None:
        self._field = field
        self._wanted = f"Basic {base64.b64encode(credentials.encode()).decode()}"
        self.url = ""

    def answer(self, path: str, headers: Mapping[str, str]) -> Answer:
        """Return the answer to a request."""
        if headers.get("Authorization") != self._wanted:
            return Answer(401, headers={"WWW-Authenticate": 'Basic realm="packages"'})
        parts = path.removeprefix("/files")
        found = self._field.builds if parts.startswith("/hosts/") else self._field.index
        return found.answer(path, headers)


def test_company_proxy(reader: Reader, tmp_path: Path) -> None:
    prepare(reader)
    field = published(torch=TORCH)
    certificates = certified(tmp_path / "certificates", "packages.example")
    repository = Repository(field, "me:secret")
    with served(repository, certificates.context) as server:  # type: ignore[type-var]
        port = server.url.split(":")[2].split("/")[0]
        names = {"packages.example:443": f"127.0.0.1:{port}"}
        with http_proxy("me:pass", names=names) as proxy:
            reader.environ["VARIANTS_PLATFORM"] = "h100-zen4"
            page = Page(ROOT / "docs/how-to/company-proxy.md")
            wrong = [
                step.text
                for step in page.steps
                if isinstance(step, Command) and any("error: " in line for line in step.lines)
            ]
            reader.follow(
                page,
                failing=wrong,
                replaced={
                    "proxy.example:8080": proxy.place.rpartition("@")[2],
                    "/etc/ssl/company.pem": str(certificates.authority),
                    "packages.example/pytorch": "packages.example/hosts/download.pytorch.org",
                },
            )
