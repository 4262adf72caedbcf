"""The wheel of the shim: reproducible, with a list of what is in it."""

from __future__ import annotations

import json
import zipfile
from email.parser import BytesParser

from support.environments import built_wheel
from support.patched_pip import patched_pip

SBOM = "sboms/pep-variants-shim.cdx.json"


def test_same_sources_give_the_same_bytes(environments, tmp_path):
    again = built_wheel("pip-patch", tmp_path)
    assert again.name == environments.shim_wheel.name
    assert again.read_bytes() == environments.shim_wheel.read_bytes()


def test_what_is_bundled_is_listed(environments):
    """PEP 770, PEP 639; the same in the patched pip."""
    bills = []
    for wheel in (environments.shim_wheel, patched_pip(environments, "26.3")):
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            (bill,) = (name for name in names if name.endswith(f".dist-info/{SBOM}"))
            bills.append(json.loads(archive.read(bill)))
            info = bill.removesuffix(SBOM)
            record = archive.read(f"{info}RECORD").decode()
            assert f"{bill},sha256=" in record
            metadata = BytesParser().parsebytes(archive.read(f"{info}METADATA"))
            (listed,) = (name for name in names if name.endswith("_vendor/vendor.txt")
                         if "variants" in name)  # fmt: skip
            pins = dict(line.split("==") for line in archive.read(listed).decode().splitlines())
        parts = {part["name"]: part for part in bills[-1]["components"]}
        assert {name: parts[name]["version"] for name in pins} == pins
        assert parts.keys() - pins.keys() == {
            "pep-variants",
            "resolvelib-variants",
            "variants-catalog",
            "variants-plugins",
        }
        texts = metadata.get_all("License-File")
        for name in pins:
            (licence,) = parts[name]["licenses"]
            assert licence["expression"] in metadata["License-Expression"]
            folder = (
                "licenses" if "variants" in wheel.name.partition("-")[0] else "_vendor/licenses"
            )
            assert any(f"{folder}/{name}/" in text for text in texts), (name, texts)
        assert all(f"{info}licenses/{text}" in names for text in texts)
    assert bills[0] == bills[1]
