"""Rounds of pip's resolution: what is installed moves along with what was asked for.

A round resolves again as if some installed distributions were not there, so that other builds of
them are chosen and the dependencies of these are installed, too. They are requirements of that
round, held at a version where that shall stay. One that fails changes nothing.

`switch_variants` replaces installed builds by better ones (``--variant-switch``); `move_families`
has projects that belong together (``coherent`` in the catalogue) go together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from pip._internal.exceptions import InstallationError
from pip._internal.req.constructors import install_req_from_line

from ._errors import logger
from ._links import label_of_link

if TYPE_CHECKING:
    from pep_variants.selection import Advice

    from ._session import Session

Resolve = Callable[..., Any]
"""Runs pip's resolver, with more requirements if any are given; returns its `RequirementSet`."""


class InstalledProject(NamedTuple):
    """An installed distribution in the result of a resolution.

    Attributes:
        project: normalized name.
        dist: pip's distribution.
        label: its label, empty if it is not a variant.
    """

    project: str
    dist: Any
    label: str

    def __str__(self) -> str:
        as_variant = f"as variant {self.label}" if self.label else "without variant"
        return f"{self.project} {self.dist.version} is installed {as_variant}"


class Rounds:
    """The rounds of one resolution.

    Attributes:
        session: of the command.
        requirements: what is going to be installed, by normalized name.
        moved: what is resolved as if it were not installed, by project.
        again: projects of `moved` that are installed again, even if they stay what they are.
        staying: installed projects that will not be replaced, as is known now.
    """

    def __init__(self, session: Session, resolver: Any, resolve: Resolve, found: Any) -> None:
        """Set up.

        Args:
            session: of the command.
            resolver: pip's resolver.
            resolve: runs it.
            found: what it returned in the first round.
        """
        self.session = session
        self.moved: dict[str, InstalledProject] = {}
        self.again: set[str] = set()
        self.staying: set[str] = set()
        self._resolver = resolver
        self._resolve = resolve
        self._held: dict[str, Any] = {}
        self._said: set[str] = set()
        self.found = found

    @property
    def requirements(self) -> dict[str, Any]:
        """What is going to be installed, by normalized name."""
        return self.found.requirements  # type: ignore[no-any-return]

    @property
    def result(self) -> Any:
        """Of pip's resolver."""
        return self._resolver._result

    def installed(self, name: str) -> InstalledProject | None:
        """Return what is installed of a project, see `installed`."""
        return installed(self.session, name)

    def reach(self) -> dict[str, InstalledProject]:
        """Return what is installed of the result's projects and of those that belong to them."""
        names = {candidate.project_name for candidate in self.result.mapping.values()}
        names |= {other for name in names for other in self.session.catalog.family(name)}
        found = ((name, self.installed(name)) for name in sorted(names))
        return {name: item for name, item in found if item is not None}

    def replaced(self) -> dict[str, InstalledProject]:
        """Return of what is installed another build or version is going to be installed."""
        found = ((name, self.installed(name)) for name in self.requirements)
        return {name: item for name, item in found if item is not None and name not in self.again}

    def chosen(self, project: str) -> Any:
        """Return pip's candidate of a project, None if it has no part in the result."""
        return self.result.mapping.get(project)

    def label(self, project: str) -> str:
        """Return the label that was chosen of a project, empty for no variant."""
        candidate = self.chosen(project)
        return "" if candidate is None else _label(candidate)

    def removable(self, project: str) -> Any:
        """Return what pip would uninstall of a project, None for nothing."""
        return self._resolver.factory.get_dist_to_uninstall(SimpleNamespace(project_name=project))

    def state(self) -> Any:
        """Return what `restore` takes."""
        found = self.found, self.moved, self._held, {*self.again}
        return self.result, self.session.ordering, found

    def restore(self, state: Any) -> None:
        """Give up what was run since *state* was returned."""
        self._resolver._result, self.session.ordering, found = state
        self.found, self.moved, self._held, self.again = found

    def run(
        self,
        moved: Mapping[str, InstalledProject],
        held: Mapping[str, Any],
        again: Iterable[str] = (),
    ) -> bool:
        """Resolve once more; return whether that has worked, else nothing has changed.

        Args:
            moved: items besides those of earlier rounds.
            held: versions besides those of earlier rounds, by project; None for any.
            again: projects to be installed again.
        """
        before = self.state()
        try:
            with self.session.attempt():
                self._run({**self.moved, **moved}, {**self._held, **held})
        except InstallationError as error:
            logger.debug("no other builds: %s", error)
            self.restore(before)
            return False
        self.again |= {*again}
        self._mark()
        return True

    def insist(self, moved: Mapping[str, InstalledProject]) -> None:
        """Resolve once more.

        Raises:
            InstallationError: that does not work.
        """
        self._run({**self.moved, **moved}, {**self._held, **dict.fromkeys(moved)})
        self._mark()

    def _run(self, moved: dict[str, InstalledProject], held: dict[str, Any]) -> None:
        named = [_required(item) for item in moved.values()]
        kept = {name: version for name, version in held.items() if version is not None}
        with self._hidden(moved), self.session.holding(kept):
            found = self._resolve(named)
        self.found, self.moved, self._held = found, moved, held

    @contextmanager
    def _hidden(self, items: Iterable[str]) -> Iterator[None]:
        """Remove *items* from the installed distributions that pip's factory knows."""
        known = self._resolver.factory._installed_dists
        removed = {project: known.pop(project) for project in items if project in known}
        if self.session.chooses_of(items):
            self.session.get_ordering().repeat(self.staying)
        try:
            yield
        finally:
            known.update(removed)

    def say(self, line: str) -> None:
        """Print *line* once."""
        if line not in self._said:
            self._said.add(line)
            logger.info("%s", line)

    def _mark(self) -> None:
        """Have pip uninstall what is replaced; leave what is the same already."""
        for name, item in self.moved.items():
            candidate, requirement = self.chosen(name), self.requirements.get(name)
            if candidate is None or requirement is None:
                continue
            label = _label(candidate)
            same = label == item.label and candidate.version == item.dist.version
            if same and name not in self.again:
                del self.requirements[name]
            else:
                before = self._resolver.factory.get_dist_to_uninstall(candidate)
                requirement.should_reinstall = before is not None


def installed(session: Session, name: str) -> InstalledProject | None:
    """Return what is installed of a project.

    None without anything, and for what was built from a directory or repository.
    """
    dist = session.installed.get(name)
    if dist is None:
        return None
    label = session.label_of(dist)
    is_built = not label and (dist.editable or dist.direct_url)
    return None if is_built else InstalledProject(name, dist, label)


def _label(candidate: Any) -> str:
    link = candidate.source_link
    return (None if link is None else label_of_link(link)) or ""


def _required(item: InstalledProject) -> Any:
    """Return the requirement for what is moved; requested by the user as it was before."""
    return install_req_from_line(item.project, user_supplied=item.dist.requested)


# Better builds.


def switch_variants(rounds: Rounds) -> None:
    """Take better builds of what is installed, of the result and of what belongs to it."""
    seen: set[str] = set()
    lines: dict[str, str] = {}
    doing: dict[str, str] = {}
    while True:
        found = {name: item for name, item in rounds.reach().items() if name not in seen}
        seen |= found.keys()
        better: dict[str, Any] = {}
        for name, item in found.items():
            advised = None if name in rounds.requirements else _better(rounds, item)
            if advised is not None:
                lines[name], doing[name], better[name] = advised
        if not better:
            break
        if _move(rounds, better):
            continue
        # Not all at once: each family by itself.
        groups = _groups(rounds, better)
        for group in groups:
            if len(groups) == 1 or not _move(rounds, group):
                for name in group:
                    rounds.say(f"{lines.pop(name)}, but other requirements exclude that: it stays")
    for name, line in lines.items():
        if name in rounds.requirements:
            rounds.say(f"{line}: {doing[name]}")


def _groups(rounds: Rounds, better: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return *better* by family."""
    rest, groups = dict(better), []
    while rest:
        name = next(iter(rest))
        family = {name, *rounds.session.catalog.family(name)}
        groups.append({other: rest.pop(other) for other in [*rest] if other in family})
    return groups


def _move(rounds: Rounds, better: Mapping[str, Any]) -> bool:
    """Resolve with other builds of *better*, which go to these versions, None for their own.

    The whole family goes along. Where one of it changes its version, the others are free.
    """
    moved: dict[str, InstalledProject] = {}
    held: dict[str, Any] = {}
    free: dict[str, Any] = {}
    for group in _groups(rounds, better):
        names = {other for name in group for other in (name, *rounds.session.catalog.family(name))}
        items = {name: item for name in sorted(names) if (item := rounds.installed(name))}
        moved |= items
        heads = {name: version for name, version in group.items() if version is not None}
        heads = dict([*heads.items()][:1])
        heads |= {name: rounds.chosen(name).version for name in items.keys() & rounds.requirements}
        own = {name: item.dist.version for name, item in items.items()}
        free |= dict.fromkeys(items, None) | heads if heads else own
        held |= own | heads
    return rounds.run(moved, held) or (held != free and rounds.run(moved, free))


def better_than(session: Session, result: Any, item: InstalledProject) -> str:
    """Return in a sentence what fits better than *item*, empty if nothing does.

    Arguments as of `allowed_by`.
    """
    found = advice_for(session, item, allowed_by(session, result, item.project))
    advice = None if found is None else found[0]
    return "" if advice is None else advice.text(item.project, item.dist.version)


def _better(rounds: Rounds, item: InstalledProject) -> tuple[str, str, Any] | None:
    """Return a line about what replaces *item*, what is done, and its version, None for the same.

    None if nothing does.
    """
    session = rounds.session
    forced = session.options.forced.get(item.project)
    if forced is not None:
        if forced == item.label:
            return None
        wanted = f"variant {forced}" if forced else "the non-variant wheel"
        return str(item), f"switching to {wanted}, as asked for", None
    found = advice_for(session, item, allowed_by(session, rounds.result, item.project))
    if found is None:
        if item.label:
            logger.warning("%s, and no index in use lists that version: it is not switched", item)
        return None
    advice, excluded = found
    if excluded is not None:
        text = excluded.text(item.project, item.dist.version)
        rounds.say(f"{text}, but other requirements exclude that")
    if advice is None:
        return None
    text = advice.text(item.project, item.dist.version)
    if advice.version is not None:
        text += f"; {item.dist.version} has no build for the accelerator that is here"
    return text, "switching", advice.version


def advice_for(
    session: Session, item: InstalledProject, allowed: Callable[[Any], bool]
) -> tuple[Advice | None, Advice | None] | None:
    """Return what is better than *item*, and what would be but is not allowed.

    None if no index in use lists the installed version.

    Args:
        session: of the command.
        item: what is installed.
        allowed: whether a version may be installed.
    """
    own = session.catalog.release(item.project, item.dist.version)
    candidates = [
        candidate
        for candidate in session.finder.find_all_candidates(item.project)
        if not candidate.link.is_yanked
        or session.catalog.release(item.project, candidate.version) == own
    ]
    if not any(session.catalog.release(item.project, each.version) == own for each in candidates):
        return None
    ordering = session.get_ordering()
    found = ordering.advice(item.project, own, item.label or None, candidates)
    if found is None or found.version is None or allowed(found.version):
        return found, None
    candidates = [
        each
        for each in candidates
        if (release := session.catalog.release(item.project, each.version)) == own
        or allowed(release)
    ]
    return ordering.advice(item.project, own, item.label or None, candidates), found


def allowed_by(session: Session, result: Any, project: str) -> Callable[[Any], bool]:
    """Return what tells whether all that is required of *project* allows a version.

    Not counted is what is required by what is not installed, and by others of its family: these
    may go along.

    Args:
        session: of the command.
        result: of pip's resolver.
        project: normalized name.
    """
    family = session.catalog.family(project)
    specifiers = [session.constraint(project)]
    criterion = result.criteria.get(project)
    for information in criterion.information if criterion is not None else ():
        wanted = information.requirement.get_candidate_lookup()[1]
        parent = information.parent
        if wanted is None or (parent is not None and not parent.is_installed):
            continue
        if parent is None or parent.project_name not in family:
            specifiers.append(wanted.specifier)
    for name, dist in session.installed.items():
        if name != project and name not in family and name not in result.mapping:
            specifiers += [
                each.specifier for each in dist.iter_dependencies() if each.name == project
            ]
    return lambda version: all(
        each is None or each.contains(str(version), prereleases=True) for each in specifiers
    )


# What goes along.


def move_families(rounds: Rounds) -> None:
    """Have what belongs to a replaced build replaced as well, where the two do not go together."""
    session, seen = rounds.session, set[str]()
    # What is new has to go with what stays.
    staying: dict[str, Any] = {}
    for name in rounds.requirements.keys() - session.installed.keys():
        for other in session.catalog.family(name) & rounds.result.mapping.keys():
            item = rounds.installed(other)
            if item is None or other in rounds.requirements or _go_together(rounds, name, item):
                continue
            staying[other] = item.dist
    if staying:
        rounds.staying |= staying.keys()
        session.suppose(staying.values())
        rounds.run({}, {})
    while True:
        moved: dict[str, InstalledProject] = {}
        coming: dict[str, Any] = {}
        replaced = rounds.replaced()
        for name in replaced:
            for other in rounds.session.catalog.family(name):
                item = rounds.installed(other)
                if item is None or other in seen or other in rounds.requirements:
                    continue
                if not _go_together(rounds, name, item):
                    moved[other] = item
                    coming[name] = rounds.chosen(name).version
        seen |= moved.keys()
        if not moved:
            return
        # With their versions, if that works.
        own = {name: item.dist.version for name, item in moved.items()}
        moved |= {name: replaced[name] for name in coming}
        if not rounds.run(moved, own | coming):
            rounds.run(moved, coming)


def _go_together(rounds: Rounds, name: str, other: InstalledProject) -> bool:
    """Return whether what is installed goes with the build that replaces another project's."""
    candidate = rounds.chosen(name)
    if candidate is None:
        return True
    return (_label(candidate) or "null") == (other.label or "null") and all(
        each.specifier.contains(str(candidate.version), prereleases=True)
        for each in other.dist.iter_dependencies()
        if each.name == name
    )
