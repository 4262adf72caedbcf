"""Installed builds that a command replaces, takes along or leaves, decided before uv runs.

uv compares versions only, and reinstalls a package in its newest version. So its options say what
the engine decides about installed builds (`variants_proxy.choice.judgement`): versions as
constraints, builds to replace as ``--reinstall-package``, and the rest of their families as
requirements. A build that stays keeps its label, and new members of its family get the same one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from itertools import permutations, product
from typing import TYPE_CHECKING, NamedTuple

from pep_variants.internal import required_by

from .command_line import Invocation, parse
from .named_projects import admits, exact_versions, name_of, normalized, requirement_texts

if TYPE_CHECKING:
    from packaging.version import Version

    from pep_variants.internal import Installed
    from variants_proxy.internal import Judgement

    from .context import Context
    from .installed_state import InstalledState
    from .session import Session
    from .session_plan import SessionPlan


_LIBRARY = re.compile(r"-cu(?:da)?\d+$")
"""In names of packages with libraries of one version of CUDA."""


class Changes(NamedTuple):
    """Options of uv for what is installed.

    Attributes:
        replaced: projects to be installed again.
        pins: versions that they get, as requirements.
        along: installed projects that uv has to resolve with those that the command names.
        held: projects that stay, whatever is upgraded.
        judged: projects that were judged; all others are compared by `InstalledState.replaced`.
        before, after: lines for the user, before and after uv runs.
    """

    replaced: tuple[str, ...] = ()
    pins: tuple[str, ...] = ()
    along: tuple[str, ...] = ()
    held: frozenset[str] = frozenset()
    judged: frozenset[str] = frozenset()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


NO_CHANGES = Changes()


def changes_of(plan: SessionPlan, state: InstalledState, session: Session) -> Changes:
    """Return what ``pip install`` changes of what is installed.

    Args:
        plan: of the command.
        state: before it.
        session: that answers uv, and has the labels of what stays from now on.
    """
    context = plan.context
    if context.invocation.command != ("pip", "install"):
        return NO_CHANGES
    if context.is_offline and not context.asks_offline:
        return NO_CHANGES
    if not (context.preferences.use_variants and context.environments):
        return NO_CHANGES
    if context.indexes.configuration.hashes or context.invocation.has("require-hashes"):
        return NO_CHANGES  # uv takes nothing then that has no hash
    work = _Work(plan, state, session)
    for family in work.families():
        work.decide(family)
    return work.changes()


def hidden_accelerator(plan: SessionPlan, installed: Installed) -> str:
    """Return why the accelerator of an installed build may be here unseen, as a clause.

    Empty if its build uses none, or if the machine is described, or shows one.
    """
    from pep_variants.internal import ACCELERATORS, Surroundings, why_invisible

    machine = plan.machine.machine
    if installed.metadata is None or machine.name or plan.context.preferences.platform_file:
        return ""
    known = {**machine.platform.namespaces, **machine.detected.namespaces}
    properties = installed.metadata.properties_of(str(installed.label)) or {}
    for namespace in ACCELERATORS.keys() & properties.keys():
        support = known.get(namespace)
        if support is None or not (support.features or support.facts):
            return why_invisible(Surroundings.of(plan.context.place.environ), namespace)
    return ""


def hidden_build(
    plan: SessionPlan, state: InstalledState, session: Session, installed: Installed
) -> str:
    """Return the line about a build that stays, see `stays`; empty for one that does not."""
    found = judgement(plan, session, state.installed, installed.project)
    if found is None or found.has_build:
        return ""
    why = hidden_accelerator(plan, found.installed)
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


def pins_of(state: InstalledState, names: Iterable[str]) -> list[str]:
    """Return what keeps the version of projects (normalized names) whose build is replaced."""
    context, choices = state.context, state.choices
    texts = requirement_texts(context.invocation, context.place)
    texts += context.indexes.configuration.requirements
    asked, found = upgraded(context), []
    for name in names:
        version, choice = state.installed[name].version, choices.of_installed(state.installed[name])
        if asked is None or name in asked or choice is None:
            continue
        label = context.preferences.forced.get(name)
        if (label is None or choice.shows(label)) and admits(texts, name, str(version)):
            found.append(f"{name}=={version.public if choice.published else version}")
    return found


def staying(
    plan: SessionPlan, state: InstalledState, changes: Changes
) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the installed builds that stay, for `Session.keep`: what uv builds gets them, too."""
    context, asked, found = plan.context, upgraded(plan.context), state.installed
    if context.invocation.has("reinstall", "force-reinstall"):
        asked = None
    gone = {*context.preferences.forced, *context.invocation.values("reinstall-package")}
    gone |= {*changes.replaced, *(found if asked is None else asked)} - changes.held
    kept = {}
    for each in (found[name] for name in found.keys() - gone):
        if each.label or (plan.catalog is not None and context.entry_of(each.project)):
            items = [f"{each.project}-{each.version}-{tag}.whl" for tag in each.tags]
            kept[each.project] = {str(each.version): (each.label,) if each.label else (*items,)}
    return kept


def judgement(
    plan: SessionPlan,
    session: Session,
    found: Mapping[str, Installed],
    name: str,
    admits: Callable[[Version], bool] = lambda _: True,
    key: str = "",
) -> Judgement | None:
    """Return what is known of the project *name* among those that are installed.

    Args:
        plan: of the command.
        session: that is asked.
        found: what is installed.
        name: of the project, normalized.
        admits: whether the requirements admit a version.
        key: platform key of another machine than that of the session; empty for that.
    """
    from variants_proxy.internal import judge

    question = partial(
        judge,
        installed=found[name],
        others={other: each.version for other, each in found.items()},
        admits=admits,
        preferences=plan.context.preferences,
        python=plan.python,
    )
    return session.judge(name, question, key)


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
    plan: SessionPlan,
    state: InstalledState,
    session: Session,
    found: Mapping[str, Installed],
    owners: Iterable[str],
) -> Agreement | None:
    """Return what makes two installed projects agree that require packages with the same file.

    Args:
        plan: of the command.
        state: whose choices are asked which variants fit.
        session: that answers uv.
        found: what is installed.
        owners: normalized names of these packages.
    """
    from variants_proxy.internal import labels_like

    users = [
        [name for name, each in found.items() if owner in required_by(found, [name])]
        for owner in owners
    ]
    for one, two in permutations(users, 2):
        for project, other in product(one, two):
            if project in two or other in one or project in plan.context.preferences.forced:
                continue
            known, others = (judgement(plan, session, found, name) for name in (project, other))
            if known is None or others is None or known.installed.label is None:
                continue
            question = partial(labels_like, installed=others.installed)
            labels = (session.judge(project, question) or {}).get(str(known.release), ())
            state.choices.ask([project])
            choice = state.choices.of(project).get(str(known.release))
            fitting = () if choice is None else choice.verdicts
            if any(row.label in labels and row.verdict == "compatible" for row in fitting):
                return Agreement(project, known.release, labels[0], other)
    return None


class _Work:
    """The decisions about one command."""

    def __init__(self, plan: SessionPlan, state: InstalledState, session: Session) -> None:
        context = plan.context
        self._plan, self._state, self._session = plan, state, session
        self._switch = context.preferences.switch
        self._upgraded = upgraded(context)
        texts = requirement_texts(context.invocation, context.place)
        self._texts = [*texts, *context.indexes.configuration.requirements]
        # Of these the build itself is named.
        direct = {normalized(name_of(text) or "") for text in self._texts if "@" in text}
        direct |= exact_versions(self._texts).keys()
        named = dict.fromkeys(normalized(name) for text in self._texts if (name := name_of(text)))
        self._named = [name for name in named if name not in direct]
        also = required_by(state.installed, named) if self._upgraded is None else ()
        self._asked = [*self._named, *(name for name in also if name in state.installed)]
        self._judged: dict[str, Judgement | None] = {}
        self._versions = {name: each.version for name, each in state.installed.items()}
        self._replaced: dict[str, None] = {}
        self._pins: list[str] = []
        self._along: dict[str, None] = {}
        self._held: set[str] = set()
        self._before: list[str] = []
        self._after: list[str] = []

    def families(self) -> Iterable[list[str]]:
        """Yield the projects that are decided together, those that the command names first."""
        seen: set[str] = set()
        for name in self._asked:
            if name in seen:
                continue
            family = [name]
            for each in family:  # and what belongs to these
                family += [other for other in self._coherent(each) if other not in family]
            is_known = self._has_catalog(name) or self._state.is_variant(name)
            if is_known or (self._switch and name in self._versions):
                seen.update(family)
                yield family

    def _has_catalog(self, name: str) -> bool:
        return self._plan.catalog is not None and self._plan.context.entry_of(name) is not None

    def _coherent(self, name: str) -> Iterable[str]:
        """Return what is installed or asked for of what has to be the same variant as *name*."""
        entry = self._plan.context.entry_of(name) if self._plan.catalog is not None else None
        found = entry.coherent if entry is not None else ()
        return [each for each in found if each in self._versions or each in self._asked]

    def decide(self, family: list[str]) -> None:
        """Decide about projects that have to come from the same variant."""
        forced = self._plan.context.preferences.forced
        there = [
            name for name in family
            if name in self._versions and name not in forced and not self._state.is_built(name)
        ]  # fmt: skip
        if self._is_settled(there, family):
            return
        found = {name: each for name in there if (each := self._judgement(name)) is not None}
        if not found:
            return
        hidden = {
            name: why
            for name, each in found.items()
            if not each.has_build
            and (why := hidden_accelerator(self._plan, each.installed))
        }  # fmt: skip
        moving = [name for name in found if self._moves(name, found[name])]
        is_asked = any(not self._admits(name, each.release) for name, each in found.items())
        shared = "" if is_asked else self._shared(found, moving)
        if hidden and is_asked:
            self._keep_labels(found, family)
            self._along.update(dict.fromkeys(name for name in found if name not in self._named))
        elif hidden or shared:
            self._hold(found, family)
            lines = [
                stays(each.installed, hidden[name])
                for name, each in found.items()
                if name in hidden and (name in moving or (self._switch and each.advice))
            ]
            self._after += ([shared] if shared else lines)[:1]
        elif moving:
            self._move(found, moving)
        else:
            self._hold(found, family)
            if not self._shared(found, [*found]):
                self._hint(found)
        for each in found.values():
            if each.advice is None:
                self._state.marks.remember(each.installed)
        self._judged.update(found)

    def _is_settled(self, there: list[str], family: list[str]) -> bool:
        """Return whether all of it was found to fit not long ago, and nothing is asked for anew."""
        found = {name: self._state.installed[name] for name in there}
        return (
            not self._switch
            and len(found) == len(family)
            and not any(map(self._is_upgraded, found))
            and all(self._admits(name, each.version) for name, each in found.items())
            and all(map(self._state.marks.is_known, found.values()))
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
            own = {each for each in required_by(everything, [name]) if _LIBRARY.search(each)}
            for other in sorted(everything.keys() - found.keys()):
                has_variants = self._has_catalog(other) or self._state.is_variant(other)
                if has_variants and not own.isdisjoint(required_by(everything, [other])):
                    there = f"{name} {known.version} ({known.label}"
                    return f"{there}) stays as it is, for the libraries that {other} needs"
        return ""

    def changes(self) -> Changes:
        """Return the decisions."""
        return Changes(
            tuple(self._replaced),
            tuple(self._pins),
            tuple(self._along),
            frozenset(self._held),
            frozenset(self._judged),
            tuple(self._before),
            tuple(self._after),
        )

    def _judgement(self, name: str) -> Judgement | None:
        admits = partial(self._admits, name)
        return judgement(self._plan, self._session, self._state.installed, name, admits)

    def _admits(self, name: str, version: Version) -> bool:
        return admits(self._texts, name, str(version))

    def _is_upgraded(self, name: str) -> bool:
        return self._upgraded is None or name in self._upgraded

    def _moves(self, name: str, found: Judgement) -> bool:
        """Return whether another build or release of what is installed is to come."""
        if not self._admits(name, found.release):
            return True
        if self._is_upgraded(name) and found.newest not in (None, found.release):
            return True
        # A label of its own wheel is compared at every command, see the documentation.
        is_asked = self._switch or self._state.is_variant(name)
        return is_asked and found.advice is not None

    def _move(self, found: Mapping[str, Judgement], moving: list[str]) -> None:
        """Have uv replace what is *moving*, and take the others along."""
        releases = {name: self._release(name, found[name]) for name in found}
        is_kept = all(releases[name] == found[name].release for name in found)
        is_asked = any(not self._admits(name, each.release) for name, each in found.items())
        lines = {}
        for name, each in found.items():
            if each.advice is not None:
                self._replaced[name] = None
            if each.advice is not None and self._switch:
                lines[name] = each.advice.text(name, str(each.installed.version))
            can_pin = is_kept or each.advice is not None or name in moving
            if releases[name] is not None and can_pin and not is_asked:
                self._pins.append(f"{name}=={releases[name]}")
            if name not in self._named:
                self._along[name] = None
        for first, line in lines.items():
            others = [name for name in found if name != first]
            more = f", with {' and '.join(others)}" if others else ""
            self._before.append(f"{line}: switching{more}")
            return

    def _release(self, name: str, found: Judgement) -> Version | None:
        """Return the release that is to come, None if uv chooses it."""
        if not self._admits(name, found.release):
            return None
        if self._is_upgraded(name):
            return None  # `version_bounds` says which
        if found.advice is not None and found.advice.version is not None:
            return found.advice.version  # type: ignore[return-value]
        return found.release

    def _hold(self, found: Mapping[str, Judgement], family: list[str]) -> None:
        """Have uv leave what is there, and take what belongs to it in the same variant."""
        self._held.update(found)
        coming = [name for name in family if name not in self._versions]
        if coming:
            self._pins += [f"{name}=={each.release}" for name, each in found.items()]
            self._keep_labels(found, coming)

    def _keep_labels(self, found: Mapping[str, Judgement], names: Iterable[str]) -> None:
        """Have uv see *names* in the variant that is there of the first one *found*."""
        from variants_proxy.internal import labels_like

        question = partial(labels_like, installed=next(iter(found.values())).installed)
        labels = {name: self._session.judge(name, question) or {} for name in names}
        self._session.keep(labels)

    def _hint(self, found: Mapping[str, Judgement]) -> None:
        """Note what would fit better than what stays."""
        for name, each in found.items():
            if each.advice is not None and not self._switch:
                text = each.advice.text(name, str(each.installed.version))
                self._after.append(f"{text}: to switch, add --variant-switch")
                break
