"""The reference against the code: a name that is in one of them only fails; examples are read."""

from __future__ import annotations

import ast
import functools
import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

import doors
from pep_variants._choose.preferences import PRIORITIES, Preferences
from pep_variants._detect.machines import CPU, WORDS, load_machine, parse_facts
from pep_variants._formats import toml
from pep_variants._formats.platform_file import read_platform, write_platform
from pep_variants._formats.reader import read_pyproject
from pep_variants._formats.writer import WRITABLE
from pep_variants._model.generation import GENERATIONS, V0_1_1, generation_of
from pep_variants.markers import VariantContext, reduce_requirement
from pep_variants.metadata import read_metadata, write_metadata
from pep_variants.options import OPTIONS
from pep_variants.wheel_files import parse_filename
from support.documents import File, Page, commands
from support.environments import ROOT
from variants_cli.main import cli
from variants_cli.schemas import names
from variants_index.finder import read_lock, select_locked
from variants_index.target import load_target, make_target
from variants_plugins._variables import PLUGIN_VARIABLES
from variants_proxy._commands.cli import cli as proxy_cli
from variants_proxy.settings import Limits

REFERENCE = ROOT / "docs/reference"
CONFIGURATION, FORMATS, JSON, MESSAGES, PLATFORMS = (
    (REFERENCE / f"{name}.md").read_text("utf-8")
    for name in ("configuration", "formats", "json", "messages", "platforms")
)


def section(text: str, heading: str) -> str:
    """Return what is below a heading, without its subsections."""
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#+ [A-Z]|\Z)", text, re.M | re.S)
    assert found, heading
    return found[1]


def rows(text: str, heading: str, number: int = 0) -> list[list[str]]:
    """Return the cells of a table of a section, without its first two lines."""
    tables = re.findall(r"(?:^\|.*\n)+", section(text, heading), re.M)
    lines = tables[number].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


# configuration.md


def test_names_of_options():
    assert rows(CONFIGURATION, "Names") == [
        [f"`--{each.name}`", f"`{each.key}`", f"`VARIANTS_{each.key.upper().replace('-', '_')}`"]
        for each in OPTIONS
    ]
    assert [row[0] for row in rows(CONFIGURATION, "Names", 1)] == [f"`{key}`" for key in PRIORITIES]


def test_values_of_options():
    table = rows(CONFIGURATION, "Values")
    for option, (name, value, default, project, _) in zip(OPTIONS, table, strict=True):
        assert name == f"`--{option.name}`"
        assert value.startswith("list") is option.repeatable
        assert (value == "flag") is (not option.metavar)
        # What the loader makes of a project's file.
        expected = "never" if option.personal else "no"
        assert (project == expected) is not option.narrows
        if not option.repeatable and option.metavar:
            attribute = {"platform": "platform_file"}.get(option.key, option.key.replace("-", "_"))
            really = getattr(Preferences(), attribute)
            assert default.strip("`") == (
                really or {"platform": "detection"}.get(option.key, "none")
            )


def test_which_command_has_which_option():
    all_but = {"variants resolve", "variants explain", "variants check", "variants doctor"}
    expected = {name: {each.name for each in OPTIONS if not each.installs} for name in all_but}
    for name, options in rows(CONFIGURATION, "Which command has which option"):
        expected[name.strip("`")] = set(re.findall(r"`--([a-z-]+)`", options))
    found = {}
    for name, each in (*commands(cli, "variants"), *commands(proxy_cli, "variants-proxy")):
        options = {text for parameter in each.params for text in parameter.opts}
        if ours := {option.name for option in OPTIONS if f"--{option.name}" in options}:
            found[name] = ours
    assert found == expected


def test_variables_of_the_proxy():
    every = dict(commands(proxy_cli, ""))
    found = {}
    for option in (*every[" serve"].params, *every[" export"].params):
        if isinstance(option, click.Option) and option.allow_from_autoenv:
            longest = max(option.opts, key=len)
            # As --help of `serve` says: the name of the variable is that of the option.
            name = longest.removeprefix("--").removeprefix("variant-").upper().replace("-", "_")
            variable = option.envvar or f"VARIANTS_PROXY_{(option.name or '').upper()}"
            assert variable == f"VARIANTS_PROXY_{name}"
            found[f"`{longest}`"] = f"`{variable}`"
    assert {row[0]: row[1] for row in rows(CONFIGURATION, "variants-proxy")} == found


def test_variables_of_plugins():
    assert {row[0]: row[1] for row in rows(CONFIGURATION, "Variables that plugins see")} == {
        kind: ", ".join(f"`{name}`" for name in names) for kind, names in PLUGIN_VARIABLES.items()
    }


@functools.cache
def texts() -> list[tuple[str, Path]]:
    """The texts in the sources but the names of ``__all__``, and their modules."""
    return list(_texts())


def _texts() -> Iterator[tuple[str, Path]]:
    folders = [*ROOT.glob("packages/*/src"), *(ROOT / "pip-patch").glob("[ps]*")]
    for folder in (*folders, ROOT / "resolver-ext/src"):
        for path in folder.rglob("*.py"):
            tree = ast.parse(path.read_bytes())
            tree.body = [node for node in tree.body if not _is_face(node)]
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value, path


def _is_face(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"


VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+_?")
# Constants of the operating system, of ELF, in a header of ROCm; variables of CMake; the beginning
# of those of the proxy.
NO_VARIABLE = re.compile(
    r"(O|EM|SHT|STT|SC|RLIMIT)_.*|API_VERSION|HIP_VERSION_M(AJ|IN)OR|CMAKE_[A-Z]+_(LINKER_)?FLAGS"
    "|VARIANTS_PROXY"
)
OF_PIP = {f"PIP_{each.name.upper().replace('-', '_')}" for each in OPTIONS}
"""pip's variables of the options, for which the page has the rule."""


def test_every_variable_is_on_the_page_and_in_the_code():
    there = set(re.findall(r"`([^`\s=]+)[`=]", CONFIGURATION))
    known = {
        text: path
        for text, path in texts()
        if VARIABLE.fullmatch(text) and not NO_VARIABLE.fullmatch(text)
    }
    beginnings = tuple(name for name in known if name.endswith("_"))
    missing = {name: path for name, path in known.items() if name not in there | OF_PIP}
    assert {
        name: path
        for name, path in missing.items()
        if not (name in beginnings and any(each.startswith(name) for each in there))
    } == {}
    made = {
        name.strip("`")
        for heading in ("Names", "variants-proxy", "uv-variants alone")
        for row in rows(CONFIGURATION, heading)
        for name in row
    }
    made.update(*PLUGIN_VARIABLES.values())
    unknown = {name for name in there if VARIABLE.fullmatch(name)} - known.keys() - made - OF_PIP
    assert {name for name in unknown if not name.startswith(beginnings)} == set()


# formats.md


def blocks(heading: str, kind: str) -> list[str]:
    """Return the examples of a section of the formats, those of its subsections included."""
    level = re.search(rf"^(#+) {re.escape(heading)}$", FORMATS, re.M)
    assert level, heading
    found = re.split(rf"^#{{1,{len(level[1])}}} (?=[A-Z])", FORMATS[level.end() :], flags=re.M)[0]
    return re.findall(rf"```{kind}\n(.*?)```", found, re.DOTALL)


def test_wheel_filenames():
    (text,) = blocks("Wheel filenames", "text")
    for name, label in map(str.split, text.splitlines()):
        assert (parse_filename(name).label or "-") == label


DOCUMENTS = blocks("Variant metadata", "json")


@pytest.mark.parametrize("text", DOCUMENTS)
def test_variant_metadata(text):
    versions = [generation_of(json.loads(text)["$schema"]).version for text in DOCUMENTS]
    assert versions == [(0, 1, 1), (0, 2, 0)]
    metadata = read_metadata(text, "example-1.0-variants.json")
    assert len(metadata.variants) == len(json.loads(text)["variants"])
    assert all(each.requires or each.static for each in metadata.providers.values())
    # Written in a newer format it says the same.
    generation = generation_of(metadata.schema)
    written = write_metadata(metadata, V0_1_1 if generation is V0_1_1 else WRITABLE[-1])
    assert read_metadata(written, "again").variants == metadata.variants


def test_keys_of_generations():
    lines = re.findall(r"^\| (?:`|key).*", FORMATS[FORMATS.index("### Keys") :], re.M)
    head, *cells = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    generations = list(GENERATIONS.values())
    assert head[1:-1] == [
        "1.x" if each.version[0] == 1 else ".".join(map(str, each.version)) for each in generations
    ]
    flags = {
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
    table = {row[0].strip("`"): row[1:-1] for row in cells if len(row) == len(head)}
    for key, flag in flags.items():
        assert table[key] == ["yes" if getattr(each, flag) else "-" for each in generations], key
    newest, oldest = (".".join(map(str, each.version)) for each in reversed(WRITABLE))
    assert f"Written are {newest} with providers and {oldest} without" in FORMATS


def test_pyproject():
    (text,) = blocks("In pyproject.toml", "toml")
    found = read_pyproject(text, "pyproject.toml")
    assert found.namespaces == ("x86_64",)
    assert found.variants == {"v3": {"x86_64": {"level": ("v3",)}}}
    assert found.providers["x86_64"].build_requires == ("provider-variant-x86-64",)


def test_core_metadata():
    (text,) = blocks("Core metadata", "text")
    values = [line.removeprefix("Requires-Dist: ") for line in text.splitlines()]
    chosen = VariantContext("cu128", {"nvidia": {"cuda_version_lower_bound": ("12.8",)}})
    assert [reduce_requirement(value, chosen) for value in values] == [
        "triton>=3; platform_system == 'Linux'",
        "cuda-runtime==12.8.*",
        None,
    ]


def test_lock_platform_and_target_files(tmp_path):
    (lock,), (text,), (target,) = (
        blocks(name, "toml") for name in ("Lock files", "Platform files", "Target files")
    )
    platform = read_platform(text, "platform.toml")
    assert toml.read_toml(write_platform(platform, "pep-variants 0.1.0")) == toml.read_toml(text)
    path = tmp_path / "pylock.toml"
    path.write_text(lock)
    here = make_target(platform=platform)
    (locked,) = select_locked(read_lock(path), here, lambda _: platform)
    assert (locked.name, locked.label) == ("demo", "cu128")
    path = tmp_path / "target.toml"
    path.write_text(target)
    loaded = load_target(path)
    assert (loaded.name, loaded.environment["python_version"]) == ("h100", "3.12")
    assert any(tag.platform == "manylinux_2_28_x86_64" for tag in loaded.tags)


# json.md, messages.md, platforms.md, proxy.md


def test_limits_of_the_proxy():
    text = (REFERENCE / "proxy.md").read_text("utf-8")
    table = text[text.index("| limit | default") : text.index("A host that fails")]
    found = re.findall(r"`(\w+)`", table)
    assert len(found) > 5
    assert all(hasattr(Limits(), name) for name in found)


def test_example_of_json(tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", JSON, re.DOTALL)
    (printed,) = re.findall(r"```text\n(.*?)```", JSON, re.DOTALL)
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, printed), done.stderr


def test_every_schema_is_on_the_page():
    listed = re.findall(r"^\| `variants ([a-z ]+)` \|.*/([a-z-]+)\.schema\.json\) \|$", JSON, re.M)
    files = {name.replace(" ", "-"): file for name, file in listed}
    assert sorted(files) == list(names())
    assert files.pop("doctor") == "report"
    assert all(name == file for name, file in files.items())
    shown = set(re.findall(r"^```\{literalinclude\} .*/([a-z-]+)\.schema\.json$", JSON, re.M))
    # That of the doctor has a page of its own.
    assert shown == set(names()) - {"doctor"}


def test_explained_messages_occur():
    placeholder = r"…|\b(?!CUDA|NVIDIA|AMD|ROCM_PATH|PEP|HTTP|API|SSL_CERT_FILE)[A-Z]{3,}\b"
    sources = "\n".join(" ".join(text.split()) for text, _ in texts())
    explained = re.findall(r"^\| `([^`]+)` \| .+ \| .+ \|$", MESSAGES, re.M)
    assert len(explained) > 20
    for message in explained:
        longest = max(re.split(placeholder, message), key=len)
        assert longest.strip(" :,;()") in sources, message


def test_facts_of_platforms():
    cells = [line.strip("|").split("|") for line in section(PLATFORMS, "Facts").splitlines()]
    told = {name.strip(" `"): rest[-1] for name, *rest in cells if name.startswith(" `")}
    assert told.keys() == {*WORDS, CPU}
    for name, examples in told.items():
        for example in re.findall(r"`([^`]+)`", examples):
            assert list(parse_facts(example)) == [name]
            machine = f"cuda=12.8,{example}" if name == "sm" else example
            supported = load_machine(machine).namespaces.values()
            assert any(support.features for support in supported), example


# What pages show


def test_the_metadata_shown_is_that_of_torch():
    page = Page(ROOT / "docs/explanation/choice.md")
    (file,) = (step for step in page.steps if isinstance(step, File))
    published = ROOT / "conformance/field/documents" / file.name
    assert json.loads(file.text) == json.loads(published.read_text("utf-8"))


@pytest.mark.parametrize("name", ["architecture", "choice", "first-commands"])
def test_pictures_are_what_their_scripts_write(name):
    script = runpy.run_path(str(ROOT / f"docs/pictures/{name.replace('-', '_')}.py"))
    assert (ROOT / f"docs/pictures/{name}.svg").read_text("utf-8") == script["picture"]()


ARCHITECTURE = ROOT / "docs/explanation/architecture.md"


def defined(path: Path) -> set[str]:
    """Return the names of the classes, functions and constants that a module defines itself."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def test_each_step_of_the_architecture_is_in_its_file():
    page = ARCHITECTURE.read_text("utf-8")
    steps = re.findall(r"^\| \[`(\w+)`\]\(([^)]+)\)", page, re.M)
    steps += re.findall(r"^- `(\w+)` \(\[[^]]+\]\(([^)]+)\)\)", page, re.M)
    assert len(steps) > 50
    wrong = [
        (name, path) for name, path in steps if name not in defined(ARCHITECTURE.parent / path)
    ]
    assert wrong == []


def test_each_name_in_the_architecture_is_one_of_the_code():
    sources = [path for pattern in doors.SOURCES for path in ROOT.glob(f"{pattern}/**/*.py")]
    names = {name for path in sources for name in defined(path)}
    names |= {part for path in sources for part in path.relative_to(ROOT).with_suffix("").parts}
    shown = set(re.findall(r"`([A-Za-z_]+)`", ARCHITECTURE.read_text("utf-8")))
    assert shown - names == set()


def test_what_the_public_index_takes():
    """Its rule for filenames is that of ``packaging``, whose error the page has."""
    page = (ROOT / "docs/how-to/publishing.md").read_text("utf-8")
    name = "fastmath-2.1.0-cp312-cp312-manylinux_2_28_x86_64-v3.whl"
    with pytest.raises(InvalidWheelFilename) as refused:
        parse_wheel_filename(name)
    assert f"`{refused.value}`" in page
