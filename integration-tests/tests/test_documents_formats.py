"""docs/reference/formats.md: each example is read by its reader, and the table of keys is true."""

from __future__ import annotations

import json
import re

import pytest

from pep_variants import (
    Property,
    VariantContext,
    parse_filename,
    read_metadata,
    reduce_requirement,
    write_metadata,
)
from pep_variants.formats import toml
from pep_variants.formats.platform_file import read_platform, write_platform
from pep_variants.formats.reader import read_pyproject
from pep_variants.formats.writer import WRITABLE
from pep_variants.lock.lock_selection import read_table
from pep_variants.model.generation import GENERATIONS, V0_1_1, generation_of
from pep_variants.model.label import NULL_LABEL
from support.environments import ROOT
from variants_index import load_target, make_target, read_lock, select_locked

TEXT = (ROOT / "docs/reference/formats.md").read_text("utf-8")


def blocks(heading: str, kind: str) -> list[str]:
    """Return the examples of a section, those of its subsections included."""
    level = re.search(rf"^(#+) {re.escape(heading)}$", TEXT, re.M)
    assert level, heading
    rest = TEXT[level.end() :]
    end = re.search(
        rf"^#{{1,{len(level[1])}}} (?=[A-Za-z])",
        re.sub(r"```.*?```", lambda match: "x" * len(match[0]), rest, flags=re.DOTALL),
        re.M,
    )
    section = rest[: end.start()] if end else rest
    return re.findall(rf"```{kind}\n(.*?)```", section, re.DOTALL)


def block(heading: str, kind: str) -> str:
    (found,) = blocks(heading, kind)
    return found


def test_wheel_filenames():
    rows = [line.split() for line in block("Wheel filenames", "text").splitlines()]
    assert len(rows) == 4
    for name, label in rows:
        assert (parse_filename(name).label or "-") == label


DOCUMENTS = blocks("Variant metadata", "json")


def test_there_is_one_of_each_kind():
    versions = [generation_of(json.loads(text)["$schema"]).version for text in DOCUMENTS]
    assert versions == [(0, 1, 1), (0, 2, 0)]


@pytest.mark.parametrize("text", DOCUMENTS)
def test_variant_metadata(text):
    metadata = read_metadata(text, "example-1.0-variants.json")
    listed = {
        NULL_LABEL if label == "00000000" else label for label in json.loads(text)["variants"]
    }
    assert metadata.variants.keys() == listed
    for provider in metadata.providers.values():
        assert provider.requires or provider.static
    # Written in a newer format it says the same.
    generation = generation_of(metadata.schema)
    written = write_metadata(metadata, V0_1_1 if generation is V0_1_1 else WRITABLE[-1])
    assert read_metadata(written, "again").variants == metadata.variants


def test_keys():
    lines = re.findall(r"^\| (?:`|key).*", TEXT[TEXT.index("### Keys") :], re.M)
    heads = [cell.strip() for cell in lines[0].strip("|").split("|")][1:-1]
    generations = list(GENERATIONS.values())
    assert heads == [
        "1.x" if each.version[0] == 1 else ".".join(map(str, each.version)) for each in generations
    ]
    expected = {
        "default-priorities.feature": "priorities",
        "default-priorities.property": "priorities",
        "static-properties": "install_time",
        "providers": "providers",
        "providers.N.enable-if": "enable_if",
        "providers.N.plugin-use": "plugin_use",
        "providers.N.install-time": "install_time",
        "providers.N.builtin": "exclusive",
        "providers.N.static-properties": "own_static",
        "providers.N.feature-order": "own_static",
    }
    rows = {}
    for line in lines[1:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == len(heads) + 2:
            rows[cells[0].strip("`")] = cells[1:-1]
    for key, flag in expected.items():
        assert rows[key] == ["yes" if getattr(each, flag) else "-" for each in generations], key


def test_written():
    versions = [".".join(map(str, each.version)) for each in reversed(WRITABLE)]
    assert f"Written are {versions[0]} with providers and {versions[1]} without" in TEXT


def test_pyproject():
    found = read_pyproject(block("In pyproject.toml", "toml"), "pyproject.toml")
    assert found.namespaces == ("x86_64",)
    assert found.variants == {"v3": {"x86_64": {"level": ("v3",)}}}
    assert found.providers["x86_64"].build_requires == ("provider-variant-x86-64",)


def test_core_metadata():
    lines = block("Core metadata", "text").splitlines()
    values = [line.removeprefix("Requires-Dist: ") for line in lines]
    chosen = VariantContext("cu128", {"nvidia": {"cuda_version_lower_bound": ("12.8",)}})
    assert [reduce_requirement(value, chosen) for value in values] == [
        "triton>=3; platform_system == 'Linux'",
        "cuda-runtime==12.8.*",
        None,
    ]
    assert reduce_requirement(values[2], VariantContext("x", {"blas": {"library": ("mkl",)}})) == (
        "mkl"
    )


def test_lock_file(tmp_path):
    text = block("Lock files", "toml")
    path = tmp_path / "pylock.toml"
    path.write_text(text)
    (package,) = toml.loads(text)["packages"]
    assert read_table(package["variants-json"], "pylock.toml").variants.keys() == {"cu128"}
    platform = read_platform(block("Platform files", "toml"), "platform.toml")
    target = make_target(platform=platform)
    (locked,) = select_locked(read_lock(path), target, lambda _: platform)
    assert (locked.name, locked.label) == ("demo", "cu128")


def test_platform_file():
    text = block("Platform files", "toml")
    platform = read_platform(text, "platform.toml")
    assert platform.support("nvidia").features == {
        "cuda_version_lower_bound": ("12.8", "12.7"),
        "sm_arch": ("90_real",),
    }
    written = write_platform(platform, "pep-variants 0.1.0")
    assert toml.loads(written) == toml.loads(text)


def test_target_file(tmp_path):
    path = tmp_path / "target.toml"
    path.write_text(block("Target files", "toml"))
    target = load_target(path)
    assert (target.name, target.environment["python_version"]) == ("h100", "3.12")
    assert any(tag.platform == "manylinux_2_28_x86_64" for tag in target.tags)


def test_every_example_is_read():
    """Each section with an example is in a test above."""
    sections = re.split(r"^#{2,3} (?=[A-Za-z])", TEXT, flags=re.M)[1:]
    named = {part.splitlines()[0] for part in sections if "```" in part}
    assert named == {
        "Wheel filenames", "Variant metadata", "Generations", "In pyproject.toml", "Core metadata",
        "Lock files", "Platform files", "Target files",
    }  # fmt: skip
    assert Property.parse("x86_64 :: level :: v3").value == "v3"
