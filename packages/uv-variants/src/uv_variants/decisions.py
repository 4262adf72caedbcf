"""What a shim decided, asked of it: which variant of a version, and why."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .address import USERNAME
from .shim.urls import variants_url

if TYPE_CHECKING:
    from .installed import Installed

TIMEOUT = 60.0
"""Seconds that a shim may take: it may have to fetch the page first."""


@dataclass(frozen=True)
class Verdict:
    """What was decided of one variant: ``chosen``, ``compatible`` or ``rejected``, and why."""

    label: str
    verdict: str
    why: str


@dataclass(frozen=True)
class Decision:
    """What was decided of one version that has variants.

    Attributes:
        labels: of what is shown, None for the non-variant wheel, by plain filename.
        verdicts: on every variant, the chosen one first.
        notices, problems: what the user should know.
        providers: that the metadata wants: requirements and endpoint, by namespace.
    """

    labels: Mapping[str, str | None]
    verdicts: tuple[Verdict, ...]
    notices: tuple[str, ...]
    problems: tuple[str, ...]
    providers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def label_for(self, tags: frozenset[str]) -> str | None:
        """Return what is shown to those who install a wheel with one of *tags*."""
        from packaging.tags import parse_tag

        for name, label in self.labels.items():
            text = "-".join(name.removesuffix(".whl").split("-")[-3:])
            if any(str(tag) in tags for tag in parse_tag(text)):
                return label
        return self.chosen.label if self.chosen is not None else None

    @property
    def chosen(self) -> Verdict | None:
        """The variant that was taken, None if none was."""
        return next((each for each in self.verdicts if each.verdict == "chosen"), None)


@dataclass(frozen=True)
class Asked:
    """Whom to ask.

    Attributes:
        port: of loopback.
        token: that the shim wants.
        key: platform key or floating name.
        indexes: names of indexes, in the order in which they are asked.
        only: the projects that some of them are there for alone.
    """

    port: int
    token: str = field(repr=False)
    key: str
    indexes: tuple[str, ...]
    only: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def decisions(self, projects: Iterable[str]) -> dict[str, dict[str, Decision]]:
        """Return the decisions on *projects* (normalized names), by project and version.

        A project that no index has, or that has no variants, is missing.
        """
        import http.client

        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        secret = base64.b64encode(f"{USERNAME}:{self.token}".encode()).decode()
        headers = {"Authorization": f"Basic {secret}"}
        found: dict[str, dict[str, Decision]] = {}
        try:
            for project in projects:
                for index in self.indexes:
                    if index in self.only and project not in self.only[index]:
                        continue
                    connection.request(
                        "GET", variants_url(self.key, index, project), headers=headers
                    )
                    answer = connection.getresponse()
                    data = answer.read()
                    if answer.status != 200:
                        continue
                    versions = _versions(json.loads(data))
                    if versions:
                        found[project] = versions
                    break
        except (OSError, http.client.HTTPException, ValueError):
            pass  # then there is less to say; what uv does is not touched by it
        finally:
            connection.close()
        return found


def _versions(tree: Mapping[str, Any]) -> dict[str, Decision]:
    return {
        item["version"]: Decision(
            item["files"],
            tuple(Verdict(row["label"], row["verdict"], row["why"]) for row in item["variants"]),
            tuple(item["notices"]),
            tuple(item["problems"]),
            item.get("providers", {}),
        )
        for item in tree["versions"]
    }


def decision_on(
    decisions: Mapping[str, Mapping[str, Decision]], installed: Installed
) -> Decision | None:
    """Return the decision on the version that is *installed*, None if there is none."""
    from packaging.version import InvalidVersion, Version

    versions = decisions.get(installed.name, {})
    if installed.version in versions:
        return versions[installed.version]
    for known, decision in versions.items():
        try:
            if Version(known) == Version(installed.version):
                return decision
        except InvalidVersion:
            continue
    return None
