"""Reading the answer of a plugin, which is untrusted input."""

from __future__ import annotations

import json
import re

from pep_variants import limits, machines
from pep_variants import metadata as variant_metadata
from pep_variants.errors import PluginFailed, shortened
from pep_variants.metadata import Features, PropertyTree

# What the kernel says to who breaks out of a sandbox, in Python's words and in those of tools.
_SANDBOXED = re.compile(r"PermissionError|Permission denied|Operation not permitted")


def read_answer(
    data: bytes, namespace: str, plugin: str, output: str = ""
) -> tuple[Features, bool]:
    """Return the supported features of an answer, in its order, and whether they are fixed.

    Args:
        data: the JSON text that `driver` wrote, or the plugin in its place.
        namespace: the one that the metadata gives the plugin. A ``namespace`` of the plugin's own,
            which plugins before format 0.2.0 have, is ignored like every attribute that the
            protocol does not have (providers draft). A namespace that has a built-in provider is
            the exception: metadata cannot claim it for a plugin that does not name it itself,
            except for packages known to be providers of that namespace.
        plugin: ``name==version (endpoint)``.
        output: the end of what the plugin printed, for messages.

    A feature without values is unsupported and left out.

    Raises:
        PluginFailed: the plugin failed, or the answer has wrong types or names, says something
            twice, or is too long.
    """

    def failed(problem: str) -> PluginFailed:
        return PluginFailed(plugin, problem, one_line(output, 200))

    def fail(path: str, problem: str) -> PluginFailed:
        place = f"{path}: " if path else ""
        return failed(f"gave an answer that cannot be used: {place}{problem}")

    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        raise failed(f"answered {shortened(data[:80])}, which is not JSON") from None
    reader = PropertyTree(fail)
    tree = reader.mapping(tree, "")
    if "error" in tree:
        raise failed(_failure(tree))
    own = tree.get("namespace")
    if own != namespace and not _may_claim(plugin.partition("==")[0], namespace):
        raise failed(
            f"does not say that it is for {namespace!r}, a namespace with a built-in provider"
        )
    configs = tree.get("features")
    if not isinstance(configs, list):
        raise failed(f"supports {shortened(configs)}, which is not a list of features")
    reader.check_count(configs, "features", limits.PLUGIN_FEATURES, "features")
    features: dict[str, tuple[str, ...]] = {}
    left = limits.PLUGIN_VALUES
    for number, config in enumerate(configs):
        path = f"features[{number}]"
        reader.mapping(config, path)
        name = reader.name(config.get("name"), f"{path}.name", variant_metadata.NAME, "name")
        if name in features:
            raise fail(f"{path}.name", f"{shortened(name)} is listed twice")
        path = f"{path} ({name})"
        reader.boolean(config, "multi_value", path, False)
        features[name] = reader.names(
            config.get("values"), f"{path}.values", variant_metadata.VALUE, most=left
        )
        left -= len(features[name])
    supported = {name: values for name, values in features.items() if values}
    return supported, tree.get("fixed") is True


def _failure(tree: dict[str, object]) -> str:
    error = one_line(str(tree["error"]))
    if tree.get("foreign") is True:
        return f"cannot be used: {error}"
    if tree.get("sandbox") and _SANDBOXED.search(error):
        error += " (it runs in a sandbox; --variant-plugin-sandbox off runs it without)"
    return f"failed: {error}"


def _may_claim(package: str, namespace: str) -> bool:
    """Return whether metadata may give *package* the namespace without the plugin's own word."""
    return namespace not in machines.BUILTIN_NAMESPACES or any(
        known.package == package and known.namespace == namespace for known in machines.KNOWN
    )


def one_line(text: str, limit: int = 300) -> str:
    """Return the end of *text* fit for a message: printable, on one line, not too long."""
    text = re.sub(r"\s+", " ", text[-4 * limit :]).strip()
    text = "".join(char if char.isprintable() else "?" for char in text)
    return text if len(text) <= limit else f"…{text[1 - limit :]}"
