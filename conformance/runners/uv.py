"""uv: through ``uv-variants``, and alone with wheel variants of its own, a preview feature.

Released uv reads no platform file (``UV_VARIANT_LOCK`` is of a branch that was not released), and
has implementations of a few providers. What can be said to it is what a document states: so the
machine of a case is written into its documents, as static properties of generation 0.2.0. Documents
of 0.1 have no providers and order variants by the same rules; others are not given to it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pep_variants.machines import load_platform
from support.environments import Environment, Environments
from support.isolation import isolated
from support.uvs import UVS, downloaded_uv, project

from ..case import Case
from ..outcome import Outcome
from ..place import Place, platform_file
from ..program import Finished, execute
from .base import (
    PLATFORMS,
    Installer,
    each,
    not_for_installers,
    not_for_others,
    variant_options,
)
from .pip import Pip, PipLock


class UvVariants(Installer):
    """``uv-variants pip install --target``, of this environment, with a uv of some version."""

    entry = "uv_variants.main:main"
    command = "uv-variants"
    plays = Pip.plays | PipLock.plays

    def __init__(self, name: str, version: str, environments: Environments) -> None:
        self.name = name
        self.title = f"uv-variants with uv {version}"
        self._uv = downloaded_uv(version, environments.wheelhouse)
        self._cache = environments.folder / f"uv-cache-{version}"
        if not self._cache.exists():  # this interpreter is noted in it, and nothing else
            command = [str(self._uv), "python", "find", "--no-config", "--cache-dir"]
            command += [str(self._cache), sys.executable]
            variables = isolated(os.environ, environments.folder)
            subprocess.run(command, env=variables, check=True, capture_output=True)
        super().__init__(sys.executable)

    def refuses(self, case: Case) -> str:
        """Refuse what is not about an index, and `abi_dependency`, of which uv knows nothing."""
        if "abi-dependency" in case.needs:
            return "leaves variants with abi_dependency out"
        return not_for_installers(case)

    def play(self, case: Case, place: Place) -> Outcome:
        """Install."""
        return self.run(place, [*variant_options(case, place), *self._install(case, place)])

    def start(self, arguments: Sequence[str], place: Place, **variables: str) -> Finished:
        """Run it with a cache of its own."""
        variables["UV_CACHE_DIR"] = str(place.root / "uv-cache")
        if not Path(variables["UV_CACHE_DIR"]).exists():  # there may have been a step before
            shutil.copytree(self._cache, variables["UV_CACHE_DIR"])
        if self.is_ours:
            variables["VARIANTS_UV"] = str(self._uv)
            # The version of macOS is not part of uv's name for a platform.
            variables["MACOSX_DEPLOYMENT_TARGET"] = "14.0"
            return super().start(arguments, place, **variables)
        command = [str(self._uv), *arguments]
        return execute(command, {**place.variables, **variables}, place.work)

    @contextmanager
    def environment(self, place: Place) -> Iterator[Path]:
        """Have uv make an environment."""
        command = [str(self._uv), "venv", "--quiet", "--no-config", "--cache-dir", str(self._cache)]
        command += ["--python", sys.executable, str(place.target)]
        subprocess.run(command, env=place.variables, check=True, capture_output=True)
        yield Environment(place.target).site_packages

    def step(self, step: Case, place: Place, folder: Path) -> Finished:  # noqa: ARG002
        """Run uv in the environment, or lock a project beside it."""
        do, words = step.tree["do"], list(step.tree["install"])
        python = Environment(place.target).python
        if do == "check":
            return self.start(["pip", "check", "--python", python], place)
        options = variant_options(step, place) if do not in ("add", "sync") else []
        indexes = _index_options(place)
        if do in ("lock", "add", "sync"):
            if do == "lock":
                project(place.work, words)
            more = ["--no-sync", *words] if do == "add" else []
            arguments = [*options, do, "--python", sys.executable, "--link-mode", "copy", *indexes]
            return self.start([*arguments, *more], place, UV_PROJECT_ENVIRONMENT=str(place.target))
        more = {"upgrade": ["--upgrade"], "switch": []}.get(do, [])
        options += ["--variant-switch"] if do == "switch" else []
        arguments = [*options, "pip", "install", "--python", python, "--no-config"]
        return self.start([*arguments, "--link-mode", "copy", *more, *indexes, *words], place)

    def _install(self, case: Case, place: Place, *more: str) -> list[str]:
        """Return uv's arguments that install what *case* wants."""
        arguments = ["pip", "install", "--python", sys.executable, "--target", str(place.target)]
        arguments += ["--no-config", "--link-mode", "copy", *more, *_index_options(place)]
        if "target" in case.tree:
            target = case.tree["target"]
            platform, _ = PLATFORMS[target["os"], target["arch"]]
            arguments += ["--only-binary", ":all:", "--python-version", target["python"]]
            arguments += ["--python-platform", platform]
        return [*arguments, *place.install]


def _index_options(place: Place) -> list[str]:
    """Return uv's options that name the indexes of a case.

    uv asks its default index last, so the main index of the case is an index of first rank if there
    are others.
    """
    *first, last = place.served.indexes
    options = [*each("--index", first), "--default-index", last]
    return [*options, *each("--find-links", place.served.find_links)]


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


class NativeUv(UvVariants):
    """``uv pip install --preview-features wheel-variants``."""

    is_ours = False
    plays = frozenset()

    def __init__(self, environments: Environments) -> None:
        super().__init__("native-uv", UVS[-1], environments)
        self.title = f"uv {UVS[-1]} alone, with its preview feature wheel-variants"

    def refuses(self, case: Case) -> str:
        """Refuse what is not about an index, or that static properties cannot say."""
        reason = not_for_installers(case) or not_for_others(case)
        if reason:
            return reason
        if "abi-dependency" in case.needs or "plugins" in case.needs:
            return f"needs {', '.join(case.needs)}"
        told: list[bool] = []
        _changed(case.tree, lambda document: told.append(_can_be_told(document)))
        if _has_published_documents(case) or not all(told):
            return "a document cannot say what the machine supports"
        return ""

    def given(self, case: Case) -> Case:
        """Return *case* with the machine in its documents."""
        with tempfile.TemporaryDirectory() as folder:
            path = platform_file(case, Path(folder))
            assert path is not None
            machine = {
                namespace: support.features
                for namespace, support in load_platform(path).namespaces.items()
            }
        tree = _changed(case.tree, lambda document: _with_static(document, machine))
        return Case(case.id, tree, case.family)

    def play(self, case: Case, place: Place) -> Outcome:
        """Install."""
        preview = ("--preview-features", "wheel-variants")
        return self.run(place, self._install(case, place, *preview))


def _has_published_documents(case: Case) -> bool:
    """Return whether a document is somewhere else, as it was published, or no JSON data."""
    files = case.tree.get("index", [])
    return (
        "document-ref" in case.tree
        or not isinstance(files, list)
        or any("ref" in file for file in files)
    )


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


def _changed(tree: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return a case with *change* of the documents that are given as JSON data."""

    def files(listed: Any) -> Any:  # noqa: ANN401
        if not isinstance(listed, list):
            return listed
        return [
            {
                key: change(value)
                if key in ("content", "variant") and isinstance(value, dict)
                else value
                for key, value in file.items()
            }
            for file in listed
        ]

    found = dict(tree)
    if "document" in tree:
        found["document"] = change(tree["document"])
    for key in {"index", "find-links"} & tree.keys():
        found[key] = files(tree[key])
    for key, each_of in (("documents", change), ("extra-indexes", files)):
        if key in tree:
            found[key] = list(map(each_of, tree[key]))
    return found


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
