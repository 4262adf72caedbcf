"""Mirrors of the places that a catalogue names: what their pages link to is fetched from them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pytest

from support.catalog_places import entry, variant
from support.choices import Chosen, by_pip, by_resolve, by_uv_lock
from support.environments import Environment
from support.index import Answer, Index, served
from support.uvs import Machine
from support.wheels import Wheel

PUBLISHER = "https://publisher.example"
MADE = Wheel("torch", "2.9.0+cu128")
NAME = quote(MADE.filename)


class Layout(NamedTuple):
    """How a mirror has the page of a project.

    Attributes:
        start: of the publisher's URLs, which `mirror` replaces.
        mirror: path of the mirror.
        link: to the file, as it is on the page.
        file: path of the file.
    """

    start: str
    mirror: str
    link: str
    file: str


LAYOUTS = {
    "path": Layout("", "/raw", f"/whl/cu128/{NAME}", f"/raw/whl/cu128/{NAME}"),
    "host": Layout("", "/raw", f"{PUBLISHER}/whl/cu128/{NAME}", f"/raw/whl/cu128/{NAME}"),
    "relative": Layout(
        "/whl/cu128", "/api/cu128/simple", f"../../packages/{NAME}", f"/api/cu128/packages/{NAME}"
    ),
    "own": Layout("", "/raw", f"/files/{NAME}", f"/files/{NAME}"),
    "plus": Layout("", "/raw", f"/files/{MADE.filename}", f"/files/{MADE.filename}"),
    "twice": Layout("", "/raw", f"/files/{quote(NAME)}", f"/files/{quote(NAME)}"),
}
SOME = [pytest.param(LAYOUTS[name], id=name) for name in ("path", "relative", "twice")]


class Mirrored(NamedTuple):
    """The index, the options of a client, and where the file is."""

    index: str
    options: list[str]
    file: str


@pytest.fixture(params=LAYOUTS.values(), ids=LAYOUTS)
def mirrored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Mirrored]:
    """An entry with two builds, a mirror that has one of them, and an index with the rest."""
    layout: Layout = request.param
    index = Index()
    index.add_wheel(Wheel("torch", "2.9.0"))
    page = f'<!DOCTYPE html><a href="{layout.link}">{MADE.filename}</a>'
    path = layout.mirror + "/whl/cu128/torch/".removeprefix(layout.start)
    index.resources[path] = Answer(body=page.encode(), kind="text/html")
    index.resources[layout.file] = Answer(body=MADE.build())
    index.resources["/elsewhere/whl/cu130/torch/"] = Answer(404)
    builds = [
        variant(f"cuda{cuda}", f'index = "{PUBLISHER}/whl/{place}"', cuda=cuda)
        for cuda, place in (("12.9", "cu129"), ("12.8", "cu128"))
    ]
    (tmp_path / "torch.toml").write_text(entry("torch", builds))
    with served(index) as found:
        mirrors = {PUBLISHER: f"{found.root}/elsewhere"}
        mirrors[PUBLISHER + layout.start] = found.root + layout.mirror
        options = [f"--variant-catalog-mirror={start}={at}" for start, at in mirrors.items()]
        catalog = f"--variant-catalog={tmp_path / 'torch.toml'}"
        yield Mirrored(
            found.url,
            [*options, catalog, "--variant-platform=cuda=13.0"],
            found.root + layout.file,
        )


def test_resolve(mirrored: Mirrored, tmp_path: Path) -> None:
    (tree,) = by_resolve(tmp_path, "torch", "-i", mirrored.index, *mirrored.options)
    (package,) = tree["packages"]
    assert (package["version"], package["url"]) == (MADE.version, mirrored.file)
    assert tree["warnings"] == []  # it is no failure that the mirror lacks a build


@pytest.mark.one
@pytest.mark.parametrize("mirrored", SOME, indirect=True)
def test_pip(mirrored: Mirrored, patched: Environment, tmp_path: Path) -> None:
    found = by_pip(patched, tmp_path, "-i", mirrored.index, *mirrored.options, "torch")
    check(found, mirrored)


@pytest.mark.parametrize("mirrored", SOME, indirect=True)
def test_uv(mirrored: Mirrored, machine: Machine) -> None:
    check(by_uv_lock(machine, mirrored.index, ["torch"], *mirrored.options), mirrored)


def check(found: Chosen, mirrored: Mirrored) -> None:
    version, url = found.packages["torch"]
    assert (version, url.partition("#")[0]) == (MADE.version, mirrored.file), found
    assert "cannot" not in found.text.lower()
