"""What a machine supports, in preference order; from providers or from a platform file.

A platform file is TOML of the shape that uv's variant branch reads, so one file serves both:

    [metadata]
    created-by = "pep-variants 0.1.0"
    version = "0.1"

    [[provider]]
    resolved = ["nvidia-variant-provider==0.0.2"]
    plugin-api = "nvidia_variant_provider.plugin:NvidiaVariantPlugin"
    namespace = "nvidia"

    [provider.properties]            # order of keys and of values is the preference order
    cuda_version_lower_bound = ["12.8", "12.7"]
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from . import toml
from .errors import PlatformFileError, redacted, shortened
from .property import NAME, VALUE, Features
from .providers.base import Fact

FILE_VERSION = "0.1"


@dataclass(frozen=True)
class Support:
    """What one namespace supports on a platform.

    Attributes:
        features: supported values by feature, both in preference order; empty when nothing is.
        resolved: the provider packages that answered or that we stood in for, ``name==version``.
        plugin_api: endpoint of that provider, None where there is none.
        notice: why nothing is supported and what the user can do about it; empty otherwise.
        untrusted: requirement of the plugin that was not run because nobody allowed it; empty
            otherwise.
        facts: what a built-in provider derived its answer from; a file has none.
        output: what a plugin printed to its standard error, for those who want to see it.
    """

    features: Features = field(default_factory=dict)
    resolved: tuple[str, ...] = ()
    plugin_api: str | None = None
    notice: str = ""
    untrusted: str = ""
    facts: tuple[Fact, ...] = field(default=(), compare=False)
    output: str = field(default="", compare=False)


UNSUPPORTED = Support()


@dataclass(frozen=True)
class Platform:
    """Supported values by namespace.

    Attributes:
        namespaces: support by namespace; a namespace that is missing supports nothing.
        source: the platform file, empty for a detected platform.
    """

    namespaces: Mapping[str, Support] = field(default_factory=dict)
    source: str = field(default="", compare=False)

    def support(self, namespace: str) -> Support:
        """Return the support of *namespace*; nothing if the platform does not know it."""
        return self.namespaces.get(namespace, UNSUPPORTED)


def load_platform(path: str | os.PathLike[str]) -> Platform:
    """Read the platform file at *path*.

    Raises:
        PlatformFileError: it cannot be opened, or as in `read_platform`.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise PlatformFileError(f"{path}: cannot be read: {error.strerror}") from None
    return read_platform(data, str(path))


def read_platform(data: bytes | str, source: str) -> Platform:
    """Read a platform file.

    Raises:
        PlatformFileError: not TOML, wrong types, bad names, or a namespace listed twice.
    """

    def fail(path: str, problem: str) -> PlatformFileError:
        return PlatformFileError(f"{redacted(source)}: {path}{': ' if path else ''}{problem}")

    try:
        tree = toml.loads(data if isinstance(data, str) else data.decode())
    except (ValueError, RecursionError) as error:
        raise fail("", f"not valid TOML: {error}") from None
    metadata = tree.get("metadata", {})
    if not isinstance(metadata, dict):
        raise fail("metadata", f"expected a table, found {shortened(metadata)}")
    found = metadata.get("version", FILE_VERSION)
    if not isinstance(found, str) or found.split(".")[0] != FILE_VERSION.split(".")[0]:
        raise fail("metadata.version", f"{shortened(found)} is not supported, only {FILE_VERSION}")
    providers = tree.get("provider", [])
    if not isinstance(providers, list):
        raise fail("provider", "write one [[provider]] table per namespace")
    namespaces: dict[str, Support] = {}
    for number, table in enumerate(providers, 1):
        path = f"provider {number}"
        if not isinstance(table, dict):
            raise fail(path, "expected a table")
        namespace = table.get("namespace")
        if not isinstance(namespace, str) or not NAME.fullmatch(namespace):
            raise fail(f"{path}.namespace", f"{shortened(namespace)} is no namespace")
        if namespace in namespaces:
            raise fail(path, f"namespace {namespace!r} is listed twice")
        properties = table.get("properties", {})
        if not isinstance(properties, dict):
            raise fail(f"{path}.properties", "expected a table of features")
        features: dict[str, tuple[str, ...]] = {}
        for feature, values in properties.items():
            place = f"{path} ({namespace}).properties.{feature}"
            if not NAME.fullmatch(feature):
                raise fail(place, f"{shortened(feature)} is no feature name")
            if not isinstance(values, list):
                raise fail(place, f"expected a list of values, found {shortened(values)}")
            for value in values:
                if not isinstance(value, str) or not VALUE.fullmatch(value):
                    raise fail(place, f"{shortened(value)} is no feature value")
            if len(set(values)) != len(values):
                raise fail(place, f"a value is listed twice in {shortened(values)}")
            if values:  # an empty list says that the feature is unsupported
                features[feature] = tuple(values)
        resolved = table.get("resolved", [])
        plugin_api = table.get("plugin-api")
        if not isinstance(resolved, list) or not all(isinstance(item, str) for item in resolved):
            raise fail(f"{path}.resolved", "expected a list of requirements")
        if plugin_api is not None and not isinstance(plugin_api, str):
            raise fail(f"{path}.plugin-api", f"expected a string, found {shortened(plugin_api)}")
        namespaces[namespace] = Support(features, tuple(resolved), plugin_api)
    return Platform(namespaces, redacted(source))


def write_platform(platform: Platform, created_by: str) -> str:
    """Return *platform* as the text of a platform file.

    Notices are kept as comments, so that the file explains itself. `read_platform` of the result
    gives the same support.
    """
    lines = [
        "[metadata]",
        f"created-by = {_toml(created_by)}",
        f"version = {_toml(FILE_VERSION)}",
    ]
    for namespace, support in platform.namespaces.items():
        lines += ["", "[[provider]]", f"resolved = {_toml(list(support.resolved))}"]
        if support.plugin_api is not None:
            lines.append(f"plugin-api = {_toml(support.plugin_api)}")
        lines.append(f"namespace = {_toml(namespace)}")
        lines += ["", *(f"# {_printable(line)}" for line in support.notice.splitlines())]
        lines.append("[provider.properties]")
        lines += [
            f"{feature} = {_toml(list(values))}"
            for feature, values in support.features.items()
            if values
        ]
    return "\n".join(lines) + "\n"


def _toml(value: str | list[str]) -> str:
    import json

    # JSON is TOML for strings and lists of them, but for one character and for pairs of escapes.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _printable(line: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in line)
