"""A lock for several platforms: every platform gets what its own wheel requires.

What METADATA has to say for that is tested in `variants-proxy`; here uv reads it, resolves for all
platforms at once, and installs for each of them.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable

import pytest

from support.index import Index
from support.projects import CUDA_12_8, cuda
from support.uvs import Machine, project
from support.wheels import SourceDistribution, Wheel

LINUX, ARM = "manylinux_2_17_x86_64", "manylinux_2_17_aarch64"
MAC, WINDOWS = "macosx_11_0_arm64", "win_amd64"
TRIPLES = {
    LINUX: "x86_64-unknown-linux-gnu",
    ARM: "aarch64-unknown-linux-gnu",
    MAC: "aarch64-apple-darwin",
    WINDOWS: "x86_64-pc-windows-msvc",
}
PYTHON = f"cp3{sys.version_info.minor}"
BOTH = (
    "gpu; 'nvidia' in variant_namespaces and sys_platform == 'linux'",
    "dll; 'nvidia' in variant_namespaces and sys_platform == 'win32'",
    "cpu; 'nvidia' not in variant_namespaces and (sys_platform == 'darwin' or extra == 'x')",
)
OWN = ("posix; os_name == 'posix'", "old; sys_platform != 'darwin'", "more[x]; extra == 'x'")
CUDA = "cuda==12.8; python_version < '3' or extra == 'x'"
Wheels = tuple[tuple[str, str, tuple[str, ...]], ...]
LAYOUTS: dict[str, tuple[Wheels, dict[str, str]]] = {
    "pins": (
        (
            (LINUX, "cu128", ("cuda==12.8",)),
            (WINDOWS, "cu128", ("cuda==12.6", "dll")),
            *((platform, "", ("cpu",)) for platform in (LINUX, ARM, WINDOWS)),
            (MAC, "", ("metal",)),
        ),
        {LINUX: "cuda-12.8", ARM: "cpu", MAC: "metal", WINDOWS: "cpu"},
    ),
    "markers": (
        (
            *((platform, "cu128", BOTH) for platform in (LINUX, WINDOWS)),
            *((platform, "", BOTH) for platform in (LINUX, ARM, WINDOWS, MAC)),
        ),
        {LINUX: "gpu", ARM: "cpu", MAC: "cpu", WINDOWS: "cpu"},
    ),
    "own": (
        (
            (LINUX, "cu128", (*OWN, CUDA)),
            *((platform, "null", OWN) for platform in (LINUX, ARM, MAC, WINDOWS)),
        ),
        {LINUX: "posix old more cuda-12.8", ARM: "posix old more", MAC: "posix more",
         WINDOWS: "old more"},
    ),
    "pure": (
        ((LINUX, "cu128", ("cuda==12.8",)), ("any", "", ("cpu",))),
        {LINUX: "cuda-12.8", ARM: "cpu", MAC: "cpu", WINDOWS: "cpu"},
    ),
    "pythons": (
        (
            (f"{PYTHON}-{PYTHON}-{LINUX}", "cu128", ("cuda==12.8", "old")),
            (f"cp310-abi3-{LINUX}", "cu128", ("cuda==12.8", "never")),
            *((platform, "null", ("cpu",)) for platform in (LINUX, ARM, MAC, WINDOWS)),
        ),
        {LINUX: "cuda-12.8 old", ARM: "cpu", MAC: "cpu", WINDOWS: "cpu"},
    ),
}  # fmt: skip
"""By project: its wheels (platform, label, requirements), and what each platform needs of it.

The lock is for a GPU on Linux: Windows gets wheels without a label.
"""


def layouts_index() -> Index:
    """Return an index with all layouts, whose dependencies have the name of the layout before."""
    index, tree = Index(metadata_hashes=True), cuda("12.6", "12.8")
    for name, (wheels, _) in LAYOUTS.items():
        names = {"never": None}
        for platform, label, requires in wheels:
            own = {**tree, "variants": {label: tree["variants"][label]}} if label else None
            tag = platform if platform.count("-") == 2 else f"py3-none-{platform}"
            needs = tuple(f"{name}-{text}" for text in requires)
            wheel = Wheel(name, "1.0", label or None, tag, needs, own, extras=("x",))
            index.add_wheel(wheel, metadata_file=True)
            names |= dict.fromkeys(re.split(r"[\[;=]", text)[0] for text in requires)
        labels = {label: tree["variants"][label] for _, label, _ in wheels if label}
        document = json.dumps({**tree, "variants": labels})
        index.add(name, f"{name}-1.0-variants.json", document.encode())
        for needed in names:
            for version in ("12.6", "12.8") if needed == "cuda" else ("1.0",):
                wheel = Wheel(f"{name}-{needed}", version, extras=("x",))
                index.add_wheel(wheel, metadata_file=True)
    source = SourceDistribution("pythons", "1.0")
    index.add("pythons", source.filename, source.build())
    return index


@pytest.mark.everywhere
@pytest.mark.skipif(sys.platform != "linux", reason="the variants fit Linux and Windows")
def test_a_lock(every_machine: Machine, serve: Callable[[Index], Index]) -> None:
    machine = every_machine.with_environ(
        {**CUDA_12_8, "UV_DEFAULT_INDEX": serve(layouts_index()).url, "UV_PYTHON": sys.executable}
    )
    project(machine.work, [f"{name}[x]" for name in LAYOUTS])
    for command in (("lock",), ("sync", "--locked")):
        done = machine.run(*command)
        assert done.code == 0, done
        if command == ("lock",):
            assert "Variant cu128 for own 1.0 on Linux x86_64" in done.err, done
    assert machine.labels() == dict.fromkeys(LAYOUTS, "cu128")
    options = ["--no-hashes", "--no-emit-project", "--no-header", "-o", "requirements.txt"]
    options += [word for name in LAYOUTS for word in ("--no-emit-package", name)]
    assert machine.plain("export", "--frozen", *options).code == 0
    wrong = {}
    for platform, triple in TRIPLES.items():
        there = machine.work / triple
        where = ("--target", str(there), "--python-platform", triple, "--only-binary", ":all:")
        done = machine.plain("pip", "install", "--no-deps", *where, "-r", "requirements.txt")
        assert done.code == 0, done
        got = {path.name.removesuffix(".dist-info") for path in there.glob("*.dist-info")}
        wanted = {
            f"{name}_{need if '-' in need else f'{need}-1.0'}"
            for name, (_, needs) in LAYOUTS.items()
            for need in needs[platform].split()
        }
        if got != wanted:
            wrong[platform] = (wanted - got, got - wanted)
    assert wrong == {}, "what is missing, and what is too much"
