"""The choices of a session: which variant was chosen for a version, why, and the lines about it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from pep_variants.internal import NULL_LABEL, ZERO_LABEL, listed, system_markers
from variants_proxy.internal import FOLDER

if TYPE_CHECKING:
    from pep_variants import Platform, Verdict
    from pep_variants.internal import Installed

    from .session import Session


class LockedLabel(NamedTuple):
    """What a lock has of a version for this machine's platform.

    Attributes:
        label: of the variant, None for a wheel without one.
        fits: whether it fits this machine.
        why: why it does not.
        instead: label that would be chosen, None for the non-variant wheel or nothing.
    """

    label: str | None
    fits: bool
    why: str
    instead: str | None


class OlderBuild(NamedTuple):
    """An older version with a build for the accelerator that is here, and the lines about it.

    Attributes:
        version: that version; None if it was not found among the versions that are read.
        text: the line where the newest version is taken, by the order of versions.
        preferred: where the older version is taken.
    """

    version: str | None
    text: str
    preferred: str


class VersionChoice(NamedTuple):
    """The proxy's choice among the variants of one version.

    Attributes:
        labels: of the files that uv is shown, by plain filename; None for the non-variant wheel.
        verdicts: on every variant, the chosen one first; ``locked`` is one of them.
        notices, problems: warnings for the user.
        providers: that the metadata names: requirements and endpoint, by namespace.
        why: why the chosen one, and none that ranks higher.
        unfit: why nothing of the version can be installed, several lines; empty if something can.
        passed_over: why an older version is taken, with `TAKEN` in place of that version.
        left_out: variants that uv cannot choose correctly.
        locked: what the lock of the command has.
        published: names of the publishers' files that uv is shown, by plain filename.
        origins: publisher's name and version of files that have another name, by plain filename.
        is_missed: a better variant does not fit, as `why` says.
        missing: why there is no variant that was asked for by name, empty if there is.
        older_build: an older version that has a build for the accelerator, where this one has none.
    """

    labels: Mapping[str, str | None]
    verdicts: tuple[Verdict, ...]
    notices: tuple[str, ...]
    problems: tuple[str, ...]
    providers: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    why: str = ""
    unfit: str = ""
    passed_over: str = ""
    left_out: tuple[str, ...] = ()
    locked: tuple[LockedLabel, ...] = ()
    published: Mapping[str, str] = MappingProxyType({})
    origins: Mapping[str, str] = MappingProxyType({})
    is_missed: bool = False
    missing: str = ""
    older_build: OlderBuild | None = None

    def shows(self, label: str) -> bool:
        """Return whether uv is shown a file with *label*; empty for the non-variant wheel."""
        return any((shown or "") == label for shown in self.labels.values())

    def files_of(self, label: str) -> list[str]:
        """Return what the URLs of the files that uv is shown with *label* have in them."""
        return [
            self.published.get(plain)
            or (f"{FOLDER}/{label}/{'-'.join(plain.split('-')[:2])}-" if label else plain)
            for plain, shown in self.labels.items()
            if (shown or "") == label
        ]

    def systems(self, label: str) -> str:
        """Return the systems that have *label* in words: ``Linux and Windows``.

        With their machines where the label of another file is for the same system.
        """
        found: dict[bool, set[tuple[str, str]]] = {True: set(), False: set()}
        for plain, shown in self.labels.items():
            for tag in plain.removesuffix(".whl").rpartition("-")[2].split("."):
                if markers := system_markers(tag):
                    system = markers["platform_system"].replace("Darwin", "macOS")
                    found[shown == label].add((system, markers["platform_machine"]))
        others = {system for system, _ in found[False]}
        words = {
            f"{system} {machine}" if system in others else system for system, machine in found[True]
        }
        return listed(sorted(words), "and")

    def named(self, label: str | None) -> str | None:
        """Return *label* as `verdicts` have it: older formats name the null variant twice."""
        known = {row.label for row in self.verdicts}
        return NULL_LABEL if label == ZERO_LABEL and label not in known else label

    def label_for(self, tags: frozenset[str]) -> str | None:
        """Return the label that is shown to installers of wheels with one of *tags*."""
        from .named_projects import are_tags_of

        for name, label in self.labels.items():
            if are_tags_of(name, tags):
                return label
        return self.chosen.label if self.chosen is not None else None

    def label_of_build(self, installed: Installed) -> str | None:
        """Return the label of the publisher's file that is *installed*, None if it is none."""
        from pep_variants.internal import read_version

        from .named_projects import are_tags_of

        for plain, name in self.published.items():
            if read_version(name.split("-")[1]) == installed.version and are_tags_of(
                plain, installed.tags
            ):
                return self.labels.get(plain)
        return None

    def origin_of(self, label: str) -> str:
        """Return the publisher's name and version of *label*, empty for the project's own."""
        named = (self.origins[plain] for plain in self.origins if self.labels.get(plain) == label)
        return next(named, "")

    def is_only_locked(self, label: str | None) -> bool:
        """Return whether *label* is shown because a lock has it, and does not fit this machine."""
        return any(row.label == label and not row.fits for row in self.locked)

    def reason_for(self, label: str) -> str:
        """Return why *label* was chosen or not, empty if there is no verdict on it."""
        if self.is_only_locked(label):
            return "the lock has it"
        if self.chosen is not None and self.chosen.label == label:
            return self.why
        return next((row.why for row in self.verdicts if row.label == label), "")

    @property
    def chosen(self) -> Verdict | None:
        """The variant that was chosen, None if none was."""
        return next((each for each in self.verdicts if each.verdict == "chosen"), None)


class Choices:
    """The proxy's choices for one command, each project asked for once.

    Attributes:
        client: the session that is asked.
        said: lines about them that were printed.
    """

    def __init__(self, client: Session) -> None:
        self.client = client
        self.said: set[str] = set()
        self._versions: dict[str, dict[str, VersionChoice]] = {}
        self._reports: dict[str, Mapping[str, Any]] = {}

    def ask(self, names: Iterable[str]) -> None:
        """Get the choices for projects (normalized names) that were not asked for yet."""
        missing = [name for name in names if name not in self._versions]
        self._reports.update(self.client.reports(missing))
        self._versions |= {
            name: read_choices(self._reports[name]) for name in missing if name in self._reports
        }

    def reports(self, names: Iterable[str]) -> list[Mapping[str, Any]]:
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

    def of(self, name: str) -> dict[str, VersionChoice]:
        """Return the choices for a project by version; empty if it was not asked for."""
        return self._versions.get(name, {})

    def of_installed(self, installed: Installed) -> VersionChoice | None:
        """Return the choice for the version that is *installed*, None without one."""
        versions, wanted = self.of(installed.project), installed.version
        if not versions or str(wanted) in versions:
            return versions.get(str(wanted))
        from pep_variants.internal import read_version

        # A build that the catalogue describes has a version with a local part.
        public = read_version(wanted.public)
        for version, choice in versions.items():
            if read_version(version) in (wanted, public if choice.published else wanted):
                return choice
        return None

    def as_installed(self, installed: Installed) -> Installed:
        """Return *installed* with the label of a build of the catalogue, if it is one."""
        return replace(installed, label=self.label_of(installed))

    def label_of(self, installed: Installed) -> str | None:
        """Return the label of what is *installed*, also of a build of the catalogue."""
        choice = self.of_installed(installed) if installed.label is None else None
        return installed.label if choice is None else choice.label_of_build(installed)


def read_choices(tree: Mapping[str, Any]) -> dict[str, VersionChoice]:
    """Return the choices in a report of `variants_proxy.choice.reports`, by version."""
    from pep_variants import Verdict

    return {
        item["version"]: VersionChoice(
            item["files"],
            tuple(Verdict(**row) for row in item["variants"]),
            tuple(item["notices"]),
            tuple(item["problems"]),
            item.get("providers", {}),
            item.get("why", ""),
            item.get("unfit", ""),
            item.get("passed-over", ""),
            tuple(item.get("left-out", ())),
            tuple(LockedLabel(**each) for each in item.get("locked", ())),
            item.get("published", {}),
            item.get("origin", {}),
            bool(item.get("missed")),
            item.get("missing", ""),
            OlderBuild(**older) if (older := item.get("older-build")) is not None else None,
        )
        for item in tree["versions"]
    }


def warn(text: str) -> None:
    """Print *text* as a line of uv-variants."""
    print(f"uv-variants: {text}", file=sys.stderr)


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
            from pep_variants.internal import table_lines

            for line in table_lines(choice.verdicts):
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
            systems = choice.systems(each.label) if choice is not None and several else ""
            on = f" on {systems}" if systems else ""
            line = f"Variant {each.label} for {each.project} {each.version}{named}{on}{reason}"
            if choice is not None and choice.is_missed and not hinted:
                from pep_variants.internal import MORE

                hinted = True
                line += MORE.format(each.project)
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


def why_missing(name: str, label: str, versions: dict[str, VersionChoice]) -> str | None:
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
