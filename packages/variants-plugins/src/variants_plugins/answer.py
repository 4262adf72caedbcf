"""Reading the answer of a plugin, which is untrusted input."""

from __future__ import annotations

import json
import re

from pep_variants.internal import (
    BUILTIN_NAMESPACES,
    KNOWN,
    NAME,
    PLUGIN_FEATURES,
    PLUGIN_VALUES,
    VALUE,
    Features,
    PluginFailed,
    shortened,
)

# What the kernel says to who breaks out of a sandbox, in Python's words and in those of tools.
_SANDBOXED = re.compile(r"PermissionError|Permission denied|Operation not permitted")


def read_answer(  # noqa: C901
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

    def fail(problem: str) -> PluginFailed:
        return PluginFailed(plugin, problem, one_line(output, 200))

    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        raise fail(f"answered {shortened(data[:80])}, which is not JSON") from None
    if not isinstance(tree, dict):
        raise fail(f"answered {shortened(tree)}, which is not a JSON object")
    if "error" in tree:
        raise fail(_failure(tree))
    own = tree.get("namespace")
    if own != namespace and not _may_claim(plugin.partition("==")[0], namespace):
        raise fail(
            f"does not say that it is for {namespace!r}, a namespace with a built-in provider"
        )
    configs = tree.get("features")
    if not isinstance(configs, list) or len(configs) > PLUGIN_FEATURES:
        raise fail(f"supports {shortened(configs)}, which is not a list of features")
    features: dict[str, tuple[str, ...]] = {}
    total = 0
    for config in configs:
        if not isinstance(config, dict):
            raise fail(f"supports {shortened(config)}, which is not a feature")
        name, values = config.get("name"), config.get("values")
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise fail(f"names a feature {shortened(name)}: it must match {NAME.pattern}")
        if name in features:
            raise fail(f"lists the feature {shortened(name)} twice")
        if not isinstance(config.get("multi_value", False), bool):
            raise fail(
                f"has multi_value {shortened(config['multi_value'])} of {shortened(name)}, "
                "which is not a boolean"
            )
        if not isinstance(values, list):
            raise fail(
                f"has {shortened(values)} as values of {shortened(name)}, which is not a list"
            )
        total += len(values)
        if total > PLUGIN_VALUES:
            raise fail(f"supports more than {PLUGIN_VALUES} values")
        seen = set()
        for value in values:
            if not isinstance(value, str) or not VALUE.fullmatch(value):
                raise fail(
                    f"has a value {shortened(value)} of {shortened(name)}: "
                    f"it must match {VALUE.pattern}"
                )
            if value in seen:
                raise fail(f"lists the value {shortened(value)} of {shortened(name)} twice")
            seen.add(value)
        features[name] = tuple(values)
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
    return namespace not in BUILTIN_NAMESPACES or any(
        known.package == package and known.namespace == namespace for known in KNOWN
    )


def one_line(text: str, limit: int = 300) -> str:
    """Return the end of *text* fit for a message: printable, on one line, not too long."""
    text = re.sub(r"\s+", " ", text[-4 * limit :]).strip()
    text = "".join(char if char.isprintable() else "?" for char in text)
    return text if len(text) <= limit else f"…{text[1 - limit :]}"
