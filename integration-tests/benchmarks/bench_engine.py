"""Reading and ranking metadata, beside `json.loads` and beside variantlib 0.2.2; GPU code.

`json.loads` is called as others call it, with the garbage collector at work, which our reader
stops for large files: of 30,000 variants that is half of its time.

variantlib gets what our side gets, already parsed and with the supported properties known: the
providers are not part of the comparison.

GPU code is that of a library as large as PyTorch's, in which all but the headers is a hole. Both
sides read it from the page cache.
"""

from __future__ import annotations

import hashlib
import json
import random
import struct
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from pep_variants._choose.ranking import rank
from pep_variants._formats.reader import read_metadata
from pep_variants._model.platform import Platform, Support
from pep_variants._model.property import Property
from pep_variants.wheel_files import library_code
from support.gpu_libraries import elf, fat_binary

from .report import Row, in_turn

SIZES = {10_000: 9, 30_000: 5}
"""Variants in a file, and how often it is read."""
GOAL = 3
LIBRARY_BYTES = 1_000_000_000
KERNELS = ("75", "80", "86", "90", "100", "120")
KERNEL_BYTES = 40_000
_cpu = partial(in_turn, clock=time.process_time)

_CUDA = tuple(f"{major}.{minor}" for major in (13, 12) for minor in range(9, -1, -1))
_LEVELS = ("v4", "v3", "v2", "v1")
_SM = ("120_real", "100_real", "90_real", "89_real", "86_real", "80_real", "75_real")

PLATFORM = Platform(
    {
        "nvidia": Support(
            {
                "cuda_version_lower_bound": _CUDA[_CUDA.index("12.8") :],
                "sm_arch": ("90_real", "90_virtual"),
            }
        ),
        "x86_64": Support({"level": _LEVELS[1:], "avx512_bf16": ("on",), "avx512_vnni": ("on",)}),
        "blas": Support({"library": ("mkl", "openblas", "blis")}),
    }
)


def random_file(variants: int, seed: int = 1) -> dict[str, Any]:
    """Return index metadata (0.2.0) with that many variants, the same for the same seed."""
    choose = random.Random(seed)
    labels: dict[str, Any] = {}
    while len(labels) < variants:
        properties: dict[str, dict[str, list[str]]] = {
            "x86_64": {"level": [choose.choice(_LEVELS)]},
            "blas": {"library": [choose.choice(("mkl", "openblas", "blis", "atlas"))]},
        }
        if choose.random() < 0.7:
            properties["nvidia"] = {
                "cuda_version_lower_bound": [choose.choice(_CUDA)],
                "sm_arch": sorted(choose.sample(_SM, choose.randint(4, 7))),  # as torch lists
            }
        if choose.random() < 0.3:
            properties["x86_64"]["avx512_bf16"] = ["on"]
        labels[f"v{len(labels)}"] = properties
    return {
        "$schema": "https://variants-schema.wheelnext.dev/v0.2.0.json",
        "default-priorities": {"namespace": ["nvidia", "x86_64", "blas"]},
        "providers": {
            "nvidia": {"requires": ["nvidia-variant-provider>=0.0.1,<1"]},
            "x86_64": {"requires": ["provider-variant-x86-64"]},
            "blas": {"static-properties": {"library": ["mkl", "openblas", "blis"]}},
        },
        "variants": labels,
    }


def pytorch_matrix() -> dict[str, Any]:
    """Return the 59 variants of a PyTorch build matrix: GPU architectures by CPU levels."""
    architectures = ("7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "11.0", "12.0")
    builds = ("v2", "v3", "v4", "avx512_vnni", "avx512_bf16", "v3_bf16", "v4_bf16")
    labels: dict[str, Any] = {"null": {}}
    for capability in architectures:
        sm = capability.replace(".", "")
        for build in builds:
            if len(labels) == 57:
                break
            features = {"level": [build[:2] if build[0] == "v" else "v4"]}
            if "_" in build:
                features["avx512_bf16" if "bf16" in build else "avx512_vnni"] = ["on"]
            labels[f"sm{sm}_{build}"] = {
                "nvidia": {
                    "cuda_version_lower_bound": ["12.0" if sm < "90" else "12.8"],
                    "sm_arch": [f"{sm}_real"],
                },
                "x86_64": features,
            }
    for level in ("v3", "v4"):
        labels[f"cpu_{level}"] = {"x86_64": {"level": [level]}}
    tree = random_file(0)
    return {**tree, "variants": labels}


def rows() -> Iterator[Row]:
    """Measure."""
    for size, rounds in SIZES.items():
        data = json.dumps(random_file(size)).encode()
        ours, theirs = _cpu(partial(ranked, data), partial(json.loads, data), rounds=rounds)
        yield Row(
            f"read + rank {size:,} variants", ours * 1e3, theirs * 1e3, "ms", "json.loads",
            f"at most {GOAL}x", ours <= GOAL * theirs,
        )  # fmt: skip
    matrix = json.dumps(pytorch_matrix()).encode()
    ours, theirs = _cpu(partial(ranked, matrix), _variantlib(matrix), rounds=25, warmups=2)
    yield Row(
        "read + rank a PyTorch matrix of 59", ours * 1e3, theirs * 1e3, "ms", "variantlib 0.2.2",
        "at most 1 ms", ours <= 1e-3,
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="variants-bench-") as folder:
        yield _gpu_code(Path(folder, "lib.so"))


def _gpu_code(path: Path) -> Row:
    """Measure finding the GPU code of a library; the memory is that of a call by itself."""
    _write_library(path)

    def read() -> frozenset[str]:
        with path.open("rb") as stream:
            return library_code(stream, path.name).cuda

    def hashed() -> None:
        digest = hashlib.sha256()
        with path.open("rb") as stream:
            while chunk := stream.read(256 * 1024):
                digest.update(chunk)

    tracemalloc.start()
    found = read()
    kilobytes = tracemalloc.get_traced_memory()[1] / 1e3
    tracemalloc.stop()
    if found != set(KERNELS):
        raise RuntimeError(f"found {sorted(found)}")
    ours, theirs = in_turn(read, hashed, rounds=5)
    size = path.stat().st_size / 1e9
    return Row(
        f"GPU code of a library of {size:.1f} GB, {kilobytes:.0f} kB of memory",
        ours * 1e3, theirs * 1e3, "ms", "reading and hashing the file once",
        "at most 1 s and 10 MB", ours <= 1 and kilobytes <= 10_000,
    )  # fmt: skip


def _write_library(path: Path) -> None:
    """Write a library whose section with fat binaries has `LIBRARY_BYTES`."""
    one = fat_binary(KERNELS, code=bytes(KERNEL_BYTES))
    heads = [(0, 16), *((16 + n * (64 + KERNEL_BYTES), 64) for n in range(len(KERNELS)))]
    data = bytearray(elf({".nv_fatbin": b""}))
    (table,) = struct.unpack_from("<Q", data, 40)
    number = LIBRARY_BYTES // len(one)
    start, end = 2**16, 2**16 + number * len(one)
    struct.pack_into("<QQ", data, table + 64 + 24, start, number * len(one))
    struct.pack_into("<Q", data, 40, end)
    with path.open("wb") as stream:
        stream.write(data[:table])
        for place in range(start, end, len(one)):
            for offset, size in heads:
                stream.seek(place + offset)
                stream.write(one[offset : offset + size])
        stream.seek(end)
        stream.write(data[table:])


def ranked(data: bytes) -> tuple[str, ...]:
    """Return the labels that fit `PLATFORM`, best first."""
    return rank(read_metadata(data, "benchmark"), PLATFORM).labels


def _variantlib(data: bytes) -> Callable[[], object]:
    from variantlib.models.variant import VariantProperty
    from variantlib.resolver.lib import sort_and_filter_supported_variants
    from variantlib.variants_json import VariantsJson

    supported = [
        Property(namespace, feature, value)
        for namespace, support in PLATFORM.namespaces.items()
        for feature, values in support.features.items()
        for value in values
    ]

    def call() -> object:
        info = VariantsJson(json.loads(data))
        return sort_and_filter_supported_variants(
            list(info.variants.values()),
            [VariantProperty(*item) for item in supported],
            namespace_priorities=list(info.namespace_priorities),
        )

    return call
