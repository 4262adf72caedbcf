"""Plugin environments: one virtual environment per set of requirements, made once and kept.

It is made with uv where there is one, else with `venv` and pip, from the user's sources and from
wheels only, as building from source would run code of theirs. None of what is installed runs
before `runner` confines it, and starting the environment's Python would run some: see `_install`.

It is built beside its place and renamed into it, with a record of what it consists of written last:
what a killed process leaves behind is never used as an environment, and one that was changed
later is rebuilt.

An environment stays as it is, also when its plugin has newer releases, until it is cleared or
something of its key changes: the requirements, the sources, the Python.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import sys
import sysconfig
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pep_variants.errors import ProviderError, without_userinfo
from pep_variants.sources import Sources, local_files

from .cache import Cache, key_of, read_record, write_record
from .installer import Installer, python_of
from .removal import remove_tree

if TYPE_CHECKING:
    from pep_variants.settings.allow_list import Allowed, Wanted

logger = logging.getLogger(__name__)

RECORD = "pep-variants-environment.json"
"""File in the environment that describes it; a directory without it is not an environment."""


@dataclass(frozen=True)
class Environment:
    """A virtual environment with a provider's plugin in it.

    Attributes:
        path: its directory.
        requirements: what was to be installed, without credentials.
        resolved: what was installed, ``name==version``: first the provider's own packages in the
            order of the metadata, then their dependencies by name.
        created: when, in nanoseconds since the epoch; tells a rebuilt one from the one before.
    """

    path: Path
    requirements: tuple[str, ...]
    resolved: tuple[str, ...]
    created: int

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return python_of(self.path)


def environment_key(allowed: Allowed, sources: Sources) -> str:
    """Return the name of the environment for *allowed* from *sources*: whatever changes it."""
    everything = (*allowed.wanted, *allowed.dependencies)
    projects = {each.name for each in everything}
    return key_of(
        [
            sorted([without_userinfo(each.line), each.asked] for each in allowed.wanted),
            sorted(without_userinfo(each.line) for each in allowed.dependencies),
            [local_files(each.url, projects) for each in everything],
            sources.identity(projects),
            [sys.implementation.name, sys.version, sysconfig.get_platform(), sys.base_prefix],
        ]
    )


def read_environment(cache: Cache, key: str) -> Environment | None:
    """Return the environment *key* as its record says, None if there is none."""
    return _from_record(cache.environments / key, read_record(cache.environments / key / RECORD))


def iter_environments(cache: Cache) -> list[Environment]:
    """Return all environments of the cache, by path."""
    try:
        names = sorted(path.name for path in cache.environments.iterdir())
    except OSError:
        return []
    found = (read_environment(cache, name) for name in names if not name.startswith("."))
    return [environment for environment in found if environment]


def intact_environment(cache: Cache, key: str) -> Environment | None:
    """Return the environment *key* if every file in it is as it was installed, else None."""
    path = cache.environments / key
    record = read_record(path / RECORD)
    environment = _from_record(path, record)
    if environment is None or record is None:
        return None
    try:
        same = record.get("contents") == _contents(path) and os.access(environment.python, os.X_OK)
    except OSError:
        same = False
    if not same:
        logger.info("the plugin environment %s was modified and is rebuilt", path)
    return environment if same else None


def remove_environment(cache: Cache, key: str) -> None:
    """Remove the environment *key*, and what was left of attempts to make it."""
    gone = cache.environments / f".{key}.{os.urandom(6).hex()}.old"
    # Renamed first: half an environment must not be seen under its name.
    with contextlib.suppress(OSError):
        (cache.environments / key).rename(gone)
    with contextlib.suppress(OSError):
        for left in cache.environments.glob(f".{key}.*"):
            remove_tree(left)


def build_environment(
    cache: Cache, key: str, allowed: Allowed, sources: Sources, environ: Mapping[str, str]
) -> Environment:
    """Build the environment *key*, replacing what is there; the caller holds its lock.

    Raises:
        ProviderError: it cannot be installed; the message has what the installer says.
    """
    remove_environment(cache, key)
    place = cache.environments / f".{key}.{os.urandom(6).hex()}.new"
    try:
        place.mkdir(mode=0o700)
        work = place / "work"
        work.mkdir()
        target = place / "environment"
        installer = Installer(target, work, sources, environ)
        installer.create()
        seeded = set(installer.installed())
        _install(installer, allowed)
        versions = installer.installed()
        own = [each.name for each in allowed.wanted]
        others = sorted(set(versions).difference(own, seeded))
        record = {
            "requirements": [str(each) for each in allowed.wanted],
            "resolved": [f"{name}=={versions[name]}" for name in (*own, *others)],
            "created": time.time_ns(),
            "contents": _contents(target),
        }
        write_record(target / RECORD, record)
        final = cache.environments / key
        try:
            target.rename(final)
        except OSError:
            # It is there again only if our lock was deleted; then one is as good as the other.
            if intact_environment(cache, key) is None:
                raise
    except OSError as error:
        raise ProviderError(f"a plugin environment cannot be created: {error}") from None
    finally:
        remove_tree(place)
    environment = intact_environment(cache, key)
    if environment is None:
        raise ProviderError(f"the plugin environment {final} was changed while it was made")
    return environment


def _from_record(path: Path, record: Mapping[str, Any] | None) -> Environment | None:
    if record is None:
        return None
    requirements, resolved = record.get("requirements"), record.get("resolved")
    created = record.get("created")
    for texts in (requirements, resolved):
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            return None
    if not isinstance(created, int) or not requirements or not resolved:
        return None
    return Environment(path, tuple(requirements), tuple(resolved), created)


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
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

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
    from packaging.specifiers import SpecifierSet

    try:
        return SpecifierSet(specifier).contains(version, prereleases=True)
    except ValueError:  # the version in the wheel's metadata is invalid
        return False
