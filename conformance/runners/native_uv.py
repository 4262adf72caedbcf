"""uv itself, whose preview has wheel variants of its own.

Released uv reads no platform file (``UV_VARIANT_LOCK`` is of a branch that was not released), and
has implementations of a few providers. What can be said to it is what a document states: so the
machine of a case is written into its documents, as static properties of generation 0.2.0. Documents
of 0.1 have no providers and order variants by the same rules; others are not given to it.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from hostile.clients import found
from pep_variants.formats.platform_file import load_platform
from support.environments import Environments
from support.uvs import UVS, downloaded_uv

from ..case import Case
from ..indexes import serving
from ..outcome import Outcome
from ..place import Place
from ..program import execute
from . import not_for_installers, not_for_others
from .uv_variants import new_cache, uv_install

_SCHEMA = "https://variants-schema.wheelnext.dev/peps/850/v0.2.0.json"
_SPECIAL = (
    "build-requires",
    "builtin",
    "enable-if",
    "install-time",
    "optional",
    "static-properties",
)
_GENERATIONS = ("/v0.1.0.json", "/v0.1.1.json", "/v0.2.0.json")

_Machine = Mapping[str, Mapping[str, Sequence[str]]]


class NativeUv:
    """``uv pip install --preview-features wheel-variants``."""

    is_ours = False

    def __init__(self, environments: Environments) -> None:
        """Use the newest uv that is tried."""
        self.name = "native-uv"
        self.title = f"uv {UVS[-1]} alone, with its preview feature wheel-variants"
        self._uv = downloaded_uv(UVS[-1], environments.wheelhouse)
        self._cache = new_cache(self._uv, environments.folder / f"uv-cache-{UVS[-1]}")

    def close(self) -> None:
        """Nothing runs."""

    def refuses(self, case: Case) -> str:
        """Refuse what is not about an index, or that static properties cannot say."""
        reason = not_for_installers(case) or not_for_others(case)
        if reason:
            return reason
        if "abi-dependency" in case.needs or "plugins" in case.needs:
            return f"needs {', '.join(case.needs)}"
        if _has_published_documents(case) or not all(map(_can_be_told, _trees(case.tree))):
            return "a document cannot say what the machine supports"
        return ""

    def play(self, case: Case, place: Place) -> Outcome:
        """Install from an index whose documents describe the machine."""
        assert place.platform is not None
        machine: _Machine = {
            namespace: support.features
            for namespace, support in load_platform(place.platform).namespaces.items()
        }
        tree = {key: _described(key, value, machine) for key, value in case.tree.items()}
        shutil.copytree(self._cache, place.root / "uv-cache")
        with serving(Case(case.id, tree, case.family)) as served:
            there = Place(place.root, served, None, place.variables)
            preview = ("--preview-features", "wheel-variants")
            arguments = uv_install(case, there, preview)
            variables = {**place.variables, "UV_CACHE_DIR": str(place.root / "uv-cache")}
            done = execute([str(self._uv), *arguments], variables, place.work)
        return Outcome(
            done.code != 0, installed=found(place.target), output=done.output, is_ours=False
        )


def _has_published_documents(case: Case) -> bool:
    """Return whether a document is somewhere else, as it was published, or no JSON data."""
    files = case.tree.get("index", [])
    return (
        "document-ref" in case.tree
        or not isinstance(files, list)
        or any("ref" in file for file in files)
    )


def _trees(tree: Mapping[str, Any]) -> list[Any]:
    """Return the documents in a case that are given as JSON data."""
    documents = [tree["document"]] if "document" in tree else [*tree.get("documents", ())]
    for files in (tree.get("index"), tree.get("find-links"), *tree.get("extra-indexes", ())):
        for file in files if isinstance(files, list) else ():
            documents += [file["content"]] if "content" in file else []
            documents += [file["variant"]] if isinstance(file.get("variant"), dict) else []
    return documents


def _can_be_told(document: Any) -> bool:  # noqa: ANN401
    if not isinstance(document, dict) or not isinstance(document.get("default-priorities"), dict):
        return True  # for uv to refuse
    providers = document.get("providers")
    providers = providers if isinstance(providers, dict) else {}
    special = any(
        isinstance(item, dict) and not item.keys().isdisjoint(_SPECIAL)
        for item in providers.values()
    )
    return (
        str(document.get("$schema")).endswith(_GENERATIONS)
        and not special
        and not {"feature", "property"} & document["default-priorities"].keys()
    )


def _described(key: str, value: Any, machine: _Machine) -> Any:  # noqa: ANN401
    """Return a field of a case with *machine* written into its documents."""
    if key == "document":
        return _with_static(value, machine)
    if key == "documents":
        return [_with_static(item, machine) for item in value]
    if key == "extra-indexes":
        return [_described("index", files, machine) for files in value]
    if key in ("index", "find-links") and isinstance(value, list):
        return [
            {
                name: _with_static(item, machine)
                if name in ("content", "variant") and isinstance(item, dict)
                else item
                for name, item in file.items()
            }
            for file in value
        ]
    return value


def _with_static(document: Any, machine: _Machine) -> Any:  # noqa: ANN401
    priorities = document.get("default-priorities") if isinstance(document, dict) else None
    listed = priorities.get("namespace") if isinstance(priorities, dict) else None
    if not isinstance(listed, list):
        return document
    providers = {
        namespace: _provider(namespace, machine.get(namespace, {}))
        for namespace in listed
        if isinstance(namespace, str)
    }
    return {**document, "$schema": _SCHEMA, "providers": providers}


def _provider(namespace: str, features: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    supported = {feature: list(values) for feature, values in features.items() if values}
    if not supported:
        return {"requires": [f"no-{namespace}-provider".replace("_", "-")]}
    provider: dict[str, Any] = {"static-properties": supported}
    if len(supported) > 1:
        provider["feature-order"] = list(supported)
    return provider
