"""The sandbox lets plugins open the device files of every vendor with a built-in provider."""

from fnmatch import fnmatchcase

import pytest

from pep_variants.providers.registry import ACCELERATORS, find_vendor
from variants_plugins.sandbox import DEVICES


@pytest.mark.parametrize("namespace", ACCELERATORS)
def test_device_files(namespace):
    vendor = find_vendor(namespace)
    assert vendor is not None
    for name in vendor.nodes:
        path = f"/dev/{name.replace('*', '0').replace('[0-9]', '0')}"
        assert any(
            fnmatchcase(path, pattern) or path.startswith(f"{pattern}/") for pattern in DEVICES
        )
