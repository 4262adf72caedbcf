"""The questions that lead from a machine to its variant, in the order in which ranking decides.

The tree asks for the best value of one feature at a time. What to ask next is taken from the
engine: of all machines that agree with the answers so far, the most capable one is ranked, and the
first feature of its choice that no answer has settled yet is the next question. If there is none,
every such machine gets that variant.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Union

from pep_variants.choose.abi import supporting
from pep_variants.choose.ranking import rank
from pep_variants.errors import VariantError
from pep_variants.model.metadata import Metadata
from pep_variants.model.platform import Platform, Support
from pep_variants.model.property import ABI_DEPENDENCY, Properties

from .provider_order import CPU_FAMILIES, ProviderOrder

MAXIMUM = 2000
"""Most questions of a tree."""


class TreeTooLarge(VariantError):
    """A tree with more than `MAXIMUM` questions."""


@dataclass(frozen=True, eq=False)
class Leaf:
    """The end of the questions: the label that is chosen, None if no variant fits."""

    label: str | None


@dataclass(frozen=True, eq=False)
class Answer:
    """An answer to a question: the best value that is supported is one of *values*."""

    values: tuple[str, ...]
    node: Node


@dataclass(frozen=True, eq=False)
class Question:
    """A question: which is the best value of a feature that the machine supports.

    Attributes:
        namespace, feature: of what is asked for.
        considered: all values that are asked for, the best first.
        answers: what follows from them, the best first: the first answer of which a value is
            supported holds.
        otherwise: what follows from the others, and if none is supported.
    """

    namespace: str
    feature: str
    considered: tuple[str, ...]
    answers: tuple[Answer, ...]
    otherwise: Node

    @property
    def children(self) -> tuple[Node, ...]:
        """What follows, in order."""
        return (*(answer.node for answer in self.answers), self.otherwise)


Node = Union[Leaf, Question]  # noqa: UP007 - Python 3.10 cannot join the names with |


@dataclass(frozen=True)
class DecisionTree:
    """All questions of a release. Equal parts are shared: it is a graph.

    Attributes:
        metadata: of the release.
        order: what is known of providers.
        root: the first question, or the only variant.
    """

    metadata: Metadata
    order: ProviderOrder
    root: Node

    def nodes(self) -> tuple[Node, ...]:
        """Return every node once, in reading order."""
        found: dict[int, Node] = {}
        pending = [self.root]
        while pending:
            node = pending.pop()
            if id(node) not in found:
                found[id(node)] = node
                pending += reversed(node.children if isinstance(node, Question) else ())
        return tuple(found.values())

    def decide(self, platform: Platform) -> str | None:
        """Return the label at the end of the questions for *platform*."""
        node = self.root
        while isinstance(node, Question):
            features = platform.support(node.namespace).features
            there = features.get(node.feature, ())
            best = next((value for value in node.considered if value in there), None)
            nodes = {value: answer.node for answer in node.answers for value in answer.values}
            node = node.otherwise if best is None else nodes.get(best, node.otherwise)
        return node.label


def grow(
    metadata: Metadata,
    order: ProviderOrder,
    enabled: Collection[str] = (),
    *,
    several: bool = True,
) -> DecisionTree:
    """Return the questions of a release.

    Args:
        metadata: of the release.
        order: what is known of providers.
        enabled: optional namespaces that count.
        several: machines may support any values of a feature together. Otherwise, those that
            support one value support what it implies on all known machines, and nothing else:
            fewer questions, for machines that have not two different GPUs.

    Raises:
        TreeTooLarge: it would have more than `MAXIMUM` questions.
    """
    grower = _Grower(metadata, order, frozenset(enabled), several)
    return DecisionTree(metadata, order, grower.grow())


_Feature = tuple[str, str]


@dataclass(frozen=True)
class _Known:
    """What answers say of the values of one feature, each in ranking order."""

    supported: tuple[str, ...] = ()
    unsettled: tuple[str, ...] = ()


_State = Mapping[_Feature, _Known]


@dataclass
class _Grower:
    metadata: Metadata
    order: ProviderOrder
    enabled: frozenset[str]
    several: bool
    nodes: dict[object, Node] = field(default_factory=dict)
    solved: dict[object, Node] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._abi = supporting(Platform(), self.metadata).support(ABI_DEPENDENCY).features

    def grow(self) -> Node:
        known: dict[_Feature, _Known] = {}
        for feature, values in self._abi.items():
            known[ABI_DEPENDENCY, feature] = _Known(values)
        for namespace in self.metadata.namespaces:
            provider = self.metadata.providers.get(namespace)
            optional = provider is not None and provider.optional and namespace not in self.enabled
            always = None
            if provider is not None and provider.static is not None and not provider.enable_if:
                always = provider.static or self.metadata.used_values(namespace)
            for feature in self.order.features[namespace]:
                values = self.order.values[namespace, feature]
                if optional:
                    known[namespace, feature] = _Known()
                elif always is not None:
                    known[namespace, feature] = _Known(
                        tuple(value for value in values if value in always.get(feature, ()))
                    )
                else:
                    known[namespace, feature] = _Known((), values)
        return self._solve(known, dict(self.metadata.variants))

    def _solve(self, known: _State, variants: Mapping[str, Properties]) -> Node:
        variants = {
            label: properties
            for label, properties in variants.items()
            if all(
                _possible(known.get((namespace, feature), _Known()), values)
                for namespace, features in properties.items()
                for feature, values in features.items()
            )
        }
        known = _relevant(known, variants)
        key = frozenset(variants), tuple(known.items())
        if key not in self.solved:
            if len(self.solved) >= MAXIMUM:
                raise TreeTooLarge(
                    f"the decision tree has more than {MAXIMUM:,} questions: "
                    "select variants with --only"
                )
            self.solved[key] = self._next(known, variants)
        return self.solved[key]

    def _next(self, known: _State, variants: Mapping[str, Properties]) -> Node:
        namespaces: dict[str, dict[str, tuple[str, ...]]] = {}
        for (namespace, name), item in known.items():
            there = (*item.supported, *item.unsettled)
            values = tuple(v for v in self._values((namespace, name)) if v in there)
            namespaces.setdefault(namespace, {})[name] = values
        most_capable = Platform({name: Support(features) for name, features in namespaces.items()})
        ranking = rank(replace(self.metadata, variants=variants), most_capable)
        if not ranking.labels:
            return self._shared(Leaf(None))
        label = ranking.labels[0]
        keys = {other: _features(ranking.supported(other)) for other in ranking.labels}
        for place, (feature, values) in enumerate(keys[label]):
            if values[0] not in known[feature].unsettled:
                continue
            # What is better here decides only among variants that have been equal up to here.
            equal = [
                key[place][1]
                for key in keys.values()
                if len(key) > place
                and key[place][0] == feature
                and all(key[n][1][0] == keys[label][n][1][0] for n in range(place))
                and all(key[n][0] == keys[label][n][0] for n in range(place))
            ]
            asked = {value for values in equal for value in values}
            return self._ask(feature, asked, known, variants)
        return self._shared(Leaf(label))

    def _ask(
        self, feature: _Feature, asked: set[str], known: _State, variants: Mapping[str, Properties]
    ) -> Node:
        item = known[feature]
        considered = tuple(v for v in self._steps(feature) if v in asked and v in item.unsettled)
        without = self._without_other_families(feature[0], known)
        answers: list[Answer] = []
        for place, value in enumerate(considered):
            answered = self._answered(feature, item, value, considered[:place])
            node = self._solve({**without, feature: answered}, variants)
            if answers and answers[-1].node is node:
                # Neighbours alone: a machine with one value may have those behind it, too.
                answers[-1] = Answer((*answers[-1].values, value), node)
            else:
                answers.append(Answer((value,), node))
        none = self._denied(feature, item, considered)
        otherwise = self._solve({**known, feature: none}, variants)
        while answers and answers[-1].node is otherwise:
            answers.pop()
        if not answers:
            return otherwise
        return self._shared(Question(*feature, considered, tuple(answers), otherwise))

    def _without_other_families(self, namespace: str, known: _State) -> _State:
        """Return *known* without CPUs of other families, if *namespace* is that of one."""
        if namespace not in CPU_FAMILIES:
            return known
        others = CPU_FAMILIES - {namespace}
        return {key: _Known() if key[0] in others else item for key, item in known.items()}

    def _answered(
        self, feature: _Feature, item: _Known, value: str, better: tuple[str, ...]
    ) -> _Known:
        """Return what is known of *feature* if *value* is supported and *better* are not."""
        item = self._denied(feature, item, better)
        chain = self.order.chains.get(feature)
        implied: tuple[str, ...] = (value,)
        if chain is not None:
            implied = chain.steps[chain.steps.index(value) :]
        elif not self.several:
            implied = (value, *self.order.implied.get((*feature, value), ()))
        there = (*item.supported, *implied)
        unsettled = tuple(v for v in item.unsettled if v not in implied)
        if chain is None and not self.several:
            unsettled = ()
        return _Known(tuple(v for v in self._values(feature) if v in there), unsettled)

    def _denied(self, feature: _Feature, item: _Known, values: tuple[str, ...]) -> _Known:
        """Return what is known of *feature* if *values* are not supported."""
        if values and (chain := self.order.chains.get(feature)):
            values = chain.steps[: chain.steps.index(values[-1]) + 1]
        return _Known(item.supported, tuple(v for v in item.unsettled if v not in values))

    def _values(self, feature: _Feature) -> tuple[str, ...]:
        """Return the values of *feature* in ranking order."""
        namespace, name = feature
        values = self.order.values[feature] if namespace != ABI_DEPENDENCY else self._abi[name]
        first = self.metadata.property_priorities.get(namespace, {}).get(name, ())
        return tuple(dict.fromkeys((*(v for v in first if v in values), *values)))

    def _steps(self, feature: _Feature) -> tuple[str, ...]:
        """Return the values of *feature* in the order in which they are asked for."""
        chain = self.order.chains.get(feature)
        return chain.steps if chain else self._values(feature)

    def _shared(self, node: Node) -> Node:
        """Return the one node that is equal to *node*."""
        if isinstance(node, Leaf):
            return self.nodes.setdefault(node.label, node)
        answers = tuple((answer.values, id(answer.node)) for answer in node.answers)
        key = node.namespace, node.feature, node.considered, answers, id(node.otherwise)
        return self.nodes.setdefault(key, node)


def _possible(known: _Known, values: tuple[str, ...]) -> bool:
    return any(value in known.supported or value in known.unsettled for value in values)


def _relevant(known: _State, variants: Mapping[str, Properties]) -> _State:
    """Return *known* without what none of *variants* uses."""
    used: dict[_Feature, set[str]] = {}
    for properties in variants.values():
        for namespace, features in properties.items():
            for feature, values in features.items():
                used.setdefault((namespace, feature), set()).update(values)
    return {
        feature: _Known(
            tuple(v for v in item.supported if v in used[feature]),
            tuple(v for v in item.unsettled if v in used[feature]),
        )
        for feature, item in known.items()
        if feature in used
    }


def _features(supported: Properties) -> list[tuple[_Feature, tuple[str, ...]]]:
    return [
        ((namespace, feature), values)
        for namespace, features in supported.items()
        if namespace != ABI_DEPENDENCY
        for feature, values in features.items()
    ]


def questions(tree: DecisionTree) -> Iterator[Question]:
    """Yield the questions of *tree*, each once, in reading order."""
    return (node for node in tree.nodes() if isinstance(node, Question))
