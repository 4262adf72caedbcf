"""GPU code of libraries, of wheels and of what is installed."""

import io
import struct
import time

import pytest

from pep_variants._gpucode import libraries, sections
from pep_variants.errors import InvalidWheel
from pep_variants.wheel_files import (
    GpuCode,
    combined,
    find_installed,
    installed_code,
    library_code,
    may_have_code,
    wheel_code,
)
from support.gpu_libraries import (
    AMD_MACHINE,
    CUDA_MACHINE,
    bundle,
    elf,
    fat_binary,
    isa_note,
    library,
    mach,
    pe,
    wheel_of,
)

ARCHITECTURES = ["75", "86", "90a", "100f", "120"]
CUDA = GpuCode(
    cuda=frozenset(ARCHITECTURES), ptx=frozenset({"90", "120a"}), ptx_version="8.7"
)  # fmt: skip
TWO = GpuCode(hip=frozenset({"gfx90a", "gfx1100"}))


def code_of(data, name="lib.so"):
    return library_code(io.BytesIO(data), name)


def cuda(*codes):
    return GpuCode(cuda=frozenset(codes))


@pytest.mark.parametrize("padding", [0, 8, 4096])
@pytest.mark.parametrize(
    ("write", "names"),
    [
        (elf, (".nv_fatbin", "__nv_relfatbin")),
        (pe, (".nv_fatb", "__nv_rel")),
        (mach, ("__nv_fatbin", "__nv_relfatbin")),
    ],
)
def test_cuda_in_each_kind_of_library(write, names, padding):
    one = fat_binary(["75"]) + bytes(padding) + fat_binary(["86", "90a"], ["90"])
    two = fat_binary(["100f", "120"], ["120a"], version="8.6", code=b"compressed, never read")
    assert code_of(write({"__text": b"\x90" * 100, names[0]: one, names[1]: two})) == CUDA
    assert code_of(write({"__text": one})) == GpuCode()


def test_code_of_no_section_is_left_out():
    """A table of fat binaries is in a section that is named alike."""
    assert not code_of(elf({".nvFatBinSegment": fat_binary(["75"])}))
    assert not code_of(pe({".nvFatBi": fat_binary(["75"])}))


def test_entries_of_no_known_kind_are_skipped():
    data = bytearray(fat_binary(["75", "80"], ["90"]))
    struct.pack_into("<H", data, 16, 64)
    assert code_of(elf({".nv_fatbin": bytes(data)})).cuda == {"80"}


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_hip_in_bundles(version):
    first = bundle(["gfx90a:sramecc+:xnack-"], version=version)
    both = first.ljust(-(-len(first) // 4096) * 4096, b"\0") + bundle(["gfx1100"], version=version)
    assert code_of(elf({".hip_fatbin": both})) == TWO
    assert code_of(pe({".hip_fat": both})) == TWO
    assert code_of(both, "kernels.co") == TWO


def test_compressed_code_that_cannot_be_read_is_said():
    data = bytearray(bundle(["gfx90a"], version=2))
    data[-40:] = bytes(40)
    data[24:30] = b"\xff" * 6
    assert code_of(bytes(data), "kernels.hsaco") == GpuCode(packed=True)
    unknown = struct.pack("<4sHHII8x", b"CCOB", 9, 7, 100, 100) + bytes(100)
    assert code_of(unknown, "kernels.hsaco") == GpuCode(packed=True)


def test_kernels_in_files_of_their_own():
    note = b"amdhsa.target: amdgcn-amd-amdhsa--gfx942:sramecc+\n"
    kernel = elf({".note": note}, machine=AMD_MACHINE)
    assert code_of(kernel, "kernels.co").hip == {"gfx942"}
    assert code_of(kernel, "Kernels.so-000-gfx1100.hsaco").hip == {"gfx1100"}
    assert code_of(b"\x82\xa4", "library/TensileLibrary_lazy_gfx90a.dat").hip == {"gfx90a"}
    assert code_of(b"\x82\xa4", "library/TensileLibrary.dat") == GpuCode()
    for abi, flags, code in [
        (7, 0x5A055A, "90"), (7, 0x5A0D5A, "90a"), (8, 0x04007802, "120"), (8, 0x0400640A, "100a"),
    ]:  # fmt: skip
        kernel = elf({".text": b"\0"}, machine=CUDA_MACHINE, abi=abi, flags=flags)
        assert code_of(kernel, "kernel.cubin") == cuda(code)
    assert code_of(fat_binary(["80"]), "kernel.fatbin") == cuda("80")
    text = b"//\n// Generated\n//\n\n.version 8.7\n.target sm_90a\n.address_size 64\n"
    assert code_of(text, "kernel.ptx") == GpuCode(ptx=frozenset({"90a"}), ptx_version="8.7")
    assert code_of(b".target", "kernel.ptx") == GpuCode()


def test_sycl():
    names = ("__CLANG_OFFLOAD_BUNDLE__sycl-spir64", "__CLANG_OFFLOAD_BUNDLE__sycl-spir64_gen")
    assert code_of(elf(dict.fromkeys(names, b"\0"))).sycl == {"spir64", "spir64_gen"}


@pytest.mark.parametrize(("bits", "level"), [(1, ""), (3, "v2"), (7, "v3"), (15, "v4"), (0, "")])
def test_level_that_a_library_declares(bits, level):
    assert code_of(library(isa=bits) if bits else elf({})) == GpuCode(isa=level)
    used = struct.pack("<3I4x", 0xC0010002, 4, 1)
    note = isa_note(bits)
    assert code_of(elf({".note.gnu.property": note[:16] + used + note[16:]})).isa == level


def test_level_of_code_for_a_mac():
    assert code_of(mach({"__text": b"\0"}, subtype=8)).isa == "v3"
    assert code_of(mach({"__text": b"\0"})).isa == ""


def test_library_for_two_cpus():
    one, two = mach({"__nv_fatbin": fat_binary(["75"])}), mach({"__nv_fatbin": fat_binary(["80"])})
    offsets = (4096, 4096 + -(-len(one) // 4096) * 4096)
    head = struct.pack(">4sI", b"\xca\xfe\xba\xbe", 2)
    head += b"".join(struct.pack(">8xIII", offset, len(one), 12) for offset in offsets)
    data = head.ljust(offsets[0], b"\0") + one
    assert code_of(data.ljust(offsets[1], b"\0") + two) == cuda("75", "80")
    java = b"\xca\xfe\xba\xbe" + struct.pack(">HHH", 0, 52, 300) + b"\7\0" * 600
    assert code_of(java) == GpuCode()


def test_more_sections_than_the_header_has_room_for():
    """The count is then in the first row, and so is the number of the names (ELF, `e_shnum`)."""
    data = bytearray(elf({".nv_fatbin": fat_binary(["75"])}))
    (table,) = struct.unpack_from("<Q", data, 40)
    struct.pack_into("<HH", data, 60, 0, 0xFFFF)
    struct.pack_into("<Q", data, table + 32, 3)
    struct.pack_into("<I", data, table + 40, 2)
    assert code_of(bytes(data)) == cuda("75")


@pytest.mark.parametrize(
    ("code", "runs", "not_"),
    [
        (cuda("75", "86"), "7.5 8.6 8.9", "7.0 8.0 9.0 12.0"),
        (cuda("90a", "100f"), "9.0 10.0 10.3", "8.9 11.0 12.0"),
        (GpuCode(ptx=frozenset({"80"})), "8.0 8.6 9.0 12.1", "7.5"),
        (GpuCode(ptx=frozenset({"90a"})), "9.0", "8.0 10.0 12.0"),
        (GpuCode(hip=frozenset({"gfx90a", "gfx11-generic"})), "gfx90a gfx1103", "gfx908 gfx1200"),
        (GpuCode(hip=frozenset({"gfx10-3-generic"})), "gfx1030 gfx1036", "gfx1010"),
    ],
)
def test_gpus_that_code_runs_on(code, runs, not_):
    assert {gpu: code.runs_on(gpu) for gpu in runs.split()} == dict.fromkeys(runs.split(), True)
    assert {gpu: code.runs_on(gpu) for gpu in not_.split()} == dict.fromkeys(not_.split(), False)


def test_no_code_of_a_vendor_is_not_an_answer():
    assert cuda("75").runs_on("gfx1100") is None
    assert TWO.runs_on("8.6") is None
    assert GpuCode(isa="v3").runs_on("8.6") is None


@pytest.mark.parametrize(
    ("version", "needs"), [("7.8", "11.8"), ("8.7", "12.8"), ("9.2", "13.2"), ("8.99", "11.0")]
)
def test_ptx_needs_a_driver(version, needs):
    code = GpuCode(cuda=frozenset({"80"}), ptx=frozenset({"80"}), ptx_version=version)
    assert code.ptx_driver == needs
    older = f"{int(needs.partition('.')[0]) - 1}.0"
    assert [code.runs_on("9.0", driver) for driver in ("", needs, older)] == [True, True, False]
    assert code.runs_on("8.6", older)


def test_properties_say_what_runs():
    assert [str(each) for each in CUDA.properties()] == [
        f"nvidia :: sm_arch :: {value}"
        for value in "75_real 86_real 90_real 100_real 120_real 90_virtual 100_virtual 110_virtual "
        "120_virtual".split()
    ]
    # There are no other GPUs of this generation with a newer number, so that `a` is no less.
    assert [each.value for each in cuda("90a").properties()] == ["90_real"]
    assert cuda("100a").properties() == ()
    assert [each.value for each in TWO.properties()] == ["gfx90a", "gfx1100"]
    assert combined([cuda("75"), cuda("80"), TWO]) == GpuCode(
        cuda=frozenset({"75", "80"}), hip=TWO.hip
    )


def test_code_of_a_wheel(tmp_path):
    data = wheel_of(
        {
            "app/libcuda.so.1.2": library(cuda=["75"]),
            "app/_app.pyd": pe({".nv_fatb": fat_binary(["80"])}),
            "app/plain.so": elf({".text": b"\0"}),
            "app/fast.so": library(isa=7),
            "app/data.bin": library(cuda=["90"]),
            "app/damaged.so": b"\x7fELF" + bytes(30),
            "app/empty.so": b"",
        }
    )
    code = {
        "app/libcuda.so.1.2": cuda("75"),
        "app/_app.pyd": cuda("80"),
        "app/fast.so": GpuCode(isa="v3"),
    }
    assert wheel_code(io.BytesIO(data), "app.whl") == code
    path = tmp_path / "app-1.0-py3-none-any.whl"
    path.write_bytes(data)
    assert wheel_code(path, str(path)) == code


def test_wheel_that_would_unpack_to_more_than_anything_real(monkeypatch):
    monkeypatch.setattr(libraries, "LIBRARIES_BYTES", 1000)
    data = wheel_of({"app/a.so": bytes(600), "app/b.so": bytes(600)})
    with pytest.raises(InvalidWheel, match="libraries have more than 1000 bytes"):
        wheel_code(io.BytesIO(data), "app.whl")


def test_wheel_with_a_damaged_library():
    data = bytearray(wheel_of({"app/a.so": library(cuda=["75"])}))
    data[30 + len("app/a.so")] = 0xFF  # no kind of block that there is
    with pytest.raises(InvalidWheel, match=r"app/a\.so cannot be read"):
        wheel_code(io.BytesIO(bytes(data)), "app.whl")


def test_code_that_is_installed(tmp_path):
    info = tmp_path / "app-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: app\nVersion: 1.0\n")
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "a.so").write_bytes(library(cuda=["75"]))
    (tmp_path / "app" / "other.so").write_bytes(library(cuda=["80"]))
    rows = ["app/a.so,,", "app/gone.so,,", "app/__init__.py,,", "app/folder.so,,"]
    (tmp_path / "app" / "folder.so").mkdir()
    (info / "RECORD").write_text("\n".join(rows))
    (item,) = find_installed([str(tmp_path)])
    assert installed_code(item) == {str(tmp_path / "app" / "a.so"): cuda("75")}
    (info / "RECORD").unlink()
    (item,) = find_installed([str(tmp_path)])
    assert installed_code(item) == {}


def test_files_that_may_have_code():
    names = "a.so a.so.12 liba.so.1.2.3 a.pyd A.DLL a.dylib a.co a.hsaco a.cubin a.fatbin a.ptx"
    assert all(may_have_code(f"app/{name}") for name in names.split())
    assert not any(may_have_code(name) for name in ["a.py", "a.so.txt", "so", "a.dat", "a.soft"])


def _lies():
    """Yield files that lie about what they have."""
    fat = struct.pack("<4sHHQ", b"\x50\xed\x55\xba", 1, 16, 0)
    yield "empty fat binaries", elf({".nv_fatbin": fat * 500_000})
    yield "wrong fat binaries", elf({".nv_fatbin": b"\x50\xed\x55\xba\xff\xff\0\0" * 500_000})
    entry = struct.pack("<HHIQ8xHHI8xQ16x", 2, 257, 64, 0, 0, 0, 75, 0)
    head = struct.pack("<4sHHQ", b"\x50\xed\x55\xba", 1, 16, 64 * 100_000)
    yield "entries without end", elf({".nv_fatbin": head + entry * 100_000})
    yield "bundles", elf({".hip_fatbin": b"CCOB".ljust(4096, b"\0") * 2000})
    header = bytearray(elf({}))
    struct.pack_into("<QIHHHHHH", header, 40, 64, 0, 64, 0, 0, 0xFFFF, 0xFFFF, 0)
    yield "wide table", bytes(header) + bytes(10_000_000)
    far = bytearray(elf({}))
    struct.pack_into("<Q", far, 40, 2**64 - 1)
    yield "table beyond the end", bytes(far)
    yield (
        "commands",
        struct.pack("<4s7I", b"\xcf\xfa\xed\xfe", 7, 3, 6, 2**32 - 1, 0, 0, 0)
        + (struct.pack("<II16s4QIIII", 0x19, 72, b"", 0, 0, 0, 0, 0, 0, 2**32 - 1, 0) * 50_000),
    )
    yield "rows", b"MZ".ljust(60, b"\0") + struct.pack("<I", 64) + b"PE\0\0" + b"\xff" * 3_000_000


@pytest.mark.parametrize(("name", "data"), [pytest.param(*each, id=each[0]) for each in _lies()])
def test_lies_are_read_within_limits(name, data):
    class Counted(io.BytesIO):
        read_bytes = 0

        def read(self, size=-1):
            found = super().read(size)
            self.read_bytes += len(found)
            return found

    stream = Counted(data)
    start = time.process_time()
    library_code(stream, "lib.so")
    assert stream.read_bytes < 3 * len(data) + 2**20
    assert time.process_time() - start < 20


def test_no_file_makes_a_reader_work_for_long(monkeypatch):
    monkeypatch.setattr(sections, "LIBRARY_READS", 100)
    data = fat_binary(["75"]) + fat_binary(["80"]) * 200 + fat_binary(["90"])
    assert code_of(elf({".nv_fatbin": data})) == cuda("75", "80")


def test_headers_alone_are_read(tmp_path):
    """A library of 1.5 GB, sparse so that only its size is real."""
    path = tmp_path / "lib.so"
    head = elf({".text": b"\0", ".nv_fatbin": fat_binary(["75", "120"], ["120"])})
    (table,) = struct.unpack_from("<Q", head, 40)
    far = 1_500_000_000
    moved = bytearray(head[:table])
    struct.pack_into("<Q", moved, 40, far)
    with path.open("wb") as stream:
        stream.write(moved)
        stream.seek(far)
        stream.write(head[table:])
    with path.open("rb") as stream:
        start = time.process_time()
        code = library_code(stream, "lib.so")
    assert code.cuda == {"75", "120"}
    assert time.process_time() - start < 1
