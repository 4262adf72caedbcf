"""Platform keys: the part of a URL that describes the client's machine.

A key is one of these:

* the name of a platform file of the proxy (``ours``), or of a known machine (``h100-zen4``),
* facts (``cuda=12.8,sm=9.0,cpu=zen4``), as `pep_variants._detect.machines` reads them, or
* ``2~`` and a description: canonical JSON, compressed (zlib), in base64url without padding.

The JSON has these members, empty ones are left out:

* ``f``: name of a platform file of the proxy or of a known machine, or facts, in place of ``p``.
* ``p``: supported properties, as the text of a platform file.
* ``d``: the same for properties that built-in providers detected: they count where these implement
  the provider that the metadata names.
* ``a``: supported properties that plugins answered, by `provider_id`: they count for metadata
  that wants this very provider.
* ``t``: operating system and processor, see `Machine.target`.
* ``y``: version of Python, see `Machine.python`.
* every preference that can change a choice, with its name and type in ``variants.toml``.

Keys are untrusted input: their decoded size is limited, the engine's strict readers read them, and
a description that is not canonical is refused.
"""

from __future__ import annotations

import base64
import json
import platform as host
import re
import sys
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import tomli_w

from pep_variants import machines
from pep_variants import preferences as user_preferences
from pep_variants.errors import VariantError, shortened
from pep_variants.machines import Detector, Platform, Support
from pep_variants.preferences import Preferences

from .errors import InvalidKey

MAX_KEY = 4096
"""Maximum length of a key: half of what servers and proxies accept as a URL."""

MAX_TEXT = 16 * 1024
"""Maximum size of a description in bytes."""

PLATFORM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""Valid names of platform files in URLs."""

_FACTS = re.compile(r"(?=[^=]*=)[A-Za-z0-9][A-Za-z0-9._,=+-]{0,255}")

TARGET = re.compile(r"(linux|win|macosx|android|ios|freebsd)-[a-z0-9_]{1,32}")

PYTHON = re.compile(r"3\.[0-9]{1,3}(\.[0-9]{1,3})?")

_PROVIDER_ID = re.compile(rf"[0-9a-f]{{{machines.PROVIDER_ID_LENGTH}}}")
_PREFIX = "2~"
_PREFERENCES = (
    "no-variants",
    "variant",
    "prefer",
    "exclude",
    "before-version",
    "enable",
    "namespace_priorities",
    "feature_priorities",
    "property_priorities",
)
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64", "x86": "i686", "i386": "i686"}
_SYSTEMS = {"win32": "win", "cygwin": "win", "darwin": "macosx"}


@dataclass(frozen=True)
class Machine:
    """The machine of a client.

    Attributes:
        platform: supported properties of a platform file, for any provider that metadata names.
        detected: properties that the built-in providers detected, see `Detector`.
        name: of a platform file of the proxy or of a known machine, or facts, in place of
            `platform`; empty for none.
        target: operating system and processor, ``linux-x86_64``, ``win-x86_64``,
            ``macosx-aarch64``: variants of wheels for other platforms are not selected. Empty if
            unknown.
        preferences: of the user. Those count that can change the choice for one project:
            `use_variants`, `forced`, `prefer`, `exclude`, `before_version`, `enable` and the
            priorities.
        answers: properties that plugins reported, by `provider_id`, see `Detector`.
        python: version of the Python that is installed for, ``3.13.1``: what needs another one is
            not selected. Empty if it is unknown, or for several.
    """

    platform: Platform = field(default_factory=Platform)
    name: str = ""
    target: str = ""
    preferences: Preferences = field(default_factory=Preferences)
    detected: Platform = field(default_factory=Platform)
    answers: Mapping[str, Support] = field(default_factory=dict)
    python: str = ""


def host_target() -> str:
    """Return the target of this machine, empty if there is no platform tag for it."""
    machine = host.machine().lower()
    target = f"{_SYSTEMS.get(sys.platform, sys.platform)}-{_MACHINES.get(machine, machine)}"
    return target if TARGET.fullmatch(target) else ""


def encode(machine: Machine) -> str:
    """Return the key of *machine*.

    Raises:
        InvalidKey: the name or target is not valid, or the key is too long for a URL.

    >>> from pep_variants.machines import load_machine
    >>> from variants_proxy.urls import Machine, decode, encode
    >>> key = encode(Machine(load_machine("cuda=12.8,sm=9.0"), target="linux-x86_64"))
    >>> decode(key).target
    'linux-x86_64'
    """
    text = _text(machine)
    if machine.name and text == json.dumps({"f": machine.name}, separators=(",", ":")):
        return machine.name
    key = _PREFIX + base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).rstrip(b"=").decode()
    if len(text) > MAX_TEXT or len(key) > MAX_KEY:
        raise InvalidKey(
            f"the platform needs {len(key)} characters, which is too long for a URL: "
            "write it to a platform file and use that (--variant-platform)"
        )
    return key


def decode(key: str) -> Machine:
    """Return the machine that *key* describes, or only its name or facts.

    Raises:
        InvalidKey: it is neither a name nor a result of `encode`.

    >>> from variants_proxy.urls import decode
    >>> decode("cuda=12.8,sm=9.0").name
    'cuda=12.8,sm=9.0'
    """
    if not key.startswith(_PREFIX):
        if not _is_name(key):
            raise InvalidKey(f"{shortened(key)} is not a valid platform key")
        return Machine(name=key)
    if len(key) > MAX_KEY:
        raise InvalidKey(f"a platform key has at most {MAX_KEY} characters, this one {len(key)}")
    try:
        text = _unpacked(key.removeprefix(_PREFIX))
        machine = _machine(json.loads(text))
        if _text(machine) != text:
            raise ValueError("not in canonical form")
    except (ValueError, TypeError, RecursionError, zlib.error, InvalidKey, VariantError) as error:
        raise InvalidKey(
            f"{shortened(key)} is not a valid platform key: {shortened(str(error), 200)}"
        ) from None
    return machine


def _unpacked(data: str) -> str:
    packed = base64.b64decode(f"{data}{'=' * (-len(data) % 4)}", altchars=b"-_", validate=True)
    stream = zlib.decompressobj()
    text = stream.decompress(packed, MAX_TEXT + 1)
    if len(text) > MAX_TEXT or not stream.eof or stream.unused_data:
        raise ValueError(f"truncated, or larger than {MAX_TEXT} bytes")
    return text.decode()


def _is_name(text: str) -> bool:
    return bool(PLATFORM_NAME.fullmatch(text) or _FACTS.fullmatch(text))


def _text(machine: Machine) -> str:
    """Return the description of *machine* as canonical JSON.

    Raises:
        InvalidKey: the name or target is not valid.
    """
    if machine.name and not _is_name(machine.name):
        raise InvalidKey(
            f"{shortened(machine.name)} is not a valid platform name: "
            f"it must match {PLATFORM_NAME.pattern}, or be facts such as cuda=12.8,sm=9.0"
        )
    if machine.target and not TARGET.fullmatch(machine.target):
        raise InvalidKey(
            f"{shortened(machine.target)} is not a valid target: it must match {TARGET.pattern}"
        )
    if machine.python and not PYTHON.fullmatch(machine.python):
        raise InvalidKey(f"{shortened(machine.python)} is not a version of Python 3")
    return json.dumps(_tree(machine), separators=(",", ":"), sort_keys=True)


def _tree(machine: Machine) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    if machine.name:
        tree["f"] = machine.name
    else:
        tree["p"] = _namespaces(machine.platform)
        tree["d"] = _namespaces(machine.detected)
    tree["a"] = {
        name: _namespaces(Platform({"a": support})) for name, support in machine.answers.items()
    }
    if machine.target:
        tree["t"] = machine.target
    tree["y"] = machine.python
    preferences = machine.preferences
    given = {
        **tree,
        "no-variants": not preferences.use_variants,
        "variant": [f"{name}={label}" for name, label in sorted(preferences.forced.items())],
        "prefer": list(map(str, preferences.prefer)),
        "exclude": sorted(map(str, preferences.exclude)),
        # The two words go before names, which they would take back.
        "before-version": sorted(
            preferences.before_version, key=lambda each: (each[0] != ":", each)
        ),
        "enable": sorted(preferences.enable),
        "namespace_priorities": list(preferences.namespace_priorities),
        "feature_priorities": {
            name: list(features) for name, features in preferences.feature_priorities.items()
        },
        "property_priorities": {
            name: {feature: list(values) for feature, values in features.items()}
            for name, features in preferences.property_priorities.items()
        },
    }
    return {name: value for name, value in given.items() if value}


def _namespaces(platform: Platform) -> str:
    """Return the properties of *platform*, and nothing else of it; empty for none."""
    found = {
        name: Support(support.features) for name, support in sorted(platform.namespaces.items())
    }
    return machines.write_platform(Platform(found), "") if found else ""


def _machine(tree: object) -> Machine:
    if not isinstance(tree, dict):
        raise ValueError("it is not a JSON object")
    unknown = tree.keys() - {"a", "d", "f", "p", "t", "y", *_PREFERENCES}
    if unknown:
        raise ValueError(f"unknown member {shortened(min(unknown))}")
    name, target, python = (tree.get(member, "") for member in "fty")
    if not all(isinstance(text, str) for text in (name, target, python)):
        raise ValueError("name, target and version of Python must be strings")
    preferences = {key: value for key, value in tree.items() if key in _PREFERENCES}
    return Machine(
        _platform(tree.get("p", "")),
        name,
        target,
        _preferences(preferences) if preferences else Preferences(),
        _platform(tree.get("d", "")),
        _answers(tree.get("a", {})),
        python,
    )


def _preferences(tree: Mapping[str, Any]) -> Preferences:
    # Imported here: who only writes a key does not need it.
    return user_preferences.read_configuration(tomli_w.dumps(tree), "it")


def _platform(text: object) -> Platform:
    if not isinstance(text, str):
        raise ValueError("properties must be the text of a platform file")
    return replace(machines.read_platform(text, "it"), source="") if text else Platform()


def _answers(tree: object) -> dict[str, Support]:
    if not isinstance(tree, dict) or not all(map(_PROVIDER_ID.fullmatch, tree)):
        raise ValueError("answers must be an object by provider id")
    return {name: _platform(text).support("a") for name, text in tree.items()}


def described_machine(
    preferences: Preferences,
    target: str | None = None,
    answers: Mapping[str, Support] | None = None,
) -> Machine:
    """Return the machine for *preferences*: its platform file, or what the providers detect here.

    Args:
        preferences: of the user.
        target: operating system and processor, see `Machine.target`; None for those of this
            machine. For another target nothing is detected.
        answers: properties that plugins answered, by `provider_id`.

    Raises:
        PlatformFileError: the platform file cannot be read, or there is no such machine.
    """
    if not preferences.use_variants:
        return Machine(preferences=preferences)
    stated, detected = Platform(), Platform()
    if preferences.platform_file is not None:
        stated = machines.load_machine(preferences.platform_file)
    elif target is None or target == host_target():
        detected = Detector(enabled=preferences.enable).host()
    return Machine(
        stated,
        target=host_target() if target is None else target,
        preferences=preferences,
        detected=detected,
        answers=answers or {},
    )
