"""The package indexes of a case: what is on them, served on loopback."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from support.index import Answer, Index, served
from support.wheels import Wheel

from . import FOLDER
from .case import Case, dependency, pinned
from .field.standin import Standin

_SUFFIX = "-variants.json"


@dataclass(frozen=True)
class Served:
    """What is served for a case.

    Attributes:
        indexes: URLs of the roots of the simple API, the first is that of the main index.
        find_links: URLs of pages with links.
        install: what is to be installed.
        lock: content of the lock file, its placeholders replaced; None for other cases.
    """

    indexes: Sequence[str]
    find_links: Sequence[str]
    install: Sequence[str]
    lock: Mapping[str, Any] | None


@contextmanager
def serving(case: Case) -> Iterator[Served]:
    """Serve the indexes of *case* while the context is open."""
    tree = case.tree
    server = tree.get("server", {})
    with ExitStack() as stack:

        def start(files: Any) -> Index:  # noqa: ANN401
            if files == {"ref": "field"}:
                return stack.enter_context(served(Standin(**_answers(server))))
            return stack.enter_context(served(make_index(files, server)))

        main = start(files_of(case))
        extra = [start(files) for files in tree.get("extra-indexes", ())]
        links = [start(tree["find-links"])] if "find-links" in tree else []
        filled = partial(_filled, places=_places(main))
        yield Served(
            [index.url for index in (main, *extra)],
            [index.links_url for index in links],
            filled(tree.get("install") or [f"{case.project}=={case.version}"]),
            filled(tree["lock"]) if case.form == "lock" else None,
        )


def files_of(case: Case) -> Sequence[Mapping[str, Any]]:
    """Return the files of the main index of *case*, as an index case lists them."""
    if case.form != "document":
        return case.tree.get("index", ())  # type: ignore[no-any-return]
    files: list[Mapping[str, Any]] = []
    if "documents" not in case.tree:
        text = case.documents[0].decode("utf-8", "surrogateescape")
        files.append({"document": f"{case.stem}{_SUFFIX}", "text": text})
    files += _wheels(case)
    # The projects that are required, once each.
    lines = case.tree.get("requires", ())
    names = {f"{dependency(line)}-{pinned(line)}-py3-none-any.whl": None for line in lines}
    return [*files, *({"wheel": name} for name in names)]


def wheels_of(case: Case) -> Iterator[Wheel]:
    """Yield the wheels on the main index of *case*, which is an index case."""
    files = files_of(case)
    published = {file["document"]: _content(file) for file in files if "document" in file}
    yield from (_wheel(file, published) for file in files if "wheel" in file)


def _wheels(case: Case) -> Iterator[Mapping[str, Any]]:
    trees = [_tree(document) for document in case.documents]
    labels = case.tree.get("labels")
    requires = case.tree.get("requires", [])
    seen = set()
    for tree in trees:
        for label in labels or tree.get("variants", {}):
            name = f"{case.stem}-py3-none-any-{label}.whl"
            own = _own_variant(tree, label)
            if name not in seen and (own is not None or len(trees) == 1):
                seen.add(name)
                yield {"wheel": name, "requires": requires, "variant": own}
    if case.tree.get("plain"):
        yield {"wheel": f"{case.stem}-py3-none-any.whl", "requires": requires}


def _tree(document: bytes) -> Mapping[str, Any]:
    try:
        tree = json.loads(document)
    except (ValueError, RecursionError):
        return {}
    return tree if isinstance(tree, dict) and isinstance(tree.get("variants"), dict) else {}


def _own_variant(document: Mapping[str, Any], label: str) -> dict[str, Any] | None:
    """Return the ``variant.json`` of the wheel with that label, None if the document has none."""
    variants = document.get("variants", {})
    for spelling in (label, *({"null", "00000000"} if label in ("null", "00000000") else ())):
        if spelling in variants:
            return {**document, "variants": {label: variants[spelling]}}
    return None


def make_index(files: Sequence[Mapping[str, Any]], server: Mapping[str, Any]) -> Index:
    """Return an index with *files* on it."""
    index = Index(**_answers(server))
    published = {file["document"]: _content(file) for file in files if "document" in file}
    for file in files:
        if "document" in file:
            filename = file["document"]
            index.add(filename.split("-")[0], filename, published[filename])
            if "status" in file:
                index.faults[filename] = partial(Answer, file["status"], b"", kind="text/plain")
        else:
            filename = file["wheel"]
            wheel = _wheel(file, published)
            index.add(wheel.name, filename, wheel.build())
            if server.get("core-metadata", True):
                index.metadata_files[filename] = wheel.metadata()
        if file.get("listed") is False:
            index.unlisted.add(filename)
        if file.get("hash") == "wrong":
            index.wrong_hashes.add(filename)
        attributes = {name: file[name] for name in ("yanked", "requires-python") if name in file}
        if attributes := {**file.get("attributes", {}), **attributes}:
            index.attributes[filename] = attributes
    return index


def _answers(server: Mapping[str, Any]) -> dict[str, Any]:
    return {"api": server.get("page", "json"), "ranges": server.get("ranges", True)}


def _content(file: Mapping[str, Any]) -> bytes:
    if "content" in file:
        return json.dumps(file["content"]).encode()
    if "ref" in file:
        return Path(FOLDER, file["ref"]).read_bytes()
    return str(file.get("text", "")).encode("utf-8", "surrogateescape")


def _wheel(file: Mapping[str, Any], published: Mapping[str, bytes]) -> Wheel:
    parts = file["wheel"].removesuffix(".whl").split("-")
    name, version, *rest = parts
    build = rest.pop(0) if len(rest) > 3 and rest[0][:1].isdigit() else ""
    label = rest[3] if len(rest) > 3 else None
    requires = tuple(file.get("requires", ()))
    variant = file.get("variant", "derived")
    if variant == "derived":
        document = _tree(published.get(f"{name}-{version}{_SUFFIX}", b""))
        variant = _own_variant(document, label) if label is not None else None
    return Wheel(
        name,
        version,
        label,
        "-".join(rest[:3]),
        requires,
        variant,
        file.get("files", {}),
        # Those that the markers name.
        extras=tuple(dict.fromkeys(re.findall(r"\bextra == ['\"]([^'\"]+)", "\n".join(requires)))),
        build_tag=build,
        requires_python=file.get("requires-python", ""),
    )


def _places(index: Index) -> dict[str, str]:
    root = index.root
    found = {}
    for project, files in index.files.items():
        for filename, data in files.items():
            found[f"{{{{url:{filename}}}}}"] = f"{root}/files/{project}/{filename}"
            found[f"{{{{url-encoded:{filename}}}}}"] = f"{root}/files/{project}/{quote(filename)}"
            found[f"{{{{sha256:{filename}}}}}"] = hashlib.sha256(data).hexdigest()
    return found


def _filled(item: Any, places: Mapping[str, str]) -> Any:  # noqa: ANN401
    if isinstance(item, str) and "{{" in item:
        for name, value in places.items():
            item = item.replace(name, value)
        return item
    if isinstance(item, Mapping):
        return {key: _filled(value, places) for key, value in item.items()}
    if isinstance(item, Iterable) and not isinstance(item, str):
        return [_filled(value, places) for value in item]
    return item
