"""Preparation of files: markers are reduced, metadata is checked, some wheels are rewritten."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from pip._internal.exceptions import InstallationError

from pep_variants import labels as wheel_labels

from .._distributions import noted_origins
from .._errors import VariantsOff
from .._guard import Original, replace, switch
from .._links import rewritten_link
from .._markers import preparing
from .._session import session_of


def patch_prepare(module: ModuleType) -> None:
    """Set which file is prepared, and check wheels against the metadata of the index."""

    @replace(module.RequirementPreparer, "_fetch_metadata_only")
    def fetch_metadata(original: Original, self: Any, req: Any) -> Any:
        with preparing(req.link):
            return original(self, req)

    @replace(module.RequirementPreparer, "_prepare_linked_requirement", always=True, checks=True)
    def prepare_linked(original: Original, self: Any, req: Any, *args: Any, **kwargs: Any) -> Any:
        link = req.link  # pip may replace it by the one of a cached or downloaded file
        label = wheel_labels.split_label(link.filename)[1]
        if not switch.on:
            if label is not None:
                raise VariantsOff(switch.reason)
            return original(self, req, *args, **kwargs)
        with preparing(link):
            dist = original(self, req, *args, **kwargs)
        if label is not None:
            session = session_of(self.finder)
            if session is None:
                raise InstallationError(
                    f"{link.filename} is a variant wheel, and variants are switched off: use a "
                    "non-variant wheel, or run pip without --no-variants or the legacy resolver"
                )
            session.get_ordering().check(link, label, dist.read_text)
        return dist

    # Also after variants were switched off: the requirement stands for the rewritten wheel.
    @replace(module, "_get_prepared_distribution", always=True)
    def get_prepared_distribution(original: Original, req: Any, *args: Any, **kwargs: Any) -> Any:
        _rewrite(req)
        return original(req, *args, **kwargs)

    @replace(module.RequirementPreparer, "_fetch_metadata_using_lazy_wheel")
    def fetch_lazily(original: Original, self: Any, link: Any) -> Any:
        return None if rewritten_link(link) is not None else original(self, link)

    @replace(module, "_check_download_dir")
    def check_download_dir(original: Original, link: Any, *args: Any, **kwargs: Any) -> Any:
        known = rewritten_link(link)
        return original(link if known is None else known.published, *args, **kwargs)

    @replace(module.RequirementPreparer, "save_linked_requirement")
    def save_linked_requirement(original: Original, self: Any, req: Any) -> None:
        with _as_published(req):
            original(self, req)


def _rewrite(requirement: Any) -> None:
    """Have pip read and install the rewritten wheel, if that of *requirement* is rewritten.

    pip has just checked the hash of the published file.

    Raises:
        VariantError: the wheel is not valid, or of another project or version than its filename.
    """
    known = rewritten_link(requirement.link)
    if known is None:
        return
    from pip._internal.utils.misc import hash_file
    from pip._internal.utils.temp_dir import TempDirectory

    from pep_variants import wheel_files
    from variants_catalog import installed_builds

    known.downloaded = path = requirement.local_file_path
    url = str(known.url_without_fragment)
    is_known = known.hash_name == "sha256"
    hashes = {"sha256": known.hash if is_known else hash_file(path)[0].hexdigest()}
    folder = TempDirectory(kind="variant", globally_managed=True).path
    requirement.local_file_path = os.path.join(folder, known.filename)  # noqa: PTH118
    with (
        open(path, "rb") as stream,  # noqa: PTH123 - pip gives text
        wheel_files.open_wheel(stream, url, filename=known.file.published) as contents,
        open(requirement.local_file_path, "wb") as target,  # noqa: PTH123
    ):
        added = installed_builds.added_files(known.entry, known.file, url, hashes)
        if wheel_labels.ORIGIN_FILE in added:
            noted_origins.add((known.entry.name, added[wheel_labels.ORIGIN_FILE]))
        installed_builds.rewritten(contents, stream, known.entry, known.file, added).write(
            stream, target
        )


@contextmanager
def _as_published(requirement: Any) -> Iterator[None]:
    """Give *requirement* the publisher's file, to be saved under its own name."""
    known, path = rewritten_link(requirement.link), requirement.local_file_path
    if known is None:
        yield
        return
    requirement.link, requirement.local_file_path = known.published, known.downloaded
    try:
        yield
    finally:
        requirement.link, requirement.local_file_path = known, path
