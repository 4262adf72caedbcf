"""The variants in uv.lock, and the machine that a lock file is for.

A variant wheel is in a lock at ``<index>/<project>/.variant/<label>/<name>``, below the URL of its
own index, with the label in its build tag too (`variants_proxy.urls.wheel_at`). The hash is that of
the file that is served there.

A lock has one variant for each platform, chosen for one machine. A platform file beside the lock
describes that machine and is committed with it. Later changes of the lock, on any machine, choose
for the described one, so that the lock does not flip between the machines of a team. The file only
describes a machine: it runs nothing and does not change where code comes from, so it counts without
being trusted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from packaging.utils import canonicalize_name

from pep_variants import limits, machines, safe_files
from pep_variants.errors import PlatformFileError
from pep_variants.machines import Platform, Support
from variants_proxy import urls as proxy_urls
from variants_proxy.urls import Machine

if TYPE_CHECKING:
    from pep_variants.machines import Platform
    from pep_variants.preferences import Preferences
    from variants_proxy.urls import Machine

    from ._command_line import Invocation


_WHEEL = re.compile(r'url = "(?P<url>[^"\s]*/[^/"\s?#]+\.whl)[^"]*"(?P<rest>[^{}\n]*)')
_PACKAGE = re.compile(r'(?m)^\[\[package\]\]\nname = "([^"]+)"\nversion = "([^"]+)"')

Names = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Wheels of a lock by project (normalized name) and version: the last part of the URL, of wheels
that the proxy serves from `FOLDER` on. `variants_proxy._clients.ClientSettings.locked`."""


class LockedWheel(NamedTuple):
    """A wheel of a lock that the proxy serves.

    Attributes:
        project: normalized name.
        version: as the lock has it.
        url: of the file.
        label: of the variant, None for a wheel without label.
        plain: filename without label.
        has_hash: whether the lock has a hash of it.
    """

    project: str
    version: str
    url: str
    label: str | None
    plain: str
    has_hash: bool

    @property
    def index_url(self) -> str:
        """URL of the index, or of the find-links page, that the wheel is from."""
        index = self.url.rpartition(f"/{proxy_urls.FOLDER}/")[0]
        above, _, last = index.rpartition("/")
        return above if last == self.project else index


@dataclass(frozen=True)
class Lock:
    """A lock file, or none.

    Attributes:
        path: of the file, None for commands without one.
        text: its text, None if it does not exist or cannot be read.
        problem: why it cannot be read, empty if it can or does not exist.
    """

    path: Path | None = None
    text: str | None = field(default=None, repr=False)
    problem: str = ""

    @classmethod
    def read(cls, path: Path | None) -> Lock:
        """Return the lock file at *path* as it is now."""
        if path is None:
            return cls()
        try:
            return cls(path, safe_files.read_text(path, limits.LOCK_TEXT_BYTES))
        except FileNotFoundError:
            return cls(path)
        except (OSError, ValueError) as error:
            problem = getattr(error, "strerror", None) or "is not UTF-8"
            return cls(path, problem=f"{path}: {problem}")

    @cached_property
    def names(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """Names of all wheels of an index, see `Names`."""
        found: dict[str, dict[str, tuple[str, ...]]] = {}
        for project, version, text in self.packages:
            names = tuple(file_item(match["url"]) for match in _WHEEL.finditer(text))
            if names:
                found.setdefault(project, {})[version] = names
        return found

    @cached_property
    def wheels(self) -> tuple[LockedWheel, ...]:
        """The wheels that the proxy serves."""
        found = []
        for project, version, text in self.packages:
            if f"/{proxy_urls.FOLDER}/" not in text:
                continue
            for match in _WHEEL.finditer(text):
                read = proxy_urls.wheel_at(match["url"])
                if read is not None:
                    hashed = "hash = " in match["rest"]
                    found.append(LockedWheel(project, version, match["url"], *read, hashed))
        return tuple(found)

    def files(self, project: str, version: str) -> tuple[list[tuple[str | None, str]], bool]:
        """Return label and plain filename of the wheels of a version, and whether it has sources.

        Args:
            project: normalized name.
            version: as in the lock.
        """
        items = self.names.get(project, {}).get(version, ())
        wheels = [proxy_urls.wheel_at(item) or (None, unquote(item)) for item in items]
        texts = (text for *known, text in self.packages if known == [project, version])
        return wheels, any("\nsdist = " in text for text in texts)

    @cached_property
    def labels(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """Labels of the variants by project and version."""
        found: dict[str, dict[str, tuple[str, ...]]] = {}
        for wheel in self.wheels:
            if wheel.label is not None:
                versions = found.setdefault(wheel.project, {})
                before = versions.get(wheel.version, ())
                versions[wheel.version] = tuple(dict.fromkeys((*before, wheel.label)))
        return found

    @cached_property
    def versions(self) -> dict[str, set[str]]:
        """Versions of every project."""
        found: dict[str, set[str]] = {}
        for name, version, _ in self.packages:
            found.setdefault(name, set()).add(version)
        return found

    @cached_property
    def required(self) -> frozenset[str]:
        """Packages that the projects of the lock require, without their own extras and groups."""
        try:
            packages = safe_files.read_toml(self.text or "").get("package", [])
        except ValueError:
            return frozenset()
        waiting = [
            each
            for package in packages
            if {"virtual", "editable", "directory"} & package.get("source", {}).keys()
            for each in package.get("dependencies", ())
        ]
        seen: set[tuple[str, str]] = set()
        while waiting:
            item = waiting.pop()
            parts = {(item["name"], extra) for extra in ("", *item.get("extra", ()))} - seen
            seen |= parts
            for name, extra in parts:
                for package in (each for each in packages if each["name"] == name):
                    optional = package.get("optional-dependencies", {})
                    waiting += optional.get(extra, ()) if extra else package.get("dependencies", ())
        return frozenset(name for name, _ in seen)

    def restore(self) -> str:
        """Write the file as it was, or remove it; return that it was left so."""
        assert self.path is not None
        if self.text is None:
            self.path.unlink(missing_ok=True)
            return f"{self.path.name} is not written"
        with safe_files.replacing(self.path, mode=self.path.stat().st_mode & 0o777) as stream:
            stream.write(self.text.encode())
        return f"{self.path.name} is left as it was"

    @property
    def projects(self) -> tuple[str, ...]:
        """Projects with variants (normalized names)."""
        return tuple(dict.fromkeys(wheel.project for wheel in self.wheels if wheel.label))

    @property
    def indexes(self) -> tuple[str, ...]:
        """URLs of the indexes that the variants are from."""
        return tuple(dict.fromkeys(wheel.index_url for wheel in self.wheels))

    @property
    def without_hash(self) -> tuple[LockedWheel, ...]:
        """The wheels of the proxy that the lock has no hash of."""
        return tuple(wheel for wheel in self.wheels if not wheel.has_hash)

    @cached_property
    def packages(self) -> tuple[tuple[str, str, str], ...]:
        """Name, version and text of every package that has a version."""
        text = self.text or ""
        matches = list(_PACKAGE.finditer(text))
        ends = [*(match.start() for match in matches[1:]), len(text)]
        return tuple(
            (match[1], match[2], text[match.end() : end])
            for match, end in zip(matches, ends, strict=False)
        )


def file_item(url: str) -> str:
    """Return the last part of a URL, of what the proxy serves from `FOLDER` on."""
    parts = url.rsplit("/", 3)
    return "/".join(parts[1:] if parts[1:2] == [proxy_urls.FOLDER] else parts[-1:])


def kept_names(names: Names, invocation: Invocation, renewed: Iterable[str] | None) -> Names:
    """Return the wheels of a lock that stay as they are.

    Args:
        names: of the lock.
        invocation: uv's command line, which may upgrade all or some of them.
        renewed: projects (normalized names) whose variants our own options decide, None for all.
    """
    if renewed is None or invocation.has("upgrade", "U"):
        return {}
    given = invocation.values("upgrade-package")
    upgraded = (re.split(r"[^A-Za-z0-9._-]", text.strip(), maxsplit=1)[0] for text in given)
    gone = {*map(canonicalize_name, upgraded), *renewed}
    return {project: versions for project, versions in names.items() if project not in gone}


_COMMENT = """\
# The machine that {lock} is for; commit both. uv-variants chooses for it, wherever it locks:
# --variant-platform NAME locks for another one, --variant-platform native for the one at hand.
"""


class LockMachine(NamedTuple):
    """The machine of a lock, as the file beside it says.

    Attributes:
        path: of the file.
        platform: supported properties.
        target: operating system and processor, see `variants_proxy._key.Machine`.
        name: as it was given, a known name or facts; empty if it was detected or is a file.
        is_detected: the built-in providers found it: it counts where they would be asked.
    """

    path: Path
    platform: Platform
    target: str
    name: str = ""
    is_detected: bool = False

    @classmethod
    def read(cls, lock: Path) -> LockMachine | None:
        """Return the machine of the lock file at *lock*, None if it is not known.

        Raises:
            PlatformFileError: the file cannot be read, or is no platform file.
        """
        path = path_beside(lock)
        if not path.exists():
            return None
        try:
            platform = machines.load_platform(path)
        except PlatformFileError as error:
            raise PlatformFileError(
                f"{error}; it says which machine {lock.name} is for: mend it, or lock with "
                "--variant-platform, which writes it anew"
            ) from None
        about = safe_files.read_toml(
            safe_files.read_regular(path, limits.SETTINGS_BYTES).data.decode()
        ).get("metadata", {})
        target, name = (
            text if isinstance(text := about.get(key), str) and text.isprintable() else ""
            for key in ("target", "machine")
        )
        return cls(
            path,
            platform,
            target if proxy_urls.TARGET.fullmatch(target) else "",
            name[:100],
            about.get("detected") is True,
        )

    @classmethod
    def of(cls, lock: Path, machine: Machine, name: str) -> LockMachine:
        """Return *machine* as that of the lock file at *lock*."""
        namespaces = {**machine.detected.namespaces, **machine.platform.namespaces}
        platform = Platform(
            {
                namespace: Support(support.features)
                for namespace, support in namespaces.items()
                if support.features
            }
        )
        is_detected = not machine.platform.namespaces and not name
        return cls(path_beside(lock), platform, machine.target, name, is_detected)

    def write(self, lock: str) -> None:
        """Write the file, for the lock file of that name."""
        more = {"target": self.target, "machine": self.name, "detected": self.is_detected}
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in more.items() if value]
        head, empty, tables = machines.write_platform(self.platform, "uv-variants").partition(
            "\n\n"
        )
        text = _COMMENT.format(lock=lock) + head.rstrip("\n") + "\n" + "".join(lines)
        text += f"\n{tables}" if empty else ""
        with safe_files.replacing(self.path) as stream:
            stream.write(text.encode())

    def machine(self, preferences: Preferences, target: str | None) -> Machine:
        """Return the machine for the proxy, with other *preferences*, or for another *target*."""
        return Machine(
            Platform() if self.is_detected else self.platform,
            target=self.target if target is None else target,
            preferences=preferences,
            detected=self.platform if self.is_detected else Platform(),
        )

    def is_like(self, machine: Machine) -> bool:
        """Return whether *machine* supports the same."""
        other = LockMachine.of(self.path, machine, "")
        return (other.platform, other.target) == (self.platform, self.target)

    def __str__(self) -> str:
        return self.name or f"the machine of {self.path.name}"


def path_beside(lock: Path) -> Path:
    """Return the path of the file about the machine of *lock*: ``uv.variants.toml``."""
    return lock.with_name(f"{lock.name.removesuffix('.lock')}.variants.toml")
