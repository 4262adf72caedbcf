"""A decision tree as nested lists."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from .decision_tree import DecisionTree, Leaf
from .markup import add
from .outline import Branch, Step, outline
from .wording import NO_VARIANT


def tree(grown: DecisionTree, anchor: str) -> ET.Element:
    """Return *grown* as a list.

    Args:
        grown: the tree.
        anchor: prefix of the ids of its steps, unique in the page.
    """
    return _Lists(anchor).root(outline(grown))


class _Lists:
    def __init__(self, anchor: str) -> None:
        self._anchor = anchor
        self._ids: dict[int, str] = {}

    def root(self, first: Step | Leaf) -> ET.Element:
        element = ET.Element("div", {"class": "tree"})
        if isinstance(first, Leaf):
            self._end(element, first)
        else:
            add(element, "span", f"{first.title}?", "question")
            self._branches(element, first)
        return element

    def _branches(self, parent: ET.Element, step: Step) -> None:
        # Many short lists take less room side by side.
        wide = sum(isinstance(branch.to, Step) and branch.to.is_last for branch in step.branches)
        branches = add(parent, "ul", cls="wide" if wide > 3 else "")
        for branch in step.branches:
            self._branch(add(branches, "li"), branch)

    def _branch(self, item: ET.Element, branch: Branch) -> None:
        if isinstance(branch.to, Leaf):
            add(item, "span", branch.text, "answer")
            self._end(item, branch.to)
            return
        known = self._ids.get(id(branch.to))
        if known is not None and not branch.to.is_last:
            add(item, "span", branch.text, "answer")
            link = add(item, "a", f"{branch.to.title}? as above")
            link.set("href", f"#{known}")
            return
        details = add(item, "details")
        details.set("open", "open")
        if known is None:
            self._ids[id(branch.to)] = f"{self._anchor}-{len(self._ids) + 1}"
            details.set("id", self._ids[id(branch.to)])
        summary = add(details, "summary")
        add(summary, "span", branch.text, "answer")
        add(summary, "span", f"{branch.to.title}?", "question")
        self._branches(details, branch.to)

    def _end(self, parent: ET.Element, leaf: Leaf) -> None:
        if leaf.label is None:
            add(parent, "span", NO_VARIANT, "none")
        else:
            add(parent, "code", leaf.label)
