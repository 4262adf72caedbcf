"""`variants inspect`: shows the variant metadata and the GPU code of a wheel."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import click

from pep_variants import machines, wheel_files
from pep_variants import metadata as variant_metadata
from pep_variants import preferences as user_preferences
from pep_variants.errors import in_words, redacted
from pep_variants.metadata import Metadata
from pep_variants.preferences import Sources
from pep_variants.wheel_files import GpuCode
from variants_index import finder as package_finder
from variants_index.finder import Session
from variants_index.http import PackageIndexError

from .._console import grouped, print_json, print_table, some, warn
from .._detection import detector_for
from .._indexing.wheelhouse import label_problem
from .arguments import json_option, option_values, path_or_url, preference_options
from .index_options import progress

if TYPE_CHECKING:
    from pep_variants.metadata import Properties, ProviderInfo

_WIDEST = 10_000
"""Characters that are shown of one variant or provider."""

_FEW = 20
"""So many files of one kind and folder have a row each; JSON has all."""

_WITHOUT = "is inside: kernels may be made at run time, or be in other projects"
_NO_IMAGE = "none: it stops with 'no kernel image is available' or 'invalid device function'"


@click.command()
@click.argument("wheel", metavar="WHEEL", type=path_or_url)
@preference_options("variant-platform")
@json_option
def inspect(wheel: Path | str, as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """Show label, properties, providers and GPU code of a wheel.

    WHEEL is a file, or a URL, which is downloaded. Reports disagreements of filename and contents,
    and whether the GPUs of this machine, or of --platform, have code in it. Nothing of the wheel
    is run, and no tool of CUDA or ROCm is needed.
    """
    name = wheel.name if isinstance(wheel, Path) else unquote(urlsplit(wheel).path.split("/")[-1])
    filename = wheel_files.parse_filename(name)
    with _opened(wheel) as stream:
        source = redacted(str(wheel))
        with wheel_files.open_wheel(stream, source, filename=name) as contents:
            metadata = contents.variant_metadata()
            may_have_code = any(map(wheel_files.may_have_code, contents.archive.namelist()))
        with progress("reading libraries") as show:
            codes = wheel_files.wheel_code(stream, source, show or (lambda _: None))
    code = wheel_files.combined(codes.values())
    gpus = _gpus(options) if code else {}
    problem = label_problem(filename.label, metadata)
    metadata = metadata or Metadata(())
    tree: dict[str, Any] = {
        "filename": name,
        "name": filename.name,
        "version": str(filename.version),
        "build": "".join(map(str, filename.build)) or None,
        "tags": sorted(map(str, filename.tags)),
        "label": filename.label,
        "schema": metadata.schema,
        "namespaces": list(metadata.namespaces),
        "providers": {
            namespace: _provider_tree(provider)
            for namespace, provider in sorted(metadata.providers.items())
        },
        "variants": {
            label: variant_metadata.properties_tree(dict(sorted(properties.items())))
            for label, properties in sorted(metadata.variants.items())
        },
        "problems": [problem] if problem else [],
    }
    proposed = variant_metadata.group_properties(code.properties())
    if as_json:
        tree["libraries"] = {path: _code_tree(each) for path, each in codes.items()}
        tree["proposed"] = variant_metadata.properties_tree(proposed)
        tree["gpus"] = {gpu: _runs(codes, gpu, driver) for gpu, driver in gpus.items()}
        print_json(tree)
        return
    print_table(("", ""), list(grouped(_rows(tree))))
    merged = _merged(codes)
    for headers, rows in (
        (("library", "code", "for"), list(grouped(_code_rows(merged)))),
        (("", ""), [("no GPU code", _WITHOUT)] if may_have_code and not code else []),
        (("", "feature", "values"), list(grouped(_property_rows(proposed)))),
        (("GPU", "code for it"), list(_verdicts(merged, gpus))),
    ):
        if rows:
            click.echo()
            print_table(headers, rows)


@contextmanager
def _opened(wheel: Path | str) -> Iterator[IO[bytes]]:
    """Yield the *wheel*, a path or a URL, seekable."""
    if isinstance(wheel, Path):
        with wheel.open("rb") as stream:
            yield stream
        return
    hashes = dict([urlsplit(wheel).fragment.partition("=")[::2]])
    try:
        with (
            Session(Sources.from_environ(os.environ)) as session,
            package_finder.downloaded(session, session.add_index(wheel), hashes) as stream,
        ):
            yield stream
    except PackageIndexError as error:
        raise click.ClickException(str(error)) from None


def _gpus(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the GPUs of the machine, each with the newest CUDA version of its driver."""
    preferences = user_preferences.load_preferences(option_values(options), os.environ, warn=warn)
    return machines.gpus(detector_for(preferences).platform(Metadata(("nvidia", "amd"))))


def _code_tree(code: GpuCode) -> dict[str, Any]:
    kinds = {kind: getattr(code, kind) for kind in ("cuda", "ptx", "hip", "sycl")}
    return {
        **{kind: wheel_files.sorted_targets(targets) for kind, targets in kinds.items()},
        "ptx-version": code.ptx_version or None,
        "isa": code.isa or None,
        "packed": code.packed,
    }


def _merged(codes: Mapping[str, GpuCode]) -> dict[str, GpuCode]:
    """Return the code by path; of folders with many files of a kind, such as kernels, together."""
    folders = {path: re.sub(r"[^/]*(\.[^./]*)$", r"*\1", path) for path in codes}
    numbers = Counter(folders.values())
    merged: dict[str, GpuCode] = defaultdict(GpuCode)
    for path, code in codes.items():
        number = numbers[folders[path]]
        merged[path if number <= _FEW else f"{folders[path]} ({number:,} files)"] |= code
    return merged


def _code_rows(codes: Mapping[str, GpuCode]) -> Iterator[tuple[str, str, str]]:
    """Yield path, kind and targets of the code of each library."""
    for path, code in codes.items():
        driver = f" (CUDA {code.ptx_driver} or newer)" if code.ptx_driver else ""
        level = [f"x86-64-{code.isa}"] if code.isa else []
        for kind, targets, more in (
            ("CUDA", code.cuda, ""), ("PTX", code.ptx, driver), ("CPU", level, ""),
            ("HIP", code.hip, " (packed, not read)" * code.packed), ("SYCL", code.sycl, ""),
        ):  # fmt: skip
            if text := f"{' '.join(wheel_files.sorted_targets(targets))}{more}".strip():
                yield path, kind, text


def _property_rows(properties: Properties) -> Iterator[tuple[str, str, str]]:
    for namespace, features in properties.items():
        for feature, values in features.items():
            yield "properties", f"{namespace} :: {feature}", " ".join(values)


def _runs(codes: Mapping[str, GpuCode], gpu: str, driver: str) -> bool | None:
    """Return whether any library has code that runs on *gpu*, as `GpuCode.runs_on`."""
    found = {code.runs_on(gpu, driver) for code in codes.values()}
    return True if True in found else False if False in found else None


def _verdicts(codes: Mapping[str, GpuCode], gpus: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each GPU and what there is for it, in words."""
    code = wheel_files.combined(codes.values())
    for gpu, driver in gpus.items():
        is_amd = gpu.startswith("gfx")
        runs = _runs(codes, gpu, driver)
        if runs:
            is_compiled = not replace(code, ptx=frozenset()).runs_on(gpu)
            text = "PTX, which the driver compiles at first" if is_compiled else "machine code"
            lacking = [path for path, each in codes.items() if each.runs_on(gpu, driver) is False]
            text += f"; none in {some(lacking, 3)}" if lacking else ""
        elif code.packed and is_amd:
            text = "not known: it is packed"
        elif runs is None:
            text = "none of its vendor"
        elif code.runs_on(gpu):
            text = f"PTX of CUDA {code.ptx_driver}, which a driver of CUDA {driver} does not read"
        else:
            text = _NO_IMAGE
        yield gpu if is_amd else f"compute capability {gpu}", text


def _provider_tree(provider: ProviderInfo) -> dict[str, Any]:
    """Return *provider* with the keys that the metadata format has, those that are set."""
    tree: dict[str, Any] = {
        "requires": list(provider.requires),
        "plugin-api": provider.plugin_api,
        "builtin": provider.builtin,
        "enable-if": provider.enable_if,
        "optional": provider.optional,
    }
    tree = {key: value for key, value in tree.items() if value}
    if provider.static is not None:
        values = provider.static.items()
        tree["static-properties"] = {feature: list(found) for feature, found in values}
    return tree


def _rows(tree: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what is shown to people, each item of a key by itself."""
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from ((key, f"{name}: {in_words(each, _WIDEST)}") for name, each in value.items())
        elif isinstance(value, list):
            yield from ((key, text) for text in value)
        elif value is not None:
            yield key, value
        elif key == "label":
            yield key, "none (not a variant wheel)"
