"""The questions that lead from a machine to its variant, in the order in which ranking decides.

The tree asks what a machine supports of one feature at a time. The next question comes from the
engine: of all machines that agree with the answers so far, the most capable one is ranked, and the
first feature of its choice that no answer has settled is asked for. If there is none, every such
machine gets that variant. Possible answers are what known machines support; a value that none of
them has is taken for the only one of its feature.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pep_variants import Metadata, Platform, Support, VariantError, rank
from pep_variants.internal import (
    ABI_DEPENDENCY,
    BUILTIN_NAMESPACES,
    Properties,
    answered,
    asked,
    natural,
    supporting,
)

from ..console import one_line

MAXIMUM = 2000
"""Most questions of a tree."""

MAXIMUM_ARROWS, MAXIMUM_TEXT = 499, 50_000
"""What Mermaid draws by default (``maxEdges``, ``maxTextSize``), and GitHub with it: the number of
arrows, and of characters."""

NO_VARIANT = "no variant"

_CPU_FAMILIES = frozenset(("x86_64", "aarch64"))
"""Namespaces of which a machine supports at most one."""

Feature = tuple[str, str]
"""Namespace and name of a feature."""

Values = tuple[str, ...]
"""What is supported of a feature, the best first."""

_State = Mapping[Feature, Values]


class TreeTooLarge(VariantError):
    """A tree with more than `MAXIMUM` questions."""


@dataclass(frozen=True, eq=False)
class Branch:
    """An answer in words, what it stands for (any of *supported*), and where it leads."""

    text: str
    supported: tuple[Values, ...]
    to: Node


@dataclass(frozen=True, eq=False)
class Node:
    """A question, or, without branches, the end of the questions.

    Equal parts of a tree are shared: it is a graph.

    Attributes:
        text: the question in words; the label of the variant, or `NO_VARIANT`.
        feature: what is asked for.
        branches: to be read from top to bottom: the first answer that holds counts, and the last
            one always holds.
    """

    text: str
    feature: Feature = ("", "")
    branches: tuple[Branch, ...] = ()

    def end(self, platform: Platform) -> str:
        """Return the text of the end to which the questions lead for *platform*."""
        if not self.branches:
            return self.text
        namespace, name = self.feature
        there = frozenset(platform.support(namespace).features.get(name, ()))
        holds = (b.to for b in self.branches if any(map(there.issuperset, b.supported)))
        return next(holds).end(platform)


class Grower:
    """Makes the decision trees of a release.

    Attributes:
        ladders: features of which a machine that supports one value supports all lower ones.
    """

    def __init__(self, metadata: Metadata, platforms: Sequence[Platform]) -> None:
        """Learn from what known *platforms* support of the features that variants use."""
        self._metadata = metadata
        self._values: dict[Feature, Values] = {}
        self._shown: dict[Feature, set[Values]] = {}
        for namespace in metadata.namespaces:
            known = BUILTIN_NAMESPACES.get(namespace)
            listing = known.factory().known() if known else {}
            used = metadata.used_values(namespace)
            for name in sorted(used, key=_place_in([*listing])):
                descending = sorted(used[name], key=natural, reverse=True)
                values = tuple(sorted(descending, key=_place_in(listing.get(name, ()))))
                given = [platform.support(namespace).features for platform in platforms]
                self._values[namespace, name] = values
                self._shown[namespace, name] = {
                    tuple(value for value in values if value in features.get(name, ()))
                    for features in given
                }
        self.ladders = frozenset(filter(self._is_ladder, self._values))

    def grow(self, enabled: Collection[str] = ()) -> Node:
        """Return the first question, or the only end.

        Args:
            enabled: optional namespaces that count.

        Raises:
            TreeTooLarge: it would have more than `MAXIMUM` questions.
        """
        settled: dict[Feature, Values] = {}
        for namespace, name in self._values:
            provider = self._metadata.providers.get(namespace)
            if provider is not None and provider.optional and namespace not in enabled:
                settled[namespace, name] = ()
            elif provider is not None and provider.static is not None and not provider.enable_if:
                static = provider.static or self._metadata.used_values(namespace)
                settled[namespace, name] = static.get(name, ())
        self._nodes: dict[object, Node] = {}
        return self._solve(settled, self._metadata.variants)

    def _solve(self, settled: _State, variants: Mapping[str, Properties]) -> Node:
        """Return what follows when *settled* features are known, and *variants* are left."""
        variants = {
            label: properties
            for label, properties in variants.items()
            if all(not found.isdisjoint(settled.get(f, found)) for f, found in _items(properties))
        }
        used: dict[Feature, set[str]] = defaultdict(set)
        for properties in variants.values():
            for feature, found in _items(properties):
                used[feature] |= found
        state = {
            feature: tuple(v for v in settled.get(feature, values) if v in used[feature])
            for feature, values in self._values.items()
            if feature in used
        }
        known = {feature: values for feature, values in state.items() if feature in settled}
        key = frozenset(variants), frozenset(known.items())
        if key not in self._nodes:
            if len(self._nodes) >= MAXIMUM:
                raise TreeTooLarge(
                    f"the decision tree has more than {MAXIMUM:,} questions: "
                    "select variants with --only"
                )
            features: dict[str, dict[str, Values]] = defaultdict(dict)
            for (namespace, name), values in state.items():
                features[namespace][name] = values
            most_capable = Platform({name: Support(each) for name, each in features.items()})
            metadata = replace(self._metadata, variants=variants)
            ranking = rank(metadata, supporting(most_capable, metadata))
            label = next(iter(ranking.labels), NO_VARIANT)
            decisive = (feature for feature, _ in _items(ranking.supported(label)))
            asked_for = next((feature for feature in decisive if feature not in known), None)
            self._nodes[key] = (
                self._shared(Node(label))
                if asked_for is None
                else self._ask(asked_for, state[asked_for], known, variants)
            )
        return self._nodes[key]

    def _ask(
        self, feature: Feature, values: Values, known: _State, variants: Mapping[str, Properties]
    ) -> Node:
        namespace, name = feature
        # Who has a CPU of one family has none of another; who has not is asked for that, too.
        others = _CPU_FAMILIES - {namespace} if namespace in _CPU_FAMILIES else ()
        absent = {each: () for each in self._values if each[0] in others}
        answers = {
            answer: self._solve({**known, **absent, feature: answer}, variants)
            for answer in self._answers(feature, values)
        }
        otherwise = self._solve({**known, feature: ()}, variants)
        branches: list[Branch] = []
        for answer, node in answers.items():
            alike = {id(other) for found, other in answers.items() if found[0] == answer[0]}
            # The best value says it all where those behind it change nothing.
            said = answer if len(alike) > 1 else answer[:1]
            text = " and ".join(answered(namespace, name, value) for value in said)
            before: tuple[Values, ...] = ()
            if branches and branches[-1].to is node:
                # Neighbours alone: a machine with one value may have those behind it, too.
                last = branches.pop()
                text = text if text == last.text else f"{last.text} or {text}"
                before = last.supported
            branches.append(Branch(text, (*before, said), node))
        while branches and branches[-1].to is otherwise:
            branches.pop()
        if not branches:
            return otherwise
        rest = "older, or none" if feature in self.ladders else "another, or none"
        rest = "no" if values == ("on",) else rest
        return self._shared(
            Node(asked(*feature), feature, (*branches, Branch(rest, ((),), otherwise)))
        )

    def _answers(self, feature: Feature, values: Values) -> list[Values]:
        """Return what machines may support of *values*, the most preferred first."""
        if feature in self.ladders:
            return [values[place:] for place in range(len(values))]
        shown = {tuple(v for v in values if v in found) for found in self._shown[feature]} - {()}
        first = {found[0] for found in shown}
        shown |= {(value,) for value in values if value not in first}
        return sorted(shown, key=lambda found: [*map(values.index, found), len(values)])

    def _is_ladder(self, feature: Feature) -> bool:
        values, shown = self._values[feature], self._shown[feature]
        # One value at a time shows nothing: it may as well exclude the others.
        descending = list(values) == sorted(values, key=natural, reverse=True)
        if not descending or (len(values) > 1 and not any(len(found) > 1 for found in shown)):
            return False
        return all(found == values[len(values) - len(found) :] for found in shown)

    def _shared(self, node: Node) -> Node:
        """Return the one node that is equal to *node*."""
        key = node.text, node.feature, tuple((b.supported, id(b.to)) for b in node.branches)
        return self._nodes.setdefault(key, node)


def _items(properties: Properties) -> Iterator[tuple[Feature, frozenset[str]]]:
    """Yield the features that machines support or not."""
    for namespace, features in properties.items():
        if namespace != ABI_DEPENDENCY:
            for name, values in features.items():
                yield (namespace, name), frozenset(values)


def _place_in(names: Sequence[str]) -> Callable[[str], int]:
    places = {name: place for place, name in enumerate(names)}
    return lambda name: places.get(name, len(places))


_PLAIN = re.compile(r"[A-Za-z0-9 .,_+-]")
_ARROW = " -- "

_STYLES = (
    "classDef question fill:#dbe7fb,stroke:#3867b8,color:#10233f",
    "classDef variant fill:#dff3e4,stroke:#2b8a4a,color:#0d2b18",
    "classDef none fill:#fbe3e1,stroke:#b3443b,color:#3f1310",
)
"""Colours that can be read on light and on dark pages."""


def flowchart(root: Node) -> str:
    """Return the tree as a flowchart of Mermaid, which GitHub and many others draw."""
    lines = ["flowchart LR"]
    names: dict[int, str] = {}

    def add(node: Node) -> str:
        if id(node) in names:
            return names[id(node)]
        name = f"n{len(lines)}"
        if not node.branches:  # one for each question: arrows that lead far are hard to follow
            style = "none" if node.text == NO_VARIANT else "variant"
            lines.append(f'{name}["{_quoted(node.text)}"]:::{style}')
            return name
        names[id(node)] = name
        lines.append(f'{name}{{{{"{_quoted(node.text)}?"}}}}:::question')
        for branch in node.branches:
            target = add(branch.to)
            lines.append(f'{name}{_ARROW}"{_quoted(branch.text)}" --> {target}')
        return name

    add(root)
    return "\n    ".join((*lines, *_STYLES)) + "\n"


def is_drawn(chart: str) -> bool:
    """Return whether *chart* is within the limits that Mermaid has by default."""
    return chart.count(_ARROW) <= MAXIMUM_ARROWS and len(chart) <= MAXIMUM_TEXT


def _quoted(text: str) -> str:
    """Return *text* for a quoted label: everything unusual as Mermaid's character code."""
    return "".join(char if _PLAIN.match(char) else f"#{ord(char)};" for char in one_line(text))
