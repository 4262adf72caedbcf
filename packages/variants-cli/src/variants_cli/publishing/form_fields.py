"""The form fields of one upload: the core metadata of the distribution, its kind and its digests.

Names are those of Warehouse's form (https://docs.pypi.org/api/upload/). Values are sent as the
distribution has them: `Requires-Dist` may have variant markers, which `checks` has looked at and
which validators of released upload tools refuse.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from packaging.metadata import parse_email
from packaging.version import InvalidVersion, Version

from pep_variants.errors import InvalidSdist, InvalidWheel
from pep_variants.model.filename import parse_filename
from pep_variants.wheelfile.core_metadata import METADATA_FILE
from pep_variants.wheelfile.sdist import read_pkg_info
from pep_variants.wheelfile.wheel import open_wheel

from .attestations import form_value
from .errors import Changed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from .target import ReleaseFile

    Fields = dict[str, str | list[str]]

_CHUNK = 1024 * 1024

# As packaging names a field: as the form does.
_TEXT = {
    "metadata_version": "metadata_version",
    "name": "name",
    "version": "version",
    "summary": "summary",
    "description": "description",
    "description_content_type": "description_content_type",
    "home_page": "home_page",
    "download_url": "download_url",
    "author": "author",
    "author_email": "author_email",
    "maintainer": "maintainer",
    "maintainer_email": "maintainer_email",
    "license": "license",
    "license_expression": "license_expression",
    "requires_python": "requires_python",
}
_LISTS = {
    "platforms": "platform",
    "supported_platforms": "supported_platform",
    "classifiers": "classifiers",
    "requires": "requires",
    "provides": "provides",
    "obsoletes": "obsoletes",
    "requires_dist": "requires_dist",
    "provides_dist": "provides_dist",
    "obsoletes_dist": "obsoletes_dist",
    "requires_external": "requires_external",
    "provides_extra": "provides_extra",
    "dynamic": "dynamic",
    "license_files": "license_file",
    "import_names": "import_names",
    "import_namespaces": "import_namespaces",
}
# Fields that a packaging which is older than them leaves unparsed.
_NEWER = {
    "license-expression": "license_expression",
    "license-file": "license_file",
    "import-name": "import_names",
    "import-namespace": "import_namespaces",
}
_LICENSE_FILES_SINCE = Version("2.4")


def read_core_metadata(path: Path) -> bytes:
    """Return METADATA of a wheel, or PKG-INFO of a source distribution.

    Raises:
        InvalidWheel, InvalidSdist: the archive is not usable, or has no such file.
        OSError: it cannot be read.
    """
    with path.open("rb") as stream:
        if path.name.endswith(".whl"):
            with open_wheel(stream, str(path)) as contents:
                data = contents.read(METADATA_FILE)
            if data is None:
                raise InvalidWheel(f"{path}: has no {contents.dist_info}/{METADATA_FILE}")
            return data
        data = read_pkg_info(stream, path.name, str(path))
    if data is None:
        raise InvalidSdist(f"{path}: has no PKG-INFO: build it again with a PEP 517 build backend")
    return data


def digests_of(path: Path) -> dict[str, str]:
    """Return the hexadecimal digests of *path* by the names of their form fields.

    Those that this Python does not provide (FIPS 140) are left out, as twine leaves them out.
    """
    found: dict[str, hashlib._Hash | hashlib.blake2b] = {"sha256_digest": hashlib.sha256()}
    try:
        found["md5_digest"] = hashlib.md5(usedforsecurity=False)
        found["blake2_256_digest"] = hashlib.blake2b(digest_size=32)
    except (ValueError, AttributeError):
        pass
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            for digest in found.values():
                digest.update(chunk)
    return {name: digest.hexdigest() for name, digest in found.items()}


def distribution_fields(file: ReleaseFile) -> Fields:
    """Return the form fields of the upload of *file*.

    Raises:
        Changed: it is not the file any more that was checked.
        InvalidWheel, InvalidSdist: it is not usable.
        OSError: it cannot be read.
    """
    path = file.distribution.path
    fields = core_metadata_fields(read_core_metadata(path))
    if path.name.endswith(".whl"):
        python_tags = {tag.interpreter for tag in parse_filename(path.name).tags}
        fields |= {"filetype": "bdist_wheel", "pyversion": ".".join(sorted(python_tags))}
    else:
        fields |= {"filetype": "sdist", "pyversion": "source"}
    digests = digests_of(path)
    if digests["sha256_digest"] != file.distribution.sha256:
        raise Changed(
            f"{path}: was changed while it was published: sha256 was "
            f"{file.distribution.sha256}, is {digests['sha256_digest']}: run the command again"
        )
    fields |= digests
    if file.attestations:
        fields["attestations"] = form_value(file.attestations)
    return {**_action(), **fields}


def document_fields(name: str, version: str, data: bytes) -> Fields:
    """Return the form fields of the upload of a ``*-variants.json``."""
    return {
        **_action(),
        "metadata_version": "2.1",
        "name": name,
        "version": version,
        "filetype": "variants_json",
        "sha256_digest": hashlib.sha256(data).hexdigest(),
    }


def core_metadata_fields(metadata: bytes) -> Fields:
    """Return the form fields that repeat *metadata*, a METADATA or PKG-INFO file."""
    raw, unparsed = parse_email(metadata)
    values: Mapping[str, object] = dict(raw)
    fields: Fields = {}
    for name, field in _TEXT.items():
        if isinstance(text := values.get(name), str):
            fields[field] = text
    for name, field in _LISTS.items():
        if isinstance(items := values.get(name), list):
            fields[field] = [str(item) for item in items]
    if keywords := raw.get("keywords"):
        fields["keywords"] = ",".join(keywords)
    if urls := raw.get("project_urls"):
        fields["project_urls"] = [f"{label}, {url}" for label, url in urls.items()]
    for name, field in _NEWER.items():
        if found := [text for text in unparsed.get(name, ()) if isinstance(text, str)]:
            fields.setdefault(field, found[0] if field in _TEXT.values() else found)
    # GitLab requires the field.
    fields.setdefault("requires_python", "")
    if _metadata_version(fields) < _LICENSE_FILES_SINCE:
        # setuptools wrote License-File with a metadata version that does not have it.
        fields.pop("license_file", None)
    return fields


def _action() -> Fields:
    return {":action": "file_upload", "protocol_version": "1"}


def _metadata_version(fields: Fields) -> Version:
    try:
        return Version(str(fields.get("metadata_version", "0")))
    except InvalidVersion:
        return Version("0")
