"""Plugin environments: one virtual environment per set of requirements, made once and kept.

It is made with uv where there is one, else with `venv` and pip, from the user's sources and from
wheels only, as building from source would run more code of strangers. It is built beside its
place and renamed into it, with a record of what it consists of written last: what a killed process
leaves behind is never taken for an environment, and one that was changed later is made anew.

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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ProviderError, redacted
from .answer import one_line
from .cache import Cache, key_of, read_record, write_record
from .process import run
from .sources import FIRST_INDEX, Sources, local_files
from .variables import installer_variables

if TYPE_CHECKING:
    from .trust import Allowed, Wanted

logger = logging.getLogger(__name__)

RECORD = "pep-variants-environment.json"
"""File in the environment that says what it is; without it, it is none."""

INSTALL_TIME_LIMIT = 600.0
"""Seconds for one command of an installer."""


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
        return _python(self.path)


def environment_key(allowed: Allowed, sources: Sources) -> str:
    """Return the name of the environment for *allowed* from *sources*: whatever changes it."""
    everything = (*allowed.wanted, *allowed.dependencies)
    projects = {each.name for each in everything}
    return key_of(
        [
            sorted([redacted(each.line), each.asked] for each in allowed.wanted),
            sorted(redacted(each.line) for each in allowed.dependencies),
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
        logger.info("the plugin environment %s was changed and is made anew", path)
    return environment if same else None


def remove_environment(cache: Cache, key: str) -> None:
    """Remove the environment *key*, and what was left of attempts to make it."""
    gone = cache.environments / f".{key}.{os.urandom(6).hex()}.old"
    import shutil

    # Renamed first: half an environment must not be seen under its name.
    with contextlib.suppress(OSError):
        (cache.environments / key).rename(gone)
    with contextlib.suppress(OSError):
        for left in cache.environments.glob(f".{key}.*"):
            shutil.rmtree(left, ignore_errors=True)


def build_environment(
    cache: Cache, key: str, allowed: Allowed, sources: Sources, environ: Mapping[str, str]
) -> Environment:
    """Make the environment *key* anew; the caller holds its lock.

    Raises:
        ProviderError: it cannot be installed; the message has what the installer says.
    """
    import shutil

    remove_environment(cache, key)
    place = cache.environments / f".{key}.{os.urandom(6).hex()}.new"
    try:
        place.mkdir(mode=0o700)
        work = place / "work"
        work.mkdir()
        target = place / "environment"
        installer = _Installer(target, work, sources, environ)
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
        raise ProviderError(f"a plugin environment cannot be made: {error}") from None
    finally:
        shutil.rmtree(place, ignore_errors=True)
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


def _install(installer: _Installer, allowed: Allowed) -> None:
    """Install what is allowed, and check that this is what is there then."""
    asked = {each.name: each for each in (*allowed.wanted, *allowed.dependencies)}
    pending: Iterable[Wanted] = allowed.wanted
    while pending:
        installer.install(pending, hash_mode=allowed.hash_mode)
        # With hashes there is no resolver that would pick dependencies: the user did.
        pending = _missing(installer, asked) if allowed.hash_mode else ()
    versions = installer.installed()
    for each in allowed.wanted:
        version = versions.get(each.name)
        if version is None:
            raise ProviderError(f"installing {each} brings no {each.name}")
        for specifier in (each.asked, "" if each.url else each.specifier):
            if not _satisfies(version, specifier):
                raise ProviderError(
                    f"{each} is version {version}, but its provider requires {specifier}"
                )


def _missing(installer: _Installer, allowed: Mapping[str, Wanted]) -> list[Wanted]:
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
    except ValueError:  # the version in the wheel's own metadata is none
        return False


class _Installer:
    """uv or pip, at work on one environment."""

    def __init__(
        self, target: Path, work: Path, sources: Sources, environ: Mapping[str, str]
    ) -> None:
        self._target = target
        self._work = work
        self._sources = sources
        self._environ = installer_variables(environ)
        self._uv = _find_uv(environ)
        if not self._uv and len(sources.indexes) > 1 and sources.index_strategy == FIRST_INDEX:
            raise ProviderError(
                "several indexes of which only the first with a project counts need uv: "
                "install it, or name one index"
            )

    def create(self) -> None:
        """Make the environment, empty."""
        if not sys.executable:
            raise ProviderError("the running Python does not know its executable")
        target = str(self._target)
        if self._uv:
            command = [self._uv, "venv", "--quiet", "--no-project", "--no-python-downloads"]
            self._run("uv", [*command, "--python", sys.executable, target], "make an environment")
            return
        own_pip = _find_pip()
        options = ["--without-pip"] if own_pip else []
        command = [sys.executable, "-I", "-m", "venv", *options, target]
        self._run("venv", command, "make an environment")

    def install(self, wanted: Iterable[Wanted], *, hash_mode: bool) -> None:
        """Install *wanted*, with what it depends on unless in *hash_mode*."""
        wanted = list(wanted)
        lines = "\n".join(each.line for each in wanted) + "\n"
        requirements = self._work / "requirements.txt"
        # Only the user may read it: a URL may carry credentials.
        with open(requirements, "w", encoding="utf-8", opener=_private) as stream:
            stream.write(lines)
        options = ["--quiet", "--only-binary", ":all:", "-r", str(requirements)]
        if hash_mode:
            options += ["--require-hashes", "--no-deps"]
        if self._sources.no_index:
            options.append("--no-index")
        python = str(_python(self._target))
        command: list[str]
        if self._uv:
            # Copies: writing to a link would change the file in uv's cache, too.
            command = [self._uv, "pip", "install", "--python", python, "--link-mode", "copy"]
            command.append("--compile-bytecode")
            # uv does not look whether a local wheel is still the one that it knows.
            for each in wanted:
                if any(local_files(url, {each.name}) for url in (*self._sources.links, each.url)):
                    command += ["--refresh-package", each.name]
        elif own_pip := _find_pip():
            command = [sys.executable, own_pip, "--python", python, "install"]
        else:
            command = [python, "-I", "-m", "pip", "install"]
        names = ", ".join(map(str, wanted))
        logger.info("installing the provider plugin %s into an environment of its own", names)
        self._run("uv" if self._uv else "pip", [*command, *options], f"install {names}")

    def installed(self) -> dict[str, str]:
        """Return the version of every installed project by normalized name."""
        from packaging.utils import canonicalize_name

        return {
            str(canonicalize_name(dist.metadata["Name"])): dist.version
            for dist in self.distributions()
        }

    def distributions(self) -> list[Any]:
        """Return the metadata of everything that is installed."""
        from importlib.metadata import distributions

        from ..installed import metadata_field

        schemes = sysconfig.get_scheme_names()
        scheme = next(each for each in ("venv", os.name, "posix_prefix") if each in schemes)
        base = str(self._target)
        variables = {"base": base, "platbase": base, "installed_base": base}
        folders = {sysconfig.get_path(name, scheme, variables) for name in ("purelib", "platlib")}
        found = distributions(path=sorted(folders))
        return [each for each in found if metadata_field(each, "Name")]

    def _run(self, tool: str, command: list[str], purpose: str) -> None:
        sources = self._sources
        if self._uv:
            settings = sources.for_uv()
        else:
            settings = {
                **sources.for_pip(),
                "PIP_DISABLE_PIP_VERSION_CHECK": "1",
                "PIP_NO_INPUT": "1",
                "PIP_NO_COLOR": "1",
            }
        outcome = run(
            command,
            environ={**self._environ, **settings},
            cwd=self._work,
            time_limit=INSTALL_TIME_LIMIT,
        )
        text = sources.redact(outcome.errors or outcome.output.decode("utf-8", "replace"))
        if outcome.status == 0:
            return
        logger.debug("%s says:\n%s", tool, text)
        reason = outcome.exceeded or one_line(text, 400) or f"it ended with status {outcome.status}"
        raise ProviderError(f"{tool} cannot {purpose}: {reason}")


def _find_uv(environ: Mapping[str, str]) -> str | None:
    """Return the path of uv: beside the running Python, else on PATH."""
    import shutil

    own = sysconfig.get_path("scripts")
    for folders in (own, environ.get("PATH", "")):
        found = shutil.which("uv", path=folders) if folders else None
        if found and Path(found).is_absolute():
            return found
    return None


def _find_pip() -> str | None:
    """Return the directory of the running Python's pip, which can be run, None without one."""
    from importlib.util import find_spec

    spec = find_spec("pip")
    folder = Path(spec.origin).parent if spec and spec.origin else None
    return str(folder) if folder and folder.is_dir() else None


def _python(environment: Path) -> Path:
    windows = environment / "Scripts" / "python.exe"
    return windows if sys.platform == "win32" else environment / "bin" / "python"


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
