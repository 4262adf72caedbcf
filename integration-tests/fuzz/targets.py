"""The readers of untrusted bytes, as functions that a fuzzer can call.

A target gets bytes and returns, or raises one of the errors that its reader documents. Any other
exception is a defect. Targets check more than that where a reader has a property to hold: what is
written reads back equal, what is reduced stays reduced.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from packaging.markers import default_environment
from packaging.specifiers import SpecifierSet
from packaging.tags import sys_tags

from pep_variants._choose.explanation import notices, verdicts
from pep_variants._choose.preferences import read_configuration
from pep_variants._choose.ranking import rank
from pep_variants._detect.detector import Detector
from pep_variants._formats.merging import merge
from pep_variants._formats.platform_file import read_platform, write_platform
from pep_variants._formats.reader import read_metadata, read_pyproject
from pep_variants._formats.writer import write_metadata
from pep_variants._gpucode.libraries import library_code
from pep_variants._lazy_file import read_content_range
from pep_variants._lock.lock_selection import Machine, select_packages
from pep_variants._model.filename import parse_filename, parse_metadata_filename
from pep_variants._model.metadata import Metadata
from pep_variants._model.platform import Platform
from pep_variants._settings.allow_list import AllowList
from pep_variants._wheelfile.core_metadata import requirements_of
from pep_variants._wheelfile.record import read_record, with_contents, write_record
from pep_variants._wheelfile.rewriting import with_metadata
from pep_variants._wheelfile.wheel import open_wheel
from pep_variants._wheelfile.zip_rewriting import read_directory, with_local_headers
from pep_variants.errors import LockError, VariantError
from pep_variants.labels import split_label
from pep_variants.markers import (
    VariantContext,
    metadata_terms,
    reduce_metadata,
    reduce_requirement,
    variant_terms,
)
from resolvelib_variants.resolution import ResolverError, read_file
from uv_variants._uv_lock import Lock
from variants_catalog._entry_reader import read_entry
from variants_cli._matrix.combination import combine, metadata_of
from variants_cli._matrix.reading import read_matrix
from variants_index._errors import PackageIndexError
from variants_index._lock_files import read_lock
from variants_index.pages import JSON, Page, html_page, json_page, read_page
from variants_plugins._answer import read_answer
from variants_proxy._choice.wheel_environments import environments
from variants_proxy._key import decode
from variants_proxy._pages.merged_metadata import WheelMetadata, merge_metadata
from variants_proxy.errors import ProxyError

from .seeds import seeds

EXPECTED = (VariantError, PackageIndexError, ResolverError, ProxyError)

_URL = "https://index.example/simple/name/"
_MACHINE = Machine(default_environment(), [*sys_tags()])  # type: ignore[arg-type]
_CONTEXT = VariantContext("cu128", {"nvidia": {"sm_arch": ("90_real",)}})


def check(target: str, data: bytes) -> None:
    """Call the reader of `TARGETS`; let through what is a defect."""
    with contextlib.suppress(*EXPECTED):
        TARGETS[target](data)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _document(data: bytes) -> None:
    metadata = read_metadata(data, _URL)
    _used(metadata)
    written = write_metadata(metadata)
    if read_metadata(written, _URL).variants != metadata.variants:
        raise AssertionError("what is written reads back differently")


def _used(metadata: Metadata) -> None:
    """Do with *metadata* what every client does."""
    environment = {"python_version": "3.12", "platform_system": "Linux", "sys_platform": "linux"}
    detector = Detector(
        environment=environment, platform=read_platform(seeds("platform")[0], "platform.toml")
    )
    platform = detector.platform(metadata)
    ranking = rank(metadata, platform)
    verdicts(ranking, None)
    notices(ranking)


def _merging(data: bytes) -> None:
    first, _, second = data.partition(b"\0")
    one, other = read_metadata(first, "a"), read_metadata(second, "b")
    try:
        merged = merge(one, other)
    except VariantError:
        with contextlib.suppress(VariantError):
            merge(other, one)
            raise AssertionError("merging depends on the order of its sources") from None
        raise
    if merged.variants != merge(other, one).variants:
        raise AssertionError("merging depends on the order of its sources")


def _marker(data: bytes) -> None:
    text = _text(data)
    variant_terms(text)
    _reduced_twice(f"a;{text}")


def _reduced_twice(requirement: str) -> None:
    reduced = reduce_requirement(requirement, _CONTEXT)
    if reduced is not None and reduce_requirement(reduced, _CONTEXT) != reduced:
        raise AssertionError(f"{reduced!r} can be reduced further")


def _core_metadata(data: bytes) -> None:
    metadata_terms(data)
    reduced = reduce_metadata(data, _CONTEXT)
    if reduce_metadata(reduced, _CONTEXT) != reduced:
        raise AssertionError("what is reduced can be reduced further")
    wheels = [
        WheelMetadata("a-1-py3-none-manylinux_2_28_x86_64.whl", "x", reduced),
        WheelMetadata("a-1-py3-none-any.whl", None, b"Name: a\nRequires-Dist: b\n"),
    ]
    merged = merge_metadata(wheels, 2**24)
    own = set(requirements_of(reduced))
    if merged is not None and len(requirements_of(merged)) < len(own):
        raise AssertionError("dependencies are lost")


def _filename(data: bytes) -> None:
    text = _text(data)
    split_label(text)
    parse_metadata_filename(text)
    environments([text, "a-1-py3-none-any.whl"])
    parsed = parse_filename(text)
    if parse_filename(text) != parsed:
        raise AssertionError("two readings differ")


def _platform(data: bytes) -> None:
    platform = read_platform(data, "platform.toml")
    read_platform(write_platform(platform, "fuzz"), "platform.toml")


def _allowed_requirements(data: bytes) -> None:
    own, _, asked = _text(data).partition("\0")
    AllowList.parse([own]).judge(asked.split("\0"), {"python_version": "3.12", "extra": ""})


def _wheel(data: bytes) -> None:
    with open_wheel(io.BytesIO(data), "name-1.0-py3-none-any-cu128.whl") as wheel:
        wheel.variant_metadata()
        wheel.read("METADATA")


def _library(data: bytes) -> None:
    code = library_code(io.BytesIO(data), "kernels_gfx90a.co")
    for gpu in ("7.5", "12.0", "gfx1100"):
        code.runs_on(gpu, "12.8")
    code.properties()
    if code | code != code:
        raise AssertionError("a library together with itself is another one")


def _wheel_rewriting(data: bytes) -> None:
    stream = io.BytesIO(data)
    directory = read_directory(stream, "name.whl")
    with open_wheel(stream, "name-1.0-py3-none-any-cu128.whl") as wheel:
        rewrite = with_metadata(wheel, stream, b"Metadata-Version: 2.4\n")
    target = io.BytesIO()
    rewrite.write(stream, target)
    if len(target.getvalue()) != rewrite.size:
        raise AssertionError("the result has another size than announced")
    with_local_headers(directory, stream, "name.whl")


def _record(data: bytes) -> None:
    rows = read_record(data, "RECORD")
    if write_record(rows) != data:
        raise AssertionError("what is read is written differently")
    with_contents(rows, "name-1.0.dist-info/METADATA", b"x")


def _page(data: bytes, kind: str, write: Callable[[Page], bytes]) -> None:
    page = read_page(data, kind, _URL, "name")
    if read_page(write(page), kind, _URL, "name").files != page.files:
        raise AssertionError("what is written reads back differently")
    for file in page.files:
        if not file.url.startswith(("http://", "https://")):
            raise AssertionError(f"a page of an index links to {file.url!r}")


@contextlib.contextmanager
def _file(data: bytes, name: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, name).write_bytes(data)
        yield Path(folder, name)


def _lock_file(data: bytes) -> None:
    with _file(data, "pylock.toml") as path:
        lock = read_lock(path)
    with contextlib.suppress(LockError):  # nothing of it fits, most of the time
        select_packages(lock.tree, "fuzzed", _MACHINE, lambda _: Platform())


def _uv_lock(data: bytes) -> None:
    lock = Lock(text=data.decode("utf-8", "replace"))
    _ = lock.wheels, lock.names, lock.labels, lock.versions, lock.indexes


def _requirements_file(data: bytes) -> None:
    with _file(data, "requirements.txt") as path:
        read_file(path, {})


def _matrix(data: bytes) -> None:
    with _file(data, "matrix.toml") as path, contextlib.suppress(OSError):  # of what it extends
        matrix = read_matrix(path)
        metadata_of(matrix, combine(matrix))


def _catalog(data: bytes) -> None:
    entry = read_entry(data, "fuzz.toml")
    _ = entry.targets, entry.labels_of(SpecifierSet("==1"))


TARGETS: dict[str, Callable[[bytes], object]] = {
    "document": _document,
    "pyproject": lambda data: _used(read_pyproject(data, "pyproject.toml")),
    "merging": _merging,
    "marker": _marker,
    "requirement": lambda data: _reduced_twice(_text(data)),
    "core_metadata": _core_metadata,
    "filename": _filename,
    "platform": _platform,
    "matrix": _matrix,
    "catalog": _catalog,
    "settings": lambda data: read_configuration(data, "variants.toml"),
    "plugin_answer": lambda data: read_answer(data, "acme", "acme-provider"),
    "allowed_requirements": _allowed_requirements,
    "wheel": _wheel,
    "library": _library,
    "wheel_rewriting": _wheel_rewriting,
    "record": _record,
    "html_page": lambda data: _page(data, "text/html", html_page),
    "json_page": lambda data: _page(data, JSON, json_page),
    "content_type": lambda data: read_page(b"<a href='a-1-py3-none-any.whl'>", _text(data), _URL),
    "content_range": lambda data: read_content_range(_text(data)),
    "lock_file": _lock_file,
    "uv_lock": _uv_lock,
    "requirements_file": _requirements_file,
    "platform_key": lambda data: decode(_text(data)),
}
