"""The answers of the selector: what the engine chooses for every project and machine.

Each is what `variants resolve --variant-catalog default` says on an index that has what the record
has. Nothing is chosen here: machines that support the same share a resolution, that is all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

from packaging.requirements import Requirement
from packaging.tags import Tag, parse_tag
from packaging.utils import canonicalize_name
from packaging.version import Version

from pep_variants import safe_files
from pep_variants import selection as wheel_selection
from pep_variants.errors import VariantError, listed
from pep_variants.machines import ACCELERATORS, BUILTIN_NAMESPACES, Detector
from resolvelib_variants.resolution import (
    IndexResolver,
    NoSolution,
    Package,
    RequirementSet,
    Resolution,
    explain,
    parse_requirement,
)
from variants_catalog.catalogs import (
    Source,
    check_line,
    our_lines,
    plain_lines,
    shipped_catalog,
    source_of,
)
from variants_catalog.entries import PLACEHOLDER, CatalogProject, filled
from variants_catalog.listings import pages_of
from variants_index.finder import CandidateEvaluator
from variants_index.target import Target, make_target, meets_python

from .machines import (
    SYSTEMS,
    Machine,
    System,
    drivers_tree,
    gpus_tree,
    machines_of,
    platform,
    signature,
    wanted_values,
)
from .record import PUBLIC, PYTHONS, SDIST, Pages, Record
from .session import PREFERENCES, SOURCES, RecordSession, every_page, for_target

_DATA = safe_files.read_toml(Path(__file__).with_name("projects.toml").read_text("utf-8"))
_EXTRA = re.compile(r"""extra *== *['"]([^'"]+)""")
_LOOKED_AT = 20
"""Releases that are looked through for a build at most, and some more."""
FAMILIES: Mapping[str, Sequence[str]] = _DATA["families"]
GROUPS: Mapping[str, Sequence[str]] = _DATA["groups"]


@cache
def entry_of(name: str) -> CatalogProject | None:
    """Return the entry of a project in the shipped catalogue, None without one."""
    return shipped_catalog().project(name)


@dataclass(frozen=True)
class Question:
    """A question of the form: projects and a machine.

    Attributes:
        project: its id on the page: a name, or that of a family.
        system: of the machine.
        python: version of Python.
        machine: the rest of it.
    """

    project: str
    system: System
    python: str
    machine: Machine

    @property
    def names(self) -> Sequence[str]:
        """The projects that are asked for."""
        return FAMILIES.get(self.project, (self.project,))

    @cached_property
    def target(self) -> Target:
        """The machine for a resolver."""
        return make_target(
            python_version=self.python,
            platforms=[self.system.tag],
            name="this machine",
            platform=platform(self.machine),
        )


class Usable(NamedTuple):
    """What can be used of a release.

    Attributes:
        version: as published.
        fits: whether there is a wheel.
        meets_python: whether its ``Requires-Python`` is met.
        applicable: its requirements with a marker about Python that apply.
        requires: names of all that it may require.
    """

    version: Version
    fits: bool
    meets_python: bool
    applicable: frozenset[str]
    requires: frozenset[str]


@dataclass(eq=False)
class Answers:
    """Answers questions out of a record.

    Attributes:
        record: what indexes list.
    """

    record: Record
    _resolved: dict[Any, dict[str, Any]] = field(default_factory=dict)
    _resolutions: dict[Any, list[tuple[str, Resolution]]] = field(default_factory=dict)
    _known_left_out: dict[Any, str] = field(default_factory=dict)
    _known_usable: dict[Any, list[Usable]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._pages, self._unread = every_page(self.record)
        self._everything = _resolver(self._pages)
        self._resolvers: dict[tuple[str, str], IndexResolver] = {}
        self._extras = frozenset(_asked_extras(self._pages))

    def close(self) -> None:
        """End the threads."""
        for each in (self._everything, *self._resolvers.values()):
            each.close()

    def _resolver(self, question: Question) -> IndexResolver:
        """Return the resolver for a system and Python, without the files of others."""
        key = question.system.id, question.python
        if key not in self._resolvers:
            self._resolvers[key] = _resolver(for_target(self._pages, question.target))
        return self._resolvers[key]

    def answer(self, question: Question) -> dict[str, Any]:
        """Return the answer to *question* as JSON data."""
        key = (
            question.project,
            question.system.id,
            question.python,
            question.machine.vendor,
            self._signature(question),
        )
        if key not in self._resolved:
            self._resolved[key] = self._answer(question)
        return self._resolved[key]

    def _signature(self, question: Question) -> tuple[tuple[str, ...], ...]:
        return signature(question.machine, self._wanted(question.project))

    @cache  # noqa: B019 - there is one for each run
    def _wanted(self, project: str) -> Mapping[str, frozenset[str]]:
        entries = map(entry_of, self._needed(project))
        return wanted_values(filter(None, entries))

    @cache  # noqa: B019
    def _needed(self, project: str) -> frozenset[str]:
        """Return the names of what *project* may require, and of itself."""
        found: set[str] = set()
        waiting = [*FAMILIES.get(project, (project,))]
        while waiting:
            name = waiting.pop()
            if name in found:
                continue
            found.add(name)
            entry = entry_of(name)
            if entry is not None:
                waiting += entry.targets
                waiting += self._brought(name)
            for url in self._urls(name):
                lines = {line for held in self._pages[url].values() for line in held.requires}
                waiting += _required(lines, self._extras)
        return frozenset(found)

    def _urls(self, name: str) -> list[str]:
        """Return the pages of a project that list something."""
        entry = entry_of(name)
        urls = [f"{PUBLIC}/{name}/", *(page.url for page in (pages_of(entry) if entry else ()))]
        return [url for url in urls if url in self._pages]

    def resolve(self, question: Question) -> Resolution:
        """Return what the engine chooses; raises NoSolution."""
        wanted = RequirementSet(tuple(map(parse_requirement, question.names)))
        return self._resolver(question).resolve(wanted, question.target)

    def _shared(self, question: Question) -> Resolution:
        """Return what `resolve` does, or did for another Python that has the same files.

        It is enough that they have the same of the releases that count: those down to the ones
        that are chosen, or where no build is found as many as are looked through for one.
        """
        key = (question.project, question.system.id, self._signature(question))
        for python, resolution in self._resolutions.setdefault(key, []):
            if self._is_alike(question, python, resolution):
                return resolution
        resolution = self.resolve(question)
        self._resolutions[key].append((question.python, resolution))
        return resolution

    def _is_alike(self, question: Question, python: str, resolution: Resolution) -> bool:
        other = replace(question, python=python)
        seen: set[str] = set()
        waiting = [*question.names]
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            waiting += self._brought(name)
            oldest = self._oldest(name, question, resolution.by_name.get(name))
            for url in self._urls(name):
                mine, theirs = (
                    [each for each in self._usable(asked, url) if each.version >= oldest]
                    for asked in (question, other)
                )
                if mine != theirs:
                    return False
                for each in mine:
                    waiting += each.requires
        return True

    @cache  # noqa: B019
    def _brought(self, name: str) -> list[str]:
        """Return the projects that builds of the entry of *name* are of, or require."""
        entry = entry_of(name)
        texts = {text for item in entry.variants for text in item.requires} if entry else set()
        return [Requirement(filled(text, {"version": "0"})).name for text in texts]

    def _oldest(self, name: str, question: Question, chosen: Package | None) -> Version:
        """Return the oldest release of a project that was looked at."""
        entry = entry_of(name)
        public = [each.version for each in self._usable(question, f"{PUBLIC}/{name}/")]
        looks = entry is not None and entry.before_version and question.machine.vendor
        if looks and not (chosen is not None and _accelerates(chosen)):
            return min(public[:_LOOKED_AT], default=Version("0"))
        if chosen is not None:
            return chosen.candidate.release
        return max(public, default=Version("0"))

    def _usable(self, question: Question, url: str) -> list[Usable]:
        """Return what a Python can use of the releases of a page, newest first."""
        key = (question.system.id, question.python, url)
        if key not in self._known_usable:
            environment = question.target.environment
            tags = frozenset(question.target.tags)
            found = [
                Usable(
                    Version(text),
                    any(not tags.isdisjoint(parsed(tag)) for tag in release.tags),
                    meets_python(release.python or None, environment["python_full_version"]),
                    frozenset(_applicable(release.requires, environment)),
                    frozenset(_required(release.requires, self._extras)),
                )
                for text, release in self._pages.get(url, {}).items()
            ]
            found.sort(key=lambda each: each.version, reverse=True)
            self._known_usable[key] = found
        return self._known_usable[key]

    @cache  # noqa: B019
    def is_unknown(self, name: str) -> bool:
        """Return whether unread pages have builds of *name*, and its entry does not tell which."""
        entry = entry_of(name)
        if entry is None or entry.variants_index is not None:
            return True
        public = self._pages.get(f"{PUBLIC}/{name}/", {}).values()
        has_wheels = any(tag != SDIST for release in public for tag in release.tags)
        return any(
            PLACEHOLDER.search("".join(item.local or ())) or not (item.platforms or has_wheels)
            for page in pages_of(entry)
            for item in entry.variants
            if item.place == page.place and page.url in self._unread
        )

    def _answer(self, question: Question) -> dict[str, Any]:
        unknown = next(filter(self.is_unknown, question.names), "")
        if unknown:
            return {"title": f"{unknown}: ask on your machine", "why": _UNKNOWN, "ask": True}
        try:
            resolution = self._shared(question)
        except NoSolution:
            why = " ".join(self._none_fits(name, question) for name in question.names)
            return {
                "title": f"No wheel of {listed(question.names, 'and')} fits",
                "why": why.strip(),
            }
        names = [resolution.provided.get(name, name) for name in question.names]
        chosen = [resolution.by_name[name] for name in names]
        return self._described(question, resolution, chosen)

    def _none_fits(self, name: str, question: Question) -> str:
        newest = self._newest(name)
        reason = self._left_out(name, newest, question) or self._needs(name, newest, question)[0]
        return f"{name} {newest}: it {reason}." if reason else ""

    def _described(
        self, question: Question, resolution: Resolution, chosen: Sequence[Package]
    ) -> dict[str, Any]:
        others = [item for item in resolution.packages if item not in chosen and _is_shown(item)]
        built = [*chosen, *others]
        lines = plain_lines(list(map(_source, built)))
        first = chosen[0]
        not_newer, again = self._not_newer(chosen, question)
        uses = any(map(_accelerates, chosen))
        kind = question.machine.vendor if uses or question.machine.vendor == "apple" else ""
        check = check_line(first.name, kind)
        shown = check or f"from importlib.metadata import version; print(version('{first.name}'))"
        releases = listed([f"{item.name} {item.candidate.release}" for item in chosen], "and")
        facts = map(_fact, built)
        answer = {
            "chosen": [
                {
                    "project": item.name,
                    "release": str(item.candidate.release),
                    "build": _build(item),
                    "asked": item in chosen,
                }
                for item in built
            ],
            "title": f"{releases} {_for(first)}".strip(),
            "why": _why(first, question),
            "not_newer": not_newer,
            "warning": _warning(question, resolution, chosen, uses=uses),
            "without": {name: line.text for name, line in lines.items() if line.text},
            "without_why": {name: line.why for name, line in lines.items() if line.why},
            "check": f'python -c "{shown}"',
            "expect": "True" if check else str(first.version),
            "again": again,
            "facts": [fact for fact in facts if fact is not None],
            "supposed": any(item.candidate.place in self._unread for item in built),
        }
        return {key: value for key, value in answer.items() if value not in ("", {}, [], False)}

    @cache  # noqa: B019
    def _newest(self, name: str) -> Version:
        """Return the newest release of a project on the public index."""
        entry = entry_of(name)
        placeholder = entry.placeholder if entry else None
        names = (name, *(entry.targets if entry else ()))
        versions = [
            Version(text)
            for each in names
            for text, release in self._pages.get(f"{PUBLIC}/{each}/", {}).items()
            if not release.yanked
            and (each != name or placeholder is None or text not in placeholder)
        ]
        return max(versions, default=Version("0"))

    def _not_newer(self, chosen: Sequence[Package], question: Question) -> tuple[str, str]:
        """Return why *chosen* are not the newest releases, and when to look again."""
        lacks: dict[str, list[str]] = {}
        features: set[str] = set()
        for item in chosen:
            newest = self._newest(item.name)
            if item.candidate.release >= newest:
                continue
            lack = self._left_out(item.name, newest, question)
            if not lack:
                lack, needed = self._needs(item.name, newest, question)
                features |= needed
            lack = lack or "needs a release of another project that has no such build"
            lacks.setdefault(lack, []).append(f"{item.name} {newest}")
        text = " ".join(f"Not {listed(names, 'and')}: it {lack}." for lack, names in lacks.items())
        again = f"When a release after {chosen[0].name} {self._newest(chosen[0].name)} is out"
        if features == {"cuda_version_lower_bound"}:
            again += ", or you have a newer driver"
        elif features & {"sm_arch", "gfx_arch", "device_ip"}:
            again += ", or you have another GPU"
        return text, f"{again}."

    def _left_out(self, name: str, version: Version, question: Question) -> str:
        """Return why no file of a version is for the system and Python; empty if one is."""
        key = (name, version, question.system.id, question.python)
        if key not in self._known_left_out:
            self._known_left_out[key] = self._why_left_out(name, version, question)
        return self._known_left_out[key]

    def _why_left_out(self, name: str, version: Version, question: Question) -> str:
        evaluator = CandidateEvaluator(self._everything.finder, question.target)
        with suppress(VariantError):
            if evaluator.candidates(name, version):
                return ""
            counts = evaluator.rejected[name, version]
            if evaluator.no_python in counts:
                return f"has {evaluator.no_python}"
            python = next((text for text in counts if text.startswith("needs Python")), "")
            return python or f"has no wheel for {question.system.title}"
        return ""

    def _needs(self, name: str, version: Version, question: Question) -> tuple[str, set[str]]:
        """Return what a build of a version needs that the machine has not, and of which features.

        It is the build that comes closest: the one with the fewest needs.
        """
        wanted = parse_requirement(f"{name}=={version}")
        try:
            found = explain(self._resolver(question), wanted, question.target)
        except VariantError:
            return "", set()
        vendor = question.machine.vendor
        lacks = [
            (
                label,
                [reason for reason in ranking.reasons(label) if vendor in ("", reason.namespace)],
            )
            for ranking in found.rankings.values()
            for label in ranking.rejected_labels
        ]
        lacks = [each for each in lacks if each[1]]
        if lacks:
            label, reasons = min(lacks, key=lambda each: len(each[1]))
            needed = " and ".join(map(wheel_selection.needs, reasons))
            needed = f"is {needed}" if needed.startswith("built") else needed
            return f"has {label}, which {needed}", {reason.feature for reason in reasons}
        if vendor in ACCELERATORS and found.chosen is not None:
            return f"has no build for the {BUILTIN_NAMESPACES[vendor].vendor.device}", set()
        return "", set()


def _resolver(pages: Pages) -> IndexResolver:
    session = RecordSession(pages)
    return IndexResolver(SOURCES, preferences=PREFERENCES, environ={}, session=session)


_UNKNOWN = (
    "The index that has its builds was not asked when this page was made. The line with the "
    "catalogue asks it, and chooses."
)


def _warning(
    question: Question, resolution: Resolution, chosen: Sequence[Package], *, uses: bool
) -> str:
    first = chosen[0]
    if uses:
        is_torch = question.machine.key.rpartition("/")[2].startswith("JetPack")
        return _JETSON if is_torch and first.name in GROUPS["PyTorch"] else ""
    if question.machine.vendor not in ACCELERATORS:
        return ""
    if not any(_ever_accelerates(item.name) for item in chosen):
        return ""
    note = resolution.version_notes.get(first.name)
    if note is not None and note.version is not None:
        why = f"{first.name} {note.version} does, which something else here excludes"
    elif note is not None:
        why = "none of the newest releases has a build for it"
    else:
        why = "this release has no build for it on this system"
    return f"It does not use your GPU: {why}."


_JETSON = (
    "PyTorch's builds for 64-bit Arm are made for servers; those for a Jetson are on an index of "
    "NVIDIA, which `variants doctor` names."
)


def _fact(item: Package) -> dict[str, Any] | None:
    catalog = item.candidate.catalog
    if catalog is None:
        return None
    measured = catalog.published.measured
    texts = wheel_selection.all_needs(catalog.published.properties)
    last = max(measured, key=lambda each: each.date, default=None)
    return {
        "text": f"{item.name}: {'; '.join(texts) or 'runs everywhere'}",
        "measured": last.file if last else None,
        "page": catalog.entry.documentation,
        "date": last.date if last else catalog.entry.checked,
    }


def _asked_extras(pages: Pages) -> Iterator[str]:
    """Yield the extras that anything asks for, of whatever project."""
    lines = {
        line for held in pages.values() for release in held.values() for line in release.requires
    }
    texts = [line.partition(":")[2] for line in lines if line.startswith("Requires-Dist:")]
    entries = filter(None, map(entry_of, shipped_catalog().names()))
    texts += [text for entry in entries for item in entry.variants for text in item.requires]
    for text in texts:
        yield from Requirement(filled(text, {"version": "0"}).strip()).extras


@cache
def parsed(tag: str) -> frozenset[Tag]:
    """Return the tags that *tag*, of a filename, stands for."""
    return frozenset() if tag == SDIST else parse_tag(tag)


def _applicable(requires: Iterable[str], environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the requirements with a marker about Python that apply."""
    for line in requires:
        if ";" in line and "python" in line.partition(";")[2]:
            marker = Requirement(line.partition(":")[2].strip()).marker
            if marker is not None and marker.evaluate({**environment, "extra": ""}):
                yield line


def _required(requires: Iterable[str], extras: Set[str]) -> Iterator[str]:
    """Yield the names of what is required, by an extra only if it is one of *extras*."""
    for line in requires:
        key, _, value = line.partition(":")
        extra = _EXTRA.search(value)
        if key == "Requires-Dist" and (extra is None or extra[1] in extras):
            yield canonicalize_name(Requirement(value.strip()).name)


def _is_shown(item: Package) -> bool:
    """Return whether a dependency is of an index that the line has to name."""
    catalog = item.candidate.catalog
    if catalog is None or catalog.entry.is_elsewhere or not item.properties:
        return False
    return bool(_source(item).place)


def _source(item: Package) -> Source:
    catalog = item.candidate.catalog
    if catalog is None:
        return Source(item.name, str(item.version))
    return source_of(catalog.entry, catalog.published, catalog.place)


def _build(item: Package) -> str:
    return "" if item.label in (None, "null") else str(item.label)


def _accelerates(item: Package) -> bool:
    return bool(item.properties and item.properties.keys() & ACCELERATORS.keys())


def _ever_accelerates(name: str) -> bool:
    entry: CatalogProject | None = entry_of(name)
    return entry is not None and any(
        item.known_namespaces & ACCELERATORS.keys() for item in entry.variants
    )


def _for(item: Package) -> str:
    """Return in words what a build is for."""
    build = _build(item)
    match = re.match(r"(cuda|rocm)([0-9.]*)", build)
    if match:
        names = {"cuda": "CUDA", "rocm": "ROCm"}
        return f"for {names[match[1]]} {match[2]}".rstrip()
    return {"xpu": "for Intel GPUs", "tpu": "for TPUs"}.get(build, "for CPUs" if item.label else "")


def _why(item: Package, question: Question) -> str:
    if item.metadata is None or not item.properties:
        return ""
    detector = Detector(platform=platform(question.machine))
    ranking = wheel_selection.rank(item.metadata, detector.platform(item.metadata))
    held = {variant.label: variant.supported for variant in ranking.ranked}
    needs = wheel_selection.why_chosen(held.get(str(item.label), item.properties))
    return f"It needs {needs}." if needs else ""


def tree(record: Record, ids: Sequence[str] = ()) -> dict[str, Any]:
    """Return all answers as JSON data; of the projects *ids* alone, if any are given."""
    answers = Answers(record)
    try:
        return _tree(
            answers,
            [
                (id_, group)
                for group, names in GROUPS.items()
                for id_ in names
                if not ids or id_ in ids
            ],
        )
    finally:
        answers.close()


def _tree(answers: Answers, projects: Sequence[tuple[str, str]]) -> dict[str, Any]:
    known, rows, facts = _Numbered(), _Numbered(), _Numbered()
    machines = {system.id: machines_of(system) for system in SYSTEMS}

    def row(project: str, system: System, machine: Machine) -> int:
        asked = (Question(project, system, python, machine) for python in PYTHONS)
        return rows.of([known.of(_with_facts(answers.answer(each), facts)) for each in asked])

    choices = {
        project: {
            system.id: [row(project, system, machine) for machine in machines[system.id]]
            for system in SYSTEMS
        }
        for project, _ in projects
    }
    return {
        "record": {"date": answers.record.date},
        "pythons": list(PYTHONS),
        "systems": [{"id": system.id, "title": system.title} for system in SYSTEMS],
        "gpus": gpus_tree(),
        "drivers": drivers_tree(),
        "projects": [_project(id_, group) for id_, group in projects],
        "installers": [*plain_lines([Source("x", "1")])],
        "machines": {name: [each.key for each in held] for name, held in machines.items()},
        "choices": choices,
        "rows": rows.values,
        "answers": known.values,
        "facts": facts.values,
    }


def _with_facts(answer: Mapping[str, Any], facts: _Numbered) -> dict[str, Any]:
    numbers = [facts.of(each) for each in answer.get("facts", ())]
    return {**answer, "facts": numbers} if numbers else {**answer}


def _project(id_: str, group: str) -> dict[str, Any]:
    lines = our_lines(FAMILIES.get(id_, (id_,)))
    return {
        "id": id_,
        "title": id_.replace("+", " + "),
        "group": group,
        "with": {name: line.text for name, line in lines.items() if line.text},
        "with_why": {name: line.why for name, line in lines.items() if line.why},
    }


class _Numbered:
    """Values of JSON, each once.

    Attributes:
        values: in the order in which they came.
    """

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[str, int] = {}

    def of(self, value: object) -> int:
        """Return the number of *value*."""
        number = self._numbers.setdefault(json.dumps(value), len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number
