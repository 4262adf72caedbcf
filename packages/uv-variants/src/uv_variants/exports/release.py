"""The wheels of one version as its index has them, from a report of the proxy."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from packaging.utils import canonicalize_name

from pep_variants.errors import without_userinfo
from variants_proxy.choice.in_place_names import HERE

_STRONG = ("sha256", "sha384", "sha512")


@dataclass(frozen=True)
class IndexWheel:
    """A wheel of an index.

    Attributes:
        filename: with the label.
        plain: without it.
        label: None for a wheel without one.
        url: its own URL.
        hashes: hexadecimal digests by algorithm, strong ones only.
        size: in bytes, None if unknown.
        upload_time: as the index spells it, None if unknown.
        requires: digest of its dependencies, None if they could not be read.
        served: SHA-256 of the wheel as uv-variants installs it: with variant markers evaluated,
            or what the catalogue changes.
        marked: whether uv-variants rewrites it, so that `served` is not in `hashes`.
        published: its own name where the catalogue gives it the label, else None.
    """

    filename: str
    plain: str
    label: str | None
    url: str
    hashes: Mapping[str, str]
    size: int | None
    upload_time: str | None
    requires: str | None
    served: str | None
    marked: bool
    published: str | None = None

    @property
    def origin(self) -> str:
        """The publisher's normalized name for it, empty if that is the project's."""
        own, name = (canonicalize_name(text.split("-", 1)[0]) for text in (self.plain, self._own))
        return name if name != own else ""

    @property
    def _own(self) -> str:
        return self.plain if self.published is None else self.published


@dataclass(frozen=True)
class IndexRelease:
    """The wheels of one version.

    Attributes:
        name: normalized name.
        version: as uv spells it.
        documents: variant metadata, see `pep_variants.lock.table.write_table`.
        wheels: in the order of the index.
    """

    name: str
    version: str
    documents: Sequence[Mapping[str, Any]]
    wheels: Sequence[IndexWheel]

    @classmethod
    def read(cls, name: str, version: str, tree: Mapping[str, Any]) -> IndexRelease:
        """Return the release in the report *tree*."""
        wheels = tuple(
            IndexWheel(
                filename=item["filename"],
                plain=item["plain"],
                label=item["label"],
                url=without_userinfo(item["url"]),
                hashes={kind: item["hashes"][kind] for kind in _STRONG if kind in item["hashes"]},
                size=item["size"],
                upload_time=item["upload-time"],
                requires=item["requires"],
                served=item["served"],
                marked=item["marked"],
                published=item.get("published"),
            )
            for item in tree["wheels"]
        )
        return cls(name, version, tuple(tree["documents"]), wheels)

    @property
    def has_variants(self) -> bool:
        """Whether a wheel has a label."""
        return any(wheel.label is not None for wheel in self.wheels)

    def with_dependencies_of(
        self, locked: Collection[tuple[str | None, str]]
    ) -> tuple[list[IndexWheel], list[str]]:
        """Return the wheels that depend on what locked ones do, and the labels of the others.

        A wheel is compared with the locked wheel for the same tags, which is what a machine that
        takes it would have taken. Dependencies that could not be read count as other ones.

        Args:
            locked: label, or `HERE` for every one, and plain filename.
        """
        by_plain: dict[str, set[str | None]] = {}
        for wheel in self.wheels:
            if (wheel.label, wheel.plain) in locked or (HERE, wheel.plain) in locked:
                by_plain.setdefault(wheel.plain, set()).add(wheel.requires)
        every = set().union(*by_plain.values())
        kept = [
            wheel
            for wheel in self.wheels
            if (wheel.label, wheel.plain) in locked
            or (
                not wheel.origin
                and wheel.requires is not None
                and wheel.requires in by_plain.get(wheel.plain, every)
            )
        ]
        known = {wheel.label for wheel in kept}
        others = dict.fromkeys(wheel.label or "" for wheel in self.wheels)
        return kept, [label for label in others if label and label not in known]


def python_tags(plain: str) -> str:
    """Return python and ABI tag of a wheel, ``cp313-cp313``."""
    return "-".join(plain.removesuffix(".whl").split("-")[-3:-1])
