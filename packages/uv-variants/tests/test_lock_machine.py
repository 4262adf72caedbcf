"""The file about the machine that a lock is for."""

from __future__ import annotations

import pytest

from pep_variants.choose.preferences import Preferences
from pep_variants.detect.machines import load_machine
from pep_variants.model.platform import Platform, Support
from uv_variants.uv_lock import LockMachine, path_beside
from variants_proxy.key import Machine

GPU = Platform(
    {"nvidia": Support({"cuda_version_lower_bound": ("12.8", "12.7")}, ("x==1",), "x:y")}
)
NOTHING = Support(notice="no driver")


@pytest.mark.parametrize(
    ("machine", "name"),
    [
        (Machine(detected=Platform({**GPU.namespaces, "amd": NOTHING}), target="linux-x86_64"), ""),
        (Machine(load_machine("h100-zen4"), target="macosx-aarch64"), "h100-zen4"),
        (Machine(GPU), ""),
    ],
)
def test_what_is_written_is_read(tmp_path, machine, name):
    written = LockMachine.of(tmp_path / "uv.lock", machine, name)
    written.write("uv.lock")
    found = LockMachine.read(tmp_path / "uv.lock")
    assert found == written
    assert found.is_like(machine)
    preferences = Preferences(forced={"a": "b"})
    chosen_for = found.machine(preferences, None)
    assert chosen_for.preferences is preferences
    assert chosen_for.target == machine.target
    assert found.machine(preferences, "win-x86_64").target == "win-x86_64"
    assert bool(chosen_for.detected.namespaces) == bool(machine.detected.namespaces)
    assert load_machine(tmp_path / "uv.variants.toml").namespaces == found.platform.namespaces
    assert not found.is_like(Machine(GPU, target="linux-aarch64"))


def test_a_file_that_says_more_than_a_machine_is_not_believed(tmp_path):
    (tmp_path / "uv.variants.toml").write_text(
        '[metadata]\ntarget = "../../etc"\nmachine = "\\u001b[31m"\ndetected = "yes"\n'
    )
    found = LockMachine.read(tmp_path / "uv.lock")
    assert (found.target, found.name, found.is_detected) == ("", "", False)
    assert str(found) == "the machine of uv.variants.toml"


def test_one_file_for_each_lock(tmp_path):
    assert path_beside(tmp_path / "uv.lock").name == "uv.variants.toml"
    assert path_beside(tmp_path / "s.py.lock").name == "s.py.variants.toml"
    assert LockMachine.read(tmp_path / "uv.lock") is None
