"""The places of a catalogue: pages laid out as those of PyTorch's index, and entries about them.

Pages are HTML without PEP 691. Links are percent-encoded, and lead to another host.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from .index import Answer, Index, handler_of
from .loopback import serving
from .wheels import PURE, Wheel

BUILDS = {"cu130": "13.0", "cu128": "12.8", "cu126": "12.6"}
"""The places with CUDA builds of torch and torchvision, and the driver that each needs."""


@dataclass
class Places:
    """Indexes of one host, whose files another one has.

    Attributes:
        wheels: what pages list, by path.
        files: contents by path.
        without_hashes: paths of pages whose links have no hashes.
        faults: status, content type and body that replace the answer, by path.
        requests: paths asked for so far, of both hosts.
        url: of the host with the pages.
        files_url: of the host with the files.
    """

    wheels: dict[str, list[Wheel]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    without_hashes: set[str] = field(default_factory=set)
    faults: dict[str, tuple[int, str, bytes]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    url: str = ""
    files_url: str = ""

    def add(self, place: str, *wheels: Wheel) -> None:
        """Put *wheels* on the index *place*, such as ``cu128``."""
        for wheel in wheels:
            self.wheels.setdefault(f"/whl/{place}/{wheel.name}/", []).append(wheel)
            self.files[f"/whl/{place}/{quote(wheel.filename)}"] = wheel.build()

    def place(self, name: str) -> str:
        """Return the URL of the index *name*."""
        return f"{self.url}/whl/{name}"

    def answer(self, path: str) -> tuple[int, str, bytes]:
        """Return status, content type and body for *path*."""
        self.requests.append(path)
        if path in self.faults:
            return self.faults[path]
        if path in self.files:
            return 200, "application/octet-stream", self.files[path]
        if path not in self.wheels:
            return 403, "application/xml", b"<Error><Code>AccessDenied</Code></Error>"
        return 200, "text/html", "".join(self._page(path)).encode()

    def _page(self, path: str) -> Iterator[str]:
        folder = path.rstrip("/").rpartition("/")[0]
        yield "<!DOCTYPE html><html><body>"
        for wheel in self.wheels[path]:
            file = f"{folder}/{quote(wheel.filename)}"
            digest = hashlib.sha256(self.files[file]).hexdigest()
            fragment = "" if path in self.without_hashes else f"#sha256={digest}"
            yield f'<a href="{self.files_url}{file}{fragment}">{wheel.filename}</a><br/>'
        yield "</body></html>"


@contextmanager
def served_places(places: Places) -> Iterator[Places]:
    """Serve *places* on two free ports of loopback."""

    def answer(path: str, _: object) -> Answer:
        status, kind, body = places.answer(path)
        return Answer(status, body, kind)

    handler = handler_of(answer)
    with ExitStack() as stack:
        places.url = stack.enter_context(serving(handler))
        places.files_url = stack.enter_context(serving(handler))
        yield places


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


def pytorch(
    *tags: str, versions: Iterable[str] = ("2.8.0", "2.9.0"), mac: str = ""
) -> tuple[Places, Index]:
    """Return PyTorch's places, and the user's own index with plain wheels.

    Wheels for *mac*, a tag, have no local version, and are with those for CPUs.
    """
    places, index = Places(), Index(ranges=True)
    for version in versions:
        for tag in tags or (PURE,):
            for name in (*BUILDS, "cpu"):
                places.add(name, *family(version, name, tag))
        for wheel in family(version, tag=mac) if mac else ():
            places.add("cpu", wheel)
        for tag in (*(tags or (PURE,)), *([mac] if mac else [])):
            for wheel in family(version, tag=tag):
                index.add_wheel(wheel, metadata_file=True)
    for name in BUILDS:
        index.add_wheel(Wheel("cudalib", name[2:]), metadata_file=True)
    places.without_hashes.add("/whl/cu126/torch/")
    return places, index


def family_entries(places: Places, folder: Path) -> None:
    """Write the entries of torch and torchvision into *folder*."""
    null = variant("null", f'index = "{places.place("cpu")}"\nlocal = ["cpu", ""]')
    tables = [
        variant(
            f"cuda{local[2:4]}.{local[4:]}",
            f'index = "{places.place(local)}"\nlocal = "{local}"',
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
