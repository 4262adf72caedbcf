"""What a lock says of variants, and the file beside it about the machine that it is for."""

from __future__ import annotations

import pytest

from pep_variants._choose.preferences import Preferences
from pep_variants._detect.machines import load_machine
from pep_variants._model.platform import Platform, Support
from uv_variants._command_line import parse
from uv_variants._uv_lock import Lock, LockMachine, kept_names, path_beside
from variants_proxy._key import Machine

INDEX = "https://pypi.example/simple"


def lock(*files: str) -> str:
    """Return the text of a lock with wheels of torch, given as ``label/name rest``."""
    rows = []
    for file in files:
        place, _, rest = file.partition(" ")
        rows.append(f'    {{ url = "{INDEX}/torch/.variant/{place}"{rest} }},\n')
    return (
        'version = 1\n\n[[package]]\nname = "torch"\nversion = "2.9.0"\n'
        f'source = {{ registry = "{INDEX}" }}\nwheels = [\n{"".join(rows)}]\n\n'
        '[[package]]\nname = "numpy"\nversion = "2.0"\nwheels = [\n'
        '    { url = "https://f.example/numpy-2.0-py3-none-any.whl", hash = "sha256:1" },\n]\n'
    )


PINNED = lock(
    "cu128/torch-2.9.0-0_cu128-cp312-cp312-linux_x86_64.whl , hash = 'sha256:1', size = 3",
    "cu126/torch-2.9.0-0_cu126-cp312-cp312-linux_aarch64.whl , hash = 'sha256:2', size = 3",
    "cu128/torch-2.9.0-1_cu128-cp313-cp313-linux_x86_64.whl , size = 3",
    "-/torch-2.9.0-cp313-cp313-win_amd64.whl , hash = 'sha256:3', size = 3",
)


def test_labels_and_versions(tmp_path):
    path = tmp_path / "uv.lock"
    path.write_text(PINNED)
    found = Lock.read(path)
    assert found.labels == {"torch": {"2.9.0": ("cu128", "cu126")}}
    assert found.versions == {"torch": {"2.9.0"}, "numpy": {"2.0"}}
    assert (found.projects, found.indexes) == (("torch",), (INDEX,))
    assert len(found.without_hash) == 1
    assert [wheel.plain for wheel in found.wheels[2:]] == [
        "torch-2.9.0-1-cp313-cp313-linux_x86_64.whl",
        "torch-2.9.0-cp313-cp313-win_amd64.whl",
    ]
    assert found.names["numpy"] == {"2.0": ("numpy-2.0-py3-none-any.whl",)}
    assert [name.rpartition("/")[0] for name in found.names["torch"]["2.9.0"]] == [
        f".variant/{folder}" for folder in ("cu128", "cu126", "cu128", "-")
    ]


def test_a_wheel_of_a_find_links_page_is_from_that_page():
    url = "https://f.example/whl/.variant/cu1/torch-2.9.0-0_cu1-py3-none-any.whl"
    text = f'[[package]]\nname = "torch"\nversion = "2.9.0"\nwheels = [\n{{ url = "{url}" }}]\n'
    assert Lock(text=text).indexes == ("https://f.example/whl",)


@pytest.mark.parametrize(
    ("arguments", "renewed", "kept"),
    [
        ("lock", (), ["a", "b-c"]),
        ("lock -U", (), []),
        ("lock --upgrade-package B_C", (), ["a"]),
        ("sync -P a==2", (), ["b-c"]),
        ("lock", ("a",), ["b-c"]),
        ("lock", None, []),
    ],
)
def test_wheels_stay_unless_they_are_upgraded(arguments, renewed, kept):
    names = {"a": {"1": ("x",)}, "b-c": {"1": ("y",)}}
    assert list(kept_names(names, parse(arguments.split()), renewed)) == kept


REQUIRED = """\
[[package]]
name = "project"
version = "1"
source = { virtual = "." }
dependencies = [{ name = "app", extra = ["gpu"] }]

[package.optional-dependencies]
more = [{ name = "unused" }]

[[package]]
name = "app"
version = "1"
source = { registry = "https://pypi.example/simple" }
dependencies = [{ name = "app" }, { name = "library" }]

[package.optional-dependencies]
gpu = [{ name = "cuda" }]
other = [{ name = "unused" }]
"""


def test_what_is_required_without_extras_of_the_project():
    assert Lock(text=REQUIRED).required == {"app", "library", "cuda"}
    assert Lock().required == Lock(text="no [TOML").required == frozenset()


def test_files_of_a_version():
    text = PINNED.replace("source =", 'sdist = { url = "x" }\nsource =')
    wheels, has_sources = Lock(text=text).files("torch", "2.9.0")
    assert wheels[1] == ("cu126", "torch-2.9.0-cp312-cp312-linux_aarch64.whl")
    assert has_sources
    assert Lock(text=text).files("numpy", "2.0") == ([(None, "numpy-2.0-py3-none-any.whl")], False)


def test_an_undone_lock(tmp_path):
    path = tmp_path / "uv.lock"
    missing = Lock.read(path)
    assert (missing.wheels, missing.problem) == ((), "")
    path.write_text(PINNED)
    before = Lock.read(path)
    path.write_bytes(b"\xff\xfe")
    assert Lock.read(path).problem.endswith("uv.lock: is not UTF-8")
    assert before.restore() == "uv.lock is left as it was"
    assert path.read_text() == PINNED
    assert missing.restore() == "uv.lock is not written"
    assert not path.exists()


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


def test_what_is_no_machine_is_not_believed(tmp_path):
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
