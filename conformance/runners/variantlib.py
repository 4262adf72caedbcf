"""variantlib, the reference implementation of the proposal, as a library.

The machine is given as a list of supported properties, as its plugins would: variantlib itself
reads no platform file. Static properties come from the document. variantlib 0.2.2 adds a null
variant where the document lists none; only what is listed is compared.

It reads documents of generation 0.2.0 alone, and wants a provider for every namespace. Documents of
0.1 have none, and order variants by the same rules: they get a provider, which is not asked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from variantlib.errors import ValidationError
from variantlib.models.variant import VariantProperty
from variantlib.resolver.lib import sort_and_filter_supported_variants
from variantlib.variants_json import VariantsJson

from pep_variants.machines import load_platform
from support.environments import Environments

from ..case import Case
from ..outcome import Outcome
from ..place import Place
from .base import Runner, not_for_others

_READ = re.compile(r"/v0\.[12]\.\d+\.json$")
_WITHOUT_PROVIDERS = re.compile(r"/v0\.1\.\d+\.json$")


class Variantlib(Runner):
    """`variantlib` in this process: the order of the variants of a document."""

    name = "variantlib"
    is_ours = False

    def __init__(self, environments: Environments) -> None:  # noqa: ARG002
        self.title = f"variantlib {version('variantlib')}, the library"

    def refuses(self, case: Case) -> str:
        """Refuse what is not about the order of variants."""
        if case.form != "document":
            return (
                "needs an index"
                if case.form in ("index", "lock", "steps")
                else "parses no filenames"
            )
        if "target" in case.tree:
            return "needs a target"
        if any(map(_is_of_another_generation, case.documents)):
            return "of a generation that it does not read"
        if "order" not in case.expect and case.expect.get("error", {}).get("kind") not in (
            "document",
            "merge",
        ):
            return "about more than the order of variants"
        if case.needs:
            return f"needs {', '.join(case.needs)}"
        return not_for_others(case)

    def play(self, case: Case, place: Place) -> Outcome:
        """Read the documents, and order the variants."""
        assert place.platform is not None
        machine = {
            namespace: support.features
            for namespace, support in load_platform(place.platform).namespaces.items()
        }
        try:
            trees = [_with_providers(json.loads(data.decode("utf-8"))) for data in case.documents]
        except (ValueError, RecursionError):
            return Outcome(True, "document")
        try:
            found = [VariantsJson(tree) for tree in trees]
        except (ValidationError, TypeError, KeyError, AttributeError) as error:
            return Outcome(True, "document", output=f"{error}")
        try:
            for other in found[1:]:
                found[0].merge(other)
        except ValidationError as error:
            return Outcome(True, "merge", output=f"{error}")
        return Outcome(False, order=_order(found[0], machine, trees))


def _is_of_another_generation(document: bytes) -> bool:
    try:
        tree = json.loads(document)
        schema, priorities = tree.get("$schema"), tree.get("default-priorities", {})
        feature_orders = {"feature", "property"} & priorities.keys()
    except (ValueError, AttributeError, RecursionError):
        return False  # for it to refuse
    known = isinstance(schema, str) and _READ.search(schema) is not None
    return not known or bool(feature_orders)


def _with_providers(tree: Any) -> Any:  # noqa: ANN401
    """Return *tree* with a provider for every namespace that has none."""
    if not isinstance(tree, dict) or _WITHOUT_PROVIDERS.search(str(tree.get("$schema"))) is None:
        return tree
    priorities = tree.get("default-priorities")
    listed = priorities.get("namespace") if isinstance(priorities, dict) else None
    names = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    providers = {name: {"requires": [f"{name}-provider"]} for name in names}
    return {**tree, "providers": providers}


def _order(
    metadata: VariantsJson,
    machine: Mapping[str, Mapping[str, Sequence[str]]],
    trees: Sequence[Mapping[str, Any]],
) -> list[str]:
    ordered = sort_and_filter_supported_variants(
        list(metadata.variants.values()),
        list(_supported(metadata, machine)),
        namespace_priorities=metadata.namespace_priorities,
        feature_priorities={
            name: provider.feature_order for name, provider in metadata.providers.items()
        },
        property_priorities={},
        filter_values=True,
    )
    listed = {label for tree in trees for label in tree["variants"]}
    return [item.label for item in ordered if item.label in listed]


def _supported(
    metadata: VariantsJson, machine: Mapping[str, Mapping[str, Sequence[str]]]
) -> Iterator[VariantProperty]:
    """Yield what plugins would say: the machine's values, or those that a provider states."""
    for namespace in metadata.namespace_priorities:
        provider = metadata.providers.get(namespace)
        if provider is not None and provider.optional:
            continue
        features = machine.get(namespace)
        if features is None:
            features = provider.static_properties if provider is not None else {}
        for feature, values in features.items():
            for value in values:
                yield VariantProperty(namespace, feature, value)
