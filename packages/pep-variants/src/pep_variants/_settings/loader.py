"""Where settings come from, how they merge, and which places may grant trust.

Each key counts from the first of these places that sets it:

    option > VARIANTS_… variable > working directory > virtual environment > user > system

A ``variants.toml`` in the working directory may have come with a checkout. It only reorders and
narrows what an index offers (`Option.narrows`), unless the user approved its content with
``variants trust`` (see `trust`). The files of the virtual environment, the user and the system
count fully where no other user can change them (see `ownership`), and as a project's file does
otherwise. Whatever is not believed is said in one line and left out; the rest counts.
"""

from __future__ import annotations

import logging
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from .._choose.preferences import (
    PRIORITIES,
    Given,
    Preferences,
    configuration_tree,
    given_options,
    given_settings,
    given_variables,
    is_catalog_path,
)
from .._detect.known_machines import names_file
from .._files import Content, read_regular
from .._ownership import NotPrivate, check_private
from .._places import Place, Role, places
from ..errors import PreferenceError, printable
from ..limits import SETTINGS_BYTES
from ..options import OPTIONS, Option
from .trust import Approvals, approval_digest, covered_files

_logger = logging.getLogger(__name__)

_NARROWING = {*PRIORITIES, *(option.key for option in OPTIONS if option.narrows)}


class UserSettings(NamedTuple):
    """Merged settings.

    Attributes:
        preferences: what they mean.
        origins: the option, variable or file by attribute of the preferences; attributes that
            have their default are missing.
    """

    preferences: Preferences
    origins: Mapping[str, str]


def load_preferences(
    options: Mapping[str, Any],
    environ: Mapping[str, str],
    *,
    warn: Callable[[str], None],
    isolated: bool = False,
    candidates: Sequence[Place] | None = None,
) -> Preferences:
    """Return the preferences of `load_settings`, for those who need not know their origins.

    >>> from pep_variants.preferences import load_preferences
    >>> environ = {"VARIANTS_VARIANT": "torch=cu128"}
    >>> load_preferences({}, environ, warn=print, candidates=()).forced["torch"]
    'cu128'
    """
    settings = load_settings(options, environ, warn=warn, isolated=isolated, candidates=candidates)
    return settings.preferences


def load_settings(
    options: Mapping[str, Any],
    environ: Mapping[str, str],
    *,
    warn: Callable[[str], None],
    unapproved: Callable[[str, str], None] | None = None,
    isolated: bool = False,
    candidates: Sequence[Place] | None = None,
) -> UserSettings:
    """Read and merge the settings of all places.

    Args:
        options: values of options by their names.
        environ: environment variables.
        warn: called with one line for each file of which something does not count.
        unapproved: called in its place where the user may approve the file, with the line and the
            command that does.
        isolated: leave out variables and the files of project and user, as ``pip --isolated``
            does; ``python -E`` leaves out the variables, ``python -I`` also the project's file.
        candidates: where files are looked for; None for `places`.

    Raises:
        PreferenceError: an option, a variable, or a file that the user or the administrator
            wrote is malformed or cannot be read. Such a file in a project is left out with a
            warning: a checkout must not keep commands from working.
    """
    ignored: set[Role] = set()
    if isolated:
        ignored = {Role.PROJECT, Role.USER}
    elif sys.flags.isolated:
        ignored = {Role.PROJECT}
    merged: dict[str, Given] = {}
    for place in reversed(_distinct(places() if candidates is None else candidates)):
        if place.role not in ignored:
            given, narrows = _read(place, warn, unapproved)
            _merge(merged, given, narrows=narrows)
    if not isolated and not sys.flags.ignore_environment:
        _merge(merged, given_variables(environ))
    _merge(merged, given_options(options))
    for name, item in merged.items():
        _logger.debug("Setting %s counts, from %s", name, item.origin)
    preferences = Preferences(**{name: item.value for name, item in merged.items()})
    if "catalog" in merged:
        preferences = replace(preferences, catalog_origin=merged["catalog"].origin)
    return UserSettings(preferences, {name: item.origin for name, item in merged.items()})


def _distinct(candidates: Sequence[Place]) -> list[Place]:
    """Return *candidates* without those at the path of a later one.

    The working directory may be the virtual environment, or where the user's settings are: its
    file counts as what it is for every other directory, too.
    """
    by_path: dict[str, Place] = {}
    for place in reversed(candidates):
        try:
            path = os.path.realpath(place.path.parent)
        except OSError:  # the working directory was removed
            path = str(place.path)
        by_path.setdefault(os.path.normcase(path), place)
    return list(reversed(by_path.values()))


def _merge(merged: dict[str, Given], given: Iterable[Given], *, narrows: bool = False) -> None:
    """Let *given* replace what is in *merged*; with *narrows*, only where that narrows it."""
    for item in given:
        before = merged.get(item.attribute)
        if narrows and item.attribute == "use_variants" and item.value:
            continue
        value = item.value
        if narrows and before is not None:
            if item.attribute == "exclude":
                value = tuple(dict.fromkeys((*before.value, *value)))
            elif item.attribute == "forced":
                value = {**value, **before.value}
        merged[item.attribute] = item._replace(value=value)


def _read(
    place: Place,
    warn: Callable[[str], None],
    unapproved: Callable[[str, str], None] | None,
) -> tuple[list[Given], bool]:
    """Return the settings of the file at *place*, and whether it may only narrow."""
    try:
        content = read_regular(place.path, SETTINGS_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return [], True
    except OSError as error:
        source = printable(str(place.path.absolute()))
        problem = PreferenceError(f"{source}: cannot be read: {error.strerror}")
        if place.role is not Role.PROJECT:
            raise problem from None
        warn(f"{problem}; it is left out")
        return [], True
    source = printable(str(place.path.absolute()))
    doubt = "" if place.role is Role.PROJECT else _changeable(place.path, content)
    approves = ""
    must_be_sound = place.role is not Role.PROJECT and not doubt
    ignored: list[Option] = []
    personal: list[Option] = []
    try:
        tree = configuration_tree(content.data, source)
        given = [option for option in OPTIONS if option.key in tree]
        if place.role is Role.PROJECT:
            doubt, approves = _unapproved(place.path, content, tree)
            personal = [option for option in given if option.personal]
        if doubt:
            ignored = [item for item in given if not (item.narrows or item in personal)]
            tree = {key: value for key, value in tree.items() if key in _NARROWING}
        left_out = {option.key for option in personal}
        tree = {key: value for key, value in tree.items() if key not in left_out}
        values = list(given_settings(tree, source))
    except PreferenceError as error:
        if must_be_sound:
            raise
        warn(f"{error}; the file is left out")
        return [], True
    if personal:
        reason = "a project does not decide where code comes from: set it yourself"
        warn(_ignored(source, personal, reason))
    if ignored:
        reason = f"{doubt}: look at it and run {approves}" if approves else doubt
        line = _ignored(source, ignored, reason)
        if approves and unapproved is not None:
            unapproved(line, approves)
        else:
            warn(line)
    # Relative to the file, not to where the command was typed.
    return [
        item._replace(value=str(place.path.parent / item.value)) if _is_path(item) else item
        for item in values
    ], bool(doubt)


def _ignored(source: str, options: Iterable[Option], reason: str) -> str:
    keys, flags = zip(*((option.key, f"--{option.name}") for option in options), strict=True)
    return f"{source}: {', '.join(keys)} ignored: {reason}, or use {', '.join(flags)}"


def _is_path(item: Given) -> bool:
    if item.attribute == "catalog":
        return item.value is not None and is_catalog_path(item.value)
    if item.attribute != "platform_file" or item.value is None:
        return False
    # Imported here: few files name a machine.
    return names_file(item.value)


def _changeable(path: Path, content: Content) -> str:
    """Return how another user could change the file, empty if none could."""
    try:
        check_private(path, content.status)
    except NotPrivate as error:
        return str(error)
    except OSError as error:
        return f"{printable(str(path))} cannot be checked: {error.strerror}"
    return ""


def _unapproved(path: Path, content: Content, tree: Mapping[str, Any]) -> tuple[str, str]:
    """Return why the project's file is not believed, and the command that approves it.

    The reason is empty if the user has approved it, the command if none can.
    """
    # Imported late: most commands find no such file.
    # Files that it names are only read if it may be believed.
    approvals = Approvals()
    folder = printable(os.path.realpath(path.parent))
    command = f"variants trust {shlex.quote(folder)}"
    try:
        approval = approvals.find(path)
        if approval is None:
            return "a project's file is not trusted before you approve it", command
        if approval.digest == approval_digest(covered_files(path, content.data, tree)):
            return "", ""
    except NotPrivate as error:
        return str(error), ""
    except PreferenceError:
        pass
    return "it has changed since you approved it", command
