"""pip's candidate infos and links, as the resolver extension wants to see them.

Everything here needs the engine; it is imported when a command comes across variants.
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

from packaging.tags import sys_tags
from pip._internal.exceptions import HashMismatch, InstallationError, PipError
from pip._internal.models.link import Link
from pip._internal.network.utils import raise_for_status, response_chunks
from pip._internal.utils.logging import indent_log
from pip._internal.utils.urls import path_to_url
from pip._vendor.packaging.version import Version
from pip._vendor.urllib3.exceptions import HTTPError

from pep_variants.abi import supporting
from pep_variants.advice import advise
from pep_variants.deadline import within
from pep_variants.detection import Detector
from pep_variants.errors import MetadataError, NoSuchVariant, VariantError, redacted
from pep_variants.explanation import notices, verdicts, why_not
from pep_variants.filename import metadata_filename, parse_metadata_filename
from pep_variants.label import VARIANT_FILE, split_label
from pep_variants.markers import NON_VARIANT, VariantContext
from pep_variants.merging import check_promise, merge_all
from pep_variants.metadata import Metadata
from pep_variants.platform import Platform
from pep_variants.preferences import Preferences
from pep_variants.property import Properties
from pep_variants.ranking import Ranking, rank
from pep_variants.reader import MAX_METADATA_BYTES, metadata_from_tree, read_metadata
from pep_variants.selection import File, Selection, missing_variant, select
from resolvelib_variants.arranger import Arranger
from resolvelib_variants.coherence import Chosen

from .conditions import PipInstalled, follow
from .deadline import time_limit
from .locking import KEY, filename_of
from .session import Fault, Info, link_of, logger, source_of

VERBOSE = 15
"""pip's own level between INFO and DEBUG, what ``-v`` shows."""

_OK = 200

Detect = Callable[[Metadata], Platform]


class VariantVersion(Version):  # type: ignore[misc] # pip's packaging is not there for mypy
    """A version that tells its variants apart.

    pip takes one candidate of each version and skips what compares equal to one it has. Variants
    of one version are different candidates, so that a conflict that one of them brings is
    answered by the next; still, none of them is to be offered beside an installed distribution of
    that version. So it equals plain versions, but not the same version with another label.
    """

    def __init__(self, version: Any, label: str | None) -> None:
        """Take *version* over and remember *label*."""
        super().__init__(str(version))
        self._label = label

    def __eq__(self, other: object) -> bool:
        if isinstance(other, VariantVersion) and other._label != self._label:
            return False
        return bool(super().__eq__(other))

    __hash__ = Version.__hash__


class InfoFiles:
    """`CandidateFiles` over pip's infos."""

    def __init__(self, links: Mapping[str, Sequence[Any]], network: Any) -> None:
        """Set up.

        Args:
            links: links to metadata files by source, as they become known.
            network: pip's network session.
        """
        self._links = links
        self._network = network
        # By source: project and version to link, and how many links have been looked at.
        self._known: dict[str, tuple[dict[Any, Any], int]] = {}
        self._given: dict[str, Sequence[Info]] = {}
        self._slow: set[tuple[str, str]] = set()

    def note(self, project: str, candidates: Sequence[Info]) -> None:
        """Take note of all there is of *project*."""
        self._given[project] = candidates

    def version(self, candidate: Any) -> Hashable:
        """Return the version of the info, or of the candidate made of one."""
        version: Hashable = candidate[0] if isinstance(candidate, tuple) else candidate.version
        return version

    def filename(self, candidate: Any) -> str | None:
        """Return the filename that the link ends in."""
        link = link_of(candidate)
        return None if link is None else str(link.filename)

    def source(self, candidate: Info) -> str:
        """Return the page or directory that the link is from."""
        return source_of(link_of(candidate))

    def metadata(self, project: str, candidate: Info) -> Metadata:
        """Fetch, verify and read the metadata file that the same source lists.

        Where there is none, what the wheels say of themselves has to do. A source that took too
        long for one version of the project is not asked for others: pip may want a hundred.
        """
        link = link_of(candidate)
        source = source_of(link)
        if (project, source) in self._slow:
            raise MetadataError(source, "", "took too long to tell of another version already")
        filename = metadata_filename(project, str(candidate[0]))
        found = self._by_version(source).get(parse_metadata_filename(filename))
        if found is None and link.is_file and link.comes_from is None:
            found = _beside(link.file_path, filename)
        try:
            return within(
                time_limit(self._network.timeout),
                lambda: (
                    self._of_wheels(project, candidate[0], source, filename)
                    if found is None
                    else self._fetch(found)
                ),
                "it takes longer than",
            )
        except TimeoutError as error:
            self._slow.add((project, source))
            place = source if found is None else str(found.url_without_fragment)
            raise MetadataError(place, "", f"the variants cannot be had: {error}") from None

    def _of_wheels(self, project: str, version: Hashable, source: str, filename: str) -> Metadata:
        from .remote import MAX_WHEELS

        wheels: dict[str, Any] = {}
        for info in self._given.get(project, ()):
            link = link_of(info)
            label = split_label(link.filename)[1]
            if label is not None and info[0] == version and source_of(link) == source:
                wheels.setdefault(label, link)
        missing = f"lists variant wheels, but no {filename}"
        if len(wheels) > MAX_WHEELS:
            raise MetadataError(source, "", f"{missing}, and {len(wheels)} labels are too many")
        try:
            return merge_all(self._of_wheel(link, label) for label, link in sorted(wheels.items()))
        except (OSError, ValueError, PipError, HTTPError, VariantError) as error:
            raise MetadataError(source, "", f"{missing}; {redacted(str(error))}") from None

    def _of_wheel(self, link: Any, label: str) -> Metadata:
        from .remote import metadata_in_wheel

        found = metadata_in_wheel(self._network, link)
        check_promise(found, found, label)
        return found

    def _by_version(self, source: str) -> dict[Any, Any]:
        links = self._links.get(source, ())
        known, number = self._known.get(source, ({}, 0))
        for link in links[number:]:
            # The first one counts, as for any file that a page lists twice.
            known.setdefault(parse_metadata_filename(link.filename), link)
        self._known[source] = known, len(links)
        return known

    def _fetch(self, link: Any) -> Metadata:
        source = str(link.url_without_fragment)
        try:
            data = self._read(link)
            hashes = link.as_hashes()
            if hashes and len(data) <= MAX_METADATA_BYTES:  # the rest has not been read
                hashes.check_against_chunks(iter((data,)))
        except HashMismatch:
            raise MetadataError(
                source, "", f"does not have the {link.hash_name} hash that its index gives"
            ) from None
        # What requests raises is an OSError; urllib3 has its own, for bodies that break off.
        except (OSError, ValueError, PipError, HTTPError) as error:
            raise MetadataError(source, "", f"cannot be fetched: {redacted(str(error))}") from None
        return read_metadata(data, source)

    def _read(self, link: Any) -> bytes:
        limit = MAX_METADATA_BYTES + 1  # one more, for the reader to see that it is too large
        if link.is_file:
            with open(link.file_path, "rb") as file:  # noqa: PTH123 - pip gives text
                return file.read(limit)
        response = self._network.get(
            link.url_without_fragment,
            # Like the page that lists it, and unlike wheels, the file may change under its name.
            headers={"Accept-Encoding": "identity", "Cache-Control": "max-age=0"},
            stream=True,
        )
        try:
            raise_for_status(response)
            if response.status_code != _OK:  # such as a redirection that pip does not follow
                raise ValueError(f"HTTP status {response.status_code}")
            data = bytearray()
            for chunk in response_chunks(response):
                data += chunk
                if len(data) >= limit:
                    break
            return bytes(data)
        finally:
            response.close()


def _beside(path: str, filename: str) -> Any:
    """Return the link to metadata file *filename* beside the file at *path*, None without one.

    pip lists only wheels and source distributions of a ``--find-links`` directory.
    """
    wanted = parse_metadata_filename(filename)
    folder = os.path.dirname(path)  # noqa: PTH120 - pip gives text
    for name in sorted(os.listdir(folder)):  # noqa: PTH208
        if parse_metadata_filename(name) == wanted:
            return Link(path_to_url(os.path.join(folder, name)))  # noqa: PTH118
    return None


class CandidateArranger:
    """Arranges infos with the resolver extension, and tells the user what was decided.

    Attributes:
        detect: what answers which values the target supports.
    """

    def __init__(
        self,
        links: Mapping[str, Sequence[Any]],
        *,
        network: Any,
        detect: Detect,
        preferences: Preferences,
        provider: Callable[[], Any] = lambda: None,
    ) -> None:
        """Set up for one command; *links* and *network* as for `InfoFiles`.

        *provider* gives the provider of pip's resolver, while that is at work.
        """
        self.detect = detect
        self._preferences = preferences
        self._files = InfoFiles(links, network)
        self._arranger: Arranger[Info] = Arranger(
            self._files,
            platform=detect,
            preferences=preferences,
            listener=self,
            installed=PipInstalled(provider),
        )
        self._links: dict[str, tuple[str, Info]] = {}
        # What lock files say of wheels, by filename: nothing else is looked at for their projects.
        self._locked: dict[str, Metadata] = {}
        self._said: set[str] = set()

    @property
    def missing(self) -> Mapping[str, NoSuchVariant]:
        """Forced labels that no version had, by project."""
        return self._arranger.missing

    def follow(self, provider: Any) -> None:
        """Hold candidates to conditions between them, and know what pip's *provider* pinned."""
        follow(provider, self._arranger)

    def arrange(self, project: str, infos: Iterator[Info]) -> Iterator[Info]:
        """Yield *infos* arranged; those of versions with variants with a version of their own."""
        given = list(infos)
        if given and all(link_of(info).filename in self._locked for info in given):
            yield from given  # chosen from the lock file already
            return
        self._files.note(project, given)
        try:
            for info in self._arranger.arrange(project, given):
                selection = self._arranger.selection(project, info)
                if selection is None:
                    yield info
                    continue
                link = link_of(info)
                self._links[link.url] = project, info
                version = VariantVersion(info[0], split_label(link.filename)[1])
                yield version, self._announcing(project, info, selection)
        except VariantError as error:
            raise InstallationError(str(error)) from None
        except Exception as error:  # a fault of ours must cost the variants, never the install
            if self._arranger.forces(project):
                raise Fault(error) from error
            self.failed(project, "", error)
            # pip skips those of them that it had already.
            yield from (info for info in given if split_label(link_of(info).filename)[1] is None)

    def context(self, link: Any, variant_json: bytes | None, *, values: bool) -> VariantContext:
        """Return the context for markers of the file at *link*, see `session.marker_context`."""
        known = self._links.get(link.url)
        if known is not None:
            return self._arranger.context(*known)
        if split_label(link.filename)[1] is None:
            return NON_VARIANT
        return context_of(variant_json, self.detect, values=values)

    def check(self, link: Any, label: str, read_text: Callable[[str], str]) -> None:
        """Check the wheel behind *link*, see `Session.check`."""
        try:
            try:
                text = read_text(VARIANT_FILE)
            except FileNotFoundError:
                raise MetadataError(
                    str(link.url_without_fragment),
                    "",
                    f"is named a variant wheel, but has no {VARIANT_FILE}",
                ) from None
            found = read_metadata(text, f"{link.url_without_fragment}#{VARIANT_FILE}")
            known = self._links.get(link.url)
            if known is not None:
                selection = self._arranger.selection(*known)
                ranking = selection.rankings.get(source_of(link)) if selection else None
                if ranking is not None:
                    check_promise(ranking.metadata, found, label)
                return
            check_promise(self._locked.get(link.filename, found), found, label)
            ranking = self._rank(found)
            if label not in ranking.positions:
                reasons = "; ".join(why_not(ranking, label))
                raise NoSuchVariant(f"{link.filename} does not fit this machine: {reasons}")
        except VariantError as error:
            raise InstallationError(str(error)) from None

    def metadata(self, url: str) -> Metadata | None:
        """Return what the index says of the version that the wheel at *url* is of."""
        for link, (project, info) in self._links.items():
            if link.partition("#")[0] == url:
                selection = self._arranger.selection(project, info)
                ranking = selection.rankings.get(source_of(link_of(info))) if selection else None
                return ranking.metadata if ranking else None
        return self._locked.get(Link(url).filename)

    def select_locked(self, package: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the wheels of a lock file's *package* that fit best: those of one label."""
        project, version = str(package.get("name")), str(package.get("version") or "")
        source = f"packages.{project}.{KEY}"
        files = [File(filename_of(wheel), source, wheel) for wheel in package["wheels"]]

        def metadata(_source: str) -> Metadata:
            if KEY not in package:
                raise MetadataError(source, "", f"the lock file lists variant wheels, but no {KEY}")
            return metadata_from_tree(package[KEY], source)

        selection = select(
            files,
            metadata=metadata,
            platform=self.detect,
            preferences=self._preferences,
            project=project,
            tags=[*sys_tags()],
        )
        self.selected(project, version, selection)
        chosen = selection.chosen
        if chosen is None:
            missing = missing_variant(project, [(version, selection, files)])
            if missing is None and not package.get("sdist"):
                missing = NoSuchVariant(self._nothing_fits(project, version, selection))
            if missing is not None:
                raise InstallationError(str(missing))
            return []
        ranking = selection.rankings.get(source)
        if chosen.label is not None and ranking is not None:
            why = selection.why(chosen)
            text = f"Variant {chosen.label} for {project} {version}"
            self._say(logging.INFO, f"{text}: {why}" if why else text)
            for file in selection.files:
                place = file.item.get("path") or file.item.get("url") or ""
                self._locked[Link(str(place).replace("\\", "/")).filename] = ranking.metadata
        return [file.item for file in selection.files if file.label == chosen.label]

    @staticmethod
    def _nothing_fits(project: str, version: str, selection: Selection[Any]) -> str:
        reasons = [str(problem) for problem in selection.problems.values()]
        if selection.unknown:
            source = f"packages.{project}.{KEY}"
            reasons.append(f"{source} does not know {', '.join(selection.unknown)}")
        for ranking in selection.rankings.values():
            for label in ranking.rejected_labels:
                reasons.append(f"{label} {'; '.join(why_not(ranking, label))}")
        return (
            f"no variant of {project} {version} in the lock file fits this machine: "
            f"{'; '.join(reasons) or 'none is for this platform'}"
        )

    def advice(self, project: str, version: Any, installed: str | None, links: Any) -> str | None:
        """Return in a sentence what is better than what is installed, None if nothing is.

        Args:
            project: normalized name.
            version: that is installed.
            installed: label that is installed, None if it is no variant.
            links: pip's links of all files of the version.
        """
        infos: list[Info] = [(version, functools.partial(_nothing, link=link)) for link in links]
        self._files.note(project, infos)
        first = next(self._arranger.arrange(project, infos), None)
        selection = self._arranger.selection(project, first) if first is not None else None
        found = advise(selection, installed) if selection is not None else None
        return found.text(project, str(version)) if found is not None else None

    # Listener of the arranger.

    def selected(self, project: str, version: Hashable, selection: Selection[Any]) -> None:
        """Show a decision: problems always, notices once, the whole table with ``-v``."""
        for problem in selection.problems.values():
            self._say(
                logging.WARNING,
                f"The variant wheels of {project} {version} are ignored. {problem}",
            )
        if selection.unknown:
            self._say(
                logging.WARNING,
                f"Variants of {project} {version} that its metadata does not know are ignored: "
                f"{', '.join(selection.unknown)}",
            )
        # Sources that agree share a ranking, which is shown once.
        for ranking in {id(item): item for item in selection.rankings.values()}.values():
            self._show(project, version, ranking, selection)

    def disagreed(self, project: str, version: Hashable, namespace: str, other: Chosen) -> None:
        """Say that the user's wish for coherence cannot be met."""
        self._say(
            logging.WARNING,
            f"No variant of {project} {version} agrees with {other} in {namespace!r}",
        )

    def failed(self, project: str, version: Hashable, error: Exception) -> None:
        """Say that a fault of ours cost a version its variants."""
        logger.debug("a fault in pep-variants-shim", exc_info=error)
        name = f"{project} {version}".rstrip()
        self._say(logging.WARNING, f"The variant wheels of {name} are ignored. {Fault(error)}")

    def _show(
        self, project: str, version: Hashable, ranking: Ranking, selection: Selection[Any]
    ) -> None:
        with indent_log():
            for notice in notices(ranking):
                self._say(logging.INFO if notice.actionable else VERBOSE, notice.text)
            if not logger.isEnabledFor(VERBOSE):
                return
            for namespace, support in ranking.platform.namespaces.items():
                if support.output:
                    from pep_variants.plugins.answer import one_line

                    plugin, said = ", ".join(support.resolved), one_line(support.output, 1000)
                    self._say(VERBOSE, f"{plugin}, asked for {namespace!r}: {said}")
            chosen = selection.chosen.label if selection.chosen else None
            logger.log(VERBOSE, "Variants of %s %s:", project, version)
            rows = verdicts(ranking, chosen)
            width = max((len(row.label) for row in rows), default=0)
            with indent_log():
                for row in rows:
                    logger.log(VERBOSE, "%s", f"{row.label:{width}}  {row.verdict:10}  {row.why}")

    def _announcing(self, project: str, info: Info, selection: Selection[Any]) -> Callable[[], Any]:
        def build() -> Any:
            candidate = info[1]()
            if candidate is not None:
                with indent_log():
                    self._say(logging.INFO, self._choice(project, info, selection))
            return candidate

        return build

    def _choice(self, project: str, info: Info, selection: Selection[Any]) -> str:
        """Return what was chosen and why; empty if there was no choice."""
        filename = link_of(info).filename
        label = split_label(filename)[1]
        text = "Non-variant file" if label is None else f"Variant {label}"
        text += f" for {project} {info[0]}"
        if self._arranger.forces(project):
            return f"{text}: asked for"
        if not selection.rankings:
            return ""
        best = selection.chosen.label if selection.chosen else None
        if label != best:
            text += f" instead of {best}"
            if other := self._arranger.agrees_with(project, info):
                text += f", to agree with {other}"
        file = next(item for item in selection.files if item.filename == filename)
        why = selection.why(file)
        if why:
            return f"{text}: {why}"
        if label == best:
            return f"{text}: no {'variant' if label is None else 'other variant'} fits"
        return text

    def _say(self, level: int, text: str) -> None:
        # pip asks for the same things again and again; people want to hear them once.
        if text and text not in self._said:
            self._said.add(text)
            logger.log(level, "%s", text)

    def _rank(self, metadata: Metadata) -> Ranking:
        # Of a file that the user names, the resolution judges what it is built against.
        return rank(metadata, supporting(self.detect(metadata), metadata), self._preferences)


def context_of(
    variant_json: bytes | None, detect: Detect | None, *, values: bool
) -> VariantContext:
    """Return the context that a wheel's own ``variant.json`` gives.

    Broken metadata counts as none: whether it may be installed is not decided here.

    Args:
        variant_json: the file, None if there is none.
        detect: what answers which values the target supports, None for this machine.
        values: whether it matters which values are supported.
    """
    try:
        metadata = None if variant_json is None else read_metadata(variant_json, VARIANT_FILE)
    except VariantError:
        metadata = None
    if metadata is None or len(metadata.variants) != 1:
        return NON_VARIANT
    ((label, properties),) = metadata.variants.items()
    if values and any(len(found) > 1 for item in properties.values() for found in item.values()):
        properties = _narrowed(properties, rank(metadata, (detect or _host())(metadata)), label)
    return VariantContext(label, properties)


def _narrowed(properties: Properties, ranking: Ranking, label: str) -> Properties:
    """Return *properties* with the values that are supported, with all where none is.

    The latter is what is left of a platform file, or of a machine that has changed since.
    """
    supported = ranking.supported(label)
    return {
        namespace: {
            feature: supported.get(namespace, {}).get(feature) or found
            for feature, found in features.items()
        }
        for namespace, features in properties.items()
    }


def _nothing(*, link: Any) -> None:
    """Build no candidate: for infos that are only judged."""


@functools.cache
def _host() -> Detect:
    """Return what answers for this machine, which is asked once by all installed wheels."""
    return Detector().platform


def installed_label(dist: Any) -> str | None:
    """Return the label of an installed distribution, empty if it is no variant."""
    try:
        text = dist.read_text(VARIANT_FILE)
    except FileNotFoundError:
        return ""
    return context_of(text.encode(), None, values=False).label
