"""Families about wheels of several platforms and builds."""

from __future__ import annotations

from random import Random

from .. import reference
from . import Tree, family
from .parts import counted, document_of, some_machine, some_namespaces, some_variants

# Tags of CPython 3.12 on Linux with x86_64 processors, the most specific first.
_TAGS = (
    "cp312-cp312-manylinux_2_28_x86_64",
    "cp312-cp312-manylinux_2_17_x86_64",
    "cp312-abi3-manylinux_2_28_x86_64",
    "cp312-none-manylinux_2_17_x86_64",
    "cp310-abi3-manylinux_2_17_x86_64",
    "py3-none-manylinux_2_17_x86_64",
    "py3-none-any",
)
_OTHER_TAGS = (
    "cp312-cp312-manylinux_2_28_aarch64",
    "cp312-cp312-macosx_11_0_arm64",
    "cp312-cp312-win_amd64",
    "cp311-cp311-manylinux_2_28_x86_64",
)


@family(
    "platforms/random-tags-and-builds",
    "Variants with wheels of several platforms and builds: variant, then tag, then build number",
    ("PEP 825", "Variant ordering"),
    seed=8257,
    count=40,
)
def tags_and_builds(random: Random) -> Tree:
    """Make a case with wheels of several tags and build numbers."""
    namespaces = some_namespaces(random, 1, 2)
    machine = some_machine(random, namespaces)
    variants = some_variants(random, namespaces, machine, random.randint(1, 3), null=0.5)
    document = document_of(namespaces, variants)
    files: set[tuple[str, str, str]] = set()
    for label in [*variants, *random.choice([[], [""]])]:
        for _ in range(random.randint(1, 3)):
            tag = random.choice(_TAGS if random.random() < 0.7 else _OTHER_TAGS)
            files.add((label, tag, random.choice(["", "", "1", "2", "10"])))
    order = [*reference.order(document, machine), ""]

    def rank(file: tuple[str, str, str]) -> tuple[int, int, int]:
        label, tag, build = file
        return order.index(label), _TAGS.index(tag), -int(build or 0)

    fitting = sorted((f for f in files if f[0] in order and f[1] in _TAGS), key=rank)
    wheels = [_wheel_name(*file) for file in sorted(files)]
    random.shuffle(wheels)
    expect: Tree = {"error": {"kind": "unfit"}}
    if fitting:
        label, tag, build = fitting[0]
        # Each wheel depends on a project of its own, which shows which one it is.
        expect = {
            "installed": {"gpu": f"1.0-{label}" if label else "1.0", _mark(tag, build): "1.0"}
        }
    marks = {_wheel_name(*file): _mark(*file[1:]) for file in files}
    return {
        "title": f"{counted(len(wheels), 'wheel')} of {counted(len(variants), 'variant')} by tag",
        "target": {"os": "linux", "arch": "x86_64", "python": "3.12"},
        "machine": machine,
        "index": [
            {"document": "gpu-1.0-variants.json", "content": document},
            *({"wheel": wheel, "requires": [marks[wheel]]} for wheel in wheels),
            *({"wheel": f"{mark}-1.0-py3-none-any.whl"} for mark in sorted(set(marks.values()))),
        ],
        "install": ["gpu"],
        "expect": expect,
    }


def _wheel_name(label: str, tag: str, build: str) -> str:
    return "-".join(filter(None, ("gpu-1.0", build, tag, label))) + ".whl"


def _mark(tag: str, build: str) -> str:
    """Return the name of the project that shows which wheel was chosen."""
    return f"is_{tag.replace('-', '_')}_{f'build{build}' if build else 'nobuild'}"
