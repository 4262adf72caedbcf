"""The dependency group of a lock file that is for a machine (PEP 751).

Where no environment marker tells apart the targets of a file, each has a group. Our table says
which builds are in it, so that a machine can take the group whose builds fit it best::

    [tool.pep-variants.groups.cuda12-8]
    environment = "sys_platform == 'linux'"   # where the group is for, anywhere without it
    builds = { torch = "cu128" }              # the label of each project that has variants

    [[tool.pep-variants.groups.cuda13-0]]     # one that has other builds elsewhere
    environment = "platform_machine == 'aarch64'"
    builds = { torch = "cu130" }

    [tool.pep-variants.variants.torch]        # as `variants-json`, with these labels

    [tool.pep-variants.variants.torch.faults.cu128]
    "nvidia :: sm_arch :: 120_real" = "has a known fault …"    # why it lacks this one

Other installers have to be told the group.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from packaging.markers import Marker
from packaging.utils import canonicalize_name, is_normalized_name

from .. import limits
from .._choose.preferences import NON_VARIANT_LABEL, Preferences
from .._choose.rejections import why_this, why_unfit
from .._choose.selection import File, Selection, select
from .._formats.reader import metadata_from_tree
from .._model.property import Property
from ..errors import InvalidProperty, LockError, cut, shortened
from ..labels import LABEL, NULL_LABEL
from .wheels import GROUPS, own_table

if TYPE_CHECKING:
    from .._model.metadata import Metadata
    from .._model.platform import Platform

BUILDS = "builds"
"""In the table of a group: labels by project."""

ENVIRONMENT = "environment"
"""In the table of a group: marker of the environment that it is for."""

VARIANTS = "variants"
"""In ``[tool.pep-variants]``: variant metadata of these labels, by project."""

FAULTS = "faults"
"""In the table of a project in `VARIANTS`: known faults by label, see `Metadata.faults`."""

CPU = "cpu"
"""The group that a machine takes which none fits."""

_SHOWN = 3
_FAULT_LENGTH = 200


@dataclass(frozen=True)
class GroupChoice:
    """The group that a machine takes.

    Attributes:
        name: normalized, as in the file.
        why: what its builds are and why they fit, in a few words.
        unfit: why a group does not fit that was named, or taken as none does; empty for one that
            does.
        projects: whose builds the choice was about.
    """

    name: str
    why: str
    unfit: tuple[str, ...]
    projects: frozenset[str]

    def __str__(self) -> str:
        """Return the line that tells of it."""
        group = f"dependency group {_shown(self.name)}"
        if self.unfit:
            return f"{group} is not for this machine: {'; '.join(self.unfit)}"
        return f"{group}: {self.why}" if self.why else group


def write_groups(
    groups: Iterable[tuple[str, str, Mapping[str, tuple[str, Mapping[str, Any]]]]],
) -> dict[str, Any]:
    """Return what our table of a lock file says of *groups*.

    Args:
        groups: name, marker of the environment, empty for any, and by project the label of the
            build with its variant metadata, as of `write_table`; a name may have several
            environments. A label that stands for other properties elsewhere gets a number.
    """
    variants: dict[str, dict[str, Any]] = {}
    written: dict[str, list[dict[str, Any]]] = {}
    for name, environment, builds in groups:
        labels = {}
        for project, (label, table) in builds.items():
            known = variants.setdefault(project, {**table, VARIANTS: {}, FAULTS: {}})
            if len(_namespaces(table)) > len(_namespaces(known)):  # of another version
                known.update({**table, VARIANTS: known[VARIANTS], FAULTS: known[FAULTS]})
            properties = table[VARIANTS].get(label, {})
            own, number = label, 0
            while known[VARIANTS].get(own, properties) != properties:
                number += 1
                own = f"{label[: limits.LABEL_LENGTH - 4]}.{number}"
            known[VARIANTS][own] = properties
            if label in table.get(FAULTS, {}):
                known[FAULTS][own] = table[FAULTS][label]
            labels[project] = own
        where = {ENVIRONMENT: environment} if environment else {}
        written.setdefault(name, []).append({**where, BUILDS: labels})
    for known in variants.values():
        if not known[FAULTS]:
            del known[FAULTS]
    tables = {name: each if len(each) > 1 else each[0] for name, each in written.items()}
    return {GROUPS: tables, VARIANTS: variants}


def _namespaces(table: Mapping[str, Any]) -> Collection[str]:
    names: Collection[str] = table["default-priorities"]["namespace"]
    return names


def choose_group(
    tree: Mapping[str, Any],
    source: str,
    environment: Mapping[str, str],
    platform: Callable[[Metadata], Platform],
    preferences: Preferences,
    named: Collection[str] = (),
) -> GroupChoice | None:
    """Return the group for a machine, None if the file has no such groups for its environment.

    Where none fits it is the one for CPUs, if the user has not asked for something else.

    Args:
        tree: the file, as parsed from TOML.
        source: where it is from, for messages; may be empty.
        environment: values of the environment markers.
        platform: gives the supported values for metadata.
        preferences: what the user asked for about variants.
        named: groups that the user named: one of ours is taken although another one fits better.

    Raises:
        LockError: none fits, or what is named is not there, not for this environment, or several.
    """
    groups = own_table(tree).get(GROUPS)
    if not isinstance(groups, Mapping):
        return None
    place = f"{source}: " if source else ""
    here = {
        name: builds if isinstance(builds := group.get(BUILDS), Mapping) else {}
        for name, tables in groups.items()
        for group in (tables if isinstance(tables, list) else [tables])
        # Other names might be options or paths to who gets them on a command line.
        if isinstance(group, Mapping)
        and is_normalized_name(name)
        and _holds(group.get(ENVIRONMENT), environment)
    }
    asked = {canonicalize_name(name) for name in named}
    declared = tree.get("dependency-groups")
    known = {str(name) for name in declared} if isinstance(declared, list) else set()
    for name in sorted(asked - here.keys()):
        if name in groups or name not in known:
            raise LockError(
                f"{place}there is no dependency group {shortened(name)} for this environment, but "
                f"{_listed([*here])}"
            )
    wanted = sorted(asked & here.keys())
    if len(wanted) > 1:
        raise LockError(
            f"{place}the dependency groups {_listed(wanted)} are for different machines: name one"
        )
    if not here:
        return None
    projects = dict.fromkeys(project for builds in here.values() for project in builds)
    if len(projects) * len(here) > limits.LOCK_BUILDS:
        raise LockError(
            f"{place}{len(here)} dependency groups with builds of {len(projects)} projects are "
            f"more than the {limits.LOCK_BUILDS} builds that are compared"
        )
    selections = {
        project: _select(tree, project, here, f"{place}{project}", platform, preferences)
        for project in projects
    }
    places = {
        project: {file.item: number for number, file in enumerate(selection.files)}
        for project, selection in selections.items()
    }
    builds = {
        name: {project: _label(labels, project, preferences) for project in projects}
        for name, labels in here.items()
    }
    ranks = {
        name: [places[project].get(label) for project, label in labels.items()]
        for name, labels in builds.items()
    }
    fitting = [name for name, rank in ranks.items() if None not in rank]
    # What was asked for is not replaced by something else.
    is_free = not wanted and preferences.forced.keys().isdisjoint(projects)
    if not fitting and is_free:
        fitting = [name for name in here if name == CPU]
    if not wanted and not fitting:
        reasons = (text for name in here for text in _unfit(selections, builds[name], ranks[name]))
        found = "; ".join(dict.fromkeys(islice(reasons, _SHOWN)))
        raise LockError(
            f"{place}none of the dependency groups {_listed([*here])} is for this machine: "
            f"{found}; one that is named is installed all the same"
        )
    name = min(wanted or fitting, key=lambda name: [number or 0 for number in ranks[name]])
    unfit = tuple(islice(_unfit(selections, builds[name], ranks[name]), _SHOWN))
    why = "" if unfit else next(map(_why, selections.items(), builds[name].values()), "")
    return GroupChoice(name, why, unfit, frozenset(projects))


def _select(
    tree: Mapping[str, Any],
    project: str,
    groups: Mapping[str, Mapping[str, Any]],
    source: str,
    platform: Callable[[Metadata], Platform],
    preferences: Preferences,
) -> Selection[str]:
    """Choose among the builds of a project that groups have, each once."""
    labels = dict.fromkeys(_label(builds, project, preferences) for builds in groups.values())
    tables = own_table(tree).get(VARIANTS)

    def metadata(_: str) -> Metadata:
        table = tables.get(project, {}) if isinstance(tables, Mapping) else {}
        return replace(metadata_from_tree(table, source), faults=_faults(table.get(FAULTS)))

    return select(
        [
            File(f"build-0-py3-none-any{label and f'-{label}'}.whl", source, label)
            for label in labels
            if not label or LABEL.fullmatch(label)
        ],
        metadata=metadata,
        platform=platform,
        preferences=preferences,
        project=project,
    )


def _faults(table: object) -> dict[str, dict[Property, str]]:
    """Return the known faults of a file; what is not valid is left out."""
    found: dict[str, dict[Property, str]] = {}
    for label, faults in table.items() if isinstance(table, Mapping) else ():
        for item, text in faults.items() if isinstance(faults, Mapping) else ():
            with suppress(InvalidProperty):
                if isinstance(text, str) and text.isprintable():
                    fault = {Property.parse(item): cut(text, _FAULT_LENGTH)}
                    found.setdefault(label, {}).update(fault)
    return found


def _label(builds: Mapping[str, Any], project: str, preferences: Preferences) -> str:
    """Return the label of a project's build; the null variant may stand for no variant."""
    label = str(builds.get(project, ""))
    is_plain = not preferences.use_variants or preferences.forced.get(project) == NON_VARIANT_LABEL
    return "" if label == NULL_LABEL and is_plain else label


def _why(decided: tuple[str, Selection[str]], label: str) -> str:
    project, selection = decided
    file = next(file for file in selection.files if file.item == label)
    why = why_this(selection, file, project)
    build = f"{_shown(project)} {_shown(label) or 'without variant'}"
    return f"{build}, {why}" if why else build


def _unfit(
    selections: Mapping[str, Selection[str]],
    labels: Mapping[str, str],
    ranks: Sequence[int | None],
) -> Iterator[str]:
    """Yield why the builds of a group do not fit."""
    for (project, selection), label, rank in zip(
        selections.items(), labels.values(), ranks, strict=True
    ):
        if rank is None:
            reasons = [*map(str, selection.problems.values()), *why_unfit(selection, label)]
            yield f"{_shown(project)} {_shown(label)} {'; '.join(reasons) or 'is not asked for'}"


def _listed(names: Sequence[str]) -> str:
    listed = ", ".join(map(_shown, names[:_SHOWN])) or "none"
    return listed + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _shown(name: str) -> str:
    """Return a name of the file without what a terminal would obey."""
    return shortened(name)[1:-1]


@lru_cache(maxsize=64)
def _marker(text: str) -> Marker:
    return Marker(text)


def _holds(marker: object, environment: Mapping[str, str]) -> bool:
    try:
        return not isinstance(marker, str) or _marker(marker).evaluate({**environment})
    except (KeyError, ValueError, RecursionError):
        return False
