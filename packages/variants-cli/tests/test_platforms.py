"""`variants platforms`."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from pep_variants._detect.known_machines import BY_NAME, KNOWN_MACHINES
from pep_variants._formats.platform_file import read_platform
from pep_variants._providers.registry import BUILTIN_NAMESPACES

PROJECT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _away(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # away from any variants.toml


def test_list(variants):
    lines = variants("platforms").out.splitlines()
    groups = [line for line in lines if line.endswith(":") and "  " not in line]
    assert groups == ["NVIDIA GPU:", "AMD GPU:", "Intel GPU:", "no accelerator:"]
    rows = [line.split(maxsplit=2) for line in lines if line and line not in groups]
    assert rows == [[each.name, each.facts, each.title] for each in KNOWN_MACHINES]
    found = variants("platforms", "mi*", "--json").json["platforms"]
    assert {each["group"] for each in found} == {"AMD GPU"}
    assert found[-1] == {
        "name": "mi100-mi210-rocm7.0",
        "group": "AMD GPU",
        "facts": {"rocm": ["7.0"], "gfx": ["gfx908", "gfx90a"], "cpu": ["zen2"]},
        "title": BY_NAME["mi100-mi210-rocm7.0"].title,
    }
    assert len(variants("platforms", "--json").json["platforms"]) == len(KNOWN_MACHINES)


@pytest.mark.parametrize("machine", ["h100-zen4", "h100-zen4,cuda=13.0"])
def test_platform_file(variants, tmp_path, machine):
    text = variants("platforms", machine).out
    assert read_platform(text, "x").namespaces.keys() == BUILTIN_NAMESPACES.keys()
    assert variants("platforms", machine, "-o", "machine.toml").out == ""
    assert (tmp_path / "machine.toml").read_text() == text
    assert 'created-by = "variants-cli ' in text
    tree = variants("platforms", machine, "--json").json["namespaces"]
    assert tree["nvidia"]["features"]["sm_arch"] == ["90_real", "90_virtual"]
    again = variants("platforms", "machine.toml").out
    assert read_platform(again, "x") == read_platform(text, "x")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cuda=9.0"], "cuda=9.0 is outside 11.0 to 15.20"),
        (["zz*"], "no known machine matches 'zz*'"),
        (["h100*", "-o", "file"], "--output needs one machine"),
        (["h100-zen4", "-o", "missing/file"], "missing/file"),
    ],
)
def test_wrong(variants, arguments, message):
    result = variants("platforms", *arguments)
    assert result.code in (1, 2)
    assert result.out == ""
    assert message in result.err
    assert len(result.err.splitlines()) == 1


def test_wheel_contains_matrices(tmp_path):
    code = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, tmp_path], cwd=PROJECT, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert "variants_cli/matrices/pytorch.toml" in archive.namelist()
