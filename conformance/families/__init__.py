"""Generated families of cases: random inputs from fixed seeds, expectations of `reference`."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

Tree = dict[str, Any]


class Family(NamedTuple):
    """One generated file.

    Attributes:
        path: ``AREA/TOPIC`` below ``cases``.
        topic: what its cases have in common.
        section: where the expectation is written, document and section.
        seed: of the random numbers.
        size: how many cases.
        make: makes one case, without ``name`` and ``source``.
    """

    path: str
    topic: str
    section: tuple[str, str]
    seed: int
    size: int
    make: Callable[[Random], Tree]

    def file(self) -> Tree:
        """Return the content of the file."""
        random = Random(self.seed)
        document, section = self.section
        cases = []
        for number in range(1, self.size + 1):
            made = self.make(random)
            title = made.pop("title")
            cases.append(
                {
                    "name": f"random-{number:02}",
                    "title": title,
                    "source": [{"document": document, "section": section}],
                    **made,
                }
            )
        return {
            "$schema": "../../case.schema.json",
            "topic": self.topic,
            "family": {"generator": self.make.__name__, "seed": self.seed},
            "cases": cases,
        }


FAMILIES: list[Family] = []


def family(
    path: str, topic: str, section: tuple[str, str], *, seed: int, count: int
) -> Callable[[Callable[[Random], Tree]], Callable[[Random], Tree]]:
    """Register the decorated function as the maker of a family."""

    def register(make: Callable[[Random], Tree]) -> Callable[[Random], Tree]:
        FAMILIES.append(Family(path, topic, section, seed, count, make))
        return make

    return register
