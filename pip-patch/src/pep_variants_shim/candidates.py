"""pip's candidate infos and links, as the resolver extension wants to see them.

An info is what pip passes around before it builds a candidate: the version, and a partial of the
factory's method that makes the candidate of a link.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterator
from typing import TYPE_CHECKING, Any

from pip._internal.exceptions import HashMismatch, InstallationError, PipError
from pip._internal.network.utils import response_chunks
from pip._internal.utils.logging import indent_log
from pip._vendor.packaging.version import Version

from ._vendor.pep_variants.errors import MetadataError, NoSuchVariant, VariantError
from ._vendor.pep_variants.explanation import notices, verdicts, why_not
from ._vendor.pep_variants.filename import metadata_filename, parse_metadata_filename
from ._vendor.pep_variants.label import NULL_LABEL, VARIANT_FILE, split_label
from ._vendor.pep_variants.markers import NON_VARIANT, VariantContext
from ._vendor.pep_variants.merging import check_promise
from ._vendor.pep_variants.metadata import Metadata
from ._vendor.pep_variants.ranking import Ranking, rank
from ._vendor.pep_variants.reader import MAX_METADATA_BYTES, read_metadata
from ._vendor.pep_variants.selection import Selection
from ._vendor.resolvelib_variants.arranger import Arranger

if TYPE_CHECKING:
    from .session import Session

logger = logging.getLogger("pip.variants")
VERBOSE = 15
"""pip's own level between INFO and DEBUG, what ``-v`` shows."""

Info = tuple[Any, Callable[[], Any]]


class VariantVersion(Version):
    """A version that tells its variants apart.

    pip takes one candidate of each version and skips what compares equal to one it has. Variants
    of one version are different candidates, so that a conflict that one of them brings is
    answered by the next; still, none of them is to be offered beside an installed distribution of
    that version. So it equals plain versions, but not the same version with another label.
    """

    def __init__(self, version: Any, label: str) -> None:  # noqa: ANN401
        """Take *version* over and remember *label*."""
        super().__init__(str(version))
        self._label = label

    def __eq__(self, other: object) -> bool:
        if isinstance(other, VariantVersion) and other._label != self._label:
            return False
        return super().__eq__(other)

    __hash__ = Version.__hash__


class InfoFiles:
    """`CandidateFiles` over pip's infos."""

    def __init__(self, session: Session) -> None:
        """Read through the network session, and from the links, of *session*."""
        self._session = session

    def version(self, candidate: Info) -> Hashable:
        """Return the version of the info."""
        return candidate[0]  # type: ignore[no-any-return]

    def filename(self, candidate: Info) -> str | None:
        """Return the filename that the link ends in."""
        return str(link_of(candidate).filename)

    def source(self, candidate: Info) -> str:
        """Return the page or directory that the link is from."""
        return source_of(link_of(candidate))

    def metadata(self, project: str, candidate: Info) -> Metadata:
        """Fetch, verify and read the metadata file that the same source lists."""
        link = link_of(candidate)
        source = source_of(link)
        filename = metadata_filename(project, str(candidate[0]))
        for metadata_link in self._session.metadata_links:
            if source_of(metadata_link) != source:
                continue
            if parse_metadata_filename(metadata_link.filename) == parse_metadata_filename(filename):
                return self._fetch(metadata_link)
        if link.is_file:
            # A --find-links directory: pip lists only wheels and source distributions of it.
            from pip._internal.models.link import Link

            folder = link.url_without_fragment.rpartition("/")[0]
            return self._fetch(Link(f"{folder}/{filename}"))
        raise MetadataError(source, "", f"lists variant wheels, but no {filename}")

    def _fetch(self, link: Any) -> Metadata:  # noqa: ANN401
        source = str(link.url_without_fragment)
        try:
            data = self._read(link)
            hashes = link.as_hashes()
            if hashes is not None:
                hashes.check_against_chunks(iter((data,)))
        except HashMismatch:
            raise MetadataError(
                source, "", f"does not have the {link.hash_name} hash that its index gives"
            ) from None
        except FileNotFoundError:
            raise MetadataError(source, "", "does not exist") from None
        except (OSError, PipError) as error:  # what requests raises is an OSError, too
            raise MetadataError(source, "", f"cannot be fetched: {error}") from None
        return read_metadata(data, source)

    def _read(self, link: Any) -> bytes:  # noqa: ANN401
        limit = MAX_METADATA_BYTES + 1  # one more, for the reader to see that it is too large
        if link.is_file:
            with open(link.file_path, "rb") as file:  # noqa: PTH123 - pip gives text
                return file.read(limit)
        network = self._session.finder._link_collector.session
        response = network.get(
            link.url_without_fragment, headers={"Accept-Encoding": "identity"}, stream=True
        )
        try:
            response.raise_for_status()
            data = bytearray()
            for chunk in response_chunks(response):
                data += chunk
                if len(data) >= limit:
                    break
            return bytes(data)
        finally:
            response.close()


class CandidateArranger:
    """Arranges infos with the resolver extension, and tells the user what was decided.

    Attributes:
        missing: see `Arranger.missing`.
    """

    def __init__(self, session: Session) -> None:
        """Arrange for *session*."""
        self._detect = session.detection()
        self._preferences = session.preferences()
        self._arranger: Arranger[Info] = Arranger(
            InfoFiles(session),
            platform=self._detect,
            preferences=self._preferences,
            listener=self,
        )
        self._links: dict[str, tuple[str, Info]] = {}
        self._said: set[str] = set()

    @property
    def missing(self) -> dict[str, NoSuchVariant]:
        """Forced labels that no version had, by project."""
        return self._arranger.missing

    def arrange(self, project: str, infos: Iterator[Info]) -> Iterator[Info]:
        """Yield *infos* arranged; those of variant wheels with a version of their own."""
        try:
            for info in self._arranger.arrange(project, infos):
                selection = self._arranger.selection(project, info)
                if selection is None:
                    yield info
                    continue
                link = link_of(info)
                self._links[link.url] = project, info
                label = split_label(link.filename)[1]
                version = info[0] if label is None else VariantVersion(info[0], label)
                yield version, self._announcing(project, info, selection)
        except VariantError as error:
            raise InstallationError(str(error)) from None

    def context(self, link: Any, variant_json: bytes | None) -> VariantContext:  # noqa: ANN401
        """Return the context for the markers of the file at *link*."""
        known = self._links.get(link.url)
        if known is not None:
            return self._arranger.context(*known)
        label = split_label(link.filename)[1]
        if label is None or variant_json is None:
            return NON_VARIANT
        try:
            ranking = self._rank(read_metadata(variant_json, link.url))
        except VariantError:
            return NON_VARIANT  # `check` says what is wrong with it
        return VariantContext(label, ranking.supported(label))

    def check(self, link: Any, label: str, read_text: Callable[[str], str]) -> None:  # noqa: ANN401
        """Check the wheel behind *link*, see `Session.check`."""
        try:
            try:
                text = read_text(VARIANT_FILE)
            except FileNotFoundError:
                raise MetadataError(
                    link.url, "", f"is named a variant wheel, but has no {VARIANT_FILE}"
                ) from None
            found = read_metadata(text, f"{link.url_without_fragment}#{VARIANT_FILE}")
            known = self._links.get(link.url)
            if known is not None:
                selection = self._arranger.selection(*known)
                ranking = selection.rankings.get(source_of(link)) if selection else None
                if ranking is not None:
                    check_promise(ranking.metadata, found, label)
                return
            check_promise(found, found, label)
            ranking = self._rank(found)
            if label not in ranking.positions:
                reasons = "; ".join(why_not(ranking, label))
                raise NoSuchVariant(f"{link.filename} does not fit this machine: {reasons}")
        except VariantError as error:
            raise InstallationError(str(error)) from None

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

    def failed(self, project: str, version: Hashable, error: Exception) -> None:
        """Say that a fault of ours cost a version its variants."""
        self._say(
            logging.WARNING,
            f"The variant wheels of {project} {version} are ignored because of a fault in "
            f"pep-variants-shim ({type(error).__name__}: {error}); --debug shows more.",
        )

    def _show(
        self, project: str, version: Hashable, ranking: Ranking, selection: Selection[Any]
    ) -> None:
        with indent_log():
            for notice in notices(ranking):
                self._say(logging.INFO if notice.actionable else VERBOSE, notice.text)
            if not logger.isEnabledFor(VERBOSE):
                return
            chosen = selection.chosen.label if selection.chosen else None
            logger.log(VERBOSE, "Variants of %s %s:", project, version)
            rows = verdicts(ranking, chosen)
            width = max((len(row.label) for row in rows), default=0)
            with indent_log():
                for row in rows:
                    logger.log(VERBOSE, f"{row.label:{width}}  {row.verdict:10}  {row.why}")

    def _announcing(
        self, project: str, info: Info, selection: Selection[Any]
    ) -> Callable[[], Any]:
        def build() -> Any:  # noqa: ANN401
            candidate = info[1]()
            if candidate is not None:
                with indent_log():
                    self._say(logging.INFO, self._choice(project, info, selection))
            return candidate

        return build

    def _choice(self, project: str, info: Info, selection: Selection[Any]) -> str:
        label = split_label(link_of(info).filename)[1]
        name = f"{project} {info[0]}"
        if label is None:
            return f"Non-variant file for {name}: no variant fits"
        if label == NULL_LABEL:
            return f"Variant null for {name}: no other variant fits"
        file = next(item for item in selection.files if item.filename == link_of(info).filename)
        return f"Variant {label} for {name}: {selection.why(file)}"

    def _say(self, level: int, text: str) -> None:
        # pip asks for the same things again and again; people want to hear them once.
        if text not in self._said:
            self._said.add(text)
            logger.log(level, "%s", text)

    def _rank(self, metadata: Metadata) -> Ranking:
        return rank(metadata, self._detect(metadata), self._preferences)


def link_of(info: Info) -> Any:  # noqa: ANN401
    """Return the link that *info* makes a candidate of."""
    return info[1].keywords["link"]  # type: ignore[attr-defined]


def source_of(link: Any) -> str:  # noqa: ANN401
    """Return where pip found *link*: the URL of the page, or the folder of a local file."""
    page = link.comes_from
    if page is None:
        return str(link.url_without_fragment).rpartition("/")[0]
    return str(getattr(page, "url", page))

