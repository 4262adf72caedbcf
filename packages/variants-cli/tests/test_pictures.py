"""Pictures and documents of matrices: the formats of `variants matrix` for people."""

import base64
import hashlib
import json
import re
import xml.etree.ElementTree as ET
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest

from variants_cli import matrices
from variants_cli.matrix.combination import combine
from variants_cli.matrix.reading import read_matrix
from variants_cli.pictures import coverage, mermaid, tables
from variants_cli.pictures.decision_tree import Leaf
from variants_cli.pictures.machines import read_machines
from variants_cli.pictures.mermaid import flowchart
from variants_cli.pictures.outline import outline
from variants_cli.pictures.release import examine

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
def released(path, *enabled, machines=MACHINES):
    matrix = read_matrix(path)
    return examine(matrix, combine(matrix), machines, MACHINES, enabled)


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


def test_outcomes_of_machines():
    choices = {c.machine.name: c for c in released(TORCH).workloads[0].coverage.choices}
    assert choices["cpu-x86-64-v1"].outcome == coverage.NOTHING
    assert choices["cpu-x86-64-v1"].remark.startswith("cpu_avx2 needs x86-64-v3")
    assert choices["h100-zen4"].outcome == coverage.IDLE
    assert "CUDA driver 13.0" in choices["h100-zen4"].remark
    assert choices["mi300x-rocm6.4"].outcome == coverage.OTHER
    assert choices["mi300x-rocm6.4"].remark == "no variant is for its AMD GPU"
    assert choices["cpu-zen4"].outcome == coverage.FITS
    assert choices["gh200-grace"].label == "cuda13_0_sm90_armv9"
    assert choices["gh200-grace"].verdict("cuda13_0_sm90_armv8_2") == (
        "compatible",
        (
            "CUDA driver 13.0 or newer, compute capability 9.0, ARMv8.2a",
            "cuda13_0_sm90_armv9 comes first",
        ),
    )
    assert choices["gh200-grace"].verdict("cpu_avx2")[0] == "rejected"
    choices = {c.machine.name: c for c in released(ROCM).workloads[0].coverage.choices}
    assert choices["cpu-zen"].outcome == coverage.NULL
    assert choices["mi300x-rocm7.0"].outcome == coverage.IDLE
    assert choices["rx-7900-zen4-rocm6.4"].outcome == coverage.FITS


def test_workloads_are_what_optional_namespaces_choose():
    release = released(TORCH)
    assert [workload.added for workload in release.workloads] == [
        "",
        "bf16_training",
        "int8_inference",
    ]
    by_name = {c.machine.name: c.label for c in release.workloads[2].coverage.choices}
    assert by_name["h100-sapphirerapids"] == "cuda13_0_sm90_avx512vnni"
    enabled = released(TORCH, "int8_inference")
    assert [workload.added for workload in enabled.workloads] == ["", "bf16_training"]
    by_name = {c.machine.name: c.label for c in enabled.workloads[0].coverage.choices}
    assert by_name["h100-sapphirerapids"] == "cuda13_0_sm90_avx512vnni"


def test_variants_of_no_machine_with_the_nearest_one():
    why = {item.label: item.why for item in released(TORCH).unchosen}
    assert why["cuda13_0_sm75_avx512"].startswith(
        "fits none; quadro-rtx-8000-skylake-avx512: needs CUDA"
    )
    assert why["cuda13_0_sm90_avx2"].startswith("where it fits, cuda13_0_sm90_avx512")
    assert "cpu_avx2" not in why
    assert "cuda13_0_sm90_avx512vnni" not in why  # some machine gets it if it is enabled


@pytest.mark.parametrize("name", FILES)
def test_markdown_has_every_variant_and_machine(name, run):
    release = released(FOLDER / name)
    text = run(FOLDER / name, "--format", "markdown").out
    for variant in release.variants:
        assert f"| `{variant.label}` |" in text
    for machine in MACHINES:
        assert f"| `{machine.name}` |" in text
    for line in text.splitlines():
        if line.startswith("|---"):
            columns = line.count("|")
        elif line.startswith("| "):
            last = line
            assert len(re.findall(r"(?<!\\)\|", last)) >= 3
    assert columns
    assert text.count("```mermaid") == len(release.workloads)


def test_tables_have_a_cell_for_each_column():
    release = released(TORCH)
    every = [
        tables.variant_table(release),
        tables.machine_table(release),
        *tables.gap_tables(release),
        *tables.axis_tables(release),
    ]
    for table in every:
        assert {len(row) for row in table.rows} == {len(table.columns)}, table.title


def test_several_releases(run):
    files = [FOLDER / name for name in FILES if name.startswith("torch-2") and "cuda" in name]
    text = run(*files, "--format", "markdown").out
    assert "| PyTorch 2.10.0 for CUDA 13.0 | 2.10.0 | 13.0 | 9.x |" in text
    assert "| `sm103` | B300 |" in text
    assert "name one file of each project" in run(*files, code=1).err


def steps_of(step, found=None):
    found = {} if found is None else found
    if not isinstance(step, Leaf) and id(step) not in found:
        found[id(step)] = step
        for branch in step.branches:
            steps_of(branch.to, found)
    return list(found.values())


@pytest.mark.parametrize("name", FILES)
def test_outline_has_the_ends_of_the_tree(name):
    for workload in released(FOLDER / name).workloads:
        ends = {node.label for node in workload.tree.nodes() if isinstance(node, Leaf)}
        steps = steps_of(outline(workload.tree))
        branches = [branch for step in steps for branch in step.branches]
        assert {b.to.label for b in branches if isinstance(b.to, Leaf)} == ends
        for step in steps:
            texts = [branch.text for branch in step.branches]
            assert len(set(texts)) == len(texts)


def test_questions_about_the_cpu_are_one_step():
    first = outline(released(TORCH).workloads[0].tree)
    assert (first.title, [b.text for b in first.branches]) == (
        "CUDA driver",
        ["13.0 or newer", "older, or none"],
    )
    second = first.branches[0].to
    h100 = next(b.to for b in second.branches if b.text == "9.0")
    assert [(b.text, b.to.label) for b in h100.branches] == [
        ("x86-64-v4", "cuda13_0_sm90_avx512"),
        ("x86-64-v3", "cuda13_0_sm90_avx2"),
        ("ARMv9.0a with sve2", "cuda13_0_sm90_armv9"),
        ("ARMv8.2a", "cuda13_0_sm90_armv8_2"),
        ("x86-64-v2 with avx", "cpu_avx"),
        ("another CPU", None),
    ]


def test_mermaid_escapes_everything_unusual(hostile, run):
    matrix = read_matrix(hostile)
    text = run(hostile, "--format", "mermaid").out
    assert text.startswith("flowchart LR\n")
    assert '"CPU?"' in text or '"x86' in text
    assert text == flowchart(examine(matrix, combine(matrix), MACHINES, MACHINES).workloads[0].tree)


def test_markdown_of_a_hostile_file(hostile, run):
    text = run(hostile, "--format", "markdown").out
    assert "<script" not in text
    assert "<b>" not in text
    assert "\x1b" not in text
    assert "\0" not in text
    assert "http://" not in text
    assert "@a" not in text
    for line in text.splitlines():
        assert "](" not in line.replace("\\](", "")


def test_machines_by_name_pattern_and_file(tmp_path, run):
    own = tmp_path / "own.toml"
    own.write_text(
        (Path(FOLDER) / "x").name and "# Our build server.\n[metadata]\nversion = '0.1'\n"
    )
    text = run(TORCH, "--format", "markdown", "--platform", "h100-*", "--platform", own).out
    assert "| `h100-zen4` |" in text
    assert "| `own` | Our build server |" in text
    assert "`dgx-spark`" not in text
    wrong = run(TORCH, "--format", "markdown", "--platform", "h1000", code=1)
    assert "'h1000' is neither a platform file nor a known machine" in wrong.err


def test_two_machines_of_one_name(tmp_path, run):
    own = tmp_path / "h100-zen4.toml"
    own.write_text("[metadata]\nversion = '0.1'\n")
    wrong = run(TORCH, "--format", "markdown", "--platform", "*", "--platform", own, code=1)
    assert "have one name, 'h100-zen4': rename one of the files" in wrong.err


def test_enabled_namespace_that_does_not_exist(run):
    wrong = run(TORCH, "--format", "markdown", "--variant-enable", "nvidia", code=1)
    assert "there are: bf16_training, int8_inference" in wrong.err


def test_output_file(tmp_path, run):
    target = tmp_path / "docs" / "tree.mmd"
    printed = run(TORCH, "--format", "mermaid").out
    assert run(TORCH, "--format", "mermaid", "-o", target).out == ""
    assert target.read_text() == printed
    assert [path.name for path in target.parent.iterdir()] == ["tree.mmd"]
    listed = run(TORCH, "--format", "json", "-o", tmp_path / "m.json").out
    assert listed == ""
    assert (tmp_path / "m.json").read_text() == run(TORCH, "--format", "json").out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["-o", "x"], "-o needs --build, or another --format than the table"),
        (["--format", "mermaid", "-o", "."], "-o: . is a directory: name a file, or add --build"),
        (["--build", "-o", TORCH], "is a file: name a directory for the wheels"),
        (["--platform", "thor"], "--platform and --variant-enable need --format"),
    ],
)
def test_options_that_do_not_go_together(args, message, run):
    assert message in " ".join(run(TORCH, *args, code=2).err.split())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title = 1", "title: expected a string, found 1"),
        ("details = 1", "details: expected a table, found 1"),
        ("details.x = 1", "details.x: expected a string, found 1"),
        ("axes.cpu.v3.details.x = []", "axes.cpu.v3.details.x: expected a string, found []"),
    ],
)
def test_details_are_strings(tmp_path, text, message, run):
    path = tmp_path / "m.toml"
    rest = '\nvariant.default-priorities.namespace = ["x86_64"]\naxes.cpu.v3.label = "null"\n'
    path.write_text(text + rest)
    assert message in run(path, code=1).err


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
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.text.append(data)


@pytest.mark.parametrize("name", FILES)
def test_page_is_well_formed_and_alone(name, run):
    text = run(FOLDER / name, "--format", "html").out
    page = Page(text)
    assert len(set(page.ids)) == len(page.ids)
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    tags = [tag for tag, _ in page.tags]
    assert tags.count("script") == 2
    assert not {"iframe", "object", "embed", "base", "form", "link"} & set(tags)
    release = released(FOLDER / name)
    for variant in release.variants:
        assert variant.label in page.text
    assert "Gaps" in page.text


def test_page_allows_its_own_style_and_script_alone(run):
    text = run(ROCM, "--format", "html").out
    policy = next(a["content"] for t, a in Page(text).tags if a.get("http-equiv"))
    for kind in ("style", "script"):
        content = re.search(rf"<{kind}>(.*?)</{kind}>", text, re.S)[1]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")


def page_data(text):
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])


def test_data_of_the_page_is_what_was_chosen(run):
    data = page_data(run(TORCH, "--format", "html").out)
    release = released(TORCH)
    for workload, found in zip(release.workloads, data["workloads"], strict=True):
        labels = {choice.machine.name: choice.label for choice in workload.coverage.choices}
        order = [choice.machine.name for choice in release.workloads[0].coverage.ordered()]
        for name, row in zip(order, found["rows"], strict=True):
            chosen = [data["variants"][n] for n, code in enumerate(row["cells"]) if code == "c"]
            assert chosen == ([labels[name]] if labels[name] else [])
            assert row["gets"] == (labels[name] or "no variant")
            assert all(data["reasons"][number] for number in row["why"])


def test_page_of_a_hostile_file(hostile, run):
    text = run(hostile, "--format", "html").out
    page = Page(text)
    assert [tag for tag, _ in page.tags].count("script") == 2
    assert "alert" not in text.split('id="data">')[1].split("<script>")[1]
    assert HOSTILE.split(" | ")[0] in "".join(page.text)  # as text
    assert not {"b/>", "\x1b", "\0"} & set(text)
    data = text.split('id="data">')[1].split("</script>")[0]
    assert not set("<>&") & set(data)
    page_data(text)


@pytest.mark.parametrize("name", FILES)
def test_picture_is_a_document_of_its_own(name, run):
    text = run(FOLDER / name, "--format", "svg").out
    root = ET.fromstring(text.encode())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert [child.tag.partition("}")[2] for child in root][:2] == ["title", "desc"]
    names = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {machine.name for machine in MACHINES} <= names
    assert "prefers-color-scheme: dark" in text
    assert not [
        e for e in root.iter() if any("href" in key or key.startswith("on") for key in e.keys())
    ]
    _, _, width, height = map(float, root.get("viewBox").split())
    for element in root.iter():
        if element.get("x"):
            assert 0 <= float(element.get("x")) <= width
            assert 0 <= float(element.get("y")) <= height


def test_picture_of_a_hostile_file(hostile, run):
    root = ET.fromstring(run(hostile, "--format", "svg").out.encode())
    assert not [element for element in root.iter() if element.tag.endswith("script")]
    assert HOSTILE in {element.text for element in root.iter()}


def test_one_machine_and_one_variant(run):
    for form in ("html", "svg", "markdown", "mermaid"):
        result = run(TORCH, "--format", form, "--only", "cpu_avx2", "--platform", "cpu-zen")
        assert "cpu_avx2" in result.out


def test_pythons_and_platforms_are_no_columns(tmp_path, run):
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
    data = page_data(run(path, "--format", "html").out)
    assert data["variants"] == ["v3", "null"]
    assert "| cpu | label |" in run(path, "--format", "markdown").out


def test_tree_that_mermaid_does_not_draw(monkeypatch, run):
    monkeypatch.setattr(mermaid, "MAXIMUM_ARROWS", 20)
    result = run(TORCH, "--format", "mermaid")
    assert result.out.startswith("flowchart LR")
    assert "warning: Mermaid draws at most 20 arrows" in result.err
    text = run(TORCH, "--format", "markdown").out
    assert "```mermaid" not in text
    assert "CUDA driver?\n\n- 13.0 or newer: Compute capability?\n" in text
    assert "  - 9.0: CPU?\n    - x86-64-v4: `cuda13_0_sm90_avx512`\n" in text
