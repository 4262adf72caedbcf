"""The variant options of one command: of its command line, variables and files.

Build requirements are installed with the same options. One whose installed version satisfies the
build gets the installed variant: an extension is then compiled against the build of the library
that it will be loaded with. pip installs them in a subprocess (unless ``inprocess-build-deps`` is
used), which reads the same variables and files, but not the command line: options and installed
labels are passed to it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pep_variants.options import OPTIONS, Option

from ._errors import logger
from ._guard import switch

if TYPE_CHECKING:
    from pep_variants.metadata import Metadata
    from pep_variants.preferences import Preferences


def dest(option: Option) -> str:
    """Return the attribute of *option* among the values of pip's parser."""
    return "pep_variants_" + option.name.replace("-", "_")


def add_option(group: Any, option: Option) -> None:
    """Add *option* to a *group* of pip's parser."""
    kind: dict[str, Any] = {"action": "store_true", "default": False}
    if option.repeatable:
        kind = {"action": "append", "metavar": option.metavar, "default": []}
    elif option.metavar:
        kind = {"metavar": option.metavar}
    group.add_option(f"--{option.name}", dest=dest(option), help=option.help, **kind)


def is_explicit(values: Mapping[str, Any]) -> bool:
    """Return whether option *values* or the environment ask for a variant or a machine.

    Checked before the settings are read: a fault before that must not be silent either.
    """
    wanted = values["variant"] or os.environ.get("VARIANTS_VARIANT") or values["variant-platform"]
    return bool(wanted) and not values["no-variants"]


class VariantOptions:
    """Reads the settings at most once, when they are needed.

    Attributes:
        values: of the command's options, by their long names without dashes.
        preferences: the settings; None until `read_settings`.
        builds: build requirements were installed with them.
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
        self.builds = False
        self._isolated = isolated
        self._warnings: list[str] = []

    def read_settings(self) -> Preferences:
        """Return the settings.

        Raises:
            PreferenceError: an option, a variable or a settings file is invalid.
        """
        if self.preferences is None:
            from pep_variants import preferences as user_preferences

            self._warnings.clear()  # of an attempt that failed
            self.preferences = user_preferences.load_settings(
                self.values, os.environ, warn=self._warnings.append, isolated=self._isolated
            ).preferences
            wanted = self.preferences.forced or self.values.get("variant-platform")
            switch.explicit = self.preferences.use_variants and bool(wanted)
        return self.preferences

    def read_given(self) -> Preferences | None:
        """Load the settings if the command line or the environment has any of them.

        A misspelled option is an error whether there are variant wheels or not.

        Raises:
            PreferenceError: as `read_settings`.
        """
        if any(self.values.values()) or any(name.startswith("VARIANTS_") for name in os.environ):
            preferences = self.read_settings()
            self.warn()
            return preferences
        return None

    def add_listed(self, text: str) -> None:
        """Add the labels that comments of a requirements file name, and read the settings anew.

        Raises:
            PreferenceError: as `read_settings`.
        """
        from pep_variants import preferences as user_preferences

        listed = user_preferences.listed_labels(text)
        if listed:
            self.values = user_preferences.with_listed(self.values, listed)
            self.preferences = None
            self.read_settings()
            self.warn()

    def read_files(self) -> None:
        """Load the settings if there is a settings file; invalid ones are an error only later.

        Where no variant wheels are found, invalid settings do not concern the user.
        """
        from pep_variants import options
        from pep_variants.errors import PreferenceError

        if options.any_file():
            try:
                self.read_settings()
            except PreferenceError as error:
                logger.debug("Variant settings cannot be read yet: %s", error)

    def warn(self) -> None:
        """Print warnings about ignored settings, once."""
        while self._warnings:
            logger.warning("%s", self._warnings.pop(0))

    @property
    def describes(self) -> bool:
        """Whether the settings describe a machine in place of the one that is here."""
        return self.preferences is not None and self.preferences.platform_file is not None

    @property
    def forced(self) -> Mapping[str, str]:
        """Forced labels by project, as far as the settings are read.

        An empty label forces the non-variant wheel.
        """
        return {} if self.preferences is None else self.preferences.forced

    def warn_of_unmatched(self, projects: Collection[str], seen: Iterable[Metadata]) -> None:
        """Warn of option values that match nothing.

        Args:
            projects: names of the resolved projects.
            seen: metadata of all versions that were considered.
        """
        # An environment for a build inherits the options of the command that it is for.
        if (
            self.builds
            or VARIABLE in os.environ
            or not any(text.startswith("--variant") for text in sys.argv)
        ):
            return
        from pep_variants import preferences as user_preferences

        if self.preferences is not None:
            for text in user_preferences.unmatched(self.preferences, sys.argv, projects, seen):
                logger.warning("%s", text)


VARIABLE = "_PEP_VARIANTS_INSTALLED"
"""Environment variable with the installed variants, read by the subprocess for a build."""

_MAX_LENGTH = 16_000  # characters of the variable; Windows allows 32,767

_options: list[str] = []

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
    _options[:] = words


def noted_options() -> tuple[str, ...]:
    """Return the variant options of the command as words of a command line."""
    return tuple(_options)


def build_command(command: Sequence[str], labels: Labels) -> tuple[list[str], dict[str, str]]:
    """Return pip's *command* for build requirements with variant options, and its variables.

    Args:
        command: arguments of the subprocess, ``install`` among them.
        labels: installed variants.
    """
    place = command.index("install") + 1
    text = json.dumps(labels, separators=(",", ":"))
    variables = {VARIABLE: text if labels and len(text) <= _MAX_LENGTH else ""}
    return [*command[:place], *_options, *command[place:]], variables


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
