"""What was rejected, in words: why nothing better, why nothing at all, and whether to switch.

Rejected variants are compared by one rule: they are ranked as the specification has it, for the
same preferences and the same metadata, on a machine that also supports what they need
(`_more_capable`). There a value that this machine lacks counts as better than what it has only
where the values of the feature are known to be steps of a ladder, such as CUDA versions and CPU
levels: then every step contains those below. A build for another GPU is not better than one for
this GPU, only different.

The functions take a finished `Selection` and do not change it.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from packaging.utils import canonicalize_name

from .._model.metadata import Metadata, natural
from .._model.platform import Platform, Support
from .._model.property import ABI_DEPENDENCY
from .._providers.registry import ACCELERATORS
from ..errors import printable, redacted
from ..markers import reduce_requirement, split_requirement
from .explanation import absent, joined_reasons, lacks_builds, why_chosen, why_not
from .ranking import Ranking, rank

if TYPE_CHECKING:
    from .selection import File, Selection


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_LADDERS = frozenset(
    (
        ("nvidia", "cuda_version_lower_bound"),
        ("amd", "rocm_version"),
        ("x86_64", "level"),
        ("aarch64", "version"),
    )
)
"""Features of which a higher value is better, even where the machine supports a single one."""


def nearest_first(selection: Selection[Any]) -> Iterator[tuple[str, str]]:
    """Yield label and reasons of the rejected variants, nearest to what the machine has first."""
    for source, ranking in selection.distinct_rankings.items():
        for label in nearest_labels(ranking, labels_with_files(selection, source)):
            reasons = why_not(ranking, label)
            yield label, joined_reasons(reasons)


def nearest_labels(ranking: Ranking, there: Collection[str]) -> list[str]:
    """Return the rejected labels of *there*: those with the fewest features missing first.

    A namespace of which nothing is supported counts more than any feature, and what the user
    excluded comes last. Among equals, the one that needs least comes first.
    """
    labels = [label for label in ranking.rejected_labels if label in there]
    order = {label: place for place, label in enumerate(order_if_supported(ranking, labels))}

    def distance(label: str) -> tuple[bool, int, int, int, str]:
        reasons = ranking.reasons(label)
        return (
            any(reason.excluded is not None for reason in reasons),
            len(unsupported_namespaces(ranking, label)),
            len(reasons),
            -order.get(label, 0),
            label,
        )

    return sorted(labels, key=distance)


def rejected_labels(ranking: Ranking, there: Collection[str]) -> list[str]:
    """Return the labels of *there* that this machine rejects, and not the user."""
    exclude = ranking.preferences.exclude
    return [
        label
        for label in ranking.rejected_labels
        if label in there
        and not any(selector.matches(ranking.metadata.variants[label]) for selector in exclude)
    ]


def unsupported_namespaces(ranking: Ranking, label: str) -> frozenset[str]:
    """Return the namespaces of a variant of which nothing at all is here.

    A driver that is too old for any variant is here.
    """
    properties = ranking.metadata.variants[label]
    supported = ((namespace, ranking.platform.support(namespace)) for namespace in properties)
    return frozenset(
        namespace
        for namespace, support in supported
        if namespace != ABI_DEPENDENCY and not support.features and not support.facts
    )


def order_if_supported(ranking: Ranking, labels: Iterable[str]) -> tuple[str, ...]:
    """Return *labels* in their order on a machine that supports what all of them need."""
    variants = {label: ranking.metadata.variants[label] for label in labels}
    metadata = replace(ranking.metadata, variants=variants)
    preferences = replace(ranking.preferences, exclude=())
    return rank(metadata, _more_capable(ranking.platform, metadata), preferences).labels


def _more_capable(platform: Platform, metadata: Metadata) -> Platform:
    """Return *platform* with everything that variants of *metadata* need.

    Values that it lacks are put in where they belong if the feature is a ladder: known to be one,
    or supported in steps from the highest to the lowest. Otherwise they come last, the higher
    ones first. New features come after those that are there.
    """
    namespaces = dict(platform.namespaces)
    for namespace in metadata.namespaces:
        used = metadata.used_values(namespace)
        if namespace == ABI_DEPENDENCY or not used:
            continue
        support = platform.support(namespace)
        features: dict[str, tuple[str, ...]] = dict(support.features)
        for feature, values in used.items():
            has = features.get(feature, ())
            features[feature] = _merged(has, values, (namespace, feature) in _LADDERS)
        namespaces[namespace] = Support(features)
    return replace(platform, namespaces=namespaces)


def _merged(has: Sequence[str], used: Sequence[str], is_ladder: bool) -> tuple[str, ...]:
    new = sorted(set(used) - set(has), key=natural, reverse=True)
    if not is_ladder and (len(has) < 2 or list(has) != sorted(has, key=natural, reverse=True)):
        return (*has, *new)
    # What is supported stays in the order that it has.
    return tuple(heapq.merge(has, new, key=natural, reverse=True))


def labels_with_files(selection: Selection[Any], source: str) -> frozenset[str]:
    """Return the labels that have a file in *source*, or in one that agrees with it."""
    ranking = selection.rankings[source]
    return frozenset(
        ranking.metadata.label_of(file.label)
        for file in (*selection.files, *selection.rejected)
        if file.label is not None and selection.rankings.get(file.source) is ranking
    )


def joined_labels(labels: Sequence[str]) -> str:
    """Return *labels* as a list in words, a long one cut short."""
    if len(labels) < 4:
        return f"{', '.join(labels[:-1])} and {labels[-1]}" if len(labels) > 1 else labels[0]
    return f"{', '.join(labels[:2])} and {len(labels) - 2} more variants"


_CPU = frozenset(("x86_64", "aarch64"))


def choice_line(
    selection: Selection[Any],
    file: File[Any],
    project: str,
    version: object,
    agrees_with: object = None,
) -> str:
    """Return the line that tells of the choice of *file*; empty if there was none.

    Arguments as for `why_this`.
    """
    why = why_this(selection, file, project, agrees_with)
    if not why:
        return ""
    what = "Non-variant file" if file.label is None else f"Variant {file.label}"
    is_asked = project in selection.preferences.forced
    mark = ":" if is_asked or file.label == _best_label(selection) else ""
    return f"{what} for {project} {version}{mark} {why}"


def why_this(
    selection: Selection[Any], file: File[Any], project: str, agrees_with: object = None
) -> str:
    """Return in a few words why *file* of its version, and why nothing better.

    Empty where there was no choice.

    Args:
        selection: the decision about the version.
        file: one of its files, not always the most preferred one.
        project: normalized project name.
        agrees_with: what it was put first to agree with, None for nothing.
    """
    if project in selection.preferences.forced:
        return "asked for"
    if not selection.rankings:
        return ""
    best = _best_label(selection)
    why = selection.why(file)
    if file.label != best:
        reason = f", to agree with {agrees_with}" if agrees_with is not None else ""
        rest = f": {why}" if why else ""
        return f"instead of {best or 'the non-variant file'}{reason}{rest}"
    better = why_not_better(selection, file)
    if why:
        return f"{why}; {better}" if better else why
    fileless = _fileless(selection)
    if fileless:
        which = "it" if len(fileless) == 1 else "them"
        return (
            f"{joined_labels(fileless)} would fit as well, but no wheel of {which} is for this "
            "platform and has an allowed hash"
        )
    plain = f"no {'variant' if file.label is None else 'other variant'} fits"
    return f"{plain} ({better})" if better else plain


def _best_label(selection: Selection[Any]) -> str | None:
    """Return the label of the most preferred file, None for a non-variant file or none at all."""
    return selection.chosen.label if selection.chosen else None


def why_not_better(selection: Selection[Any], file: File[Any]) -> str:
    """Return the reason against the variant that is missed most, empty if none is.

    That is the rejected variant that comes first on a machine that supports what it needs, if it
    comes before *file* there. Variants that the user excluded are not missed, nor those for
    accelerators of another kind where one is here, nor those of namespaces that the metadata
    itself makes optional or keeps for other environments.
    """
    for source, ranking in selection.distinct_rankings.items():
        if file.label is not None and selection.rankings.get(file.source) is not ranking:
            continue
        chosen = None if file.label is None else ranking.metadata.label_of(file.label)
        found = missed_clause(ranking, chosen, labels_with_files(selection, source))
        if found:
            return found
    return ""


def missed_clause(ranking: Ranking, chosen: str | None, there: Collection[str]) -> str:
    """Return the clause about the rejected variant that is missed most, empty for none.

    Args:
        ranking: the judged variants.
        chosen: label that was taken, None for a non-variant file.
        there: labels that have a file.
    """
    rejected = rejected_labels(ranking, there)
    here = [name for name in ACCELERATORS if ranking.platform.support(name).features]
    variants = ranking.metadata.variants
    unasked = {
        namespace
        for namespace, provider in ranking.metadata.providers.items()
        if provider.optional or provider.enable_if
    }
    lacking: dict[str, frozenset[str]] = {}
    others = False
    for label in rejected:
        namespaces = unsupported_namespaces(ranking, label)
        # CPUs of another kind are never missed, other accelerators only where there is none.
        if namespaces & _CPU or namespaces & unasked:
            continue
        if namespaces and here:
            others = True
        else:
            lacking[label] = namespaces
    if not lacking:
        has_builds = any(variants.get(label, {}).keys() & {*here} for label in there)
        return lacks_builds(here) if others and not has_builds else ""
    labels = list(lacking)
    if chosen is not None and chosen in variants:
        labels.append(chosen)
    # Without those with `abi_dependency`: only a resolver can tell whether they would be taken.
    first = next(iter(order_if_supported(ranking, labels)), chosen)
    if first is None or first == chosen:
        return ""
    if not lacking[first]:
        return f"{first} {joined_reasons(why_not(ranking, first))}"
    return absent(ranking.platform, sorted(frozenset().union(*lacking.values())))


def _fileless(selection: Selection[Any]) -> list[str]:
    """Return the variants with properties that fit and of which no file is offered, in order."""
    found = []
    for source, ranking in selection.distinct_rankings.items():
        there = labels_with_files(selection, source)
        found += [
            label
            for label in ranking.labels
            if ranking.metadata.variants[label] and label not in there
        ]
    return found


MAX_LISTED = 10
"""Rejected variants in an error; the rest is counted."""


def passed_over(
    project: str,
    passed: Sequence[tuple[object, Selection[Any]]],
    taken: object,
    verb: str = "was chosen",
) -> str:
    """Return the line about releases that were passed over because none of their variants fits.

    Args:
        project: normalized project name.
        passed: version and selection of all that was judged and is newer than *taken*, newest
            first; those that leave a file, or that could not be judged, do not count.
        taken: the version that is installed in their place.
        verb: what was done with it.

    Returns:
        The line; empty if no release was passed over for this reason.
    """
    unfit = [(version, selection) for version, selection in passed if is_unfit(selection)]
    if not unfit:
        return ""
    version, selection = unfit[0]
    others = len(unfit) - 1
    more = f" (and {others} more {'release' if others == 1 else 'releases'})" if others else ""
    reason = next((f" ({label} {why})" for label, why in nearest_first(selection)), "")
    return (
        f"{project} {version}{more} was passed over: none of its variants fits this machine"
        f"{reason}; {project} {taken} {verb}"
    )


def is_unfit(selection: Selection[Any]) -> bool:
    """Return whether a version has nothing to install because all its variants are rejected."""
    if selection.files or not selection.rejected or not selection.rankings:
        return False
    # A label that the user forces leaves out others that would fit.
    return not any(
        ranking is not None and ranking.metadata.label_of(file.label) in ranking.positions
        for file in selection.rejected
        for ranking in (selection.rankings.get(file.source),)
        if file.label is not None
    )


def is_built_only(selection: Selection[Any]) -> bool:
    """Return whether `is_unfit` is so of wheels without label, see `select`."""
    return is_unfit(selection) and any(file.label is None for file in selection.rejected)


class Unfit(NamedTuple):
    """Why nothing of a version can be installed.

    Attributes:
        summary: one sentence.
        details: a line for each of the variants that come nearest to what the machine has.
        advice: what to do, as a sentence; empty if nothing is known to help.
    """

    summary: str
    details: tuple[str, ...]
    advice: str

    def __str__(self) -> str:
        lines = [self.summary + (":" if self.details else ".")]
        lines += (f"  {line}" for line in self.details)
        return "\n".join([*lines, *filter(None, (self.advice,))])


def nothing_fits(
    project: str,
    version: object,
    selection: Selection[Any],
    *,
    plain: Iterable[object] = (),
    more: str = "-v",
) -> Unfit:
    """Say why nothing of *version* can be installed, label by label, and what helps.

    Args:
        project: normalized project name.
        version: the version, or what names it.
        selection: the decision about it, which leaves no file.
        plain: versions that have a non-variant file, newest first.
        more: the option or command that shows every variant.
    """
    rows = list(nearest_first(selection))
    width = max((len(label) for label, _ in rows[:MAX_LISTED]), default=0)
    details = [f"{label:{width}}  {why}" for label, why in rows[:MAX_LISTED]]
    if len(rows) > MAX_LISTED:
        details.append(f"and {len(rows) - MAX_LISTED} more: {more} shows all")
    details += (str(problem) for problem in selection.problems.values())
    if selection.unknown:
        details.append(f"the index does not say what {joined_labels(selection.unknown)} needs")
    summary = f"None of the variants of {project} {version} fits {_machine(selection)}"
    described = {label for each in selection.rankings.values() for label in each.metadata.variants}
    if len(rows) == 1 < len(described):  # the only one that the requirements admit, for example
        summary += f" (there is {rows[0][0]} alone to choose from)"
    return Unfit(summary, tuple(details), _advice(project, selection, tuple(plain)))


def _advice(project: str, selection: Selection[Any], plain: Sequence[object]) -> str:
    helpful = []
    if excluded := _excluded(selection):
        helpful.append(f"do not exclude {excluded}")
    if driver := _driver(selection):
        helpful.append(f"update the NVIDIA driver to one that supports CUDA {driver}")
    if any(file.label is None for file in selection.rejected):
        helpful.append(f"take its wheel anyway with --variant {project}=")
    elif plain:
        helpful.append(f"ask for {project}=={plain[0]}, which has a non-variant file")
    lacking = set(_lacking(selection))
    if not lacking or lacking - {ABI_DEPENDENCY}:  # no machine has another project
        described = all(ranking.platform.described for ranking in selection.rankings.values())
        helpful.append(
            "describe the target machine with --variant-platform FILE"
            if described
            else "describe the target with --variant-platform FILE"
        )
    return f"What helps: {', or '.join(helpful)}." if helpful else ""


def _lacking(selection: Selection[Any]) -> Iterator[str]:
    """Yield the namespaces of what the variants that have files lack."""
    for source, ranking in selection.distinct_rankings.items():
        for label in rejected_labels(ranking, labels_with_files(selection, source)):
            yield from (reason.namespace for reason in ranking.reasons(label))


def _excluded(selection: Selection[Any]) -> str:
    """Return the preferences that are all there is against some variant; empty if none are."""
    found: dict[str, None] = {}
    for source, ranking in selection.distinct_rankings.items():
        there = labels_with_files(selection, source)
        for label in ranking.rejected_labels:
            reasons = ranking.reasons(label) if label in there else ()
            if all(reason.excluded is not None for reason in reasons):
                found.update((repr(str(reason.excluded)), None) for reason in reasons)
    return " and ".join(found)


def _driver(selection: Selection[Any]) -> str:
    """Return the lowest CUDA version that a variant lacks nothing but; empty if there is none."""
    needed = set()
    for source, ranking in selection.distinct_rankings.items():
        for label in rejected_labels(ranking, labels_with_files(selection, source)):
            reasons = ranking.reasons(label)
            (first, *others) = reasons
            if not others and first[:2] == ("nvidia", "cuda_version_lower_bound"):
                needed.update([min(first.wanted, key=natural)] if first.supported else [])
    return min(needed, key=natural, default="")


def _machine(selection: Selection[Any]) -> str:
    for ranking in selection.distinct_rankings.values():
        if not ranking.platform.described:
            return "the target"
        if ranking.platform.source:
            return f"the machine of {ranking.platform.source}"
    return "this machine"


class Advice(NamedTuple):
    """Another build of the installed project fits this machine better.

    Attributes:
        installed: label of what is installed, None if it is not a variant.
        better: label of what would be chosen today, None for a non-variant file.
        unfit: why the installed variant does not fit any more; empty if it does.
        why: in a few words why the better one fits; empty for the null variant.
        version: of the better one, where the installed release has none; None for that release.
    """

    installed: str | None
    better: str | None
    unfit: tuple[str, ...]
    why: str
    version: object = None

    @property
    def build(self) -> str:
        """What the better one is called."""
        better = "the non-variant file" if self.better is None else f"variant {self.better}"
        return better if self.version is None else f"{better} of {self.version}"

    def text(self, project: str, version: str, how: str = "installed") -> str:
        """Return it as a sentence about *version* of *project*.

        Args:
            project: normalized name.
            version: of the project.
            how: what was done with what is there, ``installed`` or ``locked``.
        """
        found = "without variant" if self.installed is None else f"as variant {self.installed}"
        if self.unfit:
            unfit = "; ".join(self.unfit)
            return (
                f"{project} {version} is {how} {found}, which does not fit this machine "
                f"({unfit}); {self.build} does"
            )
        reason = f" ({self.why})" if self.why else ""
        return f"{project} {version} is {how} {found}; {self.build} fits better{reason}"


def advise(selection: Selection[Any], installed: str | None) -> Advice | None:
    """Return what is better than *installed* in the selection of its version, None for nothing.

    A label that nothing is known of any more, and a version whose metadata is broken, are no
    reason for advice.

    Args:
        selection: of all files of the version.
        installed: label of what is installed, None if it is not a variant.
    """
    chosen = selection.chosen
    if chosen is None or not selection.rankings:
        return None
    ranking = selection.rankings.get(chosen.source) or next(iter(selection.rankings.values()))
    best = None if chosen.label is None else ranking.metadata.label_of(chosen.label)
    why = "" if best is None else why_chosen(ranking.supported(best))
    if installed is None:
        return Advice(None, best, (), why) if why else None
    label = ranking.metadata.label_of(installed)
    if label == best or ranking.metadata.properties_of(label) is None:
        return None
    unfit = () if label in ranking.positions else why_not(ranking, label)
    if best is None and not unfit:
        return None
    return Advice(label, best, unfit, why)


def why_unfit(selection: Selection[Any], label: str | None) -> tuple[str, ...]:
    """Return why the variant *label* of a version does not fit; empty if it does or is unknown."""
    for ranking in selection.distinct_rankings.values():
        known = None if label is None else ranking.metadata.label_of(label)
        if known in ranking.rejected_labels:
            return tuple(why_not(ranking, str(known)))
    return ()


def required_by_marker(
    project: str,
    version: Hashable,
    selection: Selection[Any],
    file: File[Any],
    requires: Iterable[str],
    wanted: str,
) -> Iterator[str]:
    """Yield which markers make a variant require a project that cannot be had, and the way out.

    Markers take no part in choosing a variant (PEP 825, "Evaluating variant markers"), so a
    dependency that they add is an error like any other, and users decide what to do about it.

    Args:
        project: normalized name of what the variant is of.
        version: of it.
        selection: the decision about that version.
        file: the variant wheel.
        requires: its ``Requires-Dist`` values with variant markers.
        wanted: normalized name of the dependency.
    """
    for text in requires:
        name = _NAME.match(text)
        if name is None or canonicalize_name(name[0]) != wanted:
            continue
        if reduce_requirement(text, selection.context(file)) is None:
            continue
        dependency, marker = split_requirement(text)
        label = file.label or "without a label"
        others = [
            item.label or ""
            for item in selection.files
            if item.label != file.label
            and reduce_requirement(text, selection.context(item)) is None
        ]
        ways = [f"choose another variant with --variant {project}={other}" for other in others[:1]]
        if any(item.label is None for item in selection.files):
            ways.append("give --no-variants")
        yield printable(
            f"{project} {version} (variant {label}) requires {redacted(dependency)} because of the "
            f"marker {marker}. Markers take no part in choosing a variant"
            + (f": {', or '.join(ways)}" if ways else ", and the others that fit require it, too")
        )
