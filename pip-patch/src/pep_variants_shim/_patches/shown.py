"""Variants in the output of ``pip list``, ``show``, ``inspect``, ``freeze`` and reports.

Without installed variants the output does not change. ``pip freeze`` prints lines that any pip can
install: of a build that its publisher has under another name that is the publisher's requirement.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from types import ModuleType
from typing import Any

from pip._vendor.packaging.utils import canonicalize_name

from .. import BUILT_IN, OWN
from .._distributions import FORCED_FILE, label_of, origin_of, read_record
from .._guard import Original, guarded, replace
from .listing import patch_listing

KEY = "variant_label"
"""Key of the label in JSON, named after the marker variable."""

OF = "variant_of"
"""Key of the project under whose name a build is installed, if its publisher has another name."""


VERSION = "variant_version"
"""Key of what there is to say of the version, see `VersionNote`."""


def patch_list(module: ModuleType) -> None:
    """Show labels in ``pip list``, as a column and in JSON, and count variants as updates."""
    patch_listing(module)

    @replace(module, "format_for_columns", shows=True)
    def format_for_columns(
        original: Original, pkgs: Any, options: Any
    ) -> tuple[list[list[str]], list[str]]:
        rows, header = original(pkgs, options)
        labels = [label_of(dist) for dist in pkgs]
        if any(labels):
            place = header.index("Version") + 1
            header.insert(place, "Variant")
            for row, label in zip(rows, labels, strict=True):
                row.insert(place, label)
        return rows, header

    @replace(module, "format_for_json", shows=True)
    def format_for_json(original: Original, packages: Any, options: Any) -> str:
        text: str = original(packages, options)
        labels = [label_of(dist) for dist in packages]
        if not any(labels):
            return text
        items = json.loads(text)
        for item, label in zip(items, labels, strict=True):
            if label:
                item[KEY] = label
        return json.dumps(items)


def patch_show(module: ModuleType) -> None:
    """Show the label in ``pip show``, after the version."""
    label = ""

    def remember(_nothing: object, info: Any) -> None:
        nonlocal label
        label = ""
        label = label_of(module.get_default_environment().get_distribution(info.name))

    note = guarded(lambda _info: None, remember, shows=True)

    def noted(infos: Iterator[Any]) -> Iterator[Any]:
        for info in infos:
            note(info)  # pip prints one before it takes the next
            yield info

    @replace(module, "search_packages_info", shows=True)
    def search_packages_info(
        original: Original, query: Any, *args: Any, **kwargs: Any
    ) -> Iterator[Any]:
        return noted(original(query, *args, **kwargs))

    @replace(module, "write_output", shows=True)
    def write_output(original: Original, msg: Any, *args: Any) -> None:
        original(msg, *args)
        if label and str(msg).startswith("Version:"):
            original("Variant: %s", label)


def patch_inspect(module: ModuleType) -> None:
    """Show labels in ``pip inspect``."""

    @replace(module.InspectCommand, "_dist_to_dict", shows=True)
    def dist_to_dict(original: Original, self: Any, dist: Any) -> Any:
        return _labelled(original(self, dist), label_of(dist))


def patch_report(module: ModuleType) -> None:
    """Show labels and publishers' names in the installation report."""

    @replace(module.InstallationReport, "_install_req_to_dict", shows=True)
    def install_req_to_dict(original: Original, cls: Any, ireq: Any) -> Any:
        from .._links import catalog_link, label_of_link
        from .._session import last_session

        # A wheel from pip's cache has the link of its source.
        link = getattr(ireq, "link", None)
        label = label_of_link(link) if link is not None else None
        item, known = original(cls, ireq), catalog_link(link)
        if known is not None and known.origin:
            item = {**item, "metadata": {**item["metadata"], **known.origin}, OF: known.entry.name}
        session = last_session()
        note = (
            session.version_notes.get(canonicalize_name(ireq.name or ""))
            if session is not None
            else None
        )
        if note is not None:
            item = {**item, VERSION: note._asdict()}
        return _labelled(item, label or "")


def _labelled(item: dict[str, Any], label: str) -> dict[str, Any]:
    return {**item, KEY: label} if label else item


def patch_freeze_command(module: ModuleType) -> None:
    """Leave out the shim where pip leaves out itself."""
    if not BUILT_IN:

        @replace(module, "_dev_pkgs", shows=True)
        def dev_pkgs(original: Original) -> AbstractSet[str]:
            return {*original(), *OWN}


def patch_freeze(module: ModuleType) -> None:
    """Write publishers' names; editable projects and those from a URL have their own lines."""

    @replace(module.FrozenRequirement, "from_dist", shows=True)
    def from_dist(original: Original, cls: Any, dist: Any) -> Any:
        frozen = original(cls, dist)
        if frozen.editable or dist.direct_url is not None:
            return frozen
        origin = origin_of(dist)
        if origin is None:
            label = read_record(dist, FORCED_FILE)
            if label is None or label != label_of(dist):  # not that of a build of the catalogue
                return frozen
            from pep_variants import preferences as user_preferences

            comment = user_preferences.label_comment(dist.canonical_name, label)
            return cls(frozen.name, frozen.req, frozen.editable, [*frozen.comments, comment])
        return cls(frozen.name, origin.requirement, frozen.editable, frozen.comments)
