"""The released wheels of pip: their hashes, download and verification."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

SHA256 = {
    "24.0": "ba0d021a166865d2265246961bec0152ff124de910c5cc39f1156ce3fa7c69dc",
    "24.3.1": "3790624780082365f47549d032f3770eeb2b1e8bd1f7b2e02dace1afa361b4ed",
    "25.0.1": "c46efd13b6aa8279f33f2864459c8ce587ea6a1a59ee20de055868d8f7688f7f",
    "25.1.1": "2913a38a2abf4ea6b64ab507bd9e967f3b53dc1ede74b01b0931e1ce548751af",
    "25.3": "9655943313a94722b7774661c21049070f6bbb0a1516bf02f7c8d5d9201514cd",
    "26.0.1": "bdb1b08f4274833d62c1aa29e20907365a2ceb950410df15fc9521bad440122b",
    "26.1.2": "382ff9f685ee3bc25864f820aa50505825f10f5458ffff07e30a6d96e5715cab",
    "26.2.1": "71138adf1f4ca900cdb7d289c21b7494329f2332b6d85f0e1c42108c0384ed3e",
    "26.3": "f3b60b20ffaadd4415ed7957212a38ac63fa4c5fa375bd0f4a797777940fad13",
}
"""Version to the hash of its wheel on PyPI, one for each version that the shim supports."""


class UpstreamError(Exception):
    """The wheel of pip cannot be downloaded, or has another hash than the release."""


def fetch(version: str, folder: Path) -> Path:
    """Download the wheel of pip *version* into *folder*; return it, verified.

    With pip's own configuration: the hash makes a mirror as good as PyPI.

    Raises:
        UpstreamError: the version is unknown, cannot be downloaded, or has another hash.
    """
    if version not in SHA256:
        raise UpstreamError(f"pip {version} is not supported; supported are {', '.join(SHA256)}")
    command = [
        sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
        "--no-deps", "--only-binary", ":all:", "--dest", str(folder), f"pip=={version}",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UpstreamError(f"pip {version} cannot be downloaded: {done.stderr.strip()}")
    wheel = folder / f"pip-{version}-py3-none-any.whl"
    verify(wheel, version)
    return wheel


def verify(wheel: Path, version: str) -> None:
    """Check that *wheel* has the hash of the release of pip *version*.

    Raises:
        UpstreamError: it has another hash.
    """
    if version not in SHA256:
        raise UpstreamError(f"pip {version} is not supported; supported are {', '.join(SHA256)}")
    found = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if found != SHA256[version]:
        raise UpstreamError(
            f"{wheel} is not the released wheel of pip {version}: "
            f"its sha256 is {found}, not {SHA256[version]}"
        )
