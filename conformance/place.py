"""The place where a client plays a case: a home, a working directory, settings, a platform file."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import tomli_w

from support.isolation import isolated

from . import FOLDER
from .case import Case
from .indexes import Served, serving

MACHINES = FOLDER / "machines"


@dataclass(frozen=True)
class Place:
    """Where a client plays a case.

    Attributes:
        root: a directory of its own.
        served: the indexes.
        platform: the platform file, None if providers look at the machine.
        variables: environment variables.
    """

    root: Path
    served: Served
    platform: Path | None
    variables: Mapping[str, str]

    @property
    def target(self) -> Path:
        """Directory to install into; does not exist yet."""
        return self.root / "target"

    @property
    def work(self) -> Path:
        """Working directory."""
        return self.root / "work"

    @property
    def lock(self) -> Path:
        """Path of the lock file of a lock case."""
        return self.work / "pylock.toml"

    @property
    def install(self) -> Sequence[str]:
        """Arguments for what is to be installed; requirements with hashes are in a file."""
        lines = self.served.install
        if not any(" --hash=" in line for line in lines):
            return lines
        path = self.work / "requirements.txt"
        path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        return "-r", str(path)


@contextmanager
def prepared(case: Case, *, serve: bool = True) -> Iterator[Place]:
    """Make the place for *case*, and serve its indexes, while the context is open."""
    serving_it = serving(case) if serve else nullcontext(Served((), (), (), None))
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder, serving_it as served:
        root = Path(folder).resolve()
        settings = root / "home" / ".config" / "variants" / "variants.toml"
        settings.parent.mkdir(parents=True)
        if "settings" in case.tree:
            settings.write_text(tomli_w.dumps(case.tree["settings"]), "utf-8")
            settings.chmod(0o600)
        variables = {**isolated(os.environ, root / "home"), **case.tree.get("environ", {})}
        place = Place(root, served, platform_file(case, root), variables)
        place.work.mkdir()
        if served.lock is not None:
            place.lock.write_text(tomli_w.dumps(served.lock), "utf-8")
        yield place


def platform_file(case: Case, folder: Path) -> Path | None:
    """Return the platform file of *case*, written into *folder* if it is not in the corpus."""
    machine = case.tree.get("machine", {})
    if machine == "detected":
        return None
    if isinstance(machine, str):
        return MACHINES / f"{machine}.toml"
    path = folder / "machine.toml"
    providers = [
        {"resolved": [], "namespace": namespace, "properties": features}
        for namespace, features in machine.items()
    ]
    head = {"metadata": {"created-by": "conformance", "version": "0.1"}}
    tree = {**head, "provider": providers} if providers else head
    path.write_text(tomli_w.dumps(tree), "utf-8")
    return path


def clear(folder: Path, keep: Container[str]) -> None:
    """Remove everything in *folder*, but what is named in *keep*."""
    for path in folder.iterdir():
        if path.name not in keep:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
