"""PyTorch's host as a stand-in, and entries of a catalogue about it and about other projects."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .index import Index
from .published_builds import Builds, Field, page_path
from .wheels import PURE, Wheel

HOST = "https://download.pytorch.org"
BUILDS = {"cu130": "13.0", "cu128": "12.8", "cu126": "12.6"}
"""The places with CUDA builds of torch and torchvision, and the driver that each needs."""


def add(builds: Builds, place: str, *wheels: Wheel) -> None:
    """Put *wheels* on the index *place*, such as ``cu128``."""
    for wheel in wheels:
        builds.put(f"{HOST}/whl/{place}/{wheel.name}/", wheel)


def page(place: str, project: str = "torch") -> str:
    """Return the path of the page of *project* on the index *place*."""
    return page_path(f"{HOST}/whl/{place}/{project}/")


def place_url(builds: Builds, place: str) -> str:
    """Return the URL of the index *place* where it is served."""
    return builds.root + page_path(f"{HOST}/whl/{place}")


def entry(
    name: str, variants: Iterable[str], *, coherent: Iterable[str] = (), more: str = ""
) -> str:
    """Return the TOML file of a project, with *variants* as `variant` makes them."""
    return (
        f'catalog-version = "1"\n[project]\nname = "{name}"\n'
        f'documentation = "https://example.org/start"\ncoherent = {list(coherent)}\n{more}'
        'default-priorities.namespace = ["nvidia", "priority"]\n'
        'static-properties.priority.order = ["1", "2", "3"]\n' + "".join(variants)
    )


def variant(label: str, place: str, *, cuda: str = "", order: int = 1) -> str:
    """Return the table of a variant for a CUDA driver; *place* is the lines that say where."""
    properties = [
        f"nvidia :: cuda_version_lower_bound :: {cuda}",
        f"priority :: order :: {order}",
    ]
    listed = f"properties = {properties}\n" if cuda else ""
    return f'[[variant]]\nlabel = "{label}"\n{place}\n{listed}'


def family(version: str, local: str = "", tag: str = PURE) -> tuple[Wheel, Wheel]:
    """Return torch and the torchvision that requires it; builds for CUDA need a ``cudalib``."""
    plus = f"+{local}" if local else ""
    requires = (f"cudalib=={local[2:]}",) if local in BUILDS else ()
    torch = Wheel("torch", version + plus, tag=tag, requires=requires)
    vision = f"0.{version.split('.')[1]}.0{plus}"
    return torch, Wheel("torchvision", vision, tag=tag, requires=(f"torch=={version}",))


def pytorch(*tags: str, versions: Iterable[str] = ("2.8.0", "2.9.0"), mac: str = "") -> Field:
    """Return PyTorch's places, and the user's own index with plain wheels.

    Wheels for *mac*, a tag, have no local version, and are with those for CPUs.
    """
    found = Field(Index(ranges=True), Builds(unhashed={page("cu126")}))
    tags = tags or (PURE,)
    for version in versions:
        for tag in tags:
            for name in (*BUILDS, "cpu"):
                add(found.builds, name, *family(version, name, tag))
        if mac:
            add(found.builds, "cpu", *family(version, tag=mac))
        for tag in (*tags, *([mac] if mac else [])):
            for wheel in family(version, tag=tag):
                found.index.add_wheel(wheel, metadata_file=True)
    for name in BUILDS:
        found.index.add_wheel(Wheel("cudalib", name[2:]), metadata_file=True)
    return found


def family_entries(builds: Builds, folder: Path) -> None:
    """Write the entries of torch and torchvision into *folder*."""
    null = variant("null", f'index = "{place_url(builds, "cpu")}"\nlocal = ["cpu", ""]')
    tables = [
        variant(
            f"cuda{local[2:4]}.{local[4:]}",
            f'index = "{place_url(builds, local)}"\nlocal = "{local}"',
            cuda=bound,
            order=number,
        )
        for number, (local, bound) in enumerate(BUILDS.items(), 1)
    ]
    folder.mkdir(exist_ok=True)
    for name, other in (("torch", "torchvision"), ("torchvision", "torch")):
        (folder / f"{name}.toml").write_text(entry(name, [*tables, null], coherent=[other]))


def numbered_entry(name: str, requires: str, *more: str) -> str:
    """Return the entry of a project with a build for CUDA 13 and one for CUDA 12.

    Args:
        name: of the project.
        requires: what stands for a build, such as ``NAME-cu{}=={{version}}``.
        more: tables.
    """
    tables = [
        variant(
            f"cuda{number}",
            f'requires = ["{requires.format(number)}"]',
            cuda=f"{number}.0",
            order=order,
        )
        for order, number in enumerate((13, 12), 1)
    ]
    return entry(name, [*tables, *more])


def add_cupy(index: Index, *tags: str, mac: str) -> None:
    """Put two versions of cupy on *index*: for *mac* itself, else two builds of other names."""
    for version in ("14.1.0", "14.2.0"):
        builds = [(name, tag) for name in ("cupy-cuda12x", "cupy-cuda13x") for tag in tags]
        for name, tag in (*builds, ("cupy", mac)):
            files = {"cupy/__init__.py": f"BUILD = '{name} {version}'\n"}
            index.add_wheel(Wheel(name, version, tag=tag, files=files), metadata_file=True)
