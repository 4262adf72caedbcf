"""The generations of the metadata format and where they differ.

One table instead of one reader per generation: what differs between them are a few keys.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_BASE = "https://variants-schema.wheelnext.dev/"
_VERSION = re.compile(
    r"/(?:v?([0-9]{1,9})\.([0-9]{1,9})(?:\.([0-9]{1,9}))?|v([0-9]{1,9}))(?:\.json)?/?#?"
)


@dataclass(frozen=True)
class Generation:
    """Which keys one generation of the format has.

    Attributes:
        version: format version, ``(major, minor, patch)``.
        schema: the URL we write for it.
        providers: there is a ``providers`` key.
        priorities: ``default-priorities`` has ``feature`` and ``property`` too.
        plugin_use: providers have ``plugin-use`` (``all``, ``build``, ``none``).
        install_time: providers have ``install-time``, and ``static-properties`` is top-level.
        exclusive: a provider has exactly one of ``requires``, ``builtin``,
            ``static-properties`` and ``build-requires``.
    """

    version: tuple[int, int, int]
    schema: str
    providers: bool = True
    priorities: bool = True
    plugin_use: bool = False
    install_time: bool = False
    exclusive: bool = False


V0_0_1 = Generation((0, 0, 1), _BASE)
V0_0_2 = Generation((0, 0, 2), f"{_BASE}v0.0.2.json", plugin_use=True)
V0_0_3 = Generation((0, 0, 3), f"{_BASE}v0.0.3.json", install_time=True)
V0_1_0 = Generation((0, 1, 0), f"{_BASE}peps/825/v0.1.0.json", providers=False)
V0_1_1 = Generation((0, 1, 1), f"{_BASE}peps/825/v0.1.1.json", providers=False, priorities=False)
V0_2_0 = Generation((0, 2, 0), f"{_BASE}v0.2.0.json", priorities=False, exclusive=True)

BY_SHAPE = Generation((0, 0, 0), "", plugin_use=True, install_time=True)
"""For data without a schema or of an unknown minor version: every key counts that is there."""

GENERATIONS = {
    generation.version: generation
    for generation in (V0_0_1, V0_0_2, V0_0_3, V0_1_0, V0_1_1, V0_2_0)
}

SUPPORTED_MAJOR = 0


def schema_version(schema: str) -> tuple[int, int, int] | None:
    """Return the format version that a ``$schema`` URL names, None if it names none."""
    if schema.rstrip("/") == _BASE.rstrip("/"):
        return V0_0_1.version
    match = _VERSION.fullmatch(schema, max(0, schema.rstrip("/").rfind("/")))
    if match is None:
        return None
    major, minor, patch, only = match.groups(default="0")
    return int(major) or int(only), int(minor), int(patch)


def spells_null_in_zeros(schema: str | None) -> bool:
    """Return whether data with this ``$schema`` may call the null variant ``00000000``.

    Format 0.0.1 does; data without a schema is taken to be as old.
    """
    return schema is None or schema_version(schema) == V0_0_1.version
