"""Documents of matrices for people: the formats html, markdown and mermaid of `variants matrix`."""

import base64
import hashlib
import itertools
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest

from pep_variants.choose.abi import supporting
from pep_variants.choose.ranking import rank
from pep_variants.model.metadata import Metadata
from pep_variants.model.platform import Platform, Support
from variants_cli import matrices
from variants_cli.matrix.combination import combine, metadata_of
from variants_cli.matrix.reading import read_matrix
from variants_cli.pages import coverage, decision_tree
from variants_cli.pages.coverage import read_machines
from variants_cli.pages.decision_tree import NO_VARIANT, Grower, TreeTooLarge
from variants_cli.pages.release_page import examine

FOLDER = Path(matrices.__path__[0])
FILES = sorted(path.name for path in FOLDER.glob("*.toml"))
TORCH = FOLDER / "torch-2.10.0-cuda13.0.toml"
ROCM = FOLDER / "torch-2.9.0-rocm.toml"
MACHINES = read_machines()
PLATFORMS = [machine.platform for machine in MACHINES]

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
    return examine(matrix, combine(matrix), MACHINES, MACHINES, enabled)


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
        assert grace.why_fits("cuda13_0_sm90_armv8_2").startswith("CUDA driver 13.0 or newer")
        assert grace.why_fits("cpu_avx2") == ""
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


def best(metadata, platform):
    labels = rank(metadata, supporting(platform, metadata)).labels
    return labels[0] if labels else NO_VARIANT


class TestDecisionTree:
    @pytest.mark.parametrize("name", FILES)
    def test_every_known_machine_gets_what_the_engine_chooses(self, name):
        matrix = read_matrix(FOLDER / name)
        enabled = [name for name, each in matrix.project.providers.items() if each.optional]
        for more in ([], *([each] for each in enabled)):
            release = released(FOLDER / name, *more)
            assert release.problem == ""
            for choice in release.choices:
                end = release.tree.end(choice.ranking.platform)
                assert end == (choice.label or NO_VARIANT), choice.machine.name

    @pytest.mark.parametrize("name", FILES)
    def test_other_machines(self, name):
        """Every accelerator of a known machine, with the CPU of every other one."""
        matrix = read_matrix(FOLDER / name)
        metadata = metadata_of(matrix, combine(matrix))
        tree = Grower(metadata, PLATFORMS).grow()
        families = ("x86_64", "aarch64")
        for one, other in itertools.product(PLATFORMS[::3], PLATFORMS[::4]):
            namespaces = {n: s for n, s in one.namespaces.items() if n not in families}
            namespaces |= {n: other.support(n) for n in families}
            platform = Platform(namespaces)
            assert tree.end(platform) == best(metadata, platform), namespaces

    def test_questions_are_in_the_order_of_the_ranking(self):
        first = released(TORCH).tree
        texts = [branch.text for branch in first.branches]
        assert (first.text, texts) == ("CUDA driver", ["13.0 or newer", "older, or none"])
        second = first.branches[0].to
        assert second.text == "Compute capability"
        assert [branch.text for branch in second.branches][:2] == ["12.1", "12.0"]
        # Machines with an old driver or another GPU are asked about their CPU.
        assert second.branches[-1].to is first.branches[-1].to
        h100 = next(branch.to for branch in second.branches if branch.text == "9.0")
        assert [(branch.text, branch.to.text) for branch in h100.branches] == [
            ("x86-64-v4", "cuda13_0_sm90_avx512"),
            ("x86-64-v3", "cuda13_0_sm90_avx2"),
            ("x86-64-v2", "CPU extension avx"),
            ("older, or none", "ARM CPU"),
        ]

    def test_what_changes_nothing_is_not_asked(self):
        variants = {"one": {"nvidia": {"sm_arch": ("80_real", "90_real")}}, "null": {}}
        tree = Grower(Metadata(("nvidia",), variants), PLATFORMS).grow()
        assert [(b.text, b.to.text) for b in tree.branches] == [
            ("9.0 or 8.0", "one"),
            ("another, or none", "null"),
        ]

    def test_without_variants_there_is_nothing_to_ask(self):
        tree = Grower(Metadata(("nvidia",)), PLATFORMS).grow()
        assert (tree.text, tree.branches) == (NO_VARIANT, ())

    def test_a_machine_with_two_gpus(self):
        two = Platform({"amd": Support({"gfx_arch": ("gfx908", "gfx90a")})})
        old = Platform({"amd": Support({"gfx_arch": ("gfx908",)})})
        variants = {
            "both": {"amd": {"gfx_arch": ("gfx908",), "rocm_version": ("7.0",)}},
            "new": {"amd": {"gfx_arch": ("gfx90a",)}},
        }
        metadata = Metadata(("amd",), variants)
        tree = Grower(metadata, [*PLATFORMS, two, old]).grow()
        assert tree.end(two) == best(metadata, two) == "new"
        assert tree.end(old) == best(metadata, old) == NO_VARIANT
        assert tree.branches[0].text == "gfx908 and gfx90a"

    def test_too_many_questions(self, monkeypatch):
        monkeypatch.setattr(decision_tree, "MAXIMUM", 20)
        matrix = read_matrix(TORCH)
        with pytest.raises(TreeTooLarge, match="select variants with --only"):
            Grower(metadata_of(matrix, combine(matrix)), PLATFORMS).grow()
        release = examine(matrix, combine(matrix), MACHINES, MACHINES)
        assert "more than 20 questions" in release.problem

    def test_tree_that_mermaid_does_not_draw(self, monkeypatch, run):
        monkeypatch.setattr(decision_tree, "MAXIMUM_ARROWS", 20)
        result = run(TORCH, "--format", "mermaid")
        assert result.out.startswith("flowchart LR")
        assert "warning: Mermaid draws at most" in result.err
        text = run(TORCH, "--format", "markdown").out
        assert "```mermaid" not in text
        assert "too large for Mermaid" in text


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
        assert text.count("```mermaid") == 1
        for heading in ("## Gaps", "## Variants", "## Machines", "## Axes", "## Decision tree"):
            assert text.count(f"\n{heading}\n") == 1

    def test_several_releases(self, run):
        names = ("2.8.0-cuda12.8", "2.9.1-cuda12.9", "2.10.0-cuda13.0")
        files = [FOLDER / f"torch-{name}.toml" for name in names]
        text = run(*files, "--format", "markdown").out
        assert "## Releases\n" in text
        assert "## Variants by gpu\n" in text
        assert "| PyTorch 2.10.0 for CUDA 13.0 | 2.10.0 | 13.0 | 9.x |" in text
        assert "| 59 | sm75, sm110, sm121 |" in text
        assert "| `sm103` | B300 |" in text

    def test_hostile_file(self, hostile, run):
        text = run(hostile, "--format", "markdown").out
        for part in ("<script", "<b>", "\x1b", "\0", "http://", "@a"):
            assert part not in text
        for line in text.splitlines():
            assert "](" not in line.replace("\\](", "")


class TestMachines:
    def test_by_name_pattern_and_file(self, tmp_path, run):
        own = tmp_path / "own.toml"
        own.write_text("# Our build server.\n[metadata]\nversion = '0.1'\n")
        text = run(TORCH, "--format", "markdown", "--platform", "h100-*", "--platform", own).out
        assert "| `h100-zen4` |" in text
        assert "| `own` | Our build server |" in text
        assert "`dgx-spark`" not in text

    def test_enabled_namespace_that_does_not_exist(self, run):
        wrong = run(TORCH, "--format", "markdown", "--variant-enable", "nvidia", code=1)
        assert "there are: bf16_training, int8_inference" in wrong.err


class Page(HTMLParser):
    """Elements and text of a page, which has to be well nested."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.text, self.ids, self.links = [], [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.ids += [value for name, value in attributes if name == "id"]
        self.links += [value for name, value in attributes if name in ("href", "src")]
        assert not [name for name, _ in attributes if name.startswith("on") or name == "style"]
        if tag not in ("meta", "col"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text.append(data)


class TestHtml:
    @pytest.mark.parametrize("name", FILES)
    def test_page_is_well_formed_and_alone(self, name, run):
        page = Page(run(FOLDER / name, "--format", "html").out)
        assert len(set(page.ids)) == len(page.ids)
        assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
        tags = {tag for tag, _ in page.tags}
        assert not {"script", "iframe", "object", "embed", "base", "form", "link", "svg"} & tags
        release = released(FOLDER / name)
        for label in (*(v.label for v in release.variants), *(m.name for m in MACHINES)):
            assert label in page.text

    def test_page_allows_its_own_style_alone(self, run):
        text = run(ROCM, "--format", "html").out
        policy = next(a["content"] for t, a in Page(text).tags if a.get("http-equiv"))
        style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        assert policy == (
            f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
        )

    def test_grid_is_what_was_chosen(self, run):
        text = run(TORCH, "--format", "html").out
        gets = re.findall(r'<td class="chosen" title="(\S+) gets ([^ :]+):', text)
        choices = released(TORCH).choices
        assert dict(gets) == {c.machine.name: c.label for c in choices if c.label}
        assert "h100-zen4 could use cpu_avx2: x86-64-v3; cpu_avx512 comes first" in text

    def test_hostile_file(self, hostile, run):
        text = run(hostile, "--format", "html").out
        page = Page(text)
        assert "script" not in [tag for tag, _ in page.tags]
        assert HOSTILE.split(" | ")[0] in "".join(page.text)  # as text
        assert not {"\x1b", "\0"} & set(text)

    def test_pythons_are_no_columns(self, tmp_path, run):
        path = tmp_path / "m.toml"
        path.write_text(
            """
            variant.default-priorities.namespace = ["x86_64"]
            [axes.python.py312]
            python = "3.12"
            [axes.python.py313]
            python = "3.13"
            [axes.cpu.v3]
            properties = ["x86_64 :: level :: v3"]
            [axes.cpu.none]
            label = "null"
            """
        )
        text = run(path, "--format", "html").out
        columns = re.findall(r'<th class="column[^>]*><span>([^<]+)', text)
        assert columns == ["v3", "null"]
        assert "| cpu | label |" in run(path, "--format", "markdown").out
