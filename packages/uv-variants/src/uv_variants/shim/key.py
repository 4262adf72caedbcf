"""Platform keys: the part of a URL that says for whom the shim chooses.

A key is one of two things:

* the name of a platform file that the shim knows (``h100-zen4``), or
* ``1~`` and a description: canonical JSON, packed (see `packing`), in base64url without padding.

The JSON has at most these members; what would be empty is left out:

* ``f``: name of a platform file that the shim knows, in place of ``p``.
* ``p``: supported properties: namespace to features, the most preferred first. A feature is
  ``[name, value, …]``, its values most preferred first, or only its name for the one value
  ``on``.
* ``d``: the same of what built-in providers found out: it counts where they stand in for the
  provider that metadata wants.
* ``t``: what the described machine is, see `Machine.target`.
* every preference that can change a choice, with its name and shape in ``variants.toml``.

Equal descriptions give equal keys, on every machine, and no other key decodes to them. Keys come
from strangers: what comes out is bounded, and read by the engine's own readers.
"""

from __future__ import annotations

import base64
import binascii
import json
import platform as host
import re
import sys
from dataclasses import dataclass, field, replace
from typing import Any

import tomli_w

from pep_variants.errors import VariantError, shortened
from pep_variants.platform import Platform, read_platform
from pep_variants.preferences import Preferences, read_configuration
from pep_variants.property import Features

from ..errors import InvalidKey
from .packing import pack, unpack
from .vocabulary import VOCABULARY

MAX_KEY = 4096
"""Characters of the longest key: half of what servers and proxies take for a whole URL."""

MAX_TEXT = 16 * 1024
"""Bytes of the longest description."""

PLATFORM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What a platform file may be called in a URL."""

TARGET = re.compile(r"(linux|win|macosx|android|ios|freebsd)-[a-z0-9_]{1,32}")

_PREFIX = "1~"
_ON = ("on",)
_PREFERENCES = (
    "no-variants",
    "variant",
    "prefer",
    "exclude",
    "enable",
    "namespace_priorities",
    "feature_priorities",
    "property_priorities",
)
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64", "x86": "i686", "i386": "i686"}
_SYSTEMS = {"win32": "win", "cygwin": "win", "darwin": "macosx"}


@dataclass(frozen=True)
class Machine:
    """For whom is chosen.

    Attributes:
        platform: what it supports, whatever provider metadata wants for it: said by a platform
            file or by the very plugin.
        detected: what the built-in providers found out, see `Detector`.
        name: of a platform file that the shim knows, in place of `platform`; empty for none.
        target: operating system and processor, ``linux-x86_64``, ``win-x86_64``,
            ``macosx-aarch64``: wheels for other platforms are not for this machine, whatever it
            supports, so variants of them are not chosen. Empty if nobody said.
        preferences: what was asked for. Of them count those that can change the choice for one
            project: `use_variants`, `forced`, `prefer`, `exclude`, `enable` and the priorities.
    """

    platform: Platform = field(default_factory=Platform)
    name: str = ""
    target: str = ""
    preferences: Preferences = field(default_factory=Preferences)
    detected: Platform = field(default_factory=Platform)


def host_target() -> str:
    """Return the target of the running machine, empty if wheel tags have no word for it."""
    machine = host.machine().lower()
    target = f"{_SYSTEMS.get(sys.platform, sys.platform)}-{_MACHINES.get(machine, machine)}"
    return target if TARGET.fullmatch(target) else ""


def encode(machine: Machine) -> str:
    """Return the key of *machine*.

    Raises:
        InvalidKey: a name or target that is none, or more than fits into a URL.
    """
    if machine.name and not PLATFORM_NAME.fullmatch(machine.name):
        raise InvalidKey(
            f"{shortened(machine.name)} is no name for a platform: "
            f"it must match {PLATFORM_NAME.pattern}"
        )
    if machine.target and not TARGET.fullmatch(machine.target):
        raise InvalidKey(
            f"{shortened(machine.target)} is no target: it must match {TARGET.pattern}"
        )
    tree = _tree(machine)
    if machine.name and len(tree) == 1:
        return machine.name
    text = json.dumps(tree, separators=(",", ":"), sort_keys=True).encode()
    if len(text) > MAX_TEXT:
        raise InvalidKey(_too_long(len(text)))
    packed = base64.urlsafe_b64encode(pack(text, VOCABULARY)).rstrip(b"=").decode()
    if len(packed) + len(_PREFIX) > MAX_KEY:
        raise InvalidKey(_too_long(len(packed)))
    return _PREFIX + packed


def decode(key: str) -> Machine:
    """Return whom *key* describes.

    A name stays a name: the shim knows what is behind it.

    Raises:
        InvalidKey: it is neither a name nor what `encode` returns.
    """
    if not key.startswith(_PREFIX):
        if not PLATFORM_NAME.fullmatch(key):
            raise InvalidKey(f"{shortened(key)} is no platform key")
        return Machine(name=key)
    if len(key) > MAX_KEY:
        raise InvalidKey(f"a platform key has at most {MAX_KEY} characters, this one {len(key)}")
    try:
        packed = base64.b64decode(_padded(key[len(_PREFIX) :]), altchars=b"-_", validate=True)
        tree = json.loads(unpack(packed, VOCABULARY, MAX_TEXT))
        machine = _machine(tree)
        canonical = encode(machine)
    except (ValueError, TypeError, RecursionError, binascii.Error, VariantError) as error:
        raise InvalidKey(
            f"{shortened(key)} is no platform key: {shortened(str(error), 200)}"
        ) from None
    if canonical != key:
        raise InvalidKey(f"{shortened(key)} is no platform key: it is written in an unusual way")
    return machine


def _too_long(size: int) -> str:
    return (
        f"the platform needs {size} characters, which is too long for a URL: "
        "write it to a platform file and give the shim that file (--variant-platform)"
    )


def _padded(text: str) -> bytes:
    return text.encode("ascii") + b"=" * (-len(text) % 4)


# --- to a tree


def _tree(machine: Machine) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    if machine.name:
        tree["f"] = machine.name
    else:
        tree["p"] = _namespaces(machine.platform)
        tree["d"] = _namespaces(machine.detected)
    if machine.target:
        tree["t"] = machine.target
    wishes = machine.preferences
    given = {
        **tree,
        "no-variants": not wishes.use_variants,
        "variant": [f"{name}={label}" for name, label in sorted(wishes.forced.items())],
        "prefer": list(map(str, wishes.prefer)),
        "exclude": sorted(map(str, wishes.exclude)),
        "enable": sorted(wishes.enable),
        "namespace_priorities": list(wishes.namespace_priorities),
        "feature_priorities": {
            name: list(features) for name, features in wishes.feature_priorities.items()
        },
        "property_priorities": {
            name: {feature: list(values) for feature, values in features.items()}
            for name, features in wishes.property_priorities.items()
        },
    }
    return {name: value for name, value in given.items() if value}


def _namespaces(platform: Platform) -> dict[str, list[Any]]:
    return {
        namespace: _features_list(support.features)
        for namespace, support in platform.namespaces.items()
    }


def _features_list(features: Features) -> list[Any]:
    return [
        feature if values == _ON else [feature, *values]
        for feature, values in features.items()
        if values
    ]


# --- and back


def _machine(tree: object) -> Machine:
    if not isinstance(tree, dict):
        raise ValueError("it holds no object")
    unknown = tree.keys() - {"d", "f", "p", "t", *_PREFERENCES}
    if unknown:
        raise ValueError(f"it holds {shortened(min(unknown))}, which is not known")
    name, target = tree.get("f", ""), tree.get("t", "")
    if not isinstance(name, str) or not isinstance(target, str):
        raise ValueError("name and target are texts")
    wishes = {key: value for key, value in tree.items() if key in _PREFERENCES}
    return Machine(
        _platform(tree.get("p", {})),
        name,
        target,
        read_configuration(tomli_w.dumps(wishes), "it") if wishes else Preferences(),
        _platform(tree.get("d", {})),
    )


def _platform(namespaces: object) -> Platform:
    if not isinstance(namespaces, dict):
        raise ValueError("namespaces are an object")
    tables = []
    for namespace, features in namespaces.items():
        if not isinstance(features, list):
            raise ValueError(f"{shortened(namespace)} has no list of features")
        tables.append({"namespace": namespace, "properties": dict(map(_feature, features))})
    platform = read_platform(tomli_w.dumps({"provider": tables}), "it")
    return replace(platform, source="")


def _feature(entry: object) -> tuple[str, list[str]]:
    if isinstance(entry, str):
        return entry, list(_ON)
    if not isinstance(entry, list) or not all(isinstance(part, str) for part in entry):
        raise ValueError(f"{shortened(entry)} is no feature")
    name, *values = entry
    return name, values
