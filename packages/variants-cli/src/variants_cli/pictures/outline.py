"""A decision tree as people read it: step by step, all questions about the CPU as one.

The branches of a step are to be read from top to bottom; the first one that holds counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pep_variants.choose.phrases import answered, asked, listed

from .decision_tree import Answer, DecisionTree, Leaf, Node, Question
from .provider_order import CPU_FAMILIES

_MAX_VALUES = 12


class Condition(NamedTuple):
    """One of *values* of a feature is supported."""

    namespace: str
    feature: str
    values: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Branch:
    """An answer, and where it leads.

    Attributes:
        text: the answer in words.
        conditions: what has to be supported: of each, one of the values.
        to: the next step, or the end.
    """

    text: str
    conditions: tuple[Condition, ...]
    to: Step | Leaf


@dataclass(frozen=True, eq=False)
class Step:
    """A question, in words, and its answers."""

    title: str
    branches: tuple[Branch, ...]

    @property
    def is_last(self) -> bool:
        """Whether every answer ends the questions."""
        return all(isinstance(branch.to, Leaf) for branch in self.branches)


def outline(tree: DecisionTree) -> Step | Leaf:
    """Return the first step of *tree*, or its only end. Equal steps are shared."""
    return _Outliner(tree).step(tree.root)


class _Outliner:
    def __init__(self, tree: DecisionTree) -> None:
        self._tree = tree
        self._steps: dict[int, Step] = {}

    def step(self, node: Node) -> Step | Leaf:
        if isinstance(node, Leaf):
            return node
        if id(node) not in self._steps:
            about_cpu = node.namespace in CPU_FAMILIES
            self._steps[id(node)] = self._cpu_step(node) if about_cpu else self._step(node)
        return self._steps[id(node)]

    def _step(self, question: Question) -> Step:
        branches = [
            Branch(
                _answer(question, answer),
                (_condition(question, answer),),
                self.step(answer.node),
            )
            for answer in question.answers
        ]
        branches.append(Branch(self._otherwise(question), (), self.step(question.otherwise)))
        return Step(asked(question.namespace, question.feature), tuple(branches))

    def _cpu_step(self, question: Question) -> Step:
        found = list(_cpu_paths(question, ()))
        branches = []
        for place, path in enumerate(found):
            following = found[place + 1] if place + 1 < len(found) else None
            # What leads to the same as the next answer, and is part of it, need not be said.
            if (
                following is not None
                and following.to is path.to
                and self._implies(path.conditions, following.conditions)
            ):
                continue
            text = " with ".join(path.words) or "another CPU"
            branches.append(Branch(text, path.conditions, self.step(path.to)))
        return Step("CPU", tuple(branches))

    def _implies(self, these: tuple[Condition, ...], others: tuple[Condition, ...]) -> bool:
        """Return whether every machine for which *these* hold is one for which *others* do."""
        return all(any(self._is_part(this, other) for this in these) for other in others)

    def _is_part(self, this: Condition, other: Condition) -> bool:
        feature = this.namespace, this.feature
        if feature != (other.namespace, other.feature):
            return False
        chain = self._tree.order.chains.get(feature)
        return all(
            not set(other.values).isdisjoint(
                chain.steps[chain.steps.index(value) :] if chain else (value,)
            )
            for value in this.values
        )

    def _otherwise(self, question: Question) -> str:
        if question.considered == ("on",):
            return "no"
        is_chain = (question.namespace, question.feature) in self._tree.order.chains
        return "older, or none" if is_chain else "another, or none"


class _Path(NamedTuple):
    """Answers to questions about the CPU, one after another, and what follows from all of them."""

    words: tuple[str, ...]
    conditions: tuple[Condition, ...]
    to: Node


def _cpu_paths(question: Question, before: tuple[tuple[str, Condition], ...]) -> Iterator[_Path]:
    """Yield the paths from *question* on, to be tried in this order.

    Args:
        question: about the CPU.
        before: answers on the way to it, in words and as conditions.
    """
    for answer in question.answers:
        said = (*before, (_cpu_answer(question, answer), _condition(question, answer)))
        yield from _cpu_ways(answer.node, said)
    yield from _cpu_ways(question.otherwise, before)


def _cpu_ways(node: Node, said: tuple[tuple[str, Condition], ...]) -> Iterator[_Path]:
    if isinstance(node, Question) and node.namespace in CPU_FAMILIES:
        yield from _cpu_paths(node, said)
    else:
        words = tuple(text for text, _ in said)
        yield _Path(words, tuple(condition for _, condition in said), node)


def _condition(question: Question, answer: Answer) -> Condition:
    return Condition(question.namespace, question.feature, answer.values)


def _cpu_answer(question: Question, answer: Answer) -> str:
    return question.feature if answer.values == ("on",) else _answer(question, answer)


def _answer(question: Question, answer: Answer) -> str:
    """Return an answer in words; values of one meaning once."""
    texts = tuple(
        dict.fromkeys(
            answered(question.namespace, question.feature, value) for value in answer.values
        )
    )
    if len(texts) > _MAX_VALUES:
        return listed(texts)
    return " or ".join(texts) if len(texts) < 3 else ", ".join(texts)
