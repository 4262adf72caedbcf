"""The variant options of one command: of its command line, variables, files, requirement lines.

``gpu==2.0 --variant=cu128`` in a requirements or constraints file has the meaning of ``--variant
gpu=cu128`` on the command line; ``pip freeze --variants`` writes such lines. An empty label
(``--variant=``) stands for the non-variant wheel.

Build requirements are installed with the same options. One whose installed version satisfies the
build gets the installed variant: an extension is then compiled against the build of the library
that it will be loaded with. pip installs them in a subprocess (unless ``inprocess-build-deps`` is
used), which reads the same variables and files, but not the command line: options and installed
labels are passed to it.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from pip._internal.exceptions import InstallationError
from pip._vendor.packaging.requirements import InvalidRequirement, Requirement
from pip._vendor.packaging.utils import canonicalize_name

from pep_variants.internal import OPTIONS, InvalidLabel, check_label, redacted

from .errors import Fault, faults, logger
from .guard import switch

if TYPE_CHECKING:
    from pep_variants import Metadata, Preferences


def forces_a_label(values: Mapping[str, Any]) -> bool:
    """Return whether option *values* or the environment force the variant of a project.

    Checked before the settings are read: a fault before that must not be silent either.
    """
    wanted = values.get("variant") or os.environ.get("VARIANTS_VARIANT")
    return bool(wanted) and not values.get("no-variants")


class VariantOptions:
    """Reads the settings at most once, when they are needed.

    Attributes:
        values: of the command's options, by their long names without dashes.
        preferences: the settings; None until `read_settings`.
    """

    def __init__(
        self,
        values: Mapping[str, Any],
        *,
        isolated: bool = False,
    ) -> None:
        """Set up.

        Args:
            values: of the command's options, by their long names without dashes.
            isolated: pip was called with ``--isolated``.
        """
        self.values = values
        self.preferences: Preferences | None = None
        self._isolated = isolated
        self._origins: Mapping[str, str] = {}
        self._lines: dict[str, str] = {}  # requirement lines by project
        self._warnings: list[str] = []

    def read_settings(self) -> Preferences:
        """Return the settings.

        Raises:
            InstallationError: an option, a variable or a settings file is invalid.
        """
        if self.preferences is None:
            with faults():
                from pep_variants.internal import PreferenceError, load_settings

                try:
                    self.preferences, self._origins = load_settings(
                        self.values,
                        os.environ,
                        warn=self._warnings.append,
                        isolated=self._isolated,
                    )
                except PreferenceError as error:
                    self._warnings.clear()  # the next attempt repeats them
                    raise InstallationError(str(error)) from None
            switch.explicit = self.preferences.use_variants and bool(self.preferences.forced)
        return self.preferences

    def read_given(self) -> Preferences | None:
        """Load the settings if the command line or the environment has any of them.

        A misspelled option is an error whether there are variant wheels or not.

        Raises:
            InstallationError: as `read_settings`.
        """
        if any(self.values.values()) or any(name.startswith("VARIANTS_") for name in os.environ):
            preferences = self.read_settings()
            self.warn()
            return preferences
        return None

    def read_files(self) -> None:
        """Load the settings if there is a settings file; invalid ones are an error only later.

        Where no variant wheels are found, invalid settings do not concern the user.
        """
        from pep_variants.internal import any_file

        if not any_file():
            return
        try:
            self.read_settings()
        except Fault:
            raise
        except InstallationError as error:
            logger.debug("Variant settings cannot be read yet: %s", error)

    def warn(self) -> None:
        """Print warnings about ignored settings, once."""
        while self._warnings:
            logger.warning("%s", self._warnings.pop(0))

    @property
    def forced(self) -> Mapping[str, str]:
        """Forced labels by project, as far as the settings are read.

        An empty label forces the non-variant wheel.
        """
        return {} if self.preferences is None else self.preferences.forced

    @property
    def forced_by_lines(self) -> dict[str, str]:
        """Labels of requirement lines, by project."""
        return {project: self.forced[project] for project in self._lines}

    def force(self, line: LabelLine) -> None:
        """Force the label of a requirement line.

        Raises:
            InstallationError: an option, a setting or another line has another label.
        """
        preferences = self.read_settings()
        before = preferences.forced.get(line.project)
        if before is not None and before != line.label:
            origin = self._lines.get(line.project) or self._origins.get("forced", "")
            raise InstallationError(
                f"{line.project}: {line.where} asks for {_described(line.label)}, "
                f"{origin} for {_described(before)}; leave one of them out"
            )
        self._lines[line.project] = line.where
        forced = {**preferences.forced, line.project: line.label}
        self.preferences = dataclasses.replace(preferences, forced=forced)
        switch.explicit = True

    def with_origin(self, project: str, error: Exception) -> str:
        """Return *error* about the forced label of *project*, with its requirement line if any."""
        line = self._lines.get(project)
        return f"{line}: {error}" if line else str(error)

    def warn_of_unmatched(self, projects: Collection[str], seen: Iterable[Metadata]) -> None:
        """Warn of option values that match nothing.

        Args:
            projects: names of the resolved projects.
            seen: metadata of all versions that were considered.
        """
        # An environment for a build inherits the options of the command that it is for.
        if VARIABLE in os.environ or not any(text.startswith("--variant") for text in sys.argv):
            return
        from pep_variants.internal import unmatched

        if self.preferences is not None:
            for text in unmatched(self.preferences, sys.argv, projects, seen):
                logger.warning("%s", text)


_SHORT = {"-i": "--index-url", "-f": "--find-links"}
_REPEATED = {
    "--index-url": True, "--extra-index-url": True, "--find-links": True, "--trusted-host": True,
    "--no-index": False, "--user": False,
    **{f"--{option.name}": bool(option.metavar) for option in OPTIONS if not option.installs},
}  # fmt: skip
"""Options that another command needs to find and install the same files: whether with a value."""


def repeated_options() -> list[str]:
    """Return those of this command line that another command needs to find the same files.

    Passwords in URLs are redacted.
    """
    found = []
    words = iter(sys.argv[1:])
    for word in words:
        name, equals, value = _SHORT.get(word, word).partition("=")
        if name in _REPEATED:
            found.append(name)
            if _REPEATED[name]:
                found.append(redacted(value if equals else next(words, "")))
    return found


def _described(label: str) -> str:
    return f"variant {label}" if label else "the non-variant wheel"


DEST = "pep_variants_label"
"""``dest`` of the option in pip's parser of requirement lines."""


class LabelLine(NamedTuple):
    """The label in a requirement line.

    Attributes:
        project: normalized name.
        label: its label, empty for the non-variant wheel.
        where: the number of the line, and its file.
    """

    project: str
    label: str
    where: str


def read_line(line: Any, build_constraints: Collection[str]) -> LabelLine | None:
    """Return the label in a requirement line; None without one, or if its marker does not hold.

    Args:
        line: parsed by pip.
        build_constraints: files of ``--build-constraint``.

    Raises:
        InstallationError: the option is not allowed in that line, or its label is invalid.
    """
    label = getattr(line.opts, DEST, None)
    if label is None:
        return None
    where = f"line {line.lineno} of {redacted(str(line.filename))}"
    if line.constraint and line.filename in build_constraints:
        raise InstallationError(
            f"{where}: --variant={label} has no effect in a build constraint; "
            "--variant NAME=LABEL on the command line counts for builds, too"
        )
    try:
        requirement = None if line.is_editable else Requirement(line.requirement)
    except InvalidRequirement:
        requirement = None
    if requirement is None or requirement.url is not None:
        raise InstallationError(
            f"{where}: --variant={label} needs a requirement such as 'name==1.0'; "
            "a path or URL names one file already"
        )
    try:
        check_label(label or "null")
    except InvalidLabel as error:
        raise InstallationError(f"{where}: --variant: {error}") from None
    if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
        return None
    return LabelLine(canonicalize_name(requirement.name), label, where)


def check_option_line(options: Any, filename: str, number: int) -> None:
    """Check that a line without a requirement does not have the option, which pip would ignore.

    Raises:
        InstallationError: it has.
    """
    label = getattr(options, DEST, None)
    if label is not None:
        raise InstallationError(
            f"line {number} of {redacted(filename)}: --variant={label} has no requirement; "
            "write it after one: name==1.0 --variant=LABEL"
        )


VARIABLE = "_PEP_VARIANTS_INSTALLED"
"""Environment variable with the installed variants, read by the subprocess for a build."""

_MAX_LENGTH = 16_000  # characters of the variable; Windows allows 32,767

_options: ContextVar[tuple[str, ...]] = ContextVar("variant options", default=())

Labels = Mapping[str, tuple[str, str]]
"""Version and label of installed variants, by normalized project name."""


def note_options(values: Mapping[str, Any]) -> None:
    """Keep the variant options of the command; *values* by their long names without dashes."""
    words: list[str] = []
    for option in OPTIONS:
        value = values.get(option.name)
        if not value or option.installs:
            continue
        if not option.metavar:
            words.append(f"--{option.name}")
        else:
            each = value if isinstance(value, (list, tuple)) else [value]
            words += [f"--{option.name}={item}" for item in each]
    _options.set(tuple(words))


def build_command(
    command: Sequence[str], forced: Mapping[str, str], labels: Labels
) -> tuple[list[str], dict[str, str]]:
    """Return pip's *command* for build requirements with variant options, and its variables.

    Args:
        command: arguments of the subprocess, ``install`` among them.
        forced: labels from lines of requirements files, by project.
        labels: installed variants.
    """
    place = command.index("install") + 1
    options = [*_options.get(), *(f"--variant={name}={label}" for name, label in forced.items())]
    text = json.dumps(labels, separators=(",", ":"))
    variables = {VARIABLE: text if labels and len(text) <= _MAX_LENGTH else ""}
    return [*command[:place], *options, *command[place:]], variables


def inherited_labels() -> Labels:
    """Return the installed variants of the command that started this build."""
    text = os.environ.get(VARIABLE)
    if not text:
        return {}
    try:
        return {
            name: (str(version), str(label)) for name, (version, label) in json.loads(text).items()
        }
    except (ValueError, TypeError, AttributeError):  # not written by `build_command`
        return {}
