"""What the README says of the command and the application exists."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import httpx
from click.testing import CliRunner

from variants_proxy import Limits
from variants_proxy.cli import cli

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")


def test_options_and_variables():
    table = README[README.index("| option of `serve`") : README.index("Repeatable options")]
    text = CliRunner().invoke(cli, ["serve", "--help"]).output
    options = set(re.findall(r"--[a-z][a-z-]+", table))
    assert options == set(re.findall(r"(?m)^ +(--[a-z-]+)", text))
    used = {"VARIANTS_PROXY_INDEX": "ftp://h/", "VARIANTS_PROXY_TOKEN": "x"}
    assert set(used) <= set(re.findall(r"VARIANTS_\w+", table))
    result = CliRunner().invoke(cli, ["serve"], env=used)
    assert "the URL ftp://h/ must begin with" in str(result.exception)


def test_application(tmp_path):
    example = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]
    names = {}
    exec(example.replace("/var/cache/variants-proxy", str(tmp_path)), names)

    async def get(path):
        transport = httpx.ASGITransport(names["app"])
        async with httpx.AsyncClient(
            transport=transport, base_url="http://variants.example"
        ) as client:
            return await client.get(path)

    assert asyncio.run(get("/health")).json() == {"status": "ok", "upstreams": 2}
    metrics = asyncio.run(get("/metrics")).text
    for name in re.findall(r"variants_proxy_upstream_\w+", README):
        assert f"# TYPE {name} " in metrics


def test_limits():
    table = README[README.index("| limit | default") : README.index("A server that fails")]
    for name in re.findall(r"`(\w+)`", table):
        assert hasattr(Limits(), name)
