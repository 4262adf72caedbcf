"""The pages about publishing: their console blocks are run, in order, and compared."""

from __future__ import annotations

import re
import sys

import pytest

from support.documents import Page, Reader
from support.environments import ROOT
from support.upload_server import Fault, upload_index
from support.wheels import Wheel

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        sys.platform == "win32", reason="the pages show the shell of Linux and macOS"
    ),
]
TAGS = "cp312-cp312-manylinux_2_28_{}"
URL, OTHER = "https://index.example/legacy/", "https://other.example/legacy/"
PUBLISH = f"variants publish dist --repository-url {URL}"


def make(reader: Reader, wheel: Wheel, folder: str, **properties: str) -> None:
    """Make variants of *wheel*: a property for each label, and none for the null variant."""
    (reader.home / "plain").mkdir(exist_ok=True)
    path = reader.home / "plain" / wheel.filename
    path.write_bytes(wheel.build())
    both = "--namespace x86_64 --namespace aarch64"
    for label, item in properties.items():
        needs = f"--property '{item}'" if item else ""
        reader.type_in(f"variants make {path} -o {folder} --label {label} {both} {needs}")


def test_upload_api(reader: Reader) -> None:
    reader.use_variants()
    x86, arm = (Wheel("fastmath", "2.1.0", tag=TAGS.format(cpu)) for cpu in ("x86_64", "aarch64"))
    levels = {level: f"x86_64 :: level :: {level}" for level in ("v2", "v3", "v4")}
    make(reader, x86, "dist", null="", x86_64_v3=levels["v3"], x86_64_v4=levels["v4"])
    make(reader, x86, "dist-v2", x86_64_v2=levels["v2"])
    make(reader, arm, "dist-arm", arm8="aarch64 :: version :: 8.2a")
    with (
        upload_index(reader.home / "index") as index,
        upload_index(reader.home / "other") as other,
    ):
        reader.type_in(f"variants publish dist --repository-url {other.url}")
        other.replaces = "$^"
        index.faults[re.escape("-null.whl")] = [Fault(507, reason="Insufficient Storage")]
        reader.follow(
            Page(ROOT / "docs/how-to/publishing.md"),
            replaced={URL: index.url, OTHER: other.url},
            failing=[PUBLISH, f"variants publish dist-v2 --repository-url {OTHER}"],
        )


def test_storage(reader: Reader) -> None:
    reader.use_variants()
    demo = Wheel("demo", "1.0")
    levels = {level: f"x86_64 :: level :: {level}" for level in ("v3", "v4")}
    make(reader, demo, "dist", null="", v3=levels["v3"])
    make(reader, demo, "dist2", v4=levels["v4"])
    reader.follow(Page(ROOT / "docs/how-to/publishing-storage.md"))


def test_attestations(reader: Reader) -> None:
    """What signs and downloads is not here: programs that leave the files that those leave."""
    reader.tool("gh", "echo '{\"verificationMaterial\": {}}' > sha256:0123.jsonl")
    reader.tool("sigstore", 'while [ "$1" != --bundle ]; do shift; done; echo "{}" > "$2"')
    reader.tool("pypi-attestations", 'cp "$4" "$3"')
    (reader.work / "dist").mkdir()
    reader.follow(Page(ROOT / "docs/how-to/publishing-credentials.md"))
    assert (reader.work / "dist/FILE.whl.slsa.attestation").exists()
