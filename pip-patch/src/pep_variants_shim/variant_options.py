"""The variant options of one command: of its command line, variables, files, requirement lines."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pip._internal.exceptions import InstallationError

from .build_requirements import VARIABLE
from .errors import Fault, faults, logger
from .guard import switch

if TYPE_CHECKING:
    from pep_variants.choose.preferences import Preferences
    from pep_variants.model.metadata import Metadata

    from .requirement_lines import LabelLine


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
        repeated: Callable[[], list[str]] = list,
    ) -> None:
        """Set up.

        Args:
            values: of the command's options, by their long names without dashes.
            isolated: pip was called with ``--isolated``.
            repeated: returns the options that another command needs to find the same files.
        """
        self.values = values
        self.repeated = repeated
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
                from pep_variants.errors import PreferenceError
                from pep_variants.settings.loader import load_settings

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
        from pep_variants.settings.places import any_file

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
        from pep_variants.choose.preferences import unmatched

        if self.preferences is not None:
            for text in unmatched(self.preferences, sys.argv, projects, seen):
                logger.warning("%s", text)


def _described(label: str) -> str:
    return f"variant {label}" if label else "the non-variant wheel"
