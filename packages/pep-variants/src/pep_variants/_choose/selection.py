"""Selection among the files of one version.

`select` goes from files over metadata, platform and ranking to the ordered choice. It uses no
network and no installer: clients pass functions that return metadata and platform.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Generic, TypeVar

from .._formats.merging import merge
from .._model.filename import parse_filename
from .._model.metadata import Metadata
from .._model.platform import Platform
from .._model.property import Properties
from ..errors import (
    InconsistentMetadata,
    InvalidWheelFilename,
    NoSuchVariant,
    VariantError,
    redacted,
)
from ..labels import split_label
from ..markers import NON_VARIANT, VariantContext
from .explanation import joined_reasons, why_chosen, why_not
from .preferences import NON_VARIANT_LABEL, Preferences, unique
from .ranking import Ranking, rank

if TYPE_CHECKING:
    from packaging.tags import Tag
    from packaging.utils import BuildTag

_T = TypeVar("_T")
_logger = logging.getLogger(__name__)


# Neither frozen nor with a cached property: it takes 13,500 instructions to make, not 23,000.
@dataclasses.dataclass(slots=True, unsafe_hash=True)
class File(Generic[_T]):
    """One file of a version; not to be changed.

    Attributes:
        filename: name of the file, which tells the label.
        source: where it was found: index page or directory. Metadata of different sources is
            kept apart (PEP 825, "Installing wheels from multiple sources").
        item: any object of the client, returned unchanged.
        label: variant label, None for everything but variant wheels.
    """

    filename: str
    source: str
    item: _T
    label: str | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Read the label, which every file of a version with variants is asked for."""
        self.label = split_label(self.filename)[1]


@dataclass(frozen=True)
class Selection(Generic[_T]):
    """The outcome for one version.

    Attributes:
        files: what may be installed, the most preferred first: variants with properties, then
            null variants and non-variant files.
        rankings: the judgement per source, for sources whose metadata could be read. Sources
            whose metadata agrees share one ranking. Across sources `files` is the order.
        problems: sources whose variant wheels are unusable, with the error.
        unknown: labels that occur in filenames but that metadata does not know, ascending.
        preferences: what was asked for.
        rejected: files of variants that must not be installed, in the client's order; also their
            names without label, see `select`.
    """

    files: tuple[File[_T], ...]
    rankings: Mapping[str, Ranking]
    problems: Mapping[str, VariantError]
    unknown: tuple[str, ...]
    preferences: Preferences
    rejected: tuple[File[_T], ...] = ()

    @property
    def chosen(self) -> File[_T] | None:
        """The most preferred file, None if nothing fits."""
        return self.files[0] if self.files else None

    @property
    def distinct_rankings(self) -> Mapping[str, Ranking]:
        """`rankings` with those that sources share once, by the last of these sources."""
        sources = {id(ranking): source for source, ranking in self.rankings.items()}
        return {source: self.rankings[source] for source in sources.values()}

    def context(self, file: File[_T]) -> VariantContext:
        """Return the context of markers where *file* is the one that is installed."""
        if file.label is None:
            return NON_VARIANT
        ranking = self.rankings.get(file.source)
        return VariantContext(file.label, ranking.supported(file.label) if ranking else {})

    def why(self, file: File[_T]) -> str:
        """Return in a few words why *file* fits; empty for null and non-variant files."""
        ranking = self.rankings.get(file.source)
        if file.label is None or ranking is None:
            return ""
        return why_chosen(ranking.supported(file.label))


def select(
    files: Sequence[File[_T]],
    *,
    metadata: Callable[[str], Metadata],
    platform: Callable[[Metadata], Platform],
    preferences: Preferences,
    project: str,
    tags: Sequence[Tag] | None = None,
    builds: Container[str] = (),
) -> Selection[_T]:
    """Choose among the files of one version of one project.

    Args:
        files: all of them, in the client's order of preference among equals (platform tags,
            build tags, wheels before source distributions). That order is kept inside a label and
            among non-variant files.
        metadata: gives the variant metadata of a source. Called only for sources that have
            variant wheels. A `VariantError` costs that source its variant wheels, nothing else.
        platform: gives the supported values for metadata, e.g. `Detector.platform`.
        preferences: of the user.
        project: normalized project name, to find forced labels.
        tags: platform compatibility tags of the target, most preferred first, for clients that
            have not filtered and ordered by them. Files other than wheels are put last.
        builds: sources whose non-variant wheel is one of the variants, too: such a build, and a
            source distribution beside it, is not for everyone. It is taken where it is asked for,
            or where there is nothing else.

    A null variant and a non-variant wheel promise the same: to run anywhere. So the label outranks
    only the non-variant wheels of its own source. Between sources the client's order decides, as
    it does between non-variant wheels; or else an index that comes second could replace a wheel
    of the first by adding ``-null`` to a filename.

    Returns:
        The selection. A forced label that no file has, or that does not fit, leaves no files;
        `missing_variant` says it in words when the client is through with all versions.

    >>> from pep_variants.machines import Detector, load_machine
    >>> from pep_variants.metadata import Metadata
    >>> from pep_variants.preferences import Preferences
    >>> from pep_variants.selection import File, select
    >>> cuda = {"nvidia": {"cuda_version_lower_bound": ("12.8",)}}
    >>> filenames = ["tool-1.0-py3-none-any-cu128.whl", "tool-1.0-py3-none-any.whl"]
    >>> selection = select(
    ...     [File(filename, "https://index.example/tool/", filename) for filename in filenames],
    ...     metadata=lambda source: Metadata(("nvidia",), {"cu128": cuda}),
    ...     platform=Detector(platform=load_machine("cuda=12.9")).platform,
    ...     preferences=Preferences(),
    ...     project="tool",
    ... )
    >>> selection.chosen.item
    'tool-1.0-py3-none-any-cu128.whl'
    """
    if tags is not None:
        positions = {tag: position for position, tag in enumerate(tags)}
        arranged = by_tags(files, attrgetter("filename"), positions)
        files = [file for file, is_usable in arranged if is_usable]
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
    rankings, places = _judge(read, platform, preferences)
    ordered: list[tuple[tuple[int, int], int, File[_T]]] = []
    unknown = set()
    null: list[File[_T]] = []
    for number, file in enumerate(files):
        if file.label is None:
            continue
        # What another source says of this label is about another wheel, though they agree else.
        own = read.get(file.source)
        if own is None:
            continue
        label = own.label_of(file.label)
        properties = own.properties_of(label)
        if properties is None:
            unknown.add(file.label)
            continue
        if forced is not None and forced not in (label, file.label):
            continue
        if not properties:
            null.append(file)
        elif (place := places.get((file.source, label))) is not None:
            ordered.append((place, number, file))
    ordered.sort()  # no two have the same number
    others = [file for file in files if file.label is None]
    plain = [] if forced is not None else [file for file in others if file.source not in builds]
    kept = (*[file for *_, file in ordered], *_anywhere(files, null, plain))
    taken = set(map(id, kept))
    rejected = tuple(
        [
            file
            for file in files
            if (file.label is not None or file.source in builds) and id(file) not in taken
        ]
    )
    selection = Selection(kept, rankings, problems, tuple(sorted(unknown)), preferences, rejected)
    if _logger.isEnabledFor(logging.DEBUG):
        _log(project, selection, len(files))
    return selection


def _log(project: str, selection: Selection[_T], count: int) -> None:
    """Log what was decided about *count* files of a version of *project*, and why."""
    for source, problem in selection.problems.items():
        _logger.debug("Skipping variants of %s from %s: %s", project, _shown(source), problem)
    for source, ranking in selection.distinct_rankings.items():
        for label in ranking.rejected_labels:
            reasons = joined_reasons(why_not(ranking, label))
            _logger.debug("Skipping variant %s of %s: %s", label, project, reasons)
        labels = ", ".join(ranking.labels) or "none"
        _logger.debug("Variants of %s that fit, from %s: %s", project, _shown(source), labels)
    for label in selection.unknown:
        _logger.debug("Skipping variant %s of %s: its metadata does not list it", label, project)
    chosen = selection.chosen.filename if selection.chosen else "none"
    _logger.debug("Checked %d files of project %s, chosen: %s", count, project, chosen)


def _shown(source: str) -> str:
    return redacted(source) or "the same page"


def _anywhere(
    files: Iterable[File[_T]], null: Sequence[File[_T]], plain: Sequence[File[_T]]
) -> tuple[File[_T], ...]:
    """Return files of null variants and non-variant files in order.

    Sources count by their first such file. The null variants of a source come before its own
    non-variant files, and after those of sources before it.

    Args:
        files: all files, in the client's order.
        null, plain: those of them that may be installed.
    """
    if not null:
        return tuple(plain)
    by_source: dict[str, list[File[_T]]] = {}
    for file in null:
        by_source.setdefault(file.source, []).append(file)
    anywhere = {id(file) for file in (*null, *plain)}
    places: dict[str, int] = {}
    for file in files:
        if id(file) in anywhere:
            places.setdefault(file.source, len(places))
    kept: list[File[_T]] = []
    waiting = list(plain)
    for source, place in places.items():
        if source in by_source:
            kept += (file for file in waiting if places[file.source] < place)
            waiting = [file for file in waiting if places[file.source] >= place]
            kept += by_source[source]
    return (*kept, *waiting)


_AGAIN = "; try again: the next run may choose another build"


def problems_of(project: str, version: object, selection: Selection[_T]) -> list[str]:
    """Return in words what costs a version its variants, or some of them."""
    sentences = [
        f"The variant wheels of {project} {version} are ignored. {problem}"
        f"{_AGAIN * problem.may_pass}"
        for problem in selection.problems.values()
    ]
    if selection.unknown:
        sentences.append(
            f"Variants of {project} {version} that its metadata does not list are ignored: "
            f"{', '.join(selection.unknown)}"
        )
    return sentences


def missing_variant(
    project: str, selections: Iterable[tuple[str, Selection[_T], Sequence[File[_T]]]]
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
        others = {ranking.metadata.label_of(label) for label in labels} - {forced}
        fitting += (label for label in ranking.labels if label in others)
    if forced in selection.unknown:
        reasons.append("the index does not say what it needs")
    if not reasons:
        reasons.append("none of its wheels is for this platform")
    return NoSuchVariant(
        f"variant {forced!r} of {project} {version}, which {asked} asks for, does not fit: "
        f"{'; '.join(unique(reasons))}. Variants that fit: {', '.join(unique(fitting)) or 'none'}"
    )


def _plain_only(files: Sequence[File[_T]], preferences: Preferences) -> Selection[_T]:
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


def _judge(
    read: Mapping[str, Metadata],
    platform: Callable[[Metadata], Platform],
    preferences: Preferences,
) -> tuple[dict[str, Ranking], dict[tuple[str, str], tuple[int, int]]]:
    """Rank the variants of all sources, comparable wherever the sources allow it.

    Sources with the same providers and priorities are ranked as one, also if a label stands for
    other properties in another source: then properties decide which of the two builds comes first,
    and not the order of the sources. Sources that contradict each other in what the order is made
    of come one after the other, in the order in which the client lists them.

    Returns:
        The ranking of each source (sources that agree in everything share one), and the place of
        each compatible variant by source and label.
    """
    rankings: dict[str, Ranking] = {}
    places: dict[tuple[str, str], tuple[int, int]] = {}
    for number, (merged, names) in enumerate(_groups(read)):
        supported = platform(merged)
        ranking = rank(merged, supported, preferences)
        positions = ranking.positions
        shared = all(label == name for own in names.values() for label, name in own.items())
        for source, own in names.items():
            rankings[source] = ranking if shared else rank(read[source], supported, preferences)
            for label, name in own.items():
                if name in positions:
                    places[source, label] = number, positions[name]
    return rankings, places


def _groups(
    read: Mapping[str, Metadata],
) -> Iterable[tuple[Metadata, dict[str, dict[str, str]]]]:
    """Return the metadata of sources that can be merged, and their labels in it.

    A label that another source of the group has with other properties gets a separate name,
    which sorts right behind that label. The first source of each group comes first.
    """
    groups: list[tuple[Metadata, dict[str, dict[str, str]]]] = []
    for source, found in read.items():
        for number, (merged, names) in enumerate(groups):
            own = {
                label: _name(label, properties, merged)
                for label, properties in found.variants.items()
            }
            variants = {name: found.variants[label] for label, name in own.items()}
            try:
                merged = merge(merged, replace(found, variants=variants))
            except InconsistentMetadata:
                continue
            groups[number] = merged, {**names, source: own}
            break
        else:
            groups.append((found, {source: {label: label for label in found.variants}}))
    return groups


def _name(label: str, properties: Properties, merged: Metadata) -> str:
    """Return the name in *merged* under which *label* has these properties, or a free one."""
    name, number = label, 0
    while merged.variants.get(name, properties) != properties:
        number += 1
        name = f"{label}\0{number}"  # no label of any file has this character
    return name


def by_tags(
    files: Iterable[_T], filename: Callable[[_T], str], places: Mapping[Tag, int]
) -> list[tuple[_T, bool]]:
    """Return *files* in the order in which a target prefers them, and whether it can use each.

    Wheels by the best of their tags, then by build tag; source distributions after them, and then
    what the target cannot use. Misnamed wheels, which no installer can use, are left out.

    Args:
        files: in the client's order, which is kept among equals.
        filename: gives the name of a file.
        places: platform compatibility tags of the target with their positions, 0 for the best.
    """
    last = len(places)
    judged: list[tuple[int, BuildTag, _T]] = []
    # Parsed once for all variants of a wheel, whose names differ in the label alone.
    parsed: dict[tuple[str, bool], tuple[int, BuildTag] | None] = {}
    for file in files:
        name = filename(file)
        if not name.endswith(".whl"):
            judged.append((last, (), file))
            continue
        plain, label = split_label(name)
        key = plain, label is None
        if key not in parsed:
            parsed[key] = _place(name, places)
        place = parsed[key]
        if place is not None:
            judged.append((*place, file))
    judged.sort(key=lambda item: item[1], reverse=True)  # higher build tags win
    judged.sort(key=lambda item: item[0])
    return [(file, place <= last) for place, _, file in judged]


def _place(filename: str, places: Mapping[Tag, int]) -> tuple[int, BuildTag] | None:
    """Return the position of the best tag of a wheel and its build tag, None if it is misnamed."""
    try:
        wheel = parse_filename(filename)
    except InvalidWheelFilename:
        return None
    fitting = [places[tag] for tag in wheel.tags if tag in places]
    return min(fitting, default=len(places) + 1), wheel.build
