"""The one selection: the files of one version in, the ordered choice and its explanation out.

The way of the data, readable from top to bottom in `select`: files → metadata → platform →
ranking → choice. No network and no installer in here; clients say how to get metadata and where
a file comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Generic, TypeVar

from .errors import InconsistentMetadata, InvalidWheelFilename, NoSuchVariant, VariantError
from .explanation import why_chosen, why_not
from .filename import parse_filename
from .label import split_label
from .markers import NON_VARIANT, VariantContext
from .merging import merge_all
from .metadata import Metadata
from .platform import Platform
from .preferences import NON_VARIANT_LABEL, Preferences, unique
from .ranking import Ranking, rank

if TYPE_CHECKING:
    from packaging.tags import Tag
    from packaging.utils import BuildTag

T = TypeVar("T")


@dataclass(frozen=True)
class File(Generic[T]):
    """One file of a version.

    Attributes:
        filename: name of the file, which tells the label.
        source: where it was found: index page or directory. Metadata of different sources is
            kept apart (PEP 825, "Installing wheels from multiple sources").
        item: what the client wants back, untouched.
    """

    filename: str
    source: str
    item: T

    @cached_property
    def label(self) -> str | None:
        """Variant label, None for everything that is no variant wheel."""
        return split_label(self.filename)[1]


@dataclass(frozen=True)
class Selection(Generic[T]):
    """The outcome for one version.

    Attributes:
        files: what may be installed, the most preferred first; variants before everything else.
        rankings: the judgement per source, for sources whose metadata could be read. Sources
            whose metadata agrees share one ranking.
        problems: sources whose variant wheels are unusable, with the error.
        unknown: labels that occur in filenames but that metadata does not know, ascending.
        preferences: what was asked for.
    """

    files: tuple[File[T], ...]
    rankings: Mapping[str, Ranking]
    problems: Mapping[str, VariantError]
    unknown: tuple[str, ...]
    preferences: Preferences

    @property
    def chosen(self) -> File[T] | None:
        """The most preferred file, None if nothing fits."""
        return self.files[0] if self.files else None

    def context(self, file: File[T]) -> VariantContext:
        """Return what markers are evaluated against when *file* is the one that is installed."""
        if file.label is None:
            return NON_VARIANT
        ranking = self.rankings.get(file.source)
        return VariantContext(file.label, ranking.supported(file.label) if ranking else {})

    def why(self, file: File[T]) -> str:
        """Return in a few words why *file* fits; empty for null and non-variant files."""
        ranking = self.rankings.get(file.source)
        if file.label is None or ranking is None:
            return ""
        return why_chosen(ranking.supported(file.label))


def select(
    files: Sequence[File[T]],
    *,
    metadata: Callable[[str], Metadata],
    platform: Callable[[Metadata], Platform],
    preferences: Preferences,
    project: str,
    tags: Sequence[Tag] | None = None,
) -> Selection[T]:
    """Choose among the files of one version of one project.

    Args:
        files: all of them, in the client's order of preference among equals (platform tags,
            build tags, wheels before source distributions). That order is kept inside a label and
            among non-variant files.
        metadata: gives the variant metadata of a source. Called only for sources that have
            variant wheels. A `VariantError` costs that source its variant wheels, nothing else.
        platform: gives the supported values for metadata, e.g. `Detector.platform`.
        preferences: what the user asked for.
        project: normalized project name, to find forced labels.
        tags: platform compatibility tags of the target, most preferred first, for clients that
            have not filtered and ordered by them. Files that are no wheels are put last.

    Returns:
        The selection. A forced label that no file has, or that does not fit, leaves no files;
        `missing_variant` says it in words when the client is through with all versions.
    """
    if tags is not None:
        files = _by_tags(files, tags)
    if not preferences.use_variants:
        return _plain_only(files, preferences)
    forced = preferences.forced.get(project)
    if forced == NON_VARIANT_LABEL:
        return _plain_only(files, preferences)
    sources = dict.fromkeys(file.source for file in files if file.label is not None)
    if not sources:
        kept = () if forced else tuple(files)
        return Selection(kept, {}, {}, (), preferences)

    read, problems = _read(sources, metadata)
    rankings = _rank(read, platform, preferences)

    # Sources that share a ranking are ordered together; others one after the other, in the order
    # in which the client lists them: nobody can say whether one's values outrank the other's.
    order = {id(ranking): number for number, ranking in reversed([*enumerate(rankings.values())])}
    ordered: list[tuple[int, int, int, File[T]]] = []
    unknown = set()
    for number, file in enumerate(files):
        if file.label is None:
            continue
        ranking = rankings.get(file.source)
        if ranking is None:
            continue
        # What another source says of this label is about another wheel, though they agree else.
        own = read[file.source]
        label = own.label_of(file.label)
        if own.properties_of(label) is None:
            unknown.add(file.label)
            continue
        position = ranking.positions.get(label)
        if position is not None and (forced is None or forced in (label, file.label)):
            ordered.append((order[id(ranking)], position, number, file))
    ordered.sort(key=lambda item: item[:3])
    kept = tuple(file for *_, file in ordered)
    if forced is None:
        kept += tuple(file for file in files if file.label is None)
    return Selection(kept, rankings, problems, tuple(sorted(unknown)), preferences)


def missing_variant(
    project: str, selections: Iterable[tuple[str, Selection[T], Sequence[File[T]]]]
) -> NoSuchVariant | None:
    """Return the error for a forced label that no version could satisfy, None if there is none.

    Args:
        project: normalized project name.
        selections: version, selection and all files of the versions considered, newest first.
    """
    considered = list(selections)
    if not considered or any(selection.files for _, selection, _ in considered):
        return None
    version, selection, files = considered[0]
    forced = selection.preferences.forced.get(project)
    if forced is None:
        return None
    if forced == NON_VARIANT_LABEL:
        return NoSuchVariant(
            f"{project} {version} has no non-variant wheel, which --variant {project}= asks for"
        )
    labels = sorted({file.label for file in files if file.label is not None})
    asked = f"--variant {project}={forced}"
    if forced not in labels:
        return NoSuchVariant(
            f"{project} {version} has no variant {forced!r}, which {asked} asks for; "
            f"there are: {', '.join(labels) or 'none'}"
        )
    reasons: list[str] = [str(problem) for problem in selection.problems.values()]
    fitting: list[str] = []
    for ranking in selection.rankings.values():  # sources that agree share one
        reasons += why_not(ranking, forced)
        fitting += ranking.labels
    if forced in selection.unknown:
        reasons.append("the index does not say what it needs")
    if not reasons:
        reasons.append("none of its wheels is for this platform")
    return NoSuchVariant(
        f"variant {forced!r} of {project} {version}, which {asked} asks for, does not fit: "
        f"{'; '.join(unique(reasons))}. Variants that fit: {', '.join(unique(fitting)) or 'none'}"
    )


def _plain_only(files: Sequence[File[T]], preferences: Preferences) -> Selection[T]:
    plain = tuple(file for file in files if file.label is None)
    return Selection(plain, {}, {}, (), preferences)


def _read(
    sources: Iterable[str], metadata: Callable[[str], Metadata]
) -> tuple[dict[str, Metadata], dict[str, VariantError]]:
    read: dict[str, Metadata] = {}
    problems: dict[str, VariantError] = {}
    for source in sources:
        try:
            read[source] = metadata(source)
        except VariantError as error:
            problems[source] = error
    return read, problems


def _rank(
    read: Mapping[str, Metadata],
    platform: Callable[[Metadata], Platform],
    preferences: Preferences,
) -> dict[str, Ranking]:
    if len(read) > 1:
        try:
            merged = merge_all(read.values())
        except InconsistentMetadata:
            pass  # judged one by one below
        else:
            ranking = rank(merged, platform(merged), preferences)
            return dict.fromkeys(read, ranking)
    return {source: rank(found, platform(found), preferences) for source, found in read.items()}


def _by_tags(files: Sequence[File[T]], tags: Sequence[Tag]) -> list[File[T]]:
    places = {tag: place for place, tag in enumerate(tags)}
    judged: list[tuple[int, BuildTag, File[T]]] = []
    for file in files:
        if not file.filename.endswith(".whl"):
            judged.append((len(places), (), file))
            continue
        try:
            wheel = parse_filename(file.filename)
        except InvalidWheelFilename:
            continue  # indexes hold such names, they are nobody's wheel
        fitting = [places[tag] for tag in wheel.tags if tag in places]
        if fitting:
            judged.append((min(fitting), wheel.build, file))
    judged.sort(key=lambda item: item[1], reverse=True)  # higher build tags win
    judged.sort(key=lambda item: item[0])
    return [file for *_, file in judged]
