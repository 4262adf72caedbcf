"""`variants inspect`: metadata, and the GPU code of libraries."""

import contextlib
import hashlib
import json
import os
import random
import struct
import subprocess
import sys

import pytest

from support.gpu_libraries import bundle, elf, library
from support.loopback import served_folder

V3 = {"x86_64": {"level": ["v3"], "avx2": ["on"]}}
NAME = "example_pkg-1.0-7-py3-none-any.manylinux_2_28_x86_64-x86_64_v3.whl"


def test_variant_wheel(build_wheel, variant_json, variants):
    wheel = build_wheel(NAME, variant=variant_json("x86_64_v3", V3))
    result = variants("inspect", wheel)
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines() == [
        f"filename    {NAME}",
        "name        example-pkg",
        "version     1.0",
        "build       7",
        "tags        py3-none-any",
        "            py3-none-manylinux_2_28_x86_64",
        "label       x86_64_v3",
        "schema      https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json",
        "namespaces  x86_64",
        "variants    x86_64_v3: x86_64 :: level :: v3, x86_64 :: avx2 :: on",
    ]
    assert variants("inspect", wheel, "--json").json == {
        "filename": NAME,
        "name": "example-pkg",
        "version": "1.0",
        "build": "7",
        "tags": ["py3-none-any", "py3-none-manylinux_2_28_x86_64"],
        "label": "x86_64_v3",
        "schema": "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json",
        "namespaces": ["x86_64"],
        "providers": {},
        "variants": {"x86_64_v3": V3},
        "problems": [],
        "libraries": {},
        "proposed": {},
        "gpus": {},
    }


def test_plain_wheel(build_wheel, variants):
    wheel = build_wheel()
    assert variants("inspect", wheel).out.splitlines() == [
        f"filename  {wheel.name}",
        "name      example-pkg",
        "version   1.0",
        "tags      py3-none-any",
        "label     none (not a variant wheel)",
    ]
    tree = variants("inspect", wheel, "--json").json
    assert (tree["label"], tree["variants"], tree["problems"]) == (None, {}, [])


def test_providers_of_every_kind(build_wheel, variant_json, variants):
    tree = variant_json(
        "x",
        {"a": {"f": ["1"]}},
        namespaces=("a", "b", "c", "d"),
        providers={
            "a": {"requires": ["acme>=1", "helper"], "plugin-api": "acme.plugin:Acme"},
            "b": {"builtin": "b", "optional": True},
            "c": {"static-properties": {"f": ["2", "1"], "g": ["on"]}, "feature-order": ["g", "f"]},
            "d": {"requires": ["old"]},
        },
    )
    tree["$schema"] = "https://variants-schema.wheelnext.dev/v0.2.0.json"
    wheel = build_wheel("example_pkg-1.0-py3-none-any-x.whl", variant=tree)
    lines = variants("inspect", wheel).out.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("providers"))
    assert lines[start : start + 4] == [
        "providers   a: requires :: acme>=1, requires :: helper, plugin-api :: acme.plugin:Acme",
        "            b: builtin :: b, optional :: True",
        "            c: static-properties :: g :: on, static-properties :: f :: 2, "
        "static-properties :: f :: 1",
        "            d: requires :: old",
    ]
    assert variants("inspect", wheel, "--json").json["providers"] == {
        "a": {"requires": ["acme>=1", "helper"], "plugin-api": "acme.plugin:Acme"},
        "b": {"builtin": "b", "optional": True},
        "c": {"static-properties": {"g": ["on"], "f": ["2", "1"]}},
        "d": {"requires": ["old"]},
    }


def test_disagreement(build_wheel, variant_json, variants):
    """The other ways to disagree are in test_index."""
    wheel = build_wheel("demo-1.0-py3-none-any-v4.whl", variant=variant_json("v3", V3))
    problem = "the filename has label 'v4', but variant.json describes 'v3'"
    result = variants("inspect", wheel)
    assert result.code == 0
    assert result.out.splitlines()[-1].startswith("problems ")
    assert result.out.splitlines()[-1].endswith(problem)
    assert variants("inspect", wheel, "--json").json["problems"] == [problem]


def test_broken_metadata_is_one_line(build_wheel, variants):
    wheel = build_wheel(NAME, variant='{"variants": {"x\\n\\u001b[31m": {}}}')
    result = variants("inspect", wheel)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"error: {wheel}: example_pkg-1.0.dist-info/variant.json: ")
    assert "\x1b" not in result.err
    assert len(result.err.splitlines()) == 1


LIBRARIES = {
    "app/cuda.so": library(cuda=["75", "86", "90a"], ptx=["90"], version="8.6"),
    "app/hip.so": library(hip=["gfx1100", "gfx90a:sramecc+:xnack-"], isa=0b111),
    "app/old.so": library(cuda=["60"]),
    "app/plain.so": library(),
    "app/sycl.so": elf({"__CLANG_OFFLOAD_BUNDLE__sycl-spir64": b""}),
}
PROPERTIES = [f"{number}_real" for number in (60, 75, 86, 90)]
PROPERTIES += [f"{number}_virtual" for number in (90, 100, 110, 120)]


def test_gpu_code(build_wheel, variants):
    wheel = build_wheel(files=LIBRARIES)
    result = variants("inspect", wheel, "--platform", "cuda=12.8,sm=12.0,gfx=gfx1100+gfx1030")
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines()[6:] == [
        "app/cuda.so  CUDA  75 86 90a",
        "             PTX   90 (CUDA 12.7 or newer)",
        "app/hip.so   CPU   x86-64-v3",
        "             HIP   gfx90a gfx1100",
        "app/old.so   CUDA  60",
        "app/sycl.so  SYCL  spir64",
        "",
        f"properties  nvidia :: sm_arch  {' '.join(PROPERTIES)}",
        "            amd :: gfx_arch    gfx90a gfx1100",
        "",
        "compute capability 12.0  PTX, which the driver compiles at first; none in app/old.so",
        "gfx1100                  machine code",
        "gfx1030                  none: it stops with 'no kernel image is available' or 'invalid "
        "device function'",
    ]
    tree = variants("inspect", wheel, "--json", "--platform", "cuda=12.8,sm=7.0").json
    assert (list(tree["libraries"]), tree["gpus"]) == (
        [path for path in LIBRARIES if "plain" not in path],
        {"7.0": False},
    )
    assert tree["libraries"]["app/cuda.so"] == {
        "cuda": ["75", "86", "90a"], "ptx": ["90"], "ptx-version": "8.6", "hip": [], "sycl": [],
        "isa": None, "packed": False,
    }  # fmt: skip
    assert tree["libraries"]["app/hip.so"]["isa"] == "v3"
    assert tree["proposed"] == {
        "nvidia": {"sm_arch": PROPERTIES},
        "amd": {"gfx_arch": ["gfx90a", "gfx1100"]},
    }


@pytest.mark.parametrize(
    ("files", "machine", "verdict"),
    [
        ({"a.so": library(cuda=["80"])}, "cuda=12.0,sm=8.6", "8.6  machine code"),
        ({"a.so": library(ptx=["80"], version="8.7")}, "cuda=12.0,sm=9.0",
         "9.0  PTX of CUDA 12.8, which a driver of CUDA 12.0 does not read"),
        # A library by itself decides, not the newest PTX of all.
        ({"a.so": library(ptx=["80"], version="8.7"), "b.so": library(ptx=["80"], version="7.8")},
         "cuda=12.0,sm=9.0", "9.0  PTX, which the driver compiles at first; none in a.so"),
        ({"a.so": library(cuda=["80"])}, "gfx=gfx1100", "gfx1100  none of its vendor"),
        ({"a.so": elf({".hip_fatbin": b"CCOB".ljust(5000, b"\7")})}, "gfx=gfx1100",
         "gfx1100  not known: it is packed"),
    ],
)  # fmt: skip
def test_what_it_means_for_a_machine(build_wheel, variants, files, machine, verdict):
    result = variants("inspect", build_wheel(files=files), "--platform", machine)
    assert result.out.splitlines()[-1].endswith(verdict)


def test_gpu_of_this_machine(build_wheel, variants, monkeypatch):
    monkeypatch.setenv("NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION", "12.8")
    monkeypatch.setenv("NV_VARIANT_PROVIDER_FORCE_SM_ARCH", "9.0")
    wheel = build_wheel(files={"a.so": library(cuda=["80"])})
    assert variants("inspect", wheel, "--json").json["gpus"]["9.0"] is False


def test_no_gpu_code_is_not_nowhere(build_wheel, variants):
    result = variants("inspect", build_wheel(files={"a.so": library()}))
    assert result.out.splitlines()[-2:] == [
        "",
        "no GPU code  is inside: kernels may be made at run time, or be in other projects",
    ]
    # Code for CPUs is none for GPUs.
    result = variants("inspect", build_wheel(files={"a.so": library(isa=0b111)}))
    assert result.out.splitlines()[-3:-2] == ["a.so  CPU  x86-64-v3"]
    assert result.out.splitlines()[-1].startswith("no GPU code  is inside")


def test_folders_of_kernels_are_one_row(build_wheel, variants):
    files = {f"rocblas/library/k{number}.co": bundle(["gfx942"]) for number in range(21)}
    files["rocblas/library/other.co"] = bundle(["gfx90a"])
    result = variants("inspect", build_wheel(files=files))
    assert "rocblas/library/*.co (22 files)  HIP  gfx90a gfx942" in result.out.splitlines()
    assert len(variants("inspect", build_wheel(files=files), "--json").json["libraries"]) == 22


def test_code_that_is_compressed_with_zstandard(build_wheel, variants):
    try:
        from compression import zstd
    except ImportError:
        from backports import zstd
    # Nothing comes out of a block before its end, which is far behind for code of some size.
    for code in (b"", random.Random(1).randbytes(60_000)):
        packed = zstd.compress(bundle(["gfx942", "gfx1201"]) + code + bytes(200_000))
        header = struct.pack("<4sHHII8x", b"CCOB", 2, 1, 24 + len(packed), 0)
        wheel = build_wheel(files={"a.so": elf({".hip_fatbin": header + packed})})
        assert "a.so  HIP  gfx942 gfx1201" in variants("inspect", wheel).out.splitlines()


def test_wheel_at_a_url(tmp_path, build_wheel, variants):
    wheel = build_wheel(folder=tmp_path / "site", files={"a.so": library(cuda=["80"])})
    with served_folder(tmp_path / "site") as base:
        url = f"{base}{wheel.name}"
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        tree = variants("inspect", f"{url}#sha256={digest}", "--json").json
        assert tree == variants("inspect", wheel, "--json").json
        assert tree == variants("inspect", url, "--json").json
        other = variants("inspect", f"{url}#sha256={'0' * 64}")
        missing = variants("inspect", f"{base}gone-1.0-py3-none-any.whl")
    assert (other.code, other.out) == (1, "")
    assert "sha256" in other.err.lower()
    assert (missing.code, missing.out) == (1, "")
    assert "gone-1.0-py3-none-any.whl: not found" in missing.err
    assert variants("inspect", wheel.as_uri(), "--json").json == tree
    assert variants("inspect", "https://index.example/simple/").code == 1
    assert "not a valid URL" in variants("inspect", "https://[/a-1.0-py3-none-any.whl").err


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_a_terminal_sees_how_it_goes(build_wheel):
    """Large libraries take seconds: their names are shown, and stdout stays JSON."""
    import pty

    wheel = build_wheel(files={"app/large.so": library(cuda=["90"])})
    main, child = pty.openpty()
    process = subprocess.Popen(
        [
            sys.executable, "-c", "from variants_cli.main import main; main()",
            "inspect", str(wheel), "--json",
        ],
        stdout=subprocess.PIPE, stderr=child, env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
    )  # fmt: skip
    os.close(child)
    shown = b""
    with contextlib.suppress(OSError):  # on Linux, at the end
        while chunk := os.read(main, 4096):
            shown += chunk
    assert json.loads(process.communicate(timeout=60)[0])["libraries"]
    os.close(main)
    assert b"large.so" in shown or b"reading libraries" in shown, shown


def test_damaged_library_is_one_line(build_wheel, variants):
    wheel = build_wheel(files={"a.so": library(cuda=["80"])}, method=0)
    wheel.write_bytes(wheel.read_bytes().replace(b"\x50\xed\x55\xba", b"\0" * 4))
    result = variants("inspect", wheel)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"error: {wheel}: a.so cannot be read: ")
    assert len(result.err.splitlines()) == 1
