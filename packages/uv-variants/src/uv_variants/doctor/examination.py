"""The examination: everything that the doctor looks at, one part after the other.

A part that fails is a problem among others, and the rest is examined all the same. What `variants
doctor` looks at as well is in `variants_index.doctor`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pep_variants.cache_directory import cache_directory
from pep_variants.choose.preferences import Preferences
from pep_variants.detect.registry import BUILTIN_NAMESPACES
from pep_variants.errors import PreferenceError, redacted
from pep_variants.settings.places import places
from pep_variants.sources import Sources
from variants_index.doctor import (
    Drivers,
    Findings,
    Part,
    Problem,
    State,
    configuration_part,
    environment_problems,
    machine_part,
    settings_of,
    surroundings_part,
    uv_part,
)
from variants_proxy.choice.in_place_names import HERE
from variants_proxy.client.key import host_target
from variants_proxy.upstream.upstream_options import bare_url

from .. import uv_directories
from ..command_scope import Scope
from ..daemon.control_client import ControlClient, NoDaemon, Refused
from ..daemon.record import Record, idle_seconds, records, state_folder
from ..daemon.state_file import read_state, state_path
from ..environments import Search
from ..errors import USER_ERRORS, UvNotFound
from ..invocation import parse
from ..lock_machine import LockMachine
from ..locked_variants import Lock
from ..place import Place
from ..platform_key import PlatformKey, platform_key
from ..program_version import TESTED_UVS, own_version, uv_version
from ..site_packages import Installed, installed_variants, installed_versions, site_packages
from ..used_indexes import UsedIndexes, used_indexes
from ..uv_program import find_uv
from .variants import (
    IndexAnswers,
    ask_indexes,
    installed_problems,
    installed_states,
    locked_problems,
    locked_states,
)

if TYPE_CHECKING:
    from pep_variants.model.platform import Support

    from ..own_options import Options

_MAX_ASKED = 300
_SECONDS = 2.0

T = TypeVar("T")


@dataclass
class Examination:
    """One examination of the project in a directory.

    Attributes:
        options: of uv-variants, which count for what would be chosen.
        place: of the command.
        offline: ask no index.
    """

    options: Options
    place: Place
    offline: bool
    _problems: list[Problem] = field(default_factory=list)

    @classmethod
    def of(
        cls, options: Options, environ: Mapping[str, str], folder: Path, *, offline: bool
    ) -> Examination:
        """Return the examination of the project in or above *folder*."""
        place = Place.of(parse(["sync"]), folder, environ)
        return cls(options, place, offline or place.is_on("UV_OFFLINE"))

    def findings(self, root: Path = Path("/")) -> Findings:
        """Examine everything.

        Args:
            root: of the file system in which drivers and device files are looked for.
        """
        machine, drivers = machine_part(self.place.environ, root)
        configuration, preferences = self._configuration(drivers)
        versions = self._versions()
        installed = self._installed()
        key = self._machine(preferences)
        answers = self._answers(key, installed, self._lock)
        configured = self._indexes.configuration.scalars.get("cache-dir")
        locked = locked_states(self._lock, host_target(), answers)
        states = installed_states(installed, answers)
        parts = {
            "machine": _with_plugins(machine, key),
            "surroundings": surroundings_part(
                self.place.environ,
                root,
                drivers,
                is_described=preferences.platform_file is not None,
            ),
            "configuration": configuration,
            "installers": self._installers(versions),
            "environment": self._environment_part(),
            "packages": self._packages_part(states, locked, answers),
            "lock": self._lock_part(locked, key),
            "indexes": self._indexes_part(answers),
            "proxy": _proxy_part(self.place.environ),
            "caches": _caches_part(self.place, configured),
        }
        # What failed on the way, in the part that needed it.
        problems = (*self._problems, *self._damage())
        parts["environment"] = replace(parts["environment"], problems=problems)
        return Findings(parts)

    def _configuration(self, drivers: Drivers) -> tuple[Part, Preferences]:
        activated = self.place.environ.get("VIRTUAL_ENV")
        candidates = places(
            self.place.cwd,
            activated or str(self.place.project / ".venv"),
            prefix_is_project=not activated,
        )
        settings, problems = settings_of(self.options.variants, self.place.environ, candidates)
        urls = [redacted(bare_url(index.url)) for index in self._indexes.indexes.values()]
        part = configuration_part(
            settings,
            problems,
            self.place.environ,
            Sources(urls[0] if urls else None, tuple(urls[1:])),
            start=self.place.project.absolute(),
            drivers=drivers,
            candidates=candidates,
            pip=False,
        )
        return part, settings.preferences

    def _installers(self, versions: Mapping[str, Any]) -> Part:
        found = uv_part(self.place.environ)
        used = f"uv {versions['uv']}, {versions['path']}" if versions["uv"] else "no uv"
        used += ", not tested" if versions["uv"] and not versions["tested"] else ""
        rows = ((f"uv-variants {versions['uv-variants']}", f"runs {used}"), *found.rows)
        return Part(rows, tree={"pip": [], **found.tree, "used": versions})

    def _environment_part(self) -> Part:
        path = str(self._environment or "")
        return Part((("path", path or "none"),), tree=path)

    def _damage(self) -> Iterator[Problem]:
        """Yield what is wrong with the files of the environment."""
        if self._environment is not None:
            paths = map(str, site_packages(self._environment))
            yield from environment_problems(paths, "uv-variants pip install", "uv pip uninstall")

    def _packages_part(
        self, states: Iterable[State], locked: Iterable[State], answers: IndexAnswers
    ) -> Part:
        has_lock = self._lock.text is not None
        problems = installed_problems(states, locked, answers, has_lock=has_lock)
        rows = tuple(row for state in states for row in state.rows())
        return Part(
            rows or (("variants", "none to compare"),),
            tuple(problems),
            [state.as_tree() for state in states],
        )

    def _lock_part(self, locked: Iterable[State], key: PlatformKey | None) -> Part:
        path = str(self._lock.path) if self._lock.text is not None else ""
        rows = (("path", path or "none"), *(row for state in locked for row in state.rows()))
        other = self._tried(lambda: self._other_machine(key), None, "lock")
        problems = (*self._lock_problems(), *locked_problems(locked, other))
        tree = {"path": path, "packages": [state.as_tree("locked") for state in locked]}
        return Part(rows, problems, tree)

    def _indexes_part(self, answers: IndexAnswers) -> Part:
        urls = {
            name: redacted(bare_url(index.url)) for name, index in self._indexes.indexes.items()
        }
        rows = [*urls.items(), *((f"{name}, not asked", why) for name, why in
                                 answers.problems.items())]  # fmt: skip
        return Part(tuple(rows), tree={"urls": urls, "not-asked": dict(answers.problems)})

    @cached_property
    def _lock(self) -> Lock:
        return Lock.read(self.place.lock_path)

    def _other_machine(self, key: PlatformKey | None) -> LockMachine | None:
        """Return the machine that the lock is for, None for this one or if it is not known."""
        found = LockMachine.read(self._lock.path) if self._lock.path is not None else None
        if found is None or key is None or found.is_like(key.machine):
            return None
        return found

    @cached_property
    def _indexes(self) -> UsedIndexes:
        return used_indexes(parse(["sync"]), Scope.PROJECT, self.place)

    @cached_property
    def _uv(self) -> str:
        try:
            return find_uv(self.place.environ)
        except UvNotFound as error:
            self._problems.append(Problem("uv-missing", str(error), "pip install uv"))
            return ""

    @cached_property
    def _environment(self) -> Path | None:
        """Where ``uv sync`` installs, or without a project ``uv pip install``."""
        command = ["sync"] if self.place.root is not None else ["pip", "install"]
        search = Search(
            self._uv,
            parse(command),
            self.place,
            self._indexes.configuration.scalars,
            uv_directories.cache_directory(
                self.place.environ,
                None,
                self._indexes.configuration.scalars.get("cache-dir"),
                self.place.cwd,
            ),
        )
        found = search.environments()
        return found[0] if found and found[0].is_dir() else None

    def _versions(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "uv-variants": own_version(), "uv": None, "path": self._uv, "tested": False
        }  # fmt: skip
        if not self._uv:
            return found
        try:
            version = uv_version(self._uv, self.place.environ)
        except (OSError, UvNotFound) as error:
            text = getattr(error, "strerror", None)
            shown = f"{self._uv}: {text}" if text else str(error)
            self._problems.append(Problem("uv-missing", shown))
            return found
        found |= {"uv": version, "tested": version in TESTED_UVS}
        if _parts(version) < _parts(TESTED_UVS[0]):
            self._problems.append(
                Problem(
                    "uv-version",
                    f"uv {version} is older than {TESTED_UVS[0]}, the oldest that is supported",
                    "uv self update",
                )
            )
        elif _parts(version) > _parts(TESTED_UVS[-1]):
            text = f"uv {version} is newer than {TESTED_UVS[-1]}, the newest that was tested"
            self._problems.append(Problem("uv-version", text, fails=False))
        return found

    def _machine(self, preferences: Preferences) -> PlatformKey | None:
        cache = cache_directory(self.place.environ, "proxy")

        def found() -> PlatformKey:
            return platform_key(preferences, cache, answers=self._answers_of_plugins(preferences))

        return self._tried(found, None, "configuration")

    def _answers_of_plugins(self, preferences: Preferences) -> Mapping[str, Support] | None:
        """Return what plugins say that the user allowed, None if there are none to run."""
        if not preferences.allow_providers or preferences.platform_file is not None:
            return None
        from ..provider_plugins import Plugins

        cache = cache_directory(self.place.environ, "proxy")
        strategy = self.place.environ.get("UV_INDEX_STRATEGY")
        plugins = Plugins(cache, preferences, self._indexes, strategy)
        self._problems += [Problem("plugin", str(error)) for error in plugins.failures.values()]
        return plugins.answers

    def _installed(self) -> list[Installed]:
        environments = () if self._environment is None else (self._environment,)
        variants = installed_variants(environments)
        others = [
            Installed(name, version, None)
            for name, version in sorted(installed_versions(environments))
            if name not in variants
        ]
        return [*variants.values(), *others]

    def _answers(
        self, machine: PlatformKey | None, installed: Iterable[Installed], lock: Lock
    ) -> IndexAnswers:
        variants = {each.name for each in installed if each.label is not None}
        names = [*sorted({*variants, *lock.projects})]
        names += sorted({each.name for each in installed} - set(names))
        if self.offline or machine is None or not names:
            problems = {"*": "offline: no index was asked"} if self.offline and names else {}
            return IndexAnswers({}, problems)
        cache = cache_directory(self.place.environ, "proxy")
        answers = self._tried(
            lambda: ask_indexes(
                names[:_MAX_ASKED], self._indexes, machine, cache, self.place.environ
            ),
            IndexAnswers({}, {}),
            "lookup",
        )
        for name, problem in answers.problems.items():
            text = f"index {name} could not be asked, so not all is known: {problem}"
            self._problems.append(Problem("lookup", text, fails=False))
        return answers

    def _lock_problems(self) -> Iterator[Problem]:
        lock = self._lock
        if lock.problem:
            yield Problem("lock", lock.problem)
        floating = sorted({file.project for file in lock.wheels if file.label == HERE})
        if floating:
            text = (
                f"{lock.path}: floating: the lock has no hashes of {', '.join(floating)}, so uv "
                "does not check them"
            )
            command = "uv-variants --variant-lock pinned lock"
            yield Problem("floating-lock", text, command, fails=False)

    def _tried(self, work: Callable[[], T], otherwise: T, code: str) -> T:
        """Return what *work* returns; if it fails, note the problem and return *otherwise*."""
        try:
            return work()
        except OSError as error:
            place = f"{error.filename}: " if error.filename is not None else ""
            self._problems.append(Problem(code, f"{place}{error.strerror or error}"))
        except (PreferenceError, *USER_ERRORS) as error:
            self._problems.append(Problem(code, redacted(" ".join(str(error).split()))))
        return otherwise


def _with_plugins(machine: Part, key: PlatformKey | None) -> Part:
    """Return *machine* with what plugins said, which the user allowed."""
    platform = key.platform if key is not None else None
    others = {
        namespace: support
        for namespace, support in (platform.namespaces.items() if platform is not None else ())
        if namespace not in BUILTIN_NAMESPACES and support.features
    }
    rows = tuple(
        (namespace, f"{feature} {' '.join(values)}")
        for namespace, support in others.items()
        for feature, values in support.features.items()
    )
    tree = {
        namespace: {"facts": [], "notice": support.notice, "tried": [], "warnings": []}
        for namespace, support in others.items()
    }
    return replace(machine, rows=(*machine.rows, *rows), tree={**machine.tree, **tree})


def _parts(version: str) -> tuple[int, ...]:
    numbers = version.partition("+")[0].split(".")[:3]
    return tuple(int(number) if number.isdigit() else 0 for number in numbers)


def _caches_part(place: Place, configured: object) -> Part:
    """Return the caches of uv and of this program with their sizes.

    Args:
        place: of the command.
        configured: ``cache-dir`` of uv's files.
    """
    uv = uv_directories.cache_directory(place.environ, None, configured, place.cwd).absolute()
    ours = cache_directory(place.environ, "")
    rows, tree = [], []
    for what, path in (
        ("uv", uv),
        ("uv with variants", uv_directories.variants_caches(uv)),
        ("uv-variants", ours),
    ):
        if path.is_dir():
            size, complete = uv_directories.size_of(path)
            rows.append((what, f"{path}, {uv_directories.in_words(size, complete=complete)}"))
            tree.append({"what": what, "path": str(path), "bytes": size, "complete": complete})
    return Part(tuple(rows), tree=tree)


def _proxy_part(environ: Mapping[str, str]) -> Part:
    """Return what is known of the user's background process, and what is wrong with it."""
    folder = state_folder(environ)
    known = {"state": str(folder)}
    problems: list[Problem] = []
    writable = next(path for path in (folder, *folder.parents) if path.exists())
    if not os.access(writable, os.W_OK):
        problems.append(
            Problem(
                "proxy",
                f"{writable}: cannot be written: every command runs an index proxy of its own; set "
                "VARIANTS_STATE_DIR to a directory that can",
                fails=False,
            )
        )
    running = [
        f"process {record.pid} at port {record.port}"
        for record in records(environ).values()
        if _answers(record)
    ]
    idle = idle_seconds(environ)
    known["running"] = ", ".join(running) or (
        "no; it starts when a command needs it"
        + (f" and ends {idle:.0f} seconds after the last one" if idle else " and ends with it")
    )
    if (folder / "authority.pem").exists():
        known["certificates"] = f"{folder / 'authority.pem'}, for uv alone"
    known |= _served(state_path(environ), problems)
    return Part(tuple(known.items()), tuple(problems), known)


def _answers(record: Record) -> bool:
    try:
        ControlClient(record.port, record.secret, seconds=_SECONDS).close()
    except (NoDaemon, Refused, OSError):
        return False
    return True


def _served(path: Path, problems: list[Problem]) -> dict[str, str]:
    """Return what is known of a proxy that ``uv-variants serve`` started."""
    served = read_state(path)
    if served is None:
        if path.exists():
            text = f"{path}: cannot be read, or other users could write it"
            problems.append(Problem("proxy", text, f"rm {path}"))
        return {}
    if not served.responds():
        text = f"{path}: the process {served.pid} of uv-variants serve does not answer"
        problems.append(Problem("proxy", text, "uv-variants stop", fails=False))
        return {}
    return {"serve": f"process {served.pid} at {served.url}"}
