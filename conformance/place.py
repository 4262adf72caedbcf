"""The place where a client plays a case: a home, a working directory, settings, a platform file."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    def install(self) -> Sequence[str]:
        """Arguments for what is to be installed; requirements with hashes are in a file."""
        lines = self.served.install
        if not any(" --hash=" in line for line in lines):
            return lines
        path = self.root / "work" / "requirements.txt"
        path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        return "-r", str(path)

    @property
    def lock(self) -> Path:
        """Path of the lock file of a lock case."""
        return self.root / "work" / "pylock.toml"


@contextmanager
def prepared(case: Case) -> Iterator[Place]:
    """Make the place for *case*, and serve its indexes, while the context is open."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder, serving(case) as served:
        root = Path(folder).resolve()
        home = root / "home"
        (root / "work").mkdir()
        configuration = home / ".config" / "variants" / "variants.toml"
        configuration.parent.mkdir(parents=True)
        if "settings" in case.tree:
            configuration.write_text(toml_text(case.tree["settings"]), "utf-8")
            configuration.chmod(0o600)
        variables = {**isolated(os.environ, home), **case.tree.get("environ", {})}
        place = Place(root, served, platform_file(case, root), variables)
        if served.lock is not None:
            place.lock.write_text(toml_text(served.lock), "utf-8")
        yield place


def platform_file(case: Case, folder: Path) -> Path | None:
    """Return the platform file of *case*, written into *folder* if it is not in the corpus."""
    machine = case.tree.get("machine", {})
    if machine == "detected":
        return None
    if isinstance(machine, str):
        return MACHINES / f"{machine}.toml"
    path = folder / "machine.toml"
    lines = ["[metadata]", 'created-by = "conformance"', 'version = "0.1"']
    for namespace, features in machine.items():
        lines += ["", "[[provider]]", "resolved = []", f'namespace = "{namespace}"', ""]
        lines += ["[provider.properties]"]
        lines += [f"{feature} = {json.dumps(values)}" for feature, values in features.items()]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def toml_text(tree: Mapping[str, Any]) -> str:
    """Return *tree* as TOML, tables inline: what JSON has, TOML can say, but for null."""
    return "".join(f"{_key(name)} = {_value(value)}\n" for name, value in tree.items())


def _key(name: str) -> str:
    return json.dumps(name)


def _value(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
