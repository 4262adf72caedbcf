"""Installed builds that a command replaces, takes along or leaves, decided before uv runs.

uv compares versions only, and reinstalls a package in its newest version. So its options say what
the engine decides about installed builds (`variants_proxy._choice.judgement`): versions as
constraints, builds to replace as ``--reinstall-package``, and the rest of their families as
requirements. A build that stays keeps its label, and new members of its family get the same one.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import permutations, product
from typing import TYPE_CHECKING, NamedTuple

from pep_variants import machines
from pep_variants import selection as wheel_selection
from pep_variants.machines import Surroundings

from ._choices import label_for
from ._command_line import Invocation, parse
from ._environments import installed
from ._named_projects import admits, are_tags_of, exact_versions, name_of, normalized

if TYPE_CHECKING:
    from packaging.version import Version

    from pep_variants.wheel_files import Installed
    from variants_proxy.service import Judgement

    from ._context import Context
    from ._state import CommandState

INSTALLS = (("run",), ("sync",), ("add",), ("remove",), ("tool", "run"))
INSTALLS_TOO = (("pip", "install"), ("pip", "sync"), ("tool", "install"), ("tool", "upgrade"))

logger = logging.getLogger(__name__)

_LIBRARY = re.compile(r"-cu(?:da)?\d+$")
"""In names of packages with libraries of one version of CUDA."""


class Changes(NamedTuple):
    """Options of uv for what is installed.

    Attributes:
        replaced: projects to be installed again.
        pins: versions that they get, as requirements.
        along: installed projects that uv has to resolve with those that the command names.
        held: projects that stay, whatever is upgraded.
        judged: projects that were judged; `with_outdated` compares all others.
        before, after: lines for the user, before and after uv runs.
    """

    replaced: tuple[str, ...] = ()
    pins: tuple[str, ...] = ()
    along: tuple[str, ...] = ()
    held: frozenset[str] = frozenset()
    judged: frozenset[str] = frozenset()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    def with_others(self, others: Changes) -> Changes:
        """Return both."""
        return Changes(
            (*self.replaced, *others.replaced),
            (*self.pins, *others.pins),
            (*self.along, *others.along),
            self.held | others.held,
            self.judged | others.judged,
            (*self.before, *others.before),
            (*self.after, *others.after),
        )


NO_CHANGES = Changes()


def changes_of(state: CommandState) -> Changes:
    """Return the changes of ``pip install`` to installed builds.

    The session has the labels of what stays from now on.
    """
    context = state.context
    if context.invocation.command != ("pip", "install"):
        return NO_CHANGES
    if context.is_offline and not context.asks_offline:
        return NO_CHANGES
    if not (context.preferences.use_variants and context.environments):
        return NO_CHANGES
    if context.indexes.configuration.hashes or context.invocation.has("require-hashes"):
        return NO_CHANGES  # uv takes nothing then that has no hash
    asked = _Asked(state)
    changes = NO_CHANGES
    for family in asked.families():
        decided = asked.decided(family)
        if decided.judged:
            logger.debug(
                "Installed builds of %s: installed again: %s; resolved with them: %s; kept: %s",
                ", ".join(family), decided.replaced, decided.along, sorted(decided.held),
            )  # fmt: skip
        changes = changes.with_others(decided)
    return changes


def with_outdated(state: CommandState, changes: Changes = NO_CHANGES) -> Changes:
    """Return *changes*, and what else uv has to reinstall because it would keep it."""
    context = state.context
    if context.invocation.command not in (*INSTALLS, *INSTALLS_TOO) or not context.environments:
        return changes
    names, lines = _outdated(state, changes.judged)
    pins = pins_of(state, names) if context.invocation.command == ("pip", "install") else []
    return changes._replace(
        replaced=(*names, *changes.replaced),
        pins=(*pins, *changes.pins),
        after=(*lines, *changes.after),
    )


def _outdated(state: CommandState, judged: Collection[str]) -> tuple[list[str], list[str]]:
    """Return the projects (normalized names) that uv has to reinstall, and lines for the user.

    Variants that are no longer what would be chosen always. Projects that are installed without
    variant if a label of theirs is forced or locked, or if the command names them with
    ``--variant-switch``, which also ignores the age of earlier comparisons.

    Args:
        state: before the command.
        judged: projects that are decided about.
    """
    preferences = state.context.preferences
    candidates = [each for each in state.before.values() if each.project not in judged]
    names = dict.fromkeys((*preferences.forced, *_locked_names(state.context)))
    if preferences.switch:
        names |= dict.fromkeys(_switched_projects(state.context))
    plain = (state.installed.get(name) for name in names if name not in judged)
    candidates += [each for each in plain if each and each.label is None and not each.problem]
    found: dict[str, None] = {}
    lines: list[str] = []
    unknown = []
    asks = state.context.asks_offline or not state.context.is_offline
    for each in candidates:
        locked = _locked_label(state.context, each)
        if locked is not None:
            if not each.is_variant(locked or None):
                found[each.project] = None
        elif not preferences.use_variants:
            if each.label is not None:
                found[each.project] = None
        elif preferences.switch or not state.fitting.is_known(each):
            unknown += [each] if asks or each.project in preferences.forced else []
    state.choices.ask(each.project for each in unknown)
    for each in unknown:
        choice = state.choices.of_installed(each)
        if choice is None:
            continue
        if not state.choices.as_installed(each).is_variant(label_for(choice, each.tags)):
            is_forced = each.project in preferences.forced
            if not is_forced and (text := hidden_build(state, each)):
                lines.append(text)
                continue
            found[each.project] = None
        elif not choice.is_only_locked(each.label):
            state.fitting.remember(each)
    return list(found), lines


def _locked_label(context: Context, installed: Installed) -> str | None:
    """Return the label that the lock has for what is *installed*, empty for none.

    None if the lock does not say: it has no such version, or is about to change.
    """
    key = installed.project, str(installed.version)
    if installed.project not in context.kept:
        return None
    if key[1] not in context.lock.versions.get(installed.project, ()):
        return None
    wheels = [wheel for wheel in context.lock.wheels if (wheel.project, wheel.version) == key]
    if not wheels:
        return "" if installed.label is not None else None
    for wheel in wheels:
        if are_tags_of(wheel.plain, installed.tags):
            return wheel.label or ""
    return ""


def _locked_names(context: Context) -> Iterator[str]:
    """Yield the projects of a lock that have variants, or may have them after the command."""
    if context.lock.text is not None and context.environments:
        yield from context.lock.projects
        yield from (name for name in context.lock.names if name not in context.kept)


def _switched_projects(context: Context) -> Iterable[str]:
    """Return the projects that ``--variant-switch`` is about (normalized names)."""
    if context.invocation.command != ("pip", "install"):
        return sorted(installed(context.environments))  # the command names them all
    return context.requested


def hidden_accelerator(state: CommandState, installed: Installed) -> str:
    """Return why the accelerator of an installed build may be here unseen, as a clause.

    Empty if its build uses none, or if the machine is described, or shows one.
    """
    machine = state.machine.machine
    if installed.metadata is None or machine.name or state.context.preferences.platform_file:
        return ""
    known = {**machine.platform.namespaces, **machine.detected.namespaces}
    properties = installed.metadata.properties_of(str(installed.label)) or {}
    for namespace in machines.ACCELERATORS.keys() & properties.keys():
        support = known.get(namespace)
        if support is None or not (support.features or support.facts):
            return machines.why_invisible(Surroundings.of(state.context.place.environ), namespace)
    return ""


def hidden_build(state: CommandState, installed: Installed) -> str:
    """Return the line about a build that stays, see `stays`; empty for one that does not."""
    found = judgement(state, state.installed, installed.project)
    if found is None or found.has_build:
        return ""
    why = hidden_accelerator(state, found.installed)
    return stays(found.installed, why) if why else ""


def stays(installed: Installed, why: str) -> str:
    """Return the line about a build that stays because its accelerator may be here."""
    return (
        f"{installed.project} {installed.version} ({installed.label}) stays as it is, though "
        f"nothing that it runs on is seen: {why}; --variant {installed.project}=LABEL or "
        "--variant-platform replaces it"
    )


def upgraded(context: Context) -> Collection[str] | None:
    """Return the projects (normalized names) that uv is asked to upgrade, None for all."""
    invocation = context.invocation
    if invocation.has("upgrade", "U"):
        return None
    names = (name_of(text) for text in invocation.values("upgrade-package"))
    return {normalized(name) for name in names if name is not None}


def without_upgrades(invocation: Invocation) -> Invocation:
    """Return *invocation* without what asks for upgrades."""
    kept: list[str] = []
    given = {item.start: item for item in invocation.given}
    position = 0
    while position < invocation.end:
        item, text = given.get(position), invocation.arguments[position]
        size = 1 if item is None or item.glued else 2
        value = invocation.arguments[position + 1 : position + size]
        position += size
        if text in ("-U", "--upgrade") or (item is not None and item.name == "upgrade-package"):
            continue
        if re.match("-[A-Za-z]", text):  # several letters, the last one may have a value
            flags = text[1:] if item is None else item.spelling.rstrip("=")[1:-1]
            text = f"-{flags.replace('U', '')}{text[1 + len(flags) :]}"
        kept += [text, *value]
    return parse([*kept, *invocation.arguments[invocation.end :]])


def pins_of(state: CommandState, names: Iterable[str]) -> list[str]:
    """Return requirements that keep the version of projects whose build is replaced."""
    context, choices = state.context, state.choices
    asked, found = upgraded(context), []
    for name in names:
        version, choice = state.installed[name].version, choices.of_installed(state.installed[name])
        if asked is None or name in asked or choice is None:
            continue
        label = context.preferences.forced.get(name)
        if (label is None or choice.shows(label)) and admits(context.texts, name, str(version)):
            found.append(f"{name}=={version.public if choice.published else version}")
    return found


def staying(state: CommandState, changes: Changes) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the builds that stay, for `CommandSession.keep`: what uv builds gets them, too."""
    context, asked, found = state.context, upgraded(state.context), state.installed
    if context.invocation.has("reinstall", "force-reinstall"):
        asked = None
    gone = {*context.preferences.forced, *context.invocation.values("reinstall-package")}
    gone |= {*changes.replaced, *(found if asked is None else asked)} - changes.held
    kept = {}
    for each in (found[name] for name in found.keys() - gone):
        if each.label or context.used_entry(each.project):
            items = [f"{each.project}-{each.version}-{tag}.whl" for tag in each.tags]
            kept[each.project] = {str(each.version): (each.label,) if each.label else (*items,)}
    return kept


def judgement(
    state: CommandState,
    found: Mapping[str, Installed],
    name: str,
    admits: Callable[[Version], bool] = lambda _: True,
    key: str = "",
) -> Judgement | None:
    """Return the judgement on the project *name* among those that are installed.

    Args:
        state: whose session is asked.
        found: what is installed.
        name: of the project, normalized.
        admits: whether the requirements admit a version.
        key: platform key of another machine than that of the session; empty for that.
    """
    return state.session.judge(name, found, admits, state.context.preferences, key)


class Agreement(NamedTuple):
    """A variant with which projects can share an environment.

    Attributes:
        project: normalized name.
        release: that is installed.
        label: of the variant.
        other: project that it goes with.
    """

    project: str
    release: Version
    label: str
    other: str


def agreement(
    state: CommandState, found: Mapping[str, Installed], owners: Iterable[str]
) -> Agreement | None:
    """Return a variant with which projects agree that require packages with the same file.

    Args:
        state: whose choices are asked which variants fit.
        found: what is installed.
        owners: normalized names of these packages.
    """
    users = [
        [
            name
            for name, each in found.items()
            if owner in wheel_selection.required_by(found, [name])
        ]
        for owner in owners
    ]
    for one, two in permutations(users, 2):
        for project, other in product(one, two):
            if project in two or other in one or project in state.context.preferences.forced:
                continue
            known, others = (judgement(state, found, name) for name in (project, other))
            if known is None or others is None or known.installed.label is None:
                continue
            alike = state.session.labels_like(project, others.installed)
            labels = alike.get(str(known.release), ())
            state.choices.ask([project])
            choice = state.choices.of(project).get(str(known.release))
            fitting = () if choice is None else choice.verdicts
            if any(row.label in labels and row.verdict == "compatible" for row in fitting):
                return Agreement(project, known.release, labels[0], other)
    return None


class _Asked:
    """What one command asks for, compared with what is installed."""

    def __init__(self, state: CommandState) -> None:
        context = state.context
        self._state = state
        self._context = context
        self._switch = context.preferences.switch
        self._upgraded = upgraded(context)
        # Of these the build itself is named.
        direct = {normalized(name_of(text) or "") for text in context.texts if "@" in text}
        direct |= exact_versions(context.texts).keys()
        named = dict.fromkeys(normalized(name) for text in context.texts if (name := name_of(text)))
        self._named = [name for name in named if name not in direct]
        also = wheel_selection.required_by(state.installed, named) if self._upgraded is None else ()
        self._names = [*self._named, *(name for name in also if name in state.installed)]

    def families(self) -> Iterable[list[str]]:
        """Yield the projects that are decided together, those that the command names first."""
        seen: set[str] = set()
        for name in self._names:
            if name in seen:
                continue
            family = [name]
            for member in family:  # and what belongs to these
                family += [other for other in self._coherent(member) if other not in family]
            has_builds = self._context.used_entry(name) or self._state.is_variant(name)
            if has_builds or (self._switch and name in self._state.installed):
                seen.update(family)
                yield family

    def _coherent(self, name: str) -> Iterable[str]:
        """Return the projects, installed or asked for, that have the same variant as *name*."""
        entry = self._context.used_entry(name)
        names = entry.coherent if entry is not None else ()
        return [name for name in names if name in self._state.installed or name in self._names]

    def decided(self, family: list[str]) -> Changes:
        """Return the changes to projects that have to come from the same variant."""
        state, forced = self._state, self._context.preferences.forced
        there = [
            name for name in family
            if name in state.installed and name not in forced and not state.is_built(name)
        ]  # fmt: skip
        if self._is_settled(there, family):
            return NO_CHANGES
        found = {name: each for name in there if (each := self._judgement(name)) is not None}
        if not found:
            return NO_CHANGES
        hidden = {
            name: why
            for name, each in found.items()
            if not each.has_build and (why := hidden_accelerator(state, each.installed))
        }
        moving = [name for name in found if self._moves(name, found[name])]
        is_asked = any(not self._admits(name, each.release) for name, each in found.items())
        shared = "" if is_asked else self._shared(found, moving)
        if hidden and is_asked:
            self._keep_labels(found, family)
            changes = Changes(along=tuple(name for name in found if name not in self._named))
        elif hidden or shared:
            lines = [
                stays(each.installed, hidden[name])
                for name, each in found.items()
                if name in hidden and (name in moving or (self._switch and each.advice))
            ]
            after = ([shared] if shared else lines)[:1]
            changes = self._held(found, family)._replace(after=tuple(after))
        elif moving:
            changes = self._moved(found, moving)
        else:
            changes = self._held(found, family)
            if not self._shared(found, [*found]):
                changes = changes._replace(after=tuple(self._hints(found))[:1])
        for each in found.values():
            if each.advice is None:
                state.fitting.remember(each.installed)
        return changes._replace(judged=frozenset(found))

    def _is_settled(self, there: list[str], family: list[str]) -> bool:
        """Return whether all of it was found to fit not long ago, and nothing is asked for anew."""
        found = {name: self._state.installed[name] for name in there}
        return (
            not self._switch
            and len(found) == len(family)
            and not any(map(self._is_upgraded, found))
            and all(self._admits(name, each.version) for name, each in found.items())
            and all(map(self._state.fitting.is_known, found.values()))
        )

    def _shared(self, found: Mapping[str, Judgement], moving: list[str]) -> str:
        """Return the line about a build that stays as another project has the same libraries.

        Empty if it does not stay: a build for another version of CUDA would bring packages with the
        same files.
        """
        everything = self._state.installed
        for name in moving:
            known, advice = found[name].installed, found[name].advice
            if advice is None or advice.unfit or self._is_upgraded(name) or known.label is None:
                continue
            if str(advice.better).partition(".")[0] == known.label.partition(".")[0]:
                continue
            own = {
                each
                for each in wheel_selection.required_by(everything, [name])
                if _LIBRARY.search(each)
            }
            for other in sorted(everything.keys() - found.keys()):
                has_variants = self._context.used_entry(other) or self._state.is_variant(other)
                if has_variants and not own.isdisjoint(
                    wheel_selection.required_by(everything, [other])
                ):
                    there = f"{name} {known.version} ({known.label}"
                    return f"{there}) stays as it is, for the libraries that {other} needs"
        return ""

    def _judgement(self, name: str) -> Judgement | None:
        admitted = partial(self._admits, name)
        found = judgement(self._state, self._state.installed, name, admitted)
        # A wheel with a label keeps its version, unless another is asked for.
        if found is not None and found.within is not None and not self._switch:
            return replace(found, advice=found.within) if self._state.is_variant(name) else found
        return found

    def _admits(self, name: str, version: Version) -> bool:
        return admits(self._context.texts, name, str(version))

    def _is_upgraded(self, name: str) -> bool:
        return self._upgraded is None or name in self._upgraded

    def _moves(self, name: str, found: Judgement) -> bool:
        """Return whether another build or release of what is installed is to come."""
        if not self._admits(name, found.release):
            return True
        if self._is_upgraded(name) and found.newest not in (None, found.release):
            return True
        # A label of its own wheel is compared at every command, see the documentation.
        advice = found.advice
        is_kept = advice is not None and advice.version is None and self._state.is_variant(name)
        return is_kept or (self._switch and advice is not None)

    def _moved(self, found: Mapping[str, Judgement], moving: list[str]) -> Changes:
        """Have uv replace what is *moving*, and take the others along."""
        releases = {name: self._release(name, found[name]) for name in found}
        is_kept = all(releases[name] == found[name].release for name in found)
        is_asked = any(not self._admits(name, each.release) for name, each in found.items())
        pins = [
            f"{name}=={releases[name]}"
            for name, each in found.items()
            if releases[name] is not None
            and (is_kept or each.advice is not None or name in moving)
            and not is_asked
        ]
        before = []
        for first, each in found.items() if self._switch else ():
            if each.advice is not None:
                line = each.advice.text(first, str(each.installed.version))
                others = [name for name in found if name != first]
                more = f", with {' and '.join(others)}" if others else ""
                before.append(f"{line}: switching{more}")
                break
        return Changes(
            replaced=tuple(name for name, each in found.items() if each.advice is not None),
            pins=tuple(pins),
            along=tuple(name for name in found if name not in self._named),
            before=tuple(before),
        )

    def _release(self, name: str, found: Judgement) -> Version | None:
        """Return the release that is to come, None if uv chooses it."""
        if not self._admits(name, found.release):
            return None
        if self._is_upgraded(name):
            return None  # `version_bounds` says which
        if found.advice is not None and found.advice.version is not None:
            return found.advice.version  # type: ignore[return-value]
        return found.release

    def _held(self, found: Mapping[str, Judgement], family: list[str]) -> Changes:
        """Have uv leave what is there, and take what belongs to it in the same variant."""
        coming = [name for name in family if name not in self._state.installed]
        if not coming:
            return Changes(held=frozenset(found))
        self._keep_labels(found, coming)
        pins = (f"{name}=={each.release}" for name, each in found.items())
        return Changes(held=frozenset(found), pins=tuple(pins))

    def _keep_labels(self, found: Mapping[str, Judgement], names: Iterable[str]) -> None:
        """Have uv see *names* in the variant that is there of the first one *found*."""
        session, build = self._state.session, next(iter(found.values())).installed
        session.keep({name: session.labels_like(name, build) for name in names})

    def _hints(self, found: Mapping[str, Judgement]) -> Iterator[str]:
        """Yield what would fit better than what stays."""
        for name, each in found.items():
            if each.advice is not None and not self._switch:
                text = each.advice.text(name, str(each.installed.version))
                yield f"{text}: to switch, add --variant-switch"
