"""The page of a project on an index: the links that installers read, and what people read.

It is a page of the simple API in HTML (PEP 503). Around the links it shows the versions, what their
variants need, and which variant of the newest one each known machine gets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version as version_of
from typing import NamedTuple

from packaging.version import Version

from pep_variants import Metadata, MetadataError, Platform, Reason, rank, read_metadata, split_label
from pep_variants.internal import (
    ABI_DEPENDENCY,
    NULL_LABEL,
    limits,
    needs,
    order_if_supported,
    supporting,
    why_chosen,
)
from variants_index import Page, PageFile, html_page
from variants_index.internal import by_version, html_link, html_metas, is_for_platform

from .coverage import Machine, read_machines
from .decision_tree import NO_VARIANT
from .rendering import rendered, template_text

PLACEHOLDER = "INDEX-URL"
"""Stands in commands for the URL of the index where that is not known."""

_STATUSES = {
    "archived": "This project is archived: no new versions are to be expected.",
    "deprecated": "This project is deprecated: its maintainers advise against using it.",
    "quarantined": "This project is quarantined: it may be harmful. Do not install it.",
}
_known_machines = cache(read_machines)


def render(page: Page, documents: Mapping[str, bytes], *, index_url: str | None = None) -> bytes:
    """Return the page of a project in HTML (PEP 503). Equal arguments give equal bytes.

    Every file is one link, with the attributes of `variants_index.pages.html_page`; there are no
    other links. Where that would be more than readers of pages take (`limits.PAGE_BYTES`), the page
    has the links alone.

    Args:
        page: the files of the project, and its status.
        documents: its ``*-variants.json`` files by filename. What cannot be read costs the
            version its table of needs, and is said on the page.
        index_url: base URL of the index, for the commands that install; None if it is not known.
    """
    releases = releases_of(page, documents)
    final = (r for r in releases if r.version and not (r.version.is_prerelease or r.is_yanked))
    newest = next((r for r in final if r.labels and r.metadata), None)
    body = rendered(
        "project.html",
        page=page,
        releases=releases,
        versions=[release for release in releases if release.version is not None],
        status=_STATUSES.get(page.status, f"The status of this project is {page.status}."),
        newest=newest,
        machine_rows=machine_rows(newest) if newest else (),
        labels=len({label for release in releases for label in release.labels}),
        index_url=index_url,
        PLACEHOLDER=PLACEHOLDER,
        metas=html_metas(page),
        link=html_link,
    ).encode()
    return body if len(body) <= limits.PAGE_BYTES else html_page(page)


@cache
def design() -> str:
    """Return what tells pages of this release from those that another one wrote."""
    text = template_text("project.html") + template_text("project.css")
    return f"{version_of('variants-cli')} {hashlib.sha256(text.encode()).hexdigest()[:16]}"


class ReleaseFile(NamedTuple):
    """One file of a version.

    Attributes:
        file: what the page says of it.
        label: as the metadata spells it, None for a non-variant file.
        platform: the platform tag of a wheel, or several with dots between; empty for others.
    """

    file: PageFile
    label: str | None = None
    platform: str = ""


class Row(NamedTuple):
    """Files of a version that are alike.

    Attributes:
        title: the label, or what they are called.
        needs: phrases that say what a machine has to have.
        properties: all of them, as text.
        files: in the order of the page.
    """

    title: str
    needs: Sequence[str]
    properties: Sequence[str]
    files: Sequence[ReleaseFile]


@dataclass(frozen=True)
class Release:
    """One version of a project.

    Attributes:
        version: None for files that are of no version: neither wheels nor source distributions.
        files: in the order of the page.
        document: the file with the index-level metadata, None if the page lists none.
        metadata: what it says, None without it or if it cannot be used.
        problem: why the variant wheels cannot be used, empty if they can or there are none.
    """

    version: Version | None
    files: tuple[ReleaseFile, ...]
    document: PageFile | None = None
    metadata: Metadata | None = None
    problem: str = ""

    @property
    def labels(self) -> set[str]:
        """The labels that have files."""
        return {item.label for item in self.files if item.label is not None}

    @property
    def is_yanked(self) -> bool:
        """Whether all its files are."""
        return bool(self.files) and all(item.file.yanked is not None for item in self.files)

    @property
    def rows(self) -> Iterator[Row]:
        """The files as the page has them: variants, the best first, other wheels, other files."""
        ordered: Sequence[str] = ()
        if self.metadata is not None:
            known = self.labels & self.metadata.variants.keys()
            ranking = rank(self.metadata, supporting(Platform(), self.metadata))
            ordered = order_if_supported(ranking, known)
        for label in (*ordered, *sorted(self.labels.difference(ordered))):
            found = [item for item in self.files if item.label == label]
            yield Row(label, *_demands(self.metadata, label), found)
        plain = [item for item in self.files if item.label is None]
        other = ("files", "") if self.version is None else ("source", "is built on your machine")
        for title, needed, found in (
            ("no variant", "nothing: for any installer", [item for item in plain if item.platform]),
            (*other, [item for item in plain if not item.platform]),
            ("metadata", "what the variants need, for installers",
             [ReleaseFile(self.document)] if self.document is not None else []),
        ):  # fmt: skip
            if found:
                yield Row(title, (needed,), (), found)


def _demands(metadata: Metadata | None, label: str) -> tuple[Sequence[str], Sequence[str]]:
    """Return what a variant needs in words, and all its properties."""
    properties = metadata.properties_of(label) if metadata is not None else None
    if metadata is None or properties is None:
        return ("not known",), ()
    listed, phrases = [], []
    for namespace in dict.fromkeys((*metadata.namespaces, ABI_DEPENDENCY)):
        for feature, values in sorted(properties.get(namespace, {}).items()):
            listed.append(" :: ".join((namespace, feature, ", ".join(values))))
            if why_chosen({namespace: {feature: values}}):  # not what only orders builds
                phrases.append(needs(Reason(namespace, feature, values, ())))
    nothing = "fits every machine" if label == NULL_LABEL else "that has to be detected"
    return phrases or (f"nothing: {nothing}",), listed


def releases_of(page: Page, documents: Mapping[str, bytes]) -> Sequence[Release]:
    """Return the releases on *page*, the newest first; files of no version come last.

    Args:
        page: the page, of one project.
        documents: the ``*-variants.json`` files of the project by filename.
    """
    releases = []
    rest = {file.filename: file for file in page.files}
    groups = by_version(page.files, page.project).get(page.project, {})
    for version, group in sorted(groups.items(), key=lambda item: item[0], reverse=True):
        metadata, problem, document = None, "", group.metadata
        if document is not None and document.filename in documents:
            try:
                metadata = read_metadata(documents[document.filename], document.filename)
            except MetadataError as error:
                problem = str(error)
        elif any(split_label(file.filename)[1] for file in group.files):
            problem = "the index does not say what these variants need"
        files = tuple(_release_file(file, metadata) for file in group.files)
        releases.append(Release(version, files, document, metadata, problem))
        for listed in (*group.files, *filter(None, (document,))):
            rest.pop(listed.filename, None)
    if rest:
        releases.append(Release(None, tuple(map(ReleaseFile, rest.values()))))
    return releases


def _release_file(file: PageFile, metadata: Metadata | None) -> ReleaseFile:
    plain, label = split_label(file.filename)
    if label is not None and metadata is not None:
        label = metadata.label_of(label)
    stem, _, suffix = plain.rpartition(".")
    return ReleaseFile(file, label, stem.rpartition("-")[2] if suffix == "whl" else "")


class MachineRow(NamedTuple):
    """What one machine gets: a label or what else, and why it fits."""

    machine: Machine
    gets: str
    why: str


def machine_rows(release: Release) -> Iterator[MachineRow]:
    """Yield what the known machines get of a release with variants.

    For any Python, with the system that the machine most likely has. What variants say in
    ``abi_dependency`` is taken for met: a resolver decides it.
    """
    machines, metadata = _known_machines(), release.metadata or Metadata()
    offered = {
        system: {
            item.label or NO_VARIANT
            for item in release.files
            if item.file.yanked is None
            and (not item.platform or is_for_platform(item.platform, system))
        }
        for system in {machine.system for machine in machines}
    }
    for machine in machines:
        ranking = machine.rank(metadata)
        wanted = (*ranking.labels, NULL_LABEL, NO_VARIANT)
        label = next((name for name in wanted if name in offered[machine.system]), "nothing")
        yield MachineRow(machine, label, why_chosen(ranking.supported(label)))
