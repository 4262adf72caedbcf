"""The next state of a project on an index: its page and its metadata documents.

A pure function of the state before and of what is added and removed, for every place that holds an
index: a directory, a store, or an index with an upload API. Adding distributions in several steps,
in any order and more than once, gives the same state as adding them all at once.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from pep_variants import labels as wheel_labels
from pep_variants import limits, wheel_files
from pep_variants import metadata as variant_metadata
from pep_variants.errors import InvalidWheelFilename, MetadataError, VariantError, redacted
from variants_index import pages as index_pages
from variants_index.pages import Page, PageFile

from .._description import lost_priorities
from .wheelhouse import VariantFile, identified

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from packaging.utils import NormalizedName
    from packaging.version import Version

    from pep_variants.metadata import Metadata

    from .wheelhouse import Distribution

    Release = tuple[NormalizedName, Version]
    UrlOf = Callable[[str, str], str]


class UpdateError(VariantError):
    """A distribution that cannot be added to what the index has."""


@dataclass(frozen=True)
class Update:
    """The state of a project after an update.

    Attributes:
        page: its page, sorted by version and filename.
        documents: the ``*-variants.json`` that the page lists, by filename: those that were made,
            and those that were given and are still listed.
        changed: names of the files whose entry on the page is new, different or gone. Empty if
            there is nothing to write.
    """

    page: Page
    documents: Mapping[str, bytes]
    changed: frozenset[str]


def updated(
    page: Page | None,
    documents: Mapping[str, bytes],
    new: Sequence[Distribution],
    *,
    url_of: UrlOf,
    now: datetime,
    removed: Collection[str] = (),
) -> Update:
    """Return the state of a project after *new* is added and *removed* is taken away.

    A file that is listed already, with the same SHA-256, keeps its upload time, its attestations
    and whether it is yanked. Its other values are those of *new*.
    A document keeps the upload time of its first version, too: clients that leave out newer files
    (``--uploaded-prior-to``) still need it for the older wheels.

    The metadata of a version is merged from its document and the wheels in *new*. Labels of
    which the last wheel is removed leave it; without any variant wheel it is removed itself. The
    document of a version is not needed in *documents* if all its variant wheels are in *new*.

    Args:
        page: of the project, None if the index does not have it.
        documents: the ``*-variants.json`` that it lists, by filename.
        new: distributions of the project, each checked against its name.
        url_of: gives the URL for the page of a file, from its filename and its SHA-256
            (hexadecimal): of a distribution or a ``*-variants.json``.
        now: the time, with a time zone.
        removed: names of listed files to take away; one that is in *new* as well is replaced.

    Raises:
        UpdateError: the index has, or *new* has twice, a file of the same name with other
            contents; a document is missing; or the page is larger than what clients read.
        InconsistentMetadata: variant metadata of two sources contradict each other.
        MetadataError: it is not valid, or no format can represent it.
        ValueError: *new* is of several projects, or there is neither a page nor anything new.
    """
    names = {item.project for item in new} | ({page.project} if page else set())
    if len(names) != 1:
        raise ValueError(f"an update is of one project, not {sorted(names)}")
    before = page or Page(names.pop(), ())
    entries = {file.filename: file for file in before.files}
    added: dict[str, Distribution] = {}
    for item in new:
        twin = added.setdefault(item.path.name, item)
        if twin.sha256 != item.sha256:
            raise _conflict(str(twin.path), twin.sha256, item)
    after = {name: file for name, file in entries.items() if name not in removed}
    for name, item in added.items():
        after[name] = _entry(item, after.get(name), url_of, timestamp(now))
    contents = {name: data for name, data in documents.items() if name in after}
    released = {name: release_of(name) for name in {**entries, **after}}
    wheels: dict[Release, tuple[list[VariantFile], set[str], set[str]]] = {}
    for name, found in released.items():
        if found is not None and found[1] is not None:
            own, others, gone = wheels.setdefault(found[0], ([], set(), set()))
            if name in added and (variant := added[name].variant) is not None:
                own.append(variant)
            elif name in after:
                others.add(found[1])
            if name in removed:
                gone.add(found[1])
    for release, (own, others, gone) in sorted(wheels.items()):
        if not own and not gone:
            continue
        name = wheel_files.metadata_filename(*release)
        data = _document(own, others, gone, documents.get(name), entries.get(name))
        if data is None:
            after.pop(name, None)
            contents.pop(name, None)
            continue
        contents[name] = data
        after[name] = _listed(name, data, entries.get(name), url_of, timestamp(now))
        released[name] = release, None
    ordered = sorted(after.values(), key=lambda file: _place(file.filename, released))
    versions = sorted({found[0][1] for name in after if (found := released[name]) is not None})
    page = replace(before, files=tuple(ordered), versions=tuple(map(str, versions)))
    _check_size(page)
    changed = {name for name, file in after.items() if entries.get(name) != file}
    return Update(page, contents, frozenset(changed | (entries.keys() - after.keys())))


def timestamp(moment: datetime) -> str:
    """Return *moment* as pages have it (PEP 700): in UTC, with microseconds."""
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def release_of(filename: str) -> tuple[Release, str | None] | None:
    """Return project and version of a distribution or document, and the label of a wheel.

    None for any other file.
    """
    if filename.endswith(wheel_labels.METADATA_SUFFIX):
        release = wheel_files.parse_metadata_filename(filename)
        return None if release is None else (release, None)
    try:
        project, version, label = identified(filename)
    except InvalidWheelFilename:
        return None  # an egg, say
    return (project, version), label


def _entry(item: Distribution, old: PageFile | None, url_of: UrlOf, now: str) -> PageFile:
    if old is not None and old.hashes.get("sha256") != item.sha256:
        raise _conflict(redacted(old.url), old.hashes.get("sha256"), item)
    before = old or PageFile(item.path.name, "", {})
    metadata = item.metadata_sha256
    return replace(
        before,
        url=url_of(item.path.name, item.sha256),
        hashes={**before.hashes, "sha256": item.sha256},
        requires_python=item.requires_python,
        size=item.size,
        upload_time=before.upload_time or now,
        core_metadata=None if metadata is None else {"sha256": metadata},
    )


def _check_size(page: Page) -> None:
    """Raise `UpdateError` for a page that clients, and the next update, refuse to read."""
    count = len(page.files)
    if count > limits.PAGE_FILES or len(index_pages.json_page(page)) > limits.PAGE_BYTES:
        raise UpdateError(
            f"{page.project}: its page would list {count:,} files, more than clients read "
            f"({limits.PAGE_FILES:,} files, {limits.PAGE_BYTES:,} bytes): remove old versions, or "
            "publish them as another index"
        )


def _conflict(place: str, sha256: str | None, item: Distribution) -> UpdateError:
    has = "no SHA-256 on its page" if sha256 is None else f"SHA-256 {sha256}"
    return UpdateError(
        f"{place} has {has}, {item.path} has {item.sha256}: a published file cannot change: "
        "publish the new one as another version, or with a build tag"
    )


def _document(
    own: Sequence[VariantFile],
    others: set[str],
    removed: set[str],
    old: bytes | None,
    listed: PageFile | None,
) -> bytes | None:
    """Return the metadata of a version, None if it has no variant wheels.

    Args:
        own: of its wheels that are added.
        others: labels of its other wheels.
        removed: labels of its wheels that are taken away.
        old: its metadata before.
        listed: what the page says of that.
    """
    if not own and not others:
        return None
    if old is None:
        if others and listed is not None:
            raise UpdateError(f"{redacted(listed.url)}: is needed to update it, and is not there")
        return write_merged(own) if own else None
    before = VariantFile(old, listed.url if listed else "the metadata before")
    kept = without_labels(before, removed - others)
    data = write_merged([*([kept] if kept else []), *own])
    return old if same_meaning(before.metadata, VariantFile(data, "").metadata) else data


def _listed(name: str, data: bytes, old: PageFile | None, url_of: UrlOf, now: str) -> PageFile:
    digest = hashlib.sha256(data).hexdigest()
    time = (old.upload_time if old else None) or now
    return PageFile(
        name, url_of(name, digest), {"sha256": digest}, size=len(data), upload_time=time
    )


def _place(
    filename: str, released: Mapping[str, tuple[Release, str | None] | None]
) -> tuple[bool, Version | None, bool, str]:
    """Return the sort key of a file: by version, the document after the distributions."""
    found = released[filename]
    is_document = filename.endswith(wheel_labels.METADATA_SUFFIX)
    return found is not None, None if found is None else found[0][1], is_document, filename


def write_merged(files: Sequence[VariantFile]) -> bytes:
    """Return the ``*-variants.json`` of *files*.

    It is written in the newest generation that can represent it: 0.2.0 with providers,
    0.1.1 otherwise. If neither can, in the generation of the wheels: also if
    null is spelled ``00000000``, the label in the names of these wheels.

    Raises:
        InconsistentMetadata: two of them contradict each other.
        MetadataError: no generation can represent the metadata of wheels of several generations.
    """
    # Wheels for several Pythons have the same metadata, versions often the same variants.
    files = tuple(dict.fromkeys(files))
    merged = variant_metadata.merge_all(file.metadata for file in files)
    lost = lost_priorities(merged)
    if any(map(_in_zeros, files)):
        place = f"variants.{wheel_labels.ZERO_LABEL}"
        problem = f"with this label: make its wheels again with the label {wheel_labels.NULL_LABEL}"
    elif lost:
        place, problem = lost[0], "with priorities that the current format does not have"
    else:
        try:
            return variant_metadata.write_metadata(
                merged, variant_metadata.V0_2_0 if merged.providers else variant_metadata.V0_1_1
            ).encode()
        except MetadataError as error:
            place, problem = error.path, f"into the current one: {error.problem}"
    if len({file.metadata.schema for file in files}) > 1:
        message = f"wheels of several format versions cannot be merged {problem}"
        raise MetadataError(merged.source, place, message)
    return _joined(files, merged)


def _in_zeros(file: VariantFile) -> bool:
    """Return whether *file* is of a null variant that is labelled in zeros."""
    return (
        wheel_labels.NULL_LABEL in file.metadata.variants
        and wheel_labels.ZERO_LABEL in json.loads(file.data)["variants"]
    )


def same_meaning(first: Metadata, second: Metadata) -> bool:
    """Return whether both say the same, in the same format version."""
    if first != second or first.schema != second.schema:
        return False
    # Mappings are equal in any order; that of static properties is a preference.
    return all(
        list(provider.static or ()) == list(second.providers[namespace].static or ())
        for namespace, provider in first.providers.items()
    )


def without_labels(file: VariantFile, labels: Collection[str]) -> VariantFile | None:
    """Return the document *file* without *labels*, None if it then lists no variant.

    Args:
        file: a ``*-variants.json``.
        labels: as filenames have them.
    """
    left_out = {*labels, *map(file.metadata.label_of, labels)}
    if not left_out & file.metadata.variants.keys():
        return file
    tree = json.loads(file.data)
    tree["variants"] = {
        label: properties
        for label, properties in tree["variants"].items()
        if not {label, file.metadata.label_of(label)} & left_out
    }
    if not tree["variants"]:
        return None
    return VariantFile(json.dumps(tree).encode(), file.source)


def _joined(files: Sequence[VariantFile], merged: Metadata) -> bytes:
    """Return the JSON trees of *files* as one, the same in whatever order they are joined."""
    tree: dict[str, Any] = {}
    # Of the lists of namespaces, which begin alike, the longest is the last.
    for file in sorted(files, key=lambda file: (len(file.metadata.namespaces), file.data)):
        tree = _union(tree, json.loads(file.data))
    joined = VariantFile((json.dumps(_sorted(tree), indent=2) + "\n").encode(), merged.source)
    if not same_meaning(joined.metadata, merged):
        raise MetadataError(
            merged.source,
            "",
            "metadata of this format version cannot be merged without loss: make the wheels "
            "again in the current one",
        )
    return joined.data


def _sorted(value: Any, path: tuple[str, ...] = ()) -> Any:  # noqa: ANN401 - JSON data
    """Return *value* with sorted keys, but for features the order of which is a preference."""
    if not isinstance(value, dict):
        return value
    is_preference = path[:-1] in (("static-properties",), ("default-priorities", "property"))
    keys = value if is_preference else sorted(value)
    return {key: _sorted(value[key], (*path, key)) for key in keys}


def _union(first: object, second: object) -> Any:  # noqa: ANN401 - JSON data
    """Return *second*, and in its objects what only *first* has."""
    if isinstance(first, dict) and isinstance(second, dict):
        return {**first, **{key: _union(first.get(key), value) for key, value in second.items()}}
    return second
