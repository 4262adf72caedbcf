"""Which machine gets which variant of a matrix: `variants matrix --format markdown`."""

import re
from functools import cache
from pathlib import Path

import pytest

from variants_cli import matrices
from variants_cli.matrix import coverage
from variants_cli.matrix.combination import combine
from variants_cli.matrix.coverage import read_machines
from variants_cli.matrix.machines_page import examine
from variants_cli.matrix.reading import read_matrix

FOLDER = Path(matrices.__path__[0])
FILES = sorted(path.name for path in FOLDER.glob("*.toml"))
TORCH = FOLDER / "torch-2.10.0-cuda13.0.toml"
ROCM = FOLDER / "torch-2.9.0-rocm.toml"
MACHINES = read_machines()

HOSTILE = """<script>alert(1)</script> | `x` **b** [l](http://e.org) "q" & <!-- --> ]]> @a #1"""
HOSTILE_MATRIX = f"""
title = '''{HOSTILE}'''
details."{{Note}} <b>" = '''{HOSTILE}'''

[variant]
default-priorities.namespace = ["x86_64"]

[axes.cpu.v3]
title = '''{HOSTILE}'''
properties = ["x86_64 :: level :: v3"]
environment = {{ CFLAGS = '''{HOSTILE}''' }}
details."</style>" = '''{HOSTILE}'''

[axes.cpu.none]
label = "null"
title = "\\u001b[31mred\\u0000"
"""


@cache
def released(path, *enabled):
    matrix = read_matrix(path)
    return examine(matrix, combine(matrix), MACHINES, enabled)


@pytest.fixture
def hostile(tmp_path):
    path = tmp_path / "hostile.toml"
    path.write_text(HOSTILE_MATRIX)
    return path


@pytest.fixture
def run(variants):
    """Run `variants matrix`; check how it ends."""

    def run(*args, code=0):
        result = variants("matrix", *args)
        assert result.code == code, result.err
        return result

    return run


class TestCoverage:
    def test_outcomes_of_machines(self):
        choices = {c.machine.name: c for c in released(TORCH).choices}
        assert choices["cpu-x86-64-v1"].outcome == coverage.NOTHING
        assert choices["cpu-x86-64-v1"].remark.startswith("cpu_avx2 needs x86-64-v3")
        assert choices["h100-zen4"].outcome == coverage.IDLE
        assert "CUDA driver 13.0" in choices["h100-zen4"].remark
        assert choices["mi300x-rocm6.4"].outcome == coverage.OTHER
        assert choices["mi300x-rocm6.4"].remark == "no variant is for its AMD GPU"
        assert choices["cpu-zen4"].outcome == coverage.FITS
        grace = choices["gh200-grace"]
        assert grace.label == "cuda13_0_sm90_armv9"
        choices = {c.machine.name: c for c in released(ROCM).choices}
        assert choices["cpu-zen"].outcome == coverage.NULL
        assert choices["mi300x-rocm7.0"].outcome == coverage.IDLE
        assert choices["rx-7900-zen4-rocm6.4"].outcome == coverage.FITS

    def test_what_optional_namespaces_choose(self):
        choices = {c.machine.name: c for c in released(TORCH).choices}
        assert choices["h100-sapphirerapids"].label == "cuda13_0_sm90_avx512"
        choices = {c.machine.name: c for c in released(TORCH, "int8_inference").choices}
        assert choices["h100-sapphirerapids"].label == "cuda13_0_sm90_avx512vnni"
        assert choices["gh200-grace"].label == "cuda13_0_sm90_armv9"

    def test_variants_of_no_machine_with_the_nearest_one(self):
        why = released(TORCH).unchosen
        assert why["cuda13_0_sm75_avx512"].startswith("fits none; t4-cascadelake: needs CUDA")
        assert why["cuda13_0_sm90_avx2"].startswith("where it fits, machines get cuda13_0_sm90_")
        assert "cpu_avx2" not in why
        assert "--variant-enable int8_inference" in why["cuda13_0_sm90_avx512vnni"]
        assert "cuda13_0_sm90_avx512vnni" not in released(TORCH, "int8_inference").unchosen


class TestMarkdown:
    @pytest.mark.parametrize("name", FILES)
    def test_every_variant_and_machine(self, name, run):
        release = released(FOLDER / name)
        text = run(FOLDER / name, "--format", "markdown").out
        for variant in release.variants:
            assert f"| `{variant.label}` |" in text
        for machine in MACHINES:
            assert f"| `{machine.name}` |" in text
        columns = 0
        for line in text.splitlines():
            found = len(re.findall(r"(?<!\\)\|", line))
            if line.startswith("|---"):
                columns = found
            elif columns and line.startswith("| "):
                assert found == columns, line
            else:
                columns = 0
        for heading in ("## Gaps", "## Variants", "## Machines", "## Axes"):
            assert text.count(f"\n{heading}\n") == 1

    def test_hostile_file(self, hostile, run):
        text = run(hostile, "--format", "markdown").out
        for part in ("<script", "<b>", "\x1b", "\0", "http://", "@a"):
            assert part not in text
        for line in text.splitlines():
            assert "](" not in line.replace("\\](", "")


class TestMachines:
    def test_by_name_pattern_and_file(self, tmp_path, run):
        own = tmp_path / "own.toml"
        own.write_text("[metadata]\nversion = '0.1'\n")
        text = run(TORCH, "--format", "markdown", "--platform", "h100-*", "--platform", own).out
        assert "| `h100-zen4` |" in text
        assert "| `own` |  | no variant |" in text
        assert "`dgx-spark`" not in text

    def test_enabled_namespace_that_does_not_exist(self, run):
        wrong = run(TORCH, "--format", "markdown", "--variant-enable", "nvidia", code=1)
        assert "there are: bf16_training, int8_inference" in wrong.err
