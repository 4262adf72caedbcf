"""Projects that the catalogue says belong together, such as torch and torchvision."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pep_variants.model.label import NULL_LABEL
from variants_index.finder import PackageFinder


class Relatives:
    """`Together` and `ExpectedLabels` of one resolution."""

    def __init__(self, finder: PackageFinder, wanted: Collection[str]) -> None:
        """Set up.

        Args:
            finder: has the catalogue.
            wanted: normalized names of what the user asked for.
        """
        self._finder = finder
        self._wanted = sorted(wanted)

    def __call__(self, project: str, other: str) -> bool:
        """Return whether the two should have the same label."""
        return self._finder.together(project, other)

    def expected_labels(self, project: str) -> Iterator[Collection[str]]:
        """Yield the labels, but null, of each wanted project that *project* belongs to.

        Those of its entry: no page is fetched for it, and some version may lack one.
        """
        for name in self._wanted:
            entry = self._finder.entry(name)
            if name != project and entry is not None and self(project, name):
                yield frozenset(item.label for item in entry.variants) - {NULL_LABEL}
