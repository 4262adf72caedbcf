"""The package indexes of a case: what is on them, served on loopback."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from support.index import Answer, Index, served
from support.wheels import Wheel

from . import FOLDER
from .case import Case, pinned
from .field.standin import Standin

_SUFFIX = "-variants.json"


@dataclass(frozen=True)
class Served:
    """The indexes of a case.

    Attributes:
        index: URL of the simple API's root.
        extra_indexes: the same of more indexes, of lower rank.
        find_links: URLs of pages with links.
        install: what is to be installed.
        indexes: what is served, in the same order; requests are recorded there.
        lock: content of the lock file, its placeholders replaced; None for other cases.
    """

    index: str
    extra_indexes: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    install: tuple[str, ...] = ()
    indexes: tuple[Index, ...] = field(default=(), repr=False)
    lock: Mapping[str, Any] | None = None


@contextmanager
def serving(case: Case) -> Iterator[Served]:
    """Serve the indexes of *case* while the context is open."""
    with ExitStack() as stack:
        server = case.tree.get("server", {})

        def start(files: Sequence[Mapping[str, Any]]) -> Index:
            return stack.enter_context(served(make_index(files, server)))

        main = (
            stack.enter_context(served(Standin(**_answers(server))))
            if case.tree.get("index") == {"ref": "field"}
            else start(files_of(case))
        )
        extra = [start(files) for files in case.tree.get("extra-indexes", ())]
        links = [start(case.tree["find-links"])] if "find-links" in case.tree else []
        lock = None
        if case.form == "lock":
            lock = _filled(case.tree["lock"], _places(main))
        install = case.tree.get("install") or [f"{case.project}=={case.version}"]
        yield Served(
            main.url,
            tuple(index.url for index in extra),
            tuple(index.links_url for index in links),
            tuple(_filled(install, _places(main))),
            (main, *extra, *links),
            lock,
        )


def files_of(case: Case) -> Sequence[Mapping[str, Any]]:
    """Return the files of the main index of *case*, as an index case lists them."""
    if case.form != "document":
        return case.tree.get("index", ())  # type: ignore[no-any-return]
    return [*_documents(case), *_wheels(case), *_dependencies(case)]


def _documents(case: Case) -> Iterator[Mapping[str, Any]]:
    if "documents" in case.tree:
        return
    yield {
        "document": f"{case.project.replace('-', '_')}-{case.version}{_SUFFIX}",
        "text": case.documents[0].decode("utf-8", "surrogateescape"),
    }


def _wheels(case: Case) -> Iterator[Mapping[str, Any]]:
    trees = [_tree(document) for document in case.documents]
    labels = case.tree.get("labels")
    stem = f"{case.project.replace('-', '_')}-{case.version}-py3-none-any"
    requires = case.tree.get("requires", [])
    seen = set()
    for tree in trees:
        for label in labels or tree.get("variants", {}):
            name = f"{stem}-{label}.whl"
            own = _own_variant(tree, label)
            if name not in seen and (own is not None or len(trees) == 1):
                seen.add(name)
                yield {"wheel": name, "requires": requires, "variant": own}
    if case.tree.get("plain"):
        yield {"wheel": f"{stem}.whl", "requires": requires}


def _dependencies(case: Case) -> Iterator[Mapping[str, Any]]:
    found: dict[str, None] = {}
    for line in case.tree.get("requires", ()):
        name = canonicalize_name(Requirement(line.partition(";")[0]).name).replace("-", "_")
        found[f"{name}-{pinned(line)}-py3-none-any.whl"] = None
    for filename in found:
        yield {"wheel": filename}


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
            if file.get("listed") is False:
                index.unlisted.add(filename)
        else:
            filename = file["wheel"]
            wheel = _wheel(file, published)
            index.add(wheel.name, filename, wheel.build())
            if server.get("core-metadata", True):
                index.metadata_files[filename] = wheel.metadata()
        if file.get("hash") == "wrong":
            index.wrong_hashes.add(filename)
        attributes = dict(file.get("attributes", {}))
        for name in ("yanked", "requires-python"):
            if name in file:
                attributes[name] = file[name]
        if attributes:
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
    variant = file.get("variant", "derived")
    if variant == "derived":
        document = _tree(published.get(f"{name}-{version}{_SUFFIX}", b""))
        variant = _own_variant(document, label) if label is not None else None
    return Wheel(
        name,
        version,
        label,
        "-".join(rest[:3]),
        tuple(file.get("requires", ())),
        variant,
        file.get("files", {}),
        extras=_extras(file.get("requires", ())),
        build_tag=build,
        requires_python=file.get("requires-python", ""),
    )


def _extras(requires: Iterable[str]) -> tuple[str, ...]:
    """Return the extras that the markers of *requires* name."""
    found = re.findall(r"\bextra == ['\"]([^'\"]+)", "\n".join(requires))
    return tuple(dict.fromkeys(found))


def _places(index: Index) -> dict[str, str]:
    root = index.url.removesuffix("/simple/")
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
