"""What a lock file has of a version: labels that stay, whether or not they fit this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import unquote, urlsplit

from pep_variants import VariantContext, split_label
from pep_variants.internal import NON_VARIANT
from variants_index import PageFile
from variants_index.internal import covers

from ..upstream.releases import Release
from .in_place_names import HERE, wheel_at
from .offers import Offer, platform_of, tags_of


@dataclass(frozen=True)
class LockedVersion:
    """What a lock file has of one version.

    Attributes:
        items: labels, and URLs of wheels in the lock file.
    """

    items: tuple[str, ...]

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Labels for every tag set that has them."""
        return tuple(item for item in self.items if not item.endswith(".whl"))

    @cached_property
    def names(self) -> Mapping[str, str | None]:
        """Labels by plain filename, None for a wheel without one."""
        found: dict[str, str | None] = {}
        for item in self.items:
            if item.endswith(".whl"):
                plain, label = named_wheel(item)
                if label != HERE:
                    found[plain] = label
        return found

    @cached_property
    def platforms(self) -> Mapping[str, str | None]:
        """Labels by platform tag, for tag sets that came later, of another Python for example."""
        found: dict[str, str | None] = {}
        for plain, label in self.names.items():
            found.setdefault(platform_of(plain), label)
        return found

    def pick(self, plain: str, wheels: Mapping[str | None, PageFile]) -> PageFile | None:
        """Return the locked wheel with the plain filename *plain*, None if there is none.

        Args:
            plain: filename without label.
            wheels: those with this plain filename, by label.
        """
        if plain in self.names:
            return wheels.get(self.names[plain])
        for label in self.labels:
            if label in wheels:
                return wheels[label]
        platform = platform_of(plain)
        if platform in self.platforms:
            return wheels.get(self.platforms[platform])
        return None


def locked_offers(
    release: Release, locked: LockedVersion, context: Callable[[str], VariantContext | None]
) -> dict[str, Offer]:
    """Return the wheels of *release* that a lock file has, by plain filename.

    Args:
        release: the version.
        locked: what the lock file has of it.
        context: for variant markers, by label.
    """
    wheels: dict[str, dict[str | None, PageFile]] = {}
    for file in release.wheels:
        plain, label = split_label(file.filename)
        wheels.setdefault(plain, {}).setdefault(label, file)
    found: dict[str, Offer] = {}
    for plain, by_label in wheels.items():
        kept = locked.pick(plain, by_label)
        if kept is not None:
            label = split_label(kept.filename)[1]
            found[plain] = Offer(
                kept, plain, label, NON_VARIANT if label is None else context(label)
            )
    return found


def with_locked(usual: Mapping[str, Offer], locked: Mapping[str, Offer]) -> dict[str, Offer]:
    """Return *usual* offers with *locked* ones in their place, by plain filename.

    What an installer would take in place of a locked wheel is left out: other wheels whose tags are
    more special.
    """
    tags = {plain: tags_of(plain) for plain in (*usual, *locked)}
    kept = {
        plain: offer
        for plain, offer in usual.items()
        if not any(
            offer.label != theirs.label and covers(tags[other], tags[plain])
            for other, theirs in locked.items()
        )
    }
    return {**kept, **locked}


def named_wheel(item: str) -> tuple[str, str | None]:
    """Return plain filename and label of a wheel at a URL."""
    label, plain = wheel_at(item) or (None, unquote(urlsplit(item).path.rpartition("/")[2]))
    return plain, label
