"""What the doctor of uv says of a lock, and what to type in a project."""

from pathlib import Path

import pytest
from packaging.version import Version

from pep_variants._choose.rejections import Advice
from pep_variants._model.platform import Platform
from pep_variants._sources import Sources
from pep_variants.preferences import Preferences
from pep_variants.wheel_files import Installed
from uv_variants._doctor import examination
from uv_variants._doctor.examination import (
    locked_items,
    locked_problems,
    not_locked,
    switch_commands,
)
from uv_variants._uv_lock import Lock, LockMachine
from variants_index.doctor import Checkup, Compared, package_problems, uv_commands
from variants_index.target import host_target

INDEX = "https://x/simple"
COMMANDS = uv_commands((), explain="explain", doctor="uv-variants doctor")
ADVICE = Advice("cu128", "cu126", ("because of cu128",), "")


@pytest.fixture
def checkup():
    return Checkup([], host_target(), Platform, Preferences(), Sources(), COMMANDS)


def compared(label, advice=None, version="2.0"):
    return Compared(Installed("gpu", Version(version), label), label, advice=advice)


def lock(*names):
    urls = [f"{INDEX}/gpu/.variant/{label}/{name}" for label, name in names]
    files = "".join(f'    {{ url = "{url}", hash = "sha256:0" }},\n' for url in urls)
    return Lock(text=f'[[package]]\nname = "gpu"\nversion = "2.0"\nwheels = [\n{files}]\n')


def test_only_what_is_locked_for_this_platform(monkeypatch, checkup):
    monkeypatch.setattr(examination.target_machines, "host_target", lambda: "linux-x86_64")
    text = lock(
        ("cu128", "gpu-2.0-0_cu128-cp313-cp313-manylinux_2_28_x86_64.whl"),
        ("null", "gpu-2.0-0_null-cp313-cp313-win_amd64.whl"),
    )
    (item,) = locked_items(text)
    assert (item.project, item.label) == ("gpu", "cu128")
    groups = [[Compared(item, item.label, advice=ADVICE)]]
    (problem,) = locked_problems(groups, checkup, None)
    assert problem.text == (
        "gpu 2.0 is locked as variant cu128, which does not fit this machine (because of cu128); "
        "variant cu126 does"
    )
    assert problem.command == "uv-variants --variant-platform native lock && uv-variants sync"
    # V6: nothing is advised that changes a lock for another machine.
    other = LockMachine(Path("uv.variants.toml"), Platform(), "linux-x86_64", "h100-zen4")
    (hint,) = locked_problems(groups, checkup, other)
    assert hint.text.startswith(f"{problem.text}; the lock is for h100-zen4, --variant-platform")
    assert hint.command == ""


def test_another_release(checkup):
    advice = Advice("cu128", "cu126", ("no",), "", Version("1.9"))
    (problem,) = locked_problems([[compared("cu128", advice)]], checkup, None)
    assert problem.command == (
        "uv-variants --variant-platform native lock --upgrade-package gpu && uv-variants sync"
    )


@pytest.mark.parametrize(
    ("has_lock", "command"),
    [(True, "uv-variants sync"), (False, "uv-variants --variant-switch pip install gpu")],
)
def test_what_to_type(checkup, has_lock, command):
    installed = [[compared("cu128", ADVICE)]]
    locked = [[compared("cu126")]] if has_lock else []
    switch = switch_commands(COMMANDS, locked)
    found = package_problems(not_locked(installed, locked), COMMANDS, checkup.asked, switch)
    (problem,) = found
    assert (problem.command, problem.code) == (command, "stale-variant")
    # Else it is the lock's problem.
    found = package_problems(not_locked(installed, installed), COMMANDS, checkup.asked, switch)
    assert [each for each in found if each.fails] == []


def test_what_is_locked_may_be_a_decision(checkup):
    groups = [[compared("cu126", Advice("cu126", "cu128", (), "newer"))]]
    (locked,) = locked_problems(groups, checkup, None)
    (installed,) = package_problems(groups, COMMANDS, checkup.asked)
    assert (locked.code, locked.fails) == ("better-variant", False)
    assert (installed.code, installed.fails) == ("better-variant", True)
