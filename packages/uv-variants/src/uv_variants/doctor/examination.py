"""The examination: everything that the doctor looks at, one part after the other.

A part that fails is a problem among others, and the rest is examined all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pep_variants.choose.preferences import Preferences
from pep_variants.errors import PreferenceError, redacted
from pep_variants.settings.cache_directory import cache_directory
from variants_index.uv_files import workspace_root
from variants_proxy.in_place_names import HERE
from variants_proxy.key import host_target
from variants_proxy.upstream_options import bare_url

from ..command_scope import Scope
from ..environments import Search
from ..errors import USER_ERRORS, UvNotFound
from ..invocation import parse
from ..locked_variants import Lock
from ..place import Place
from ..platform_key import PlatformKey, platform_key
from ..program_version import TESTED_UVS, own_version, uv_version
from ..site_packages import Installed, installed_variants, installed_versions
from ..used_indexes import UsedIndexes, used_indexes
from ..uv_directories import cache_directory as uv_cache_directory
from ..uv_program import find_uv
from .choices import IndexAnswers, ask_indexes
from .findings import Findings, Problem
from .places import caches, certificate_files, settings_files
from .proxy_state import proxy_state
from .variants import installed_problems, installed_states, locked_problems, locked_states

if TYPE_CHECKING:
    from pep_variants.model.platform import Support

    from ..own_options import Options

_MOST_ASKED = 300

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

    def findings(self) -> Findings:
        """Examine everything."""
        versions = self._versions()
        preferences = self._preferences()
        machine = self._machine(preferences)
        lock = self._lock
        files, problems = settings_files(self.place, lock.path)
        certificates, more = certificate_files(self.place.environ)
        self._problems += [*problems, *more]
        installed = self._installed()
        answers = self._answers(machine, installed, lock)
        states = installed_states(installed, answers.choices)
        locked = locked_states(lock, host_target(), answers.choices)
        self._problems += locked_problems(locked)
        self._problems += installed_problems(states, locked, has_lock=lock.text is not None)
        self._lock_hints(lock)
        configured = self._indexes.configuration.scalars.get("cache-dir")
        proxy, more = proxy_state(self.place.environ)
        self._problems += more
        return Findings(
            versions=versions,
            machine=_facts(machine),
            environment=str(self._environment or ""),
            installed=tuple(states),
            lock=str(lock.path) if lock.text is not None else "",
            locked=tuple(locked),
            indexes={
                name: redacted(bare_url(index.url)) for name, index in self._indexes.indexes.items()
            },
            unasked=answers.problems,
            proxy=proxy,
            files=(*files, *certificates),
            caches=tuple(caches(self.place, configured)),
            problems=tuple(sorted(self._problems, key=lambda problem: not problem.fails)),
        )

    @cached_property
    def _root(self) -> Path | None:
        return workspace_root(self.place.project.absolute())

    @cached_property
    def _lock(self) -> Lock:
        return Lock.read(self._root / "uv.lock" if self._root is not None else None)

    @cached_property
    def _indexes(self) -> UsedIndexes:
        return used_indexes(parse(["sync"]), Scope.PROJECT, self.place)

    @cached_property
    def _uv(self) -> str:
        try:
            return find_uv(self.place.environ)
        except UvNotFound as error:
            self._problems.append(Problem(str(error), "pip install uv"))
            return ""

    @cached_property
    def _environment(self) -> Path | None:
        """Where ``uv sync`` installs, or without a project ``uv pip install``."""
        command = ["sync"] if self._root is not None else ["pip", "install"]
        search = Search(
            self._uv,
            parse(command),
            self.place,
            self._indexes.configuration.scalars,
            self._root,
            None,
            uv_cache_directory(
                self.place.environ,
                None,
                self._indexes.configuration.scalars.get("cache-dir"),
                self.place.cwd,
            ),
        )
        found = search.environments()
        return found[0] if found and found[0].is_dir() else None

    def _versions(self) -> dict[str, Any]:
        found: dict[str, Any] = {"uv-variants": own_version(), "uv": None, "path": self._uv}
        if not self._uv:
            return found
        try:
            version = uv_version(self._uv, self.place.environ)
        except (OSError, UvNotFound) as error:
            text = getattr(error, "strerror", None)
            self._problems.append(Problem(f"{self._uv}: {text}" if text else str(error)))
            return found
        found |= {"uv": version, "tested": version in TESTED_UVS}
        if _parts(version) < _parts(TESTED_UVS[0]):
            self._problems.append(
                Problem(
                    f"uv {version} is older than {TESTED_UVS[0]}, the oldest that is supported",
                    "uv self update",
                )
            )
        elif _parts(version) > _parts(TESTED_UVS[-1]):
            text = f"uv {version} is newer than {TESTED_UVS[-1]}, the newest that was tested"
            self._problems.append(Problem(text, fails=False))
        return found

    def _preferences(self) -> Preferences:
        from pep_variants.settings.loader import load_preferences
        from pep_variants.settings.places import places

        activated = self.place.environ.get("VIRTUAL_ENV")
        candidates = places(
            self.place.cwd,
            activated or str(self.place.project / ".venv"),
            prefix_is_project=not activated,
        )
        return self._tried(
            lambda: load_preferences(
                self.options.variants,
                self.place.environ,
                warn=lambda text: self._problems.append(Problem(text, fails=False)),
                candidates=candidates,
            ),
            Preferences(),
        )

    def _machine(self, preferences: Preferences) -> PlatformKey | None:
        cache = cache_directory(self.place.environ, "proxy")

        def found() -> PlatformKey:
            return platform_key(preferences, cache, answers=self._answers_of_plugins(preferences))

        return self._tried(found, None)

    def _answers_of_plugins(self, preferences: Preferences) -> Mapping[str, Support] | None:
        """Return what plugins say that the user allowed, None if there are none to run."""
        if not preferences.allow_providers or preferences.platform_file is not None:
            return None
        from ..provider_plugins import Plugins

        cache = cache_directory(self.place.environ, "proxy")
        strategy = self.place.environ.get("UV_INDEX_STRATEGY")
        plugins = Plugins(cache, preferences, self._indexes, strategy)
        self._problems += [Problem(str(error)) for error in plugins.failures.values()]
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
                names[:_MOST_ASKED], self._indexes, machine, cache, self.place.environ
            ),
            IndexAnswers({}, {}),
        )
        for name, problem in answers.problems.items():
            text = f"index {name} could not be asked, so not all is known: {problem}"
            self._problems.append(Problem(text, fails=False))
        return answers

    def _lock_hints(self, lock: Lock) -> None:
        if lock.problem:
            self._problems.append(Problem(lock.problem))
        floating = sorted({file.project for file in lock.wheels if file.label == HERE})
        if floating:
            text = (
                f"{lock.path}: floating: the lock has no hashes of {', '.join(floating)}, so uv "
                "does not check them"
            )
            command = "uv-variants --variant-lock pinned lock"
            self._problems.append(Problem(text, command, fails=False))

    def _tried(self, work: Callable[[], T], otherwise: T) -> T:
        """Return what *work* returns; if it fails, note the problem and return *otherwise*."""
        try:
            return work()
        except OSError as error:
            place = f"{error.filename}: " if error.filename is not None else ""
            self._problems.append(Problem(f"{place}{error.strerror or error}"))
        except (PreferenceError, *USER_ERRORS) as error:
            self._problems.append(Problem(redacted(" ".join(str(error).split()))))
        return otherwise


def _facts(machine: PlatformKey | None) -> dict[str, list[str]]:
    platform = machine.platform if machine is not None else None
    if platform is None:
        return {}
    return {
        namespace: [f"{fact.what} {fact.value} ({fact.source})" for fact in support.facts]
        for namespace, support in platform.namespaces.items()
        if support.features
    }


def _parts(version: str) -> tuple[int, ...]:
    numbers = version.partition("+")[0].split(".")[:3]
    return tuple(int(number) if number.isdigit() else 0 for number in numbers)
