"""Command line arguments that several clients share."""

from __future__ import annotations

from collections.abc import Iterable

from ..case import Case
from ..indexes import Served
from ..place import Place


def _linux(arch: str, oldest: int, *legacy: str) -> tuple[str, ...]:
    """Return the platform tags of Linux with glibc 2.28; pip implies no older ones."""
    perennial = (f"manylinux_2_{minor}_{arch}" for minor in range(28, oldest - 1, -1))
    return (*perennial, *(f"{name}_{arch}" for name in (*legacy, "linux")))


_PLATFORMS = {
    ("linux", "x86_64"): _linux("x86_64", 5, "manylinux2014", "manylinux2010", "manylinux1"),
    ("linux", "aarch64"): _linux("aarch64", 17, "manylinux2014"),
    ("macos", "arm64"): ("macosx_14_0_arm64", "macosx_11_0_arm64"),
    ("macos", "x86_64"): ("macosx_14_0_x86_64", "macosx_11_0_x86_64"),
    ("windows", "x86_64"): ("win_amd64",),
}

_TRIPLES = {
    ("linux", "x86_64"): "x86_64-manylinux_2_28",
    ("linux", "aarch64"): "aarch64-manylinux_2_28",
    ("macos", "arm64"): "aarch64-apple-darwin",
    ("macos", "x86_64"): "x86_64-apple-darwin",
    ("windows", "x86_64"): "x86_64-pc-windows-msvc",
}

TARGET_VARIABLES = {"MACOSX_DEPLOYMENT_TARGET": "14.0"}
"""Environment variables of uv: the version of macOS is not part of its name for a platform."""


def variant_options(case: Case, place: Place, *, platform: bool = True) -> list[str]:
    """Return this project's options as *case* wants them, and the platform file."""
    arguments = []
    if platform and place.platform is not None:
        arguments += ["--variant-platform", str(place.platform)]
    for name, values in case.tree.get("options", {}).items():
        if values is True:
            arguments.append(f"--{name}")
        else:
            arguments += _each(f"--{name}", values)
    return arguments


def platforms(case: Case) -> tuple[str, ...]:
    """Return the platform tags of the target of *case*, best first; empty without a target."""
    target = case.tree.get("target")
    return _PLATFORMS[target["os"], target["arch"]] if target else ()


def pip_target(case: Case) -> list[str]:
    """Return pip's options for the target of *case*."""
    if "target" not in case.tree:
        return []
    arguments = ["--only-binary", ":all:", "--python-version", case.tree["target"]["python"]]
    return [*arguments, *_each("--platform", platforms(case))]


def resolve_target(case: Case) -> list[str]:
    """Return the options of ``variants resolve`` for the target of *case*."""
    if "target" not in case.tree:
        return []
    python = case.tree["target"]["python"]
    return ["--python-version", python, *_each("--python-platform", platforms(case))]


def uv_target(case: Case) -> list[str]:
    """Return uv's options for the target of *case*."""
    if "target" not in case.tree:
        return []
    target = case.tree["target"]
    platform = _TRIPLES[target["os"], target["arch"]]
    arguments = ["--only-binary", ":all:", "--python-version", target["python"]]
    return [*arguments, "--python-platform", platform]


def _each(option: str, values: Iterable[str]) -> list[str]:
    return [part for value in values for part in (option, value)]


def index_options(served: Served, *, last_is_main: bool = False) -> list[str]:
    """Return the options that name the indexes of a case.

    Args:
        served: the indexes.
        last_is_main: ``--index-url`` is the index of least rank, as in uv and ``variants resolve``.
    """
    main, extra = served.index, list(served.extra_indexes)
    if last_is_main and extra:
        main, extra = extra[-1], [main, *extra[:-1]]
    options = ["--index-url", main, *_each("--extra-index-url", extra)]
    return [*options, *_each("--find-links", served.find_links)]
