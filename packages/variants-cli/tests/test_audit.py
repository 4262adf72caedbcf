"""The audit of instructions: names of extensions, and libraries from a real compiler in wheels."""

import platform
import shutil
import struct
import subprocess
import sys
import time

import pytest

from variants_cli.audit import wheel_audit
from variants_cli.audit.audit_findings import audit_findings, check_instructions, summary
from variants_cli.audit.declared import declared, level_of
from variants_cli.audit.extensions import arm_extension, evex_extension, x86_extension
from variants_cli.audit.fatbin import gpu_code
from variants_cli.audit.library import Library, Use
from variants_cli.audit.wheel_audit import WheelAudit, audit_wheel

EVEX, VEX, LEGACY = 0x62, 0xC5, 0x0F


@pytest.mark.parametrize(
    ("first", "instruction", "extension"),
    [
        (LEGACY, "movaps xmm0, xmm1", ""),
        (0xF3, "tzcnt eax, eax", ""),  # rep bsf on older CPUs
        (LEGACY, "verr ax", ""),
        (LEGACY, "vmcall", ""),
        (LEGACY, "pshufb xmm0, xmm1", "ssse3"),
        (LEGACY, "pmulld xmm0, xmm1", "sse4_1"),
        (LEGACY, "popcnt eax, eax", "popcnt"),
        (VEX, "vmovaps xmm0, xmm1", "avx"),
        (VEX, "vpaddd xmm0, xmm1, xmm2", "avx"),
        (VEX, "vpaddd ymm0, ymm1, ymm2", "avx2"),
        (VEX, "vpermilps ymm0, ymm1, 3", "avx"),
        (VEX, "vpbroadcastb xmm0, xmm1", "avx2"),
        (VEX, "vextracti128 xmm0, ymm1, 1", "avx2"),
        (VEX, "vpsllvd xmm0, xmm1, xmm2", "avx2"),
        (VEX, "vfmadd213ss xmm0, xmm1, xmm2", "fma"),
        (VEX, "vfmaddpd xmm0, xmm1, xmm2, xmm3", "fma4"),
        (VEX, "vcvtph2ps xmm0, xmm1", "f16c"),
        (VEX, "vpdpbusd ymm0, ymm1, ymm2", "avx_vnni"),
        (VEX, "vaesenc ymm0, ymm1, ymm2", "vaes"),
        (VEX, "shlx eax, eax, ecx", "bmi2"),
        (VEX, "andn eax, eax, ecx", "bmi1"),
        (VEX, "kmovw k1, eax", "avx512f"),
        (VEX, "kmovd k1, eax", "avx512bw"),
        (VEX, "kortestb k1, k1", "avx512dq"),
        (EVEX, "vpaddd zmm0, zmm1, zmm2", "avx512f"),
        (EVEX, "vpaddd ymm0{k1}, ymm1, ymm2", "avx512vl"),
        (EVEX, "vpaddb zmm0, zmm1, zmm2", "avx512bw"),
        (EVEX, "vmovdqu8 ymm0, ymm1", "avx512bw"),
        (EVEX, "vpmovwb ymm0, zmm1", "avx512bw"),
        (EVEX, "vpmullq zmm0, zmm1, zmm2", "avx512dq"),
        (EVEX, "vxorps zmm0, zmm1, zmm2", "avx512dq"),
        (EVEX, "vpconflictd zmm0, zmm1", "avx512cd"),
        (EVEX, "vpdpbusd zmm0, zmm1, zmm2", "avx512_vnni"),
        (EVEX, "vpermb zmm0, zmm1, zmm2", "avx512vbmi"),
        (EVEX, "vaddss xmm16, xmm1, xmm2", "avx512f"),
    ],
)
def test_x86_extension(first, instruction, extension):
    mnemonic, _, operands = instruction.partition(" ")
    assert x86_extension(first, mnemonic, operands) == extension


@pytest.mark.parametrize(
    ("data", "extension"),
    [
        ("62f57c4858c1", "avx512_fp16"),  # vaddph zmm0, zmm0, zmm1
        ("62f27e4852c1", "avx512_bf16"),  # vdpbf16ps zmm0, zmm0, zmm1
        ("62f27e4853c1", ""),
        ("62f5", ""),
        ("0ff57c4858", ""),
    ],
)
def test_instructions_without_a_mnemonic(data, extension):
    assert evex_extension(bytes.fromhex(data)[:5]) == extension


@pytest.mark.parametrize(
    ("instruction", "extension"),
    [
        ("add x0, x0, x1", ""),
        ("ldadd w0, w1, [x2]", "atomics"),
        ("casal x0, x1, [x2]", "atomics"),
        ("ldadda w0, w1, [x2]", "atomics"),
        ("sdot v0.4s, v1.16b, v2.16b", "asimddp"),
        ("smmla v0.4s, v1.16b, v2.16b", "i8mm"),
        ("fmla z0.s, p0/m, z1.s, z2.s", "sve"),
        ("ptrue p0.b", "sve"),
        ("stp x29, x30, [sp]", ""),
    ],
)
def test_arm_extension(instruction, extension):
    mnemonic, _, operands = instruction.partition(" ")
    assert arm_extension(mnemonic, operands) == extension


@pytest.mark.parametrize(
    ("machine", "properties", "title", "allowed", "ruled_out"),
    [
        ("x86_64", {}, "x86-64-v1", "", "sse4_1 avx"),
        ("x86_64", {"level": ("v2",)}, "x86-64-v2", "sse4_2 popcnt", "avx"),
        # Several values are alternatives: the least of them counts.
        ("x86_64", {"level": ("v3", "v4")}, "x86-64-v3", "avx2 bmi2 fma", "avx512f"),
        ("x86_64", {"level": ("v4",), "avx512_vnni": ("on",)}, "x86-64-v4, avx512_vnni",
         "avx512_vnni avx512vl", "avx512_bf16"),
        ("x86_64", {"avx2": ("on",)}, "x86-64-v1, avx2", "avx sse4_1", "avx512f"),
        ("aarch64", {}, "ARMv8a", "", "atomics sve"),
        ("aarch64", {"version": ("8.4a",)}, "ARMv8.4a", "atomics asimddp", "sve i8mm"),
        ("aarch64", {"version": ("9.0a",)}, "ARMv9.0a", "sve asimddp", "i8mm"),
        ("aarch64", {"version": ("8.2a",), "sve2": ("on",)}, "ARMv8.2a, sve2", "sve", "i8mm"),
    ],
)  # fmt: skip
def test_declared(machine, properties, title, allowed, ruled_out):
    found = declared(machine, {machine: properties})
    assert found.title == title
    assert set(allowed.split()) <= found.allowed
    assert not set(ruled_out.split()) & found.allowed


def test_levels():
    assert level_of("x86_64", "avx512bw") == "x86-64-v4"
    assert level_of("x86_64", "fma") == "x86-64-v3"
    assert level_of("x86_64", "avx512_bf16") == ""
    assert level_of("aarch64", "sve") == "ARMv9.0a"
    assert declared("ppc64le", {}) is None


# Wheels with libraries of a real compiler.

SOURCE = """
float sum(float *x, float *y, int n) {
    float s = 0;
    for (int i = 0; i < n; i++) s += x[i] * y[i];
    return s;
}
int count(unsigned *x, int n) {
    int s = 0;
    for (int i = 0; i < n; i++) s += __builtin_popcount(x[i]) + (x[i] >> s);
    return s;
}
"""
CLONES = """
__attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
void scale(float *x, int n) { for (int i = 0; i < n; i++) x[i] *= 3; }
"""
compiler = pytest.mark.skipif(
    shutil.which("cc") is None or sys.platform != "linux" or platform.machine() != "x86_64",
    reason="there is no C compiler for Linux on x86-64 here",
)


@pytest.fixture
def wheel_of(tmp_path, build_wheel, variant_json):
    """Return the function that gives the path of a wheel with a library made from C."""

    def wheel_of(source, flags, properties, label="x"):
        path = tmp_path / "library.c"
        path.write_text(source)
        library = tmp_path / "library.so"
        command = ["cc", "-O3", "-ffast-math", "-shared", "-fPIC", *flags, "-o", library, path]
        subprocess.run(command, check=True)
        label = label if properties else "null"
        return build_wheel(
            f"sample-1.0-cp310-cp310-linux_x86_64-{label}.whl",
            variant=variant_json(label, {"x86_64": properties} if properties else {}),
            files={"sample/library.so": library.read_bytes(), "sample/data.txt": "text"},
        )

    return wheel_of


@compiler
@pytest.mark.parametrize(
    ("source", "flags", "properties", "expected"),
    [
        (SOURCE, [], {}, []),
        (SOURCE, ["-march=x86-64-v3"], {"level": ["v3"]}, []),
        (SOURCE, ["-march=x86-64-v4", "-mprefer-vector-width=512"], {"level": ["v4"]}, []),
        (SOURCE, ["-march=x86-64-v3"], {}, ["instructions-above-label"]),
        (
            SOURCE,
            ["-march=x86-64-v4", "-mprefer-vector-width=512"],
            {"level": ["v2"]},
            ["instructions-above-label"],
        ),
        (SOURCE, [], {"level": ["v3"]}, ["instructions-not-used"]),
        (SOURCE, ["-march=x86-64-v3"], {"level": ["v4"]}, ["instructions-not-used"]),
        # Chosen at run time, whether the names are there or not.
        (CLONES, [], {}, []),
        (CLONES, ["-s"], {}, []),
    ],
)
def test_wheels(wheel_of, variants, source, flags, properties, expected):
    path = wheel_of(source, flags, properties)
    result = variants("validate", path)
    lines = [line for line in result.out.splitlines() if "warning" in line and "[" in line]
    assert [line.rpartition("[")[2].rstrip("]") for line in lines] == expected
    assert result.code == 0
    assert "warning" not in variants("validate", "--no-audit", path).out.replace("warnings", "")


@compiler
def test_words(wheel_of, variants):
    path = wheel_of(SOURCE, ["-march=x86-64-v3"], {"level": ["v2"]})
    line = variants("validate", path).out.splitlines()[0]
    assert line.startswith(f"{path}: sample/library.so: warning: has ")
    assert " (x86-64-v3) in functions such as sum; the label declares x86-64-v2 [" in line
    path = wheel_of(SOURCE, [], {"level": ["v4"], "avx512_vnni": ["on"]})
    out = variants("validate", path).out
    assert "declares avx512_vnni, but nothing in its libraries uses avx512_vnni [" in out
    assert (
        "declares x86-64-v4, but nothing in its libraries uses any of avx512bw, avx512cd, "
        "avx512dq, avx512f, avx512vl ["
    ) in out


@compiler
def test_time_is_bounded(wheel_of):
    path = wheel_of("".join(f"float f{n}(float x) {{ return x * {n}; }}\n" for n in range(15_000)),
                    ["-O0"], {"level": ["v3"]})  # fmt: skip
    start = time.monotonic()
    audit = audit_wheel(path, seconds=0.2)
    assert time.monotonic() - start < 5
    (library,) = audit.libraries
    assert 0 < library.audited < 1
    assert "parts of the code only" in summary(audit) or not library.uses
    (finding,) = audit_findings(audit, "x.whl", {"x86_64": {"level": ("v3",)}})
    assert "% of its code that was looked at" in finding.message


def test_what_is_not_installed(build_wheel, variants, monkeypatch):
    path = build_wheel()
    monkeypatch.setitem(sys.modules, "capstone", None)
    result = variants("validate", path)
    assert result.code == 0
    assert (
        "note: instructions are not audited: capstone is not installed: "
        "pip install 'variants-cli[publish]'\n"
    ) in result.err


def elf(machine):
    """Return a header without sections."""
    numbers = (3, machine, 1, 0, 0, 0, 0, 64, 0, 0, 64, 0, 0)
    return b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack("<HHIQQQIHHHHHH", *numbers)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (elf(243), ("ELF", ("riscv64",), "")),
        (b"\x7fELF", ("ELF", (), "cannot be read")),
        (b"\x7fELF" + b"\xff" * 500, ("ELF", (), "cannot be read")),
        (struct.pack("<II", 0xFEEDFACF, 0x0100000C), ("Mach-O", ("arm64",), "only ELF")),
        (
            struct.pack(">II", 0xCAFEBABE, 2)
            + struct.pack(">IIIII", 0x01000007, 0, 0, 0, 0)
            + struct.pack(">IIIII", 0x0100000C, 0, 0, 0, 0),
            ("Mach-O", ("x86_64", "arm64"), "only ELF"),
        ),
        (struct.pack(">II", 0xCAFEBABE, 0x41), None),  # a class file of Java
        (
            b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", 0x40) + b"PE\0\0\x64\x86",
            ("PE", ("AMD64",), "only ELF"),
        ),
        (b"MZ", None),
        (b"text", None),
    ],
)
def test_formats(build_wheel, data, expected):
    audit = audit_wheel(build_wheel(files={"x/library": data}))
    if expected is None:
        assert audit == WheelAudit(())
        return
    (library,) = audit.libraries
    kind, machines, problem = expected
    assert (library.kind, library.machines) == (kind, machines)
    assert library.problem.startswith(problem)
    assert bool(library.problem) == bool(problem)
    codes = [finding.code for finding in audit_findings(audit, "x.whl", {})]
    assert codes == (["library-unreadable"] if kind == "ELF" and problem else [])
    if problem:
        assert summary(audit) == "no extensions; not looked at: x/library"


def test_broken_archive(tmp_path):
    path = tmp_path / "x-1-py3-none-any-null.whl"
    path.write_bytes(b"none")
    assert check_instructions(path, None) == []


def fatbin(*entries):
    """Kind and architecture of each; as nvcc writes them."""
    body = b""
    for kind, architecture in entries:
        body += struct.pack("<HHIQIIHHI", kind, 0x101, 64, 16, 0, 0, 8, 1, architecture)
        body += b"\0" * (64 - 32 + 16)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def test_gpu_code():
    section = fatbin((2, 80), (2, 90)) + b"\0" * 24 + fatbin((1, 90), (2, 120))
    assert gpu_code([section, fatbin((2, 75))]) == (("75", "80", "90", "120"), ("90",))
    assert gpu_code([b"\0" * 64, b""]) == ((), ())
    assert gpu_code([section[:30]]) == ((), ())
    huge = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 2**63)
    assert gpu_code([huge + fatbin((2, 80))]) == ((), ())


@pytest.mark.parametrize(
    ("values", "missing"),
    [
        (["90_real", "90a_real", "90_virtual", "120_virtual", "86_real"], []),
        (["100_real", "89_virtual", "90_real"], ["100_real", "89_virtual"]),
    ],
)
def test_gpu_code_and_label(values, missing):
    library = Library("x.so", "ELF", ("x86_64",), audited=1, cubins=("80", "90"), ptx=("90",))
    found = audit_findings(WheelAudit((library,)), "x.whl", {"nvidia": {"sm_arch": tuple(values)}})
    assert [finding.message.split()[7].rstrip(",") for finding in found] == missing
    assert summary(WheelAudit((library,))) == "no extensions; sm_80, sm_90; PTX 90"


def test_few_instructions_are_no_evidence():
    """Data between functions looks like code."""

    def codes(use, *, dispatch=False):
        library = Library(
            "x.so", "ELF", ("x86_64",), {"avx512f": use}, 1000, 1.0, dispatch=dispatch
        )
        return [item.code for item in audit_findings(WheelAudit((library,)), "x.whl", {})]

    assert codes(Use(1, ("f",))) == []
    assert codes(Use(2, ("f",))) == ["instructions-above-label"]
    assert codes(Use(200, ("f_avx512",), chosen=200)) == []
    assert codes(Use(5, ("f",)), dispatch=True) == []
    assert codes(Use(500, ("0x1000",), unnamed=500), dispatch=True) == []
    assert codes(Use(500, ("0x1000",), unnamed=500)) == ["instructions-above-label"]
    assert codes(Use(500, ("f",)), dispatch=True) == ["instructions-above-label"]


def test_libraries_there_is_no_time_for(build_wheel):
    path = build_wheel(files={"x/library.so": elf(62)})
    audit = audit_wheel(path, seconds=0)
    assert audit.left_out == ("x/library.so",)
    assert wheel_audit.SECONDS > 1
