"""GPU code inside of what is installed, against the GPUs that are here.

The files are judged, whatever metadata says of them, and so are projects that no catalogue knows.
Without GPU code nothing follows: some make it when they run.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from packaging.version import Version

import pep_variants
from pep_variants import limits, machines, safe_files, wheel_files
from pep_variants.errors import listed
from pep_variants.metadata import Metadata
from pep_variants.wheel_files import GpuCode, combined, sorted_targets

from ._findings import Part

if TYPE_CHECKING:
    from pep_variants.machines import Platform
    from pep_variants.wheel_files import Installed

    from .._cache import Store

Codes = Mapping[str, Mapping[str, GpuCode]]
"""GPU code of libraries by path, by project."""

_EXAMINED = Metadata(("nvidia", "amd", "x86_64"))
_LIBRARIES = ("nvidia-", "rocm-")
"""Beginnings of the names of vendors' libraries, of which each is for some GPUs alone."""
_FOR_VERSION = re.compile(r"(cuda|rocm)([0-9]{2,3})(?![0-9])")
_TORCH = re.compile(r"^(cuda|hip)\b.*= '([0-9]+)\.([0-9]+)", re.MULTILINE)
_KIND = "gpu-code"
_MOST_FILES = 100_000
"""Files of a distribution that are looked at where its folders have to be searched."""


class Lacking(NamedTuple):
    """A distribution without code for a GPU that is here, or for the CPU.

    Attributes:
        item: the distribution.
        text: what it lacks, and what it has.
        gpu: the GPU, as a machine in the words of `load_machine`; empty for the CPU.
        fails: it has code for no GPU here of the vendors that it is made for, or not for NVIDIA's
            newest, which programs take first.
    """

    item: Installed
    text: str
    gpu: str = ""
    fails: bool = False


def read_codes(items: Iterable[Installed], store: Store | None) -> Codes:
    """Return the code of what is installed.

    Neither a library nor a RECORD that *store* knows is read again while it is the same file.

    Args:
        items: what is installed.
        store: where it is kept, None for nowhere.
    """
    items = [item for item in items if item.folder]
    name = json.dumps([pep_variants.__version__, *sorted({_place(item) for item in items})])
    data = store.get(_KIND, name) if store is not None else None
    kept: dict[str, list[Any]] = {} if data is None else json.loads(data)
    used: dict[str, list[Any]] = {}

    def known(path: str, read: Callable[[], Any]) -> Any:  # noqa: ANN401
        try:
            status = os.stat(path)  # noqa: PTH116 - thousands of them
        except (OSError, ValueError):
            return None
        identity = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
        same = kept.get(path)
        used[path] = same if same and same[0] == identity else [identity, read()]
        return used[path][1]

    found: dict[str, dict[str, GpuCode]] = {}
    for item in items:
        paths = known(f"{item.folder}/{wheel_files.RECORD_FILE}", partial(_listed, item))
        for path in paths or _searched(item):
            if tree := known(path, partial(_tree, path)):
                found.setdefault(item.project, {})[path] = _code(tree)
    if store is not None and used != kept:
        store.put(_KIND, name, json.dumps(used).encode())
    return found


def _tree(path: str) -> list[Any]:
    """Return the code of a library for JSON, empty for none."""
    code = wheel_files.file_code(path)
    values = vars(code).values() if code or code.isa else ()
    return [sorted(value) if isinstance(value, frozenset) else value for value in values]


def _code(tree: list[Any]) -> GpuCode:
    values: list[Any] = [frozenset(each) if isinstance(each, list) else each for each in tree]
    return GpuCode(*values)


def _listed(item: Installed) -> list[str]:
    return [*filter(wheel_files.may_have_code, wheel_files.installed_files(item))]


def _searched(item: Installed) -> Iterator[str]:
    """Yield the libraries of *item* where RECORD has none.

    They are in the checkout of a distribution that is installed as editable, or beside the metadata
    where another package manager leaves RECORD out.
    """
    places = [] if Path(item.folder, wheel_files.RECORD_FILE).exists() else [_place(item)]
    with suppress(ValueError, TypeError, LookupError):  # it may be anything
        origin = json.loads(_text(item, "direct_url.json"))
        if origin["dir_info"]["editable"] and safe_files.is_local(origin["url"]):
            root = safe_files.local_path(origin["url"])
            places = [str(root), str(root / "src")]
    names = _text(item, "top_level.txt") if places else ""
    for place in places:
        for name in (names or item.project.replace("-", "_")).split():
            walked = os.walk(Path(place, name)) if name.isidentifier() else ()
            paths = (os.path.join(folder, each) for folder, _, files in walked for each in files)  # noqa: PTH118
            yield from filter(wheel_files.may_have_code, islice(paths, _MOST_FILES))


def _place(item: Installed) -> str:
    return str(Path(item.folder).parent)


def _text(item: Installed, name: str) -> str:
    with suppress(OSError, ValueError):
        return safe_files.read_text(Path(item.folder, name), limits.DOCUMENT_BYTES)
    return ""


def find_lacking(
    items: Sequence[Installed],
    codes: Codes,
    detect: Callable[[Metadata], Platform],
    required: Collection[str] = (),
) -> Iterator[Lacking]:
    """Yield what lacks code for each kind of GPU that is here, and for the CPU.

    Args:
        items: what is installed.
        codes: from `read_codes`.
        detect: gives the supported values for metadata, e.g. `Detector.platform`.
        required: projects that others require: a framework answers for the libraries of a vendor.
    """
    platform = detect(_EXAMINED)
    gpus = machines.gpus(platform)
    titles = {gpu: f"AMD GPU {gpu}" if gpu.startswith("gfx") else f"compute capability {gpu}"
              for gpu in gpus}  # fmt: skip
    newest = max((gpu for gpu in gpus if gpus[gpu]), key=Version, default="")
    levels = platform.support("x86_64").features.get("level", ())
    torch = next((item for item in items if item.project == "torch"), None)
    versions = {} if torch is None else _versions(torch)
    for item in items:
        libraries = codes.get(item.project, {})
        if not libraries or (item.project in required and item.project.startswith(_LIBRARIES)):
            continue
        loaded = list(_loaded(libraries, gpus.values(), versions))
        code = combined(loaded)
        name, has = f"{item.project} {item.version}", f"it has {shown_code(code)}"
        runs = {gpu: _runs(loaded, gpu, driver) for gpu, driver in gpus.items()}
        is_known = bool(code.cuda or code.ptx or code.hip) and not code.packed
        if is_known and set(runs.values()) == {None}:
            text = f"{name} has no code for {listed([*titles.values()], 'or')}: {has}"
            yield Lacking(item, text, _machine(*next(iter(gpus.items()))))
        for gpu in [gpu for gpu in gpus if runs[gpu] is False]:
            which = "the GPU that is here" if len(gpus) == 1 else "one of the GPUs that are here"
            text = f"{name} has no code for {which}, {titles[gpu]}: {has}"
            if code.runs_on(gpu):
                text += f", and its PTX needs CUDA driver {code.ptx_driver} or newer"
            fails = gpu == newest or True not in runs.values()
            yield Lacking(item, text, _machine(gpu, gpus[gpu]), fails)
        if levels and code.isa and code.isa not in levels:
            text = f"{name} has libraries for CPUs of x86-64-{code.isa}, this one has"
            yield Lacking(item, f"{text} x86-64-{levels[0]}")


def _machine(gpu: str, driver: str) -> str:
    return f"cuda={driver},sm={gpu}" if driver else f"gfx={gpu}"


def _runs(codes: Collection[GpuCode], gpu: str, driver: str) -> bool | None:
    """Return whether one of *codes* runs on *gpu*, None if none that can be read is for it."""
    runs = {code.runs_on(gpu, driver) for code in codes}
    is_packed = not driver and any(code.packed for code in codes)
    return True if True in runs else None if is_packed or False not in runs else False


def _loaded(
    libraries: Mapping[str, GpuCode],
    drivers: Iterable[str],
    versions: Mapping[str, tuple[int, int]],
) -> Iterator[GpuCode]:
    """Yield the code of the libraries that are loaded, as far as their names tell.

    Of several that are for a version of CUDA or ROCm each, that is the one for torch's; else any
    that the driver is new enough for.
    """
    newest = max((int(text.partition(".")[0]) for text in drivers if text), default=None)
    alike: dict[tuple[str, str], dict[tuple[int, int], GpuCode]] = {}
    for path, code in libraries.items():
        match = _FOR_VERSION.search(Path(path).name)
        if match is None:
            yield code
            continue
        digits = 2 if match[1] == "cuda" else 1
        version = int(match[2][:digits]), int(match[2][digits:] or 0)
        alike.setdefault((match[1], path.replace(match[0], "")), {})[version] = code
    for (kind, _), found in alike.items():
        own = versions.get(kind)
        fitting = [code for version, code in found.items()
                   if kind != "cuda" or newest is None or version[0] <= newest]  # fmt: skip
        yield from [found[own]] if own in found else fitting or found.values()


def _versions(torch: Installed) -> dict[str, tuple[int, int]]:
    """Return the version of CUDA or ROCm that torch is built for, which others follow."""
    with suppress(OSError, ValueError):
        text = safe_files.read_text(Path(_place(torch), "torch/version.py"), limits.DOCUMENT_BYTES)
        return {kind.replace("hip", "rocm"): (int(major), int(minor))
                for kind, major, minor in _TORCH.findall(text)}  # fmt: skip
    return {}


def code_part(items: Iterable[Installed], codes: Codes) -> Part:
    """Return the part about the GPU code of what is installed."""
    read = {name: shown_code(combined(found.values())) for name, found in codes.items()}
    return Part(tuple(
        (f"{item.project} {item.version}", read[item.project])
        for item in items if item.project in read
    ))  # fmt: skip


def shown_code(code: GpuCode) -> str:
    """Return in words what *code* is for."""
    kinds = {
        "CUDA code for": [*map(_dotted, sorted_targets(code.cuda))],
        "PTX for": [*map(_dotted, sorted_targets(code.ptx))],
        "HIP code for": sorted_targets(code.hip),
        "SYCL code for": sorted(code.sycl),
        "HIP code": ["that is packed"] if code.packed else [],
        "libraries for": [f"x86-64-{code.isa}"] if code.isa else [],
    }
    return listed([f"{kind} {', '.join(names)}" for kind, names in kinds.items() if names], "and")


def _dotted(code: str) -> str:
    """Return code such as ``90a`` as a compute capability, ``9.0a``."""
    digits = code.rstrip("af")
    return f"{digits[:-1]}.{digits[-1:]}{code[len(digits) :]}"
