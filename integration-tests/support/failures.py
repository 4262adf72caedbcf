"""What may fail, in which command, and how each ends: the table of a page, `failures.md`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .catalog_places import family_entries, page, pytorch
from .index import JSON, Answer, Index, served
from .plugins import PLUGIN, acme_index
from .projects import CUDA_12_8, DRIVER, cuda
from .published_builds import Builds, standing_in
from .wheels import Release, Wheel

ENDS, LINE, LOG, SAME, NONE = "ends", "a line", "its log", "same build", "-"
EITHER = f"{ENDS} or {SAME}"
"""Ends with an error, and writes and installs nothing; goes on with another build and says so, or
the proxy's log does; goes on with the build that it should have; has no such thing."""

COMMANDS = {
    "pip install": ("pip install -t", "pip install --dry-run", "pip download", "pip wheel"),
    "pip lock": ("pip lock",),
    "variants resolve": ("resolve", "resolve --download"),
    "variants resolve -o": ("resolve -o",),
    "uv-variants pip install": ("uv pip install", "uv pip install --dry-run"),
    "uv-variants lock": ("uv lock", "uv sync"),
    "uv-variants pip compile": ("uv pip compile",),
    "variants-proxy": ("proxy pip install", "proxy uv pip install", "proxy uv lock"),
}
"""Columns of the table, with the commands of each."""

DOWN = Answer(503, b"try later")
NOWHERE = "http://127.0.0.1:9"


@dataclass
class World:
    """What a command is tried in.

    Attributes:
        index: the user's.
        project: that is asked for.
        good: what only names of the right build have.
        root: of what fails: its URL or path is in the line.
        options: of the command, but for the proxy.
        catalog: of the proxy, and in *options*.
        environ: of the machine.
        setup: shell script that makes mounts, below ``{}``.
    """

    index: Index
    project: str = "app"
    good: str = "cu128"
    root: str = ""
    options: tuple[str, ...] = ()
    catalog: str | None = None
    environ: dict[str, str] = field(default_factory=lambda: dict(CUDA_12_8))
    setup: str = ""


def releases() -> Index:
    """Return an index with two releases, each with variants and a plain wheel."""
    index = Index(ranges=True)
    for version in ("1.0", "2.0"):
        variants = cuda("12.6", "12.8", "13.0")
        release = Release("app", version, variants, ("always",), non_variant=True)
        index.add_release(release, metadata_file=True)
    index.add_wheel(Wheel("always", "1.0"), metadata_file=True)
    return index


DOCUMENT = "app-2.0-variants.json"


def _document(make: Callable[[bytes], Answer]) -> Callable[[Index], None]:
    return lambda index: index.faults.update({DOCUMENT: make(index.files["app"][DOCUMENT])})


def _page(make: Callable[[bytes], Answer]) -> Callable[[Index], None]:
    return lambda index: index.faults.update({"/simple/app/": make(index._json("app"))})


def _refused(index: Index) -> None:
    index.attributes[DOCUMENT] = {"url": f"{NOWHERE}/{DOCUMENT}"}


def _other_hash(index: Index) -> None:
    index.attributes[DOCUMENT] = {"hashes": {"sha256": "0" * 64}}


def _labelled(index: Index, suffix: str = "") -> None:
    names = [name for name in index.files["app"] if name.startswith("app-2.0-py3-none-any-")]
    index.faults.update({name + suffix: DOWN for name in names})


def _ranges(index: Index) -> None:
    index.unlisted.add(DOCUMENT)
    _labelled(index)


INDEX: dict[str, Callable[[Index], None]] = {
    "page at 503": _page(lambda _: DOWN),
    "page cut off": _page(lambda data: Answer.cut_off(data[:-9], kind=JSON)),
    "variants.json at 503": _document(lambda _: DOWN),
    "variants.json cut off": _document(lambda data: Answer.cut_off(data[:-9])),
    "variants.json refused": _refused,
    "variants.json of another hash": _other_hash,
    "METADATA at 503": lambda index: _labelled(index, ".metadata"),
    "parts of wheels at 503": _ranges,
}
"""What the user's index does."""

CATALOG: dict[str, Answer | str] = {
    "catalogue file missing": "missing",
    "catalogue file broken": "broken",
    "catalogue URL at 503": DOWN,
    "catalogue URL at 404": Answer(404),
    "catalogue URL refused": "refused",
    "catalogue URL cut off": Answer.cut_off(b"{"),
    "catalogue URL broken": Answer(body=b"{"),
}
"""What is at a catalogue, or what a catalogue is."""

PLACES = {"place at 503": DOWN, "place at 404": Answer(404), "place refused": None}
"""What two places of the catalogue answer."""

PLUGINS: dict[str, Callable[[Index, str], object]] = {
    "plugin missing": lambda index, name: index.remove("acme-provider", name),
    "plugin at 503": lambda index, name: index.faults.update({name: DOWN}),
    "plugin broken": lambda index, name: index.files["acme-provider"].update({name: b"PK"}),
    "plugin crashes": lambda *_: None,
}
"""What is wrong with a provider plugin."""

FULL = "mount -t tmpfs -o size=32k,mode=777 tmpfs {0}"
READ_ONLY = "mount -t tmpfs -o ro,size=32k tmpfs {0}"
DISKS = {
    "TMPDIR full": (FULL, "TMPDIR"),
    "TMPDIR read-only": (READ_ONLY, "TMPDIR"),
    "cache full": (f"{FULL} && {{{{ head -c 40000 /dev/zero > {{0}}/filler; true; }}}}", "CACHE"),
    "cache read-only": (READ_ONLY, "CACHE"),
}
"""The mount, and the folder that is there."""

_EVERY = tuple(COMMANDS)


def _ends(*differences: str) -> dict[str, str]:
    return dict(zip(_EVERY, differences or (ENDS,) * len(_EVERY), strict=True))


_LINES = _ends(LINE, ENDS, LINE, *(ENDS,) * 5)
_OF_PLUGINS = _ends(*(ENDS,) * 6, SAME, NONE)
_SAME = _ends(*(SAME,) * 7, NONE)
ENDINGS: dict[str, dict[str, str]] = {
    **dict.fromkeys(INDEX, _LINES),
    **dict.fromkeys(("page at 503", "page cut off", "METADATA at 503"), _ends()),
    "variants.json of another hash": _ends(*(LINE,) * 7, LOG),
    **dict.fromkeys(CATALOG, _ends()),
    **dict.fromkeys(PLACES, _LINES),
    "place at 404": _ends(LINE, ENDS, LINE, ENDS, LINE, ENDS, ENDS, LOG),
    **dict.fromkeys(PLUGINS, _OF_PLUGINS),
    **dict.fromkeys(DISKS, _SAME),
    "TMPDIR full": _ends(EITHER, SAME, SAME, SAME, ENDS, ENDS, ENDS, NONE),
    "the user's proxy refuses": _ends(),
}
"""How each failure ends, by column."""


def world(failure: str, folder: Path) -> Iterator[World]:
    """Yield the world in which *failure* happens, while it is served; *folder* is empty."""
    if failure in CATALOG or failure in PLACES:
        yield from _with_catalog(failure, folder)
        return
    if failure in PLUGINS:
        code = PLUGIN
        if failure == "plugin crashes":
            code = PLUGIN.replace(
                "        return [", "        raise OSError('boom')\n        return ["
            )
        index = acme_index(code)
        (name,) = index.files["acme-provider"]
        PLUGINS[failure](index, name)
        allowed = ("--variant-allow-provider", "acme-provider")
        with served(index):
            yield World(index, "app", "fast", "acme-provider", allowed, environ={})
        return
    index = releases()
    INDEX.get(failure, lambda _: None)(index)
    with served(index):
        found = World(index, root=NOWHERE if failure.endswith("refused") else index.root)
        if failure in DISKS:
            setup, variable = DISKS[failure]
            place = str(folder / "mounted")
            found.setup, found.root = setup.format(place), ""
            names = ("VARIANTS_CACHE_DIR", "PIP_CACHE_DIR") if variable == "CACHE" else (variable,)
            found.environ.update(dict.fromkeys(names, place))
        if failure == "the user's proxy refuses":
            found.root = ""
            found.environ.update(HTTP_PROXY=NOWHERE, http_proxy=NOWHERE, NO_PROXY="")
        yield found


def _with_catalog(failure: str, folder: Path) -> Iterator[World]:
    with standing_in(pytorch()) as field_:
        entries = folder / "catalog"
        family_entries(field_.builds, entries)
        name, root = str(entries), field_.builds.root
        if failure in CATALOG:
            name = root = _catalog(CATALOG[failure], field_.index, folder)
        elif failure == "place refused":
            root = NOWHERE
            for path in entries.glob("*.toml"):
                path.write_text(path.read_text().replace(field_.builds.root, NOWHERE))
        else:
            _place(field_.builds, PLACES[failure])
        options = ("--variant-catalog", name)
        environ = {DRIVER: "12.8"}
        yield World(field_.index, "torch", "+cu128", root, options, name, environ)


def _place(builds: Builds, answer: Answer | None) -> None:
    assert answer is not None
    for place in ("cu126", "cu128"):
        builds.faults[page(place)] = answer


def _catalog(answer: Answer | str, index: Index, folder: Path) -> str:
    """Return the name of a catalogue with which *answer* happens."""
    if isinstance(answer, Answer):
        index.resources["/catalog.json"] = answer
        return f"{index.root}/catalog.json"
    if answer == "refused":
        return f"{NOWHERE}/catalog.json"
    path = folder / f"{answer}.json"
    if answer == "broken":
        path.write_text("{")
    return str(path)
