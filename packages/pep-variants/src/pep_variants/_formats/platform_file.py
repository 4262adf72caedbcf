"""Platform files: what a machine supports, written down.

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

import json
import os

from .._files import read_regular
from .._model.platform import Platform, Support
from .._model.property import NAME, VALUE
from ..errors import PlatformFileError, printable, redacted, shortened
from ..limits import SETTINGS_BYTES
from .tree import PropertyTree

FILE_VERSION = "0.1"


def load_platform(path: str | os.PathLike[str]) -> Platform:
    """Read the platform file at *path*.

    Raises:
        PlatformFileError: it cannot be read, is not a regular file, is larger than
            `SETTINGS_BYTES`, or as in `read_platform`.
    """
    try:
        data = read_regular(path, SETTINGS_BYTES).data
    except OSError as error:
        place = printable(os.fspath(path))
        raise PlatformFileError(f"{place}: cannot be read: {error.strerror}") from None
    return read_platform(data, str(path))


def read_platform(data: bytes | str, source: str) -> Platform:
    """Read a platform file.

    Raises:
        PlatformFileError: not TOML, no platform file, wrong types, bad names, or a namespace listed
            twice.

    >>> from pep_variants.machines import load_machine, read_platform, write_platform
    >>> text = write_platform(load_machine("cuda=12.8,sm=9.0"), created_by="me")
    >>> sorted(read_platform(text, "machine.toml").namespaces)
    ['aarch64', 'amd', 'ascend', 'intel', 'nvidia', 'tpu', 'x86_64']
    """

    def fail(path: str, problem: str) -> PlatformFileError:
        # Names can be as long as the file.
        parts = (redacted(source), path[:200], problem[:500])
        return PlatformFileError(printable(": ".join(filter(None, parts))))

    reader = PropertyTree(fail, "table")
    tree = reader.load_toml(data)
    if "metadata" not in tree and "provider" not in tree:
        raise fail(
            "",
            "not a platform file: it has no [metadata] and no [[provider]] table "
            "(variants detect -o FILE writes one)",
        )
    given = reader.table(tree, "metadata").get("version", FILE_VERSION)
    if not isinstance(given, str) or given.split(".")[0] != FILE_VERSION.split(".")[0]:
        raise fail("metadata.version", f"{shortened(given)} is not supported, only {FILE_VERSION}")
    namespaces: dict[str, Support] = {}
    for number, table in enumerate(reader.tables(tree, "provider"), 1):
        path = f"provider {number}"
        namespace = reader.name(table.get("namespace"), f"{path}.namespace", NAME, "namespace")
        if namespace in namespaces:
            raise fail(path, f"namespace {namespace!r} is listed twice")
        features = reader.features(
            table.get("properties", {}), f"{path} ({namespace}).properties", VALUE
        )
        namespaces[namespace] = Support(
            # An empty list says that the feature is unsupported.
            {feature: values for feature, values in features.items() if values},
            reader.strings(table, "resolved", path),
            reader.string(table, "plugin-api", path),
        )
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
        lines += ["", *(f"# {printable(line)}" for line in support.notice.splitlines())]
        lines.append("[provider.properties]")
        lines += [
            f"{feature} = {_toml(list(values))}"
            for feature, values in support.features.items()
            if values
        ]
    return "\n".join(lines) + "\n"


def _toml(value: str | list[str]) -> str:
    # JSON is TOML for strings and lists of them, but for one character and for pairs of escapes.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
