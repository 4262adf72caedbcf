"""The choices of a session: which variant was chosen for a version, why, and the lines about it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from pep_variants import machines, wheel_files
from pep_variants import selection as wheel_selection
from pep_variants.errors import listed
from variants_catalog import listings

from ._errors import warn
from ._named_projects import are_tags_of

if TYPE_CHECKING:
    from packaging.version import Version

    from pep_variants.machines import Platform
    from pep_variants.wheel_files import Installed
    from variants_proxy.service import ProjectReport, VersionReport

    from ._session import CommandSession


class Choices:
    """The proxy's choices for one command, each project asked for once.

    Attributes:
        session: that is asked.
        said: lines about them that were printed.
    """

    def __init__(self, session: CommandSession) -> None:
        self.session = session
        self.said: set[str] = set()
        self._versions: dict[str, dict[str, VersionReport]] = {}
        self._reports: dict[str, ProjectReport] = {}

    def ask(self, names: Iterable[str]) -> None:
        """Get the choices for projects (normalized names) that were not asked for yet."""
        missing = [name for name in names if name not in self._versions]
        self._reports.update(self.session.reports(missing))
        self._versions |= {
            name: {str(each.version): each for each in self._reports[name].versions}
            for name in missing
            if name in self._reports
        }

    def reports(self, names: Iterable[str]) -> list[ProjectReport]:
        """Return the reports on projects (normalized names), of those that an index has."""
        names = list(names)
        self.ask(names)
        return [self._reports[name] for name in names if name in self._reports]

    def expect_none(self, names: Iterable[str]) -> None:
        """Do not ask for projects (normalized names) that are known to have no variants."""
        for name in names:
            self._versions.setdefault(name, {})

    def asked(self, names: Iterable[str]) -> bool:
        """Return whether all *names* (normalized names) were asked for, and indexes have them."""
        return all(name in self._versions for name in names)

    def of(self, name: str) -> dict[str, VersionReport]:
        """Return the choices for a project by version; empty if it was not asked for."""
        return self._versions.get(name, {})

    def of_installed(self, installed: Installed) -> VersionReport | None:
        """Return the choice for the version that is *installed*, None without one."""
        versions, wanted = self.of(installed.project), installed.version
        if not versions or str(wanted) in versions:
            return versions.get(str(wanted))
        # A build that the catalogue describes has a version with a local part.
        public = wheel_files.read_version(wanted.public)
        for version, choice in versions.items():
            if wheel_files.read_version(version) in (
                wanted,
                public if choice.published else wanted,
            ):
                return choice
        return None

    def as_installed(self, installed: Installed) -> Installed:
        """Return *installed* with the label of a build of the catalogue, if it is one."""
        return replace(installed, label=self.label_of(installed))

    def label_of(self, installed: Installed) -> str | None:
        """Return the label of what is *installed*, also of a build of the catalogue."""
        choice = self.of_installed(installed) if installed.label is None else None
        return installed.label if choice is None else label_of_build(choice, installed)


def label_for(report: VersionReport, tags: frozenset[str]) -> str | None:
    """Return the label that is shown to installers of wheels with one of *tags*."""
    for name, label in report.labels.items():
        if are_tags_of(name, tags):
            return label
    return report.chosen.label if report.chosen is not None else None


def label_of_build(report: VersionReport, installed: Installed) -> str | None:
    """Return the label of the publisher's file that is *installed*, None if it is none."""
    for plain, name in report.published.items():
        if wheel_files.read_version(name.split("-")[1]) == installed.version and are_tags_of(
            plain, installed.tags
        ):
            return report.labels.get(plain)
    return None


def systems_with(report: VersionReport, label: str) -> str:
    """Return the systems that have *label* in words: ``Linux and Windows``.

    With their machines where the label of another file is for the same system.
    """
    found: dict[bool, set[tuple[str, str]]] = {True: set(), False: set()}
    for plain, shown in report.labels.items():
        for tag in plain.removesuffix(".whl").rpartition("-")[2].split("."):
            if markers := machines.system_markers(tag):
                system = markers["platform_system"].replace("Darwin", "macOS")
                found[shown == label].add((system, markers["platform_machine"]))
    others = {system for system, _ in found[False]}
    words = {
        f"{system} {machine}" if system in others else system for system, machine in found[True]
    }
    return listed(sorted(words), "and")


def not_reached(
    reports: Iterable[ProjectReport],
    asked: Mapping[str, Iterable[Version]] = MappingProxyType({}),
) -> list[str]:
    """Return the builds of the catalogue that cannot be had, a line for each host and reason.

    Args:
        reports: of projects.
        asked: see `by_host`.
    """
    catalogs = [report.catalog for report in reports if report.catalog is not None]
    problems = dict.fromkeys(catalog.problem for catalog in catalogs if catalog.problem)
    items = [item for catalog in catalogs for item in catalog.unavailable]
    return [*problems, *map(str, listings.by_host(items, asked))]


def report_variants(
    taken: Iterable[Installed],
    choices: Choices,
    *,
    verbose: bool,
) -> None:
    """Print which variants were taken, and why; with *verbose* also the other ones.

    Args:
        taken: what is installed now, or locked.
        choices: of the proxy.
        verbose: print the verdicts on all variants of every version.
    """
    stream = sys.stderr
    taken = list(taken)
    projects = Counter(each.project for each in taken)
    printed: set[str] = set()
    hinted = False
    for each in taken:
        choice = choices.of_installed(each)
        if verbose and choice is not None:
            print(f"Variants of {each.project} {each.version}:", file=stream)
            for line in wheel_selection.table_lines(choice.verdicts, choice.properties):
                print(f"  {line}", file=stream)
            for text in choice.notices:
                if text not in printed:
                    printed.add(text)
                    warn(text)
        elif each.label is not None:
            why = choice.reason_for(each.label) if choice is not None else ""
            reason = f": {why}" if why else ""
            origin = choice.origin_of(each.label) if choice is not None else ""
            named = f" (published as {origin.partition('==')[0]})" if origin else ""
            # A lock has one for each system.
            several = projects[each.project] > 1
            systems = systems_with(choice, each.label) if choice is not None and several else ""
            on = f" on {systems}" if systems else ""
            line = f"Variant {each.label} for {each.project} {each.version}{named}{on}{reason}"
            if choice is not None and choice.is_missed and not hinted:
                hinted = True
                line += wheel_selection.MORE.format(each.project)
            print(line, file=stream)


def report_platform(platform: Platform) -> None:
    """Print what is known of the machine, and where it is from."""
    if platform.source:
        warn(f"the machine is described by {platform.source}")
        return
    for namespace, support in platform.namespaces.items():
        facts = [
            f"{fact.what} {fact.value} ({fact.source})"
            for fact in support.facts
            if support.features or fact.forced
        ]
        if facts:
            warn(f"{namespace}: {', '.join(facts)}")


def why_missing(name: str, label: str, versions: dict[str, VersionReport]) -> str | None:
    """Return why no version of a project has the variant that was asked for, None if one has.

    Args:
        name: normalized project name.
        label: that was forced; empty for the non-variant wheel.
        versions: choices by version, newest first.
    """
    if any(choice.shows(label) for choice in versions.values()):
        return None
    for choice in versions.values():
        return choice.missing or None
    return f"{name} has no variants, but --variant {name}={label} asks for one" if label else None
