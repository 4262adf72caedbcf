"""The generations of the metadata format: where they differ, and which one a ``$schema`` names.

One table instead of one reader per generation: what differs between them are a few keys.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..errors import VariantError, shortened

_BASE = "https://variants-schema.wheelnext.dev/"

Version = tuple[int, int, int]
"""Format version: major, minor, patch."""


class Generation(NamedTuple):
    """Which keys and spellings one generation of the format has.

    Attributes:
        version: format version.
        schema: the URL we write for it, empty where the URL is not published yet.
        providers: there is a ``providers`` key.
        priorities: ``default-priorities`` has ``feature`` and ``property`` too.
        enable_if: providers have ``enable-if``.
        plugin_use: providers have ``plugin-use`` (``all``, ``build``, ``none``).
        install_time: providers have ``install-time``, and ``static-properties`` is top-level.
        own_static: providers have their own ``static-properties`` and ``feature-order``.
        exclusive: a provider has exactly one of ``requires``, ``builtin``,
            ``static-properties`` and ``build-requires``.
        zeros: a label ``00000000`` with zero properties is the null variant.
        texts: what later generations nest, the first files (May 2025) write as text: priorities
            as lists of ``ns :: feature`` and ``ns :: feature :: value``, the value of a feature
            as a string in place of a list.
    """

    version: Version
    schema: str
    providers: bool = True
    priorities: bool = False
    enable_if: bool = False
    plugin_use: bool = False
    install_time: bool = False
    own_static: bool = False
    exclusive: bool = False
    zeros: bool = False
    texts: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of a document."""
        return (
            *("$schema", "default-priorities"),
            *("providers",) * self.providers,
            "variants",
            *("static-properties",) * self.install_time,
        )

    @property
    def priority_keys(self) -> tuple[str, ...]:
        """Keys of ``default-priorities``."""
        return ("namespace", *("feature", "property") * self.priorities)

    @property
    def provider_keys(self) -> tuple[str, ...]:
        """Keys of each of ``providers``, but for those of pyproject.toml alone."""
        return (
            *("requires", "plugin-api", "optional"),
            *("builtin", "static-properties", "feature-order") * self.own_static,
            *("enable-if",) * self.enable_if,
            *("plugin-use",) * self.plugin_use,
            *("install-time",) * self.install_time,
        )


# The URL without a version stood in published files from May to September 2025, when "null"
# replaced "00000000" as a label and "plugin-use" was added. "00000000" is in files of 0.0.2 and
# 0.0.3 as well: their index was regenerated from wheels that had older names.
V0_0_1 = Generation(
    (0, 0, 1), _BASE, priorities=True, enable_if=True, plugin_use=True, zeros=True, texts=True
)
V0_0_2 = Generation(
    (0, 0, 2),
    f"{_BASE}v0.0.2.json",
    priorities=True,
    enable_if=True,
    plugin_use=True,
    zeros=True,
)
V0_0_3 = Generation(
    (0, 0, 3),
    f"{_BASE}v0.0.3.json",
    priorities=True,
    enable_if=True,
    install_time=True,
    zeros=True,
)
V0_1_0 = Generation((0, 1, 0), f"{_BASE}peps/825/v0.1.0.json", providers=False, priorities=True)
V0_1_1 = Generation((0, 1, 1), f"{_BASE}peps/825/v0.1.1.json", providers=False)
V0_2_0 = Generation((0, 2, 0), f"{_BASE}v0.2.0.json", own_static=True, exclusive=True)

# PEP 825, "Variant metadata": "Once the proposal is complete, the latest draft will be promoted to
# version 1.0.0", which has no providers; the providers PEP adds them in a minor version. Both are
# read as the drafts are. Nothing is written in it before its schema is published.
V1_0_0 = Generation((1, 0, 0), "", own_static=True, exclusive=True)

GENERATIONS = {
    generation.version: generation
    for generation in (V0_0_1, V0_0_2, V0_0_3, V0_1_0, V0_1_1, V0_2_0, V1_0_0)
}

_BY_SCHEMA: dict[str | None, Generation] = {
    generation.schema: generation for generation in GENERATIONS.values() if generation.schema
}

BY_SHAPE = Generation(
    (0, 0, 0),
    "",
    priorities=True,
    enable_if=True,
    plugin_use=True,
    install_time=True,
    own_static=True,
    zeros=True,
    texts=True,
)
"""For data whose ``$schema`` is missing or names no version: every key counts that is there."""

_MAJORS = tuple(sorted({major for major, _, _ in GENERATIONS}))
_MAXIMAL_DIGITS = 9

# How a path segment names a version, the first that occurs counts: dotted anywhere
# ("variant-metadata-v1.0.0.schema.json", "v1.0.0rc1.json"), or a number after a separate "v".
# \d on purpose: digits that are not ASCII look like a version too, and are refused.
_DOTTED = re.compile(r"(?<![\d.])(\d+)\.(\d+)(?:\.(\d+))?")
_MAJOR = re.compile(r"(?<![^\W_])v(\d+)(?![^\W_])")
# Only at the end of the path: a separate number ("variants-2.json").
_BARE = re.compile(r"(?<![^\W_])(\d+)(?![^\W_])")


class UnknownSchema(VariantError):
    """A ``$schema`` of a format version that is not supported, or that cannot be made out."""


def generation_of(schema: str | None) -> Generation:
    """Return by which generation data with this ``$schema`` is read.

    Of a known major version, a version that is not in the table is read as the newest known one
    before it (PEP 825: consumers should accept newer minor versions). `BY_SHAPE` where no version
    is named.

    Raises:
        UnknownSchema: its major version is not supported (PEP 825: it must be rejected), or it
            names a version that cannot be made out.
    """
    if schema in _BY_SCHEMA:
        return _BY_SCHEMA[schema]
    version = schema_version(schema) if schema is not None else None
    if version is None:
        return BY_SHAPE
    if version[0] not in _MAJORS:
        supported = " and ".join(f"{major}.x" for major in _MAJORS)
        raise UnknownSchema(
            f"format version {'.'.join(map(str, version))} ({shortened(schema, 120)}) is not "
            f"supported, only {supported} are: a newer release may read it"
        )
    releases = [own for own in GENERATIONS if own[0] == version[0]]
    return GENERATIONS[max((own for own in releases if own <= version), default=min(releases))]


def schema_version(schema: str) -> Version | None:
    """Return the format version that a ``$schema`` URL names, None if it names none.

    Parts that are left out are 0. A version is looked for in the path, from its end.

    Raises:
        UnknownSchema: there is a version, but not of ASCII digits, or one with a number of more
            than nine digits.
    """
    if schema.rstrip("/") == _BASE.rstrip("/"):
        return V0_0_1.version
    _, separator, after = schema.partition("://")
    path = after.partition("/")[2] if separator else schema
    segments = re.split(r"[?#]", path, maxsplit=1)[0].rstrip("/").split("/")
    spelled = _BARE.search(segments[-1])
    for segment in reversed(segments):
        if match := _DOTTED.search(segment) or _MAJOR.search(segment):
            spelled = match
            break
    if spelled is None:
        return None
    numbers = [number for number in spelled.groups() if number is not None]
    if not all(len(text) <= _MAXIMAL_DIGITS and text.isascii() for text in numbers):
        raise UnknownSchema(f"the format version in {shortened(schema, 120)} cannot be read")
    major, minor, patch = (*map(int, numbers), 0, 0)[:3]
    return major, minor, patch


def spells_null_in_zeros(schema: str | None) -> bool:
    """Return whether data with this ``$schema`` may call the null variant ``00000000``."""
    try:
        return generation_of(schema).zeros
    except UnknownSchema:
        return False
