"""The places of a catalogue: pages laid out as those of PyTorch's index, and entries about them.

Pages are HTML without PEP 691. Links are percent-encoded, and lead to another host.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from urllib.parse import quote

from .index import Answer, handler_of
from .loopback import serving
from .wheels import Wheel

DOCUMENTATION = "https://example.org/start"


@dataclass
class Places:
    """Indexes of one host, whose files another one has.

    Attributes:
        wheels: what pages list, by path.
        files: contents by path.
        without_hashes: paths of pages whose links have no hashes.
        faults: status, content type and body that replace the answer, by path.
        silent: paths without an answer, until the client goes away.
        requests: paths asked for so far, of both hosts.
        url: of the host with the pages.
        files_url: of the host with the files.
    """

    wheels: dict[str, list[Wheel]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    without_hashes: set[str] = field(default_factory=set)
    faults: dict[str, tuple[int, str, bytes]] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
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

    handler = handler_of(answer, silent=places.silent)
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
        f'documentation = "{DOCUMENTATION}"\ncoherent = {list(coherent)}\n{more}'
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
