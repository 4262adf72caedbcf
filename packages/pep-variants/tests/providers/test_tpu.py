"""The ``tpu`` namespace, on the kernel's list of PCI devices."""

from pathlib import Path

import pytest
from summaries import summary

from pep_variants._choose.explanation import answered, asked, needs, why_chosen, why_rejected
from pep_variants._choose.ranking import Reason
from pep_variants._providers.tpu import PRESENT_OVERRIDE, TpuProvider


def machine(tmp_path: Path, *devices: tuple[str, str]) -> Path:
    for number, (vendor, device) in enumerate(devices):
        folder = tmp_path / f"sys/bus/pci/devices/0000:00:0{number}.0"
        folder.mkdir(parents=True)
        (folder / "vendor").write_text(f"{vendor}\n")
        (folder / "device").write_text(f"{device}\n")
    return tmp_path


def test_a_tpu(tmp_path):
    root = machine(tmp_path, ("0x8086", "0x0063"), ("0x1ae0", "0x0063"), ("0x1ae0", "0x0063"))
    provider = TpuProvider({}, root, "linux")
    assert provider.supported() == {"present": ("true",)} == provider.known()
    assert [(fact.what, fact.value) for fact in provider.facts()] == [("TPU", "0x0063")] * 2
    assert provider.facts()[0].source.endswith("0000:00:01.0")
    assert summary(provider) == "TPU 0x0063"


@pytest.mark.parametrize("device", [("0x1ae0", "0x001f"), ("0x10de", "0x0063")])
def test_a_network_card_of_google_and_another_vendors_device_are_no_tpu(tmp_path, device):
    assert TpuProvider({}, machine(tmp_path, device), "linux").supported() == {}


@pytest.mark.parametrize("system", ["linux", "darwin", "win32"])
def test_no_list_of_devices(tmp_path, system):
    assert TpuProvider({}, tmp_path, system).supported() == {}


@pytest.mark.parametrize(
    ("text", "supported"),
    [("1", True), ("YES", True), ("0", False)],
)
def test_the_override(tmp_path, text, supported):
    """As uv 0.13.8 reads the variable."""
    root = machine(tmp_path, ("0x1ae0", "0x0063"))
    provider = TpuProvider({PRESENT_OVERRIDE: text}, root, "linux")
    assert bool(provider.supported()) is supported
    assert all(fact.forced for fact in provider.facts())


def test_in_words():
    assert why_chosen({"tpu": {"present": ("true",)}}) == "TPU"
    reason = Reason("tpu", "present", ("true",), ())
    assert needs(reason) == "needs a TPU"
    assert why_rejected(reason) == "needs a TPU, which this machine does not have"
    assert (asked("tpu", "present"), answered("tpu", "present", "true")) == ("TPU", "true")


def test_a_device_that_cannot_be_read(tmp_path):
    root = machine(tmp_path, ("0x1ae0", "0x0063"))
    (root / "sys/bus/pci/devices/0000:00:00.0/device").write_bytes(b"\xff\xfe")
    assert TpuProvider({}, root, "linux").supported() == {}
