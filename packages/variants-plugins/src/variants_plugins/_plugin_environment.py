"""Plugin environments: one virtual environment per set of requirements, made once and kept.

It is made with uv where there is one, else with `venv` and pip, from the user's sources and from
wheels only, as building from source would run code of theirs. None of what is installed runs
before `runner` confines it, and starting the environment's Python would run some: see `_install`.

It is built beside its final directory and renamed, with a record of what it consists of written
last: what a killed process leaves behind is never used as an environment, and one that was changed
later is rebuilt. A process that builds one holds a lock, which the system releases when the process
is killed.

An environment stays as it is, also when its plugin has newer releases, until it is deleted or
something of its key changes: the requirements, the sources, the Python. Anything in the directory
may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import filelock
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from pep_variants import limits, safe_files
from pep_variants import preferences as user_preferences
from pep_variants.errors import ProviderError, without_userinfo
from pep_variants.preferences import Sources
from pep_variants.safe_files import NotPrivate

from ._installer import INSTALL_TIME_LIMIT, Installer, python_of, remove_tree

if TYPE_CHECKING:
    from pep_variants.machines import Allowed, Wanted

logger = logging.getLogger(__name__)

FORMAT = 2
"""Version of the format of records, a part of every key."""

RECORD = "pep-variants-environment.json"
"""File in the environment that describes it; a directory without it is not an environment."""

_MAX_RECORD_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class PluginEnvironment:
    """A virtual environment with a provider's plugin in it.

    Attributes:
        path: its directory.
        resolved: what was installed, ``name==version``: first the provider's own packages in the
            order of the metadata, then their dependencies by name.
        contents: a digest of everything in it.
    """

    path: Path
    resolved: tuple[str, ...]
    contents: str

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return python_of(self.path)


class Environments:
    """The plugin environments in a directory, which is made when one is installed."""

    def __init__(self, root: Path) -> None:
        """Set up; *root* is the directory of plugins."""
        self._root = root
        self._folder = root / "environments"
        self._made: set[str] = set()

    def __iter__(self) -> Iterator[PluginEnvironment]:
        """Yield all environments, by path."""
        with contextlib.suppress(OSError):
            for path in sorted(self._folder.iterdir()):
                if not path.name.startswith(".") and (found := _read(path)) is not None:
                    yield found

    def get(
        self, allowed: Allowed, sources: Sources, environ: Mapping[str, str]
    ) -> PluginEnvironment:
        """Return the environment with what is *allowed*, installed if it is not there.

        Args:
            allowed: the packages.
            sources: where they are installed from.
            environ: environment variables of the user.

        Raises:
            ProviderError: it cannot be installed; the message has what the installer says.
        """
        key = _key(allowed, sources)
        self._prepare()
        with self._locked(key):
            path = self._folder / key
            if (found := _intact(path)) is not None:
                return found
            if len(self._made) >= limits.PLUGIN_ENVIRONMENTS:
                raise ProviderError(
                    f"metadata needs more than {limits.PLUGIN_ENVIRONMENTS} different sets of "
                    "plugin packages"
                )
            self._made.add(key)
            try:
                return self._build(path, allowed, sources, environ)
            except OSError as error:
                raise ProviderError(f"a plugin environment cannot be created: {error}") from None

    def _prepare(self) -> None:
        """Make the directories.

        Raises:
            ProviderError: they cannot be made or written, or other users could write to them:
                code from there would run with the user's rights.
        """
        advice = f"set {safe_files.VARIABLE} to a directory that you own"
        try:
            for path in (self._root, self._folder):
                safe_files.make_private(path)
                if not os.access(path, os.W_OK | os.X_OK):
                    raise ProviderError(f"{path} is not writable: {advice}")
        except NotPrivate as error:
            raise ProviderError(f"{error}, or {advice}") from None
        except OSError as error:
            raise ProviderError(
                f"{self._root} cannot be used: {error.strerror}: {advice}"
            ) from None

    @contextmanager
    def _locked(self, key: str) -> Iterator[None]:
        """Hold the lock of the environment *key*.

        Raises:
            ProviderError: another process held it for too long, or locks do not work.
        """
        path = self._folder / f"{key}.lock"
        lock = filelock.FileLock(path)
        seconds = 2 * INSTALL_TIME_LIMIT
        try:
            try:
                lock.acquire(timeout=1.0)
            except filelock.Timeout:
                logger.info("waiting for another process that works with %s", path)
                lock.acquire(timeout=seconds)
        except filelock.Timeout:
            raise ProviderError(f"another process has held {path} for {seconds:.0f} s") from None
        except (OSError, NotImplementedError) as error:
            raise ProviderError(
                f"{path} cannot be locked ({error}): set {safe_files.VARIABLE} to a local directory"
            ) from None
        try:
            yield
        finally:
            lock.release()

    def _build(
        self, final: Path, allowed: Allowed, sources: Sources, environ: Mapping[str, str]
    ) -> PluginEnvironment:
        """Build the environment *final*, replacing what is there; the lock is held."""
        start = f".{final.name}.{os.urandom(6).hex()}"
        # Renamed first: half an environment must not be seen under its name.
        with contextlib.suppress(OSError):
            final.rename(self._folder / f"{start}.old")
        for left in self._folder.glob(f".{final.name}.*"):
            remove_tree(left)
        folder = self._folder / f"{start}.new"
        try:
            folder.mkdir(mode=0o700)
            work = folder / "work"
            work.mkdir()
            target = folder / "environment"
            installer = Installer(target, work, sources, environ)
            installer.create()
            seeded = set(installer.installed())
            _install(installer, allowed)
            versions = installer.installed()
            own = [each.name for each in allowed.wanted]
            others = sorted(set(versions).difference(own, seeded))
            resolved = [f"{name}=={versions[name]}" for name in (*own, *others)]
            write_record(target / RECORD, resolved, _contents(target))
            try:
                target.rename(final)
            except OSError:
                # It is there again only if our lock was deleted; then one is as good as the other.
                if _intact(final) is None:
                    raise
        finally:
            remove_tree(folder)
        found = _intact(final)
        if found is None:
            raise ProviderError(f"the plugin environment {final} was changed while it was made")
        return found


def _key(allowed: Allowed, sources: Sources) -> str:
    """Return the name of the environment for *allowed* from *sources*: whatever changes it."""
    everything = (*allowed.wanted, *allowed.dependencies)
    projects = {each.name for each in everything}
    parts = [
        FORMAT,
        sorted([without_userinfo(each.line), each.asked] for each in allowed.wanted),
        sorted(without_userinfo(each.line) for each in allowed.dependencies),
        [user_preferences.local_files(each.url, projects) for each in everything],
        sources.identity(projects),
        [sys.implementation.name, sys.version, sysconfig.get_platform(), sys.base_prefix],
    ]
    text = json.dumps(parts, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _read(path: Path) -> PluginEnvironment | None:
    """Return the environment *path* as its record says, None without a usable one."""
    try:
        with (path / RECORD).open("rb") as stream:
            record = json.loads(stream.read(_MAX_RECORD_BYTES))
        if record["format"] != FORMAT or not isinstance(record["contents"], str):
            return None
        resolved = record["resolved"]
    except (OSError, ValueError, RecursionError, TypeError, KeyError):
        return None
    if not resolved or not all(isinstance(text, str) for text in resolved):
        return None
    return PluginEnvironment(path, tuple(resolved), record["contents"])


def _intact(path: Path) -> PluginEnvironment | None:
    """Return the environment *path* if every file in it is as it was installed, else None."""
    found = _read(path)
    if found is None:
        return None
    with contextlib.suppress(OSError):
        if found.contents == _contents(path) and os.access(found.python, os.X_OK):
            return found
    logger.info("the plugin environment %s was modified and is rebuilt", path)
    return None


def write_record(path: Path, resolved: Sequence[str], contents: str) -> None:
    """Write the record of an environment to the file *path*; raises OSError."""
    with safe_files.replacing(path) as stream:
        record = {"format": FORMAT, "resolved": list(resolved), "contents": contents}
        stream.write(json.dumps(record).encode())


def _contents(root: Path) -> str:
    """Return a digest over name, size, mode and modification time of everything below *root*."""
    lines = []
    pending = [""]
    while pending:
        folder = pending.pop()
        with os.scandir(root / folder) as entries:
            for entry in entries:
                name = f"{folder}/{entry.name}" if folder else entry.name
                if name == RECORD:
                    continue
                status = entry.stat(follow_symlinks=False)
                if entry.is_symlink():
                    lines.append(f"{name} -> {Path(entry.path).readlink()}")
                elif entry.is_dir(follow_symlinks=False):
                    lines.append(f"{name}/")
                    pending.append(name)
                else:
                    stamp = f"{status.st_size} {status.st_mode:o} {status.st_mtime_ns}"
                    lines.append(f"{name} {stamp}")
    text = "\n".join(sorted(lines))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _install(installer: Installer, allowed: Allowed) -> None:
    """Install what is allowed, and check that this is what is there then."""
    asked = {each.name: each for each in (*allowed.wanted, *allowed.dependencies)}
    wanted = list(allowed.wanted)
    installer.install(wanted, hash_mode=allowed.hash_mode)
    # With hashes there is no resolver that would pick dependencies: the user did. Installers start
    # the environment's Python, which runs the `.pth` files that are there: so what is missing is
    # never added to an environment, but installed with the rest into a new one.
    while allowed.hash_mode and (missing := _missing(installer, asked)):
        wanted += missing
        installer.create()
        installer.install(wanted, hash_mode=True)
    installer.compile()
    versions = installer.installed()
    for each in allowed.wanted:
        version = versions.get(each.name)
        if version is None:
            raise ProviderError(f"installing {each} did not install {each.name}")
        for specifier in (each.asked, "" if each.url else each.specifier):
            if not _satisfies(version, specifier):
                raise ProviderError(
                    f"{each} is version {version}, but its provider requires {specifier}"
                )


def _missing(installer: Installer, allowed: Mapping[str, Wanted]) -> list[Wanted]:
    """Return the packages that the installed ones depend on and that are not there yet."""
    versions = installer.installed()
    missing: dict[str, Wanted] = {}
    for dist in installer.distributions():
        owner = str(canonicalize_name(dist.metadata["Name"]))
        extras = allowed[owner].extras if owner in allowed else ()
        for text in dist.requires or ():
            try:
                requirement = Requirement(text)
                marker = requirement.marker
                if marker and not any(marker.evaluate({"extra": e}) for e in ("", *extras)):
                    continue
            except (ValueError, RecursionError):
                raise ProviderError(f"{owner} has a dependency that cannot be read") from None
            name = str(canonicalize_name(requirement.name))
            version = versions.get(name)
            if version is None and name not in allowed:
                raise ProviderError(
                    f"{owner} depends on {name}: as it is allowed with a hash, allow this one too, "
                    f"with '{name}==VERSION --hash=sha256:…'"
                )
            if version is None:
                missing[name] = allowed[name]
            elif not _satisfies(version, str(requirement.specifier)):
                raise ProviderError(
                    f"{owner} depends on {name}{requirement.specifier}, but {version} is allowed"
                )
    return list(missing.values())


def _satisfies(version: str, specifier: str) -> bool:
    try:
        return SpecifierSet(specifier).contains(version, prereleases=True)
    except ValueError:  # the version in the wheel's metadata is invalid
        return False
