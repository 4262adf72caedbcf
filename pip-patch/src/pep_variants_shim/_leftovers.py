"""What a change of builds leaves behind: libraries without use, and files of two owners.

Builds for different versions of CUDA require packages that own the same file, such as
``nvidia-nccl-cu12`` and ``-cu13``. `settle` has the file be that of what is required: it chooses
builds that agree where it can, has what is overwritten or removed installed again, and with
``--variant-switch`` has pip uninstall what only the replaced builds required.
"""

from __future__ import annotations

import logging
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from pip._vendor.packaging.utils import canonicalize_name

from ._errors import logger

if TYPE_CHECKING:
    from pep_variants.wheel_files import Installed

    from ._session import Session
    from ._switching import Rounds

MAX_TRIES = 8
"""Labels that are left out, one after the other, to have the builds agree."""


class _Coming(NamedTuple):
    """What is going to be installed, as `Installed` has it."""

    project: str
    requires: tuple[str, ...]
    is_requested: bool = False


def settle(rounds: Rounds, *, switch: bool) -> None:
    """Have every file be that of what is required, once the result is installed.

    Args:
        rounds: of the resolution.
        switch: whether to uninstall what only the replaced builds required.
    """
    from pep_variants import selection as wheel_selection
    from pep_variants import wheel_files

    session = rounds.session
    if not switch and not any(map(session.has_variants, rounds.requirements)):
        return
    paths = sorted({str(dist.location) for dist in session.installed.values()})
    before: dict[str, Any] = {item.project: item for item in wheel_files.find_installed(paths)}
    session.rivals = _agree(rounds, before)
    after, unused = _after(rounds, before)
    gone = []
    if switch:
        removable = {item.project: rounds.removable(item.project) for item in unused}
        gone = [name for name, dist in removable.items() if dist is not None]
        session.leftovers = [removable[name] for name in gone]
    found = wheel_selection.repairs(
        paths,
        after,
        {candidate.project_name for candidate in rounds.result.mapping.values()},
        [item.project for item in unused],
        going={*gone, *rounds.requirements},
        alone=switch,
    )
    again = {name: item for each in found.again if (item := rounds.installed(name := each.project))}
    if again:
        versions = {name: item.dist.version for name, item in again.items()}
        if not rounds.run(again, versions, again):
            for name, version in versions.items():
                logger.warning(
                    "Files of %s %s are those of another package: "
                    "pip install --force-reinstall --no-deps %s==%s",
                    *(name, version) * 2,
                )
    for problem in found.contested:
        names = {each.partition("==")[0] for each in problem.owners}
        if names != {*session.rivals}:
            _warn(problem.path, names)


def _after(rounds: Rounds, before: Mapping[str, Any]) -> tuple[dict[str, Any], list[Installed]]:
    """Return what will be installed, by project, and what of that is no longer required."""
    from pep_variants import selection as wheel_selection

    after = dict(before)
    for name in rounds.requirements:
        metadata = rounds.chosen(name).dist.metadata
        after[name] = _Coming(name, tuple(metadata.get_all("Requires-Dist", [])))
    session = rounds.session
    changed = [name for name, item in rounds.replaced().items() if session.has_variants(name)]
    return after, wheel_selection.unneeded(before, after, changed, session.asked_for)


# Builds that agree.


def _agree(rounds: Rounds, before: Mapping[str, Any]) -> tuple[str, ...]:
    """Choose builds that do not require packages with the same files, where there are such.

    Return such packages where there are not.
    """
    from pep_variants import selection as wheel_selection

    session, tried = rounds.session, set[tuple[str, str]]()
    pair: tuple[str, ...] = ()
    for _ in range(MAX_TRIES):
        after, unused = _after(rounds, before)
        pair = _rivals(rounds, after, unused)
        if not pair:
            break
        for name in [*rounds.requirements]:
            label = rounds.label(name)
            if (name, label) in tried or not session.is_accelerated(rounds.requirements[name].link):
                continue
            own = wheel_selection.required_by(after, [name], [name]).intersection(pair)
            if own and len(own) < len(pair):
                tried.add((name, label))
                if _without(rounds, name, label):
                    rounds.say(
                        f"Variant {label} of {name} is left out: it requires {' and '.join(own)}, "
                        f"which has the files of {' and '.join({*pair} - own)}"
                    )
                    break
        else:
            break
    return pair


def _rivals(
    rounds: Rounds, after: Mapping[str, Any], unused: Iterable[Installed]
) -> tuple[str, ...]:
    """Return packages with the same files that are required together, nothing if there are none."""
    from pep_variants import selection as wheel_selection

    kept = after.keys() - {item.project for item in unused}
    names = {candidate.project_name for candidate in rounds.result.mapping.values()}
    names |= wheel_selection.required_by(after, kept, rounds.requirements)
    return next(wheel_selection.rivals(names & kept), ())


def _without(rounds: Rounds, project: str, label: str) -> bool:
    """Resolve without a label of a project; return whether another one uses the accelerator."""
    session, state = rounds.session, rounds.state()
    session.exclude(project, label)
    if rounds.run({}, {project: None}):
        requirement = rounds.requirements.get(project)
        # Without one, what is installed stays.
        if requirement is None or session.is_accelerated(requirement.link):
            return True
    rounds.restore(state)
    session.excluded[project].discard(label)
    return False


def tell_rivals(session: Session, requirements: Iterable[Any]) -> None:
    """Warn of packages with the same files, once these are downloaded.

    Args:
        session: of the command.
        requirements: what is going to be installed.
    """
    coming = {canonicalize_name(each.name): each.local_file_path for each in requirements}
    lists = []
    for name in session.rivals:
        found: Iterable[str] = ()
        if coming.get(name):
            with zipfile.ZipFile(coming[name]) as wheel:
                found = wheel.namelist()
        elif name in session.installed:
            found = session.installed[name].iter_declared_entries() or ()
        lists.append({path for path in found if not path.endswith(("__init__.py", "/"))})
    if lists:
        _warn(min(set.intersection(*lists), default="A file"), session.rivals)


def _warn(path: str, owners: Iterable[str]) -> None:
    text = " and ".join(sorted(owners))
    logger.warning("%s is a file of %s, and is right for one of them alone", path, text)


# Uninstalling.


@contextmanager
def uninstalled(session: Session | None) -> Iterator[None]:
    """Uninstall what only replaced builds required, before the others are; restore it on errors."""
    from pip._internal.req.req_uninstall import UninstallPathSet

    removed = []
    found = logging.getLogger("pip._internal.metadata.base")
    found.addFilter(_says_no_more)  # of what can be restored
    try:
        for dist in () if session is None else session.leftovers:
            logger.info("No longer required: %s %s", dist.canonical_name, dist.version)
            files = UninstallPathSet.from_dist(dist)
            removed.append(files)
            files.remove(auto_confirm=True)
        yield
    except BaseException:
        for files in removed:
            files.rollback()
        raise
    else:
        for files in removed:
            files.commit()
    finally:
        found.removeFilter(_says_no_more)


def _says_no_more(record: logging.LogRecord) -> bool:
    """Return whether pip's message is about anything but what was uninstalled just now."""
    return not str(record.msg).startswith("Ignoring in")


def names(dists: Collection[Any]) -> str:
    """Return names and versions of *dists* as pip lists them."""
    return " ".join(f"{dist.canonical_name}-{dist.version}" for dist in dists)
