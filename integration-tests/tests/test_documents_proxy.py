"""The pages of the index proxy: commands against a proxy that runs, tables against the code."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest

from support.documents import Page, Reader
from support.environments import PIPS, ROOT
from support.published_builds import TORCH, published, standing_in
from variants_proxy import Limits

REFERENCE = (ROOT / "docs/reference/proxy.md").read_text("utf-8")


@pytest.fixture
def operator(reader: Reader) -> Iterator[Reader]:
    """A person with the commands, whose proxy ends with the test; it is at a free port."""
    if sys.platform != "linux" or not shutil.which("curl"):
        pytest.skip("the pages are for Linux with curl")
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    plain = reader.environments.plain(python, PIPS[-1])
    reader.activate(plain.copied(reader.home / "env"))
    reader.use_uv()
    reader.use_variants()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        reader.environ["VARIANTS_PROXY_PORT"] = str(free.getsockname()[1])
    program = (reader.programs / "variants-proxy").resolve()
    (reader.programs / "variants-proxy").unlink()
    running = reader.home / "proxy.pid"
    started = f'[ "$1" = serve ] && echo $$ > {running}\nexec {program} "$@"'
    reader.tool("variants-proxy", started)
    with standing_in(published(torch=TORCH)) as field:
        reader.environ |= {
            "VARIANTS_PROXY_INDEX": f"pypi={field.index.url}",
            "VARIANTS_PROXY_CATALOG_MIRROR": " ".join(field.mirrors),
            "VARIANTS_PROXY_URL": f"http://127.0.0.1:{reader.environ['VARIANTS_PROXY_PORT']}",
        }
        yield reader
    if running.exists():
        with suppress(ProcessLookupError):
            os.kill(int(running.read_text()), signal.SIGTERM)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["docs/how-to/proxy.md", "docs/how-to/proxy-operating.md"])
def test_commands(operator: Reader, name: str) -> None:
    port = operator.environ["VARIANTS_PROXY_PORT"]
    operator.follow(Page(ROOT / name), replaced={"127.0.0.1:4825": f"127.0.0.1:{port}"})


def test_limits() -> None:
    table = REFERENCE[REFERENCE.index("| limit | default") : REFERENCE.index("A server that fails")]
    found = re.findall(r"`(\w+)`", table)
    assert len(found) > 5
    for name in found:
        assert hasattr(Limits(), name)
