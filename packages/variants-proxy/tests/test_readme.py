"""The application of the README is one."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import httpx

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")


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

    health = asyncio.run(get("/health")).json()
    assert (health["status"], health["upstreams"]) == ("ok", 2)
