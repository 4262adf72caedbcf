"""A decision tree as a flowchart of Mermaid, which GitHub and many others draw."""

from __future__ import annotations

import re

from .decision_tree import DecisionTree, Leaf
from .outline import Step, outline
from .wording import NO_VARIANT, clean

_PLAIN = re.compile(r"[A-Za-z0-9 .,_+-]")

_STYLES = (
    "classDef question fill:#dbe7fb,stroke:#3867b8,color:#10233f",
    "classDef variant fill:#dff3e4,stroke:#2b8a4a,color:#0d2b18",
    "classDef none fill:#fbe3e1,stroke:#b3443b,color:#3f1310",
)
"""Colours that can be read on light and on dark pages."""

MAXIMUM_ARROWS, MAXIMUM_TEXT = 499, 50_000
"""What Mermaid draws by default (``maxEdges``, ``maxTextSize``), and GitHub with it: the number of
arrows, and of characters."""

_ARROW = " -- "


def is_drawn(chart: str) -> bool:
    """Return whether *chart* is within the limits that Mermaid has by default."""
    return chart.count(_ARROW) <= MAXIMUM_ARROWS and len(chart) <= MAXIMUM_TEXT


def flowchart(tree: DecisionTree) -> str:
    """Return *tree* as the text of a flowchart, which ends with a line break."""
    chart = _Flowchart()
    chart.add(outline(tree))
    lines = ["flowchart LR", *chart.lines, *_STYLES]
    return "\n    ".join(lines) + "\n"


class _Flowchart:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self._steps: dict[int, str] = {}
        self._number = 0

    def add(self, node: Step | Leaf) -> str:
        """Add *node* and all that follows; return its name in the chart."""
        if isinstance(node, Leaf):
            # One for each question: arrows that lead far away are hard to follow.
            name = self._name()
            label, style = (node.label, "variant") if node.label else (NO_VARIANT, "none")
            self.lines.append(f'{name}["{_text(label)}"]:::{style}')
            return name
        if id(node) not in self._steps:
            name = self._steps[id(node)] = self._name()
            self.lines.append(f'{name}{{{{"{_text(node.title)}?"}}}}:::question')
            for branch in node.branches:
                target = self.add(branch.to)
                self.lines.append(f'{name}{_ARROW}"{_text(branch.text)}" --> {target}')
        return self._steps[id(node)]

    def _name(self) -> str:
        self._number += 1
        return f"n{self._number}"


def _text(text: str) -> str:
    """Return *text* for a quoted label: everything unusual as Mermaid's character code."""
    return "".join(char if _PLAIN.match(char) else f"#{ord(char)};" for char in clean(text))
