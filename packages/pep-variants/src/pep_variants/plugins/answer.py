"""Reading what a plugin answered. It is checked like any file of a stranger."""

from __future__ import annotations

import json
import re

from ..errors import ProviderError, shortened
from ..property import NAME, VALUE, Features

MAX_FEATURES = 1_000
MAX_VALUES = 10_000
"""Of all features together. The longest real answer has a hundred."""


def read_answer(data: bytes, namespace: str, plugin: str) -> tuple[Features, bool]:
    """Return the supported features of an answer, in its order, and whether they are fixed.

    Args:
        data: the JSON text that `driver` wrote, or somebody in its place.
        namespace: the one that the metadata gives the plugin. Plugins before format 0.2.0 name
            theirs, which must be the same; later ones need not name one.
        plugin: package and endpoint, for messages.

    A feature without values is unsupported and left out.

    Raises:
        ProviderError: the plugin failed, or the answer has wrong types or names, says something
            twice, or is too long.
    """

    def fail(problem: str) -> ProviderError:
        return ProviderError(f"{plugin} {problem}")

    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        raise fail(f"answered {shortened(data[:80])}, which is no JSON") from None
    if not isinstance(tree, dict):
        raise fail(f"answered {shortened(tree)}")
    if "error" in tree:
        raise fail(f"failed: {one_line(str(tree['error']))}")
    own = tree.get("namespace")
    if own is not None and own != namespace:
        raise fail(f"is for the namespace {shortened(own)}, not for {namespace!r}")
    configs = tree.get("features")
    if not isinstance(configs, list) or len(configs) > MAX_FEATURES:
        raise fail(f"supports {shortened(configs)}, which is no list of features")
    features: dict[str, tuple[str, ...]] = {}
    total = 0
    for config in configs:
        if not isinstance(config, dict):
            raise fail(f"supports {shortened(config)}, which is no feature")
        name, values = config.get("name"), config.get("values")
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise fail(f"names a feature {shortened(name)}: it must match {NAME.pattern}")
        if name in features:
            raise fail(f"lists the feature {shortened(name)} twice")
        if not isinstance(config.get("multi_value", False), bool):
            raise fail(f"has a multi_value {shortened(config['multi_value'])} in {shortened(name)}")
        if not isinstance(values, list):
            raise fail(f"has {shortened(values)} for the values of {shortened(name)}")
        total += len(values)
        if total > MAX_VALUES:
            raise fail(f"supports more than {MAX_VALUES} values")
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


def one_line(text: str, limit: int = 300) -> str:
    """Return the end of *text* fit for a message: printable, on one line, not too long."""
    text = re.sub(r"\s+", " ", text[-4 * limit :]).strip()
    text = "".join(char if char.isprintable() else "?" for char in text)
    return text if len(text) <= limit else f"…{text[1 - limit :]}"
