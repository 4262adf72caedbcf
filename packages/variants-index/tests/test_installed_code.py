"""GPU code of what is installed, against GPUs: crafted libraries in folders of packages."""

import io
import json
import shutil
import sys
import zipfile

import pytest

from pep_variants._model.platform import Fact, Platform, Support
from pep_variants._sources import Sources
from pep_variants.machines import load_machine
from pep_variants.preferences import Preferences
from pep_variants.wheel_files import find_installed
from support.gpu_libraries import bundle, elf, library
from support.wheels import Wheel
from variants_index.doctor import Checkup, code_part
from variants_index.doctor._gpu_code import find_lacking, read_codes
from variants_index.finder import Store
from variants_index.target import host_target

PASCAL, T4, H100, RTX_5090 = "6.1", "7.5", "9.0", "12.0"
OPENED = []


def _opened(event, arguments):
    if event == "open":
        OPENED.append(str(arguments[0]))


sys.addaudithook(_opened)


@pytest.fixture
def install(tmp_path):
    """Install wheels with libraries, by path; return the folder of packages."""

    def make(name, libraries, version="1.0", **options):
        folder = tmp_path / "packages"
        with zipfile.ZipFile(
            io.BytesIO(Wheel(name, version, files=libraries, **options).build())
        ) as archive:
            archive.extractall(folder)
        return folder

    return make


def nvidia(*capabilities, driver="13.0"):
    facts = [Fact("CUDA driver", driver, "x")]
    facts += [Fact("compute capability", each, "x") for each in capabilities]
    features = {"sm_arch": ("1_real",), "cuda_version_lower_bound": (driver,)}
    return Platform({"nvidia": Support(features, facts=tuple(facts))})


def amd(*names):
    facts = tuple(Fact("AMD GPU", each, "x") for each in names)
    return Platform({"amd": Support({"gfx_arch": names}, facts=facts)})


def lacking(folder, platform, required=()):
    items = list(find_installed([str(folder)]))
    return list(find_lacking(items, read_codes(items, None), lambda _: platform, required))


@pytest.mark.parametrize(
    ("code", "platform", "has"),
    [
        ({"cuda": ["60", "75"], "ptx": ["75"]}, nvidia(PASCAL), None),
        ({"cuda": ["60", "75"], "ptx": ["75"]}, nvidia(RTX_5090), None),
        ({"cuda": ["75", "80"]}, nvidia("8.6"), None),
        ({"cuda": ["75", "86"]}, nvidia(PASCAL), "CUDA code for 7.5, 8.6"),
        ({"cuda": ["86"], "ptx": ["86"]}, nvidia("8.0"), "CUDA code for 8.6 and PTX for 8.6"),
        ({"cuda": ["75", "90a"], "ptx": ["90a"]}, nvidia(RTX_5090),
         "CUDA code for 7.5, 9.0a and PTX for 9.0a"),
        ({"ptx": ["90"], "version": "8.7"}, nvidia(RTX_5090, driver="12.4"),
         "PTX for 9.0, and its PTX needs CUDA driver 12.8 or newer"),
        ({"hip": ["gfx90a", "gfx1100"]}, amd("gfx1100"), None),
        ({"hip": ["gfx90a", "gfx1100"]}, amd("gfx1201"), "HIP code for gfx90a, gfx1100"),
        ({"cuda": ["75"]}, Platform({}), None),
        ({}, nvidia(PASCAL), None),
        # Machines that are described.
        ({"cuda": ["75"]}, load_machine("cuda=12.8,sm=6.1"), "CUDA code for 7.5"),
        ({"cuda": ["75"]}, load_machine("h100-zen4"), "CUDA code for 7.5"),
        ({"hip": ["gfx90a"]}, load_machine("rocm=7.0,gfx=gfx1100"), "HIP code for gfx90a"),
    ],
)  # fmt: skip
def test_one_gpu(install, code, platform, has):
    found = lacking(install("app", {"app/_kernels.so": library(**code)}), platform)
    assert [each.text.partition(": it has ")[2] for each in found] == ([] if has is None else [has])
    for each in found:
        assert each.fails
        assert each.text.startswith("app 1.0 has no code for the GPU that is here, ")


def test_several_libraries(install):
    """One that runs is enough: others may be for what this GPU cannot do."""
    folder = install(
        "app",
        {
            "app/a.so": library(ptx=["75"], version="8.0"),
            "app/b.so": library(cuda=["90a"], ptx=["80"], version="8.8"),
        },
    )
    assert lacking(folder, nvidia(T4, driver="12.4")) == []
    (each,) = lacking(folder, nvidia(PASCAL, driver="12.4"))
    assert each.text.endswith("it has CUDA code for 9.0a and PTX for 7.5, 8.0")


def test_code_that_is_packed(install):
    """Its targets may be there."""
    data = elf({".hip_fatbin": bundle(["gfx90a"], version=2).replace(b"\2\0\0\0", b"\2\0\7\0", 1)})
    folder = install("app", {"app/a.so": data, "app/b.so": library(hip=["gfx90a"])})
    assert lacking(folder, amd("gfx1100")) == []


def test_several_gpus(install):
    folder = install("app", {"app/_kernels.so": library(cuda=["75", "90"])})
    (older,) = lacking(folder, nvidia(PASCAL, T4, PASCAL))
    assert (older.gpu, older.fails) == ("cuda=13.0,sm=6.1", False)
    assert "one of the GPUs that are here, compute capability 6.1" in older.text
    (newer,) = lacking(folder, nvidia(T4, RTX_5090, H100))
    assert (newer.gpu, newer.fails) == ("cuda=13.0,sm=12.0", True)
    both = lacking(folder, nvidia(PASCAL, RTX_5090))
    assert [each.fails for each in both] == [True, True]


def test_a_gpu_of_another_vendor(install):
    folder = install("app", {"app/_kernels.so": library(cuda=["75"])})
    (hint,) = lacking(folder, amd("gfx1100"))
    assert not hint.fails
    assert hint.text == "app 1.0 has no code for AMD GPU gfx1100: it has CUDA code for 7.5"
    both = Platform({**nvidia(T4).namespaces, **amd("gfx1036").namespaces})
    assert lacking(folder, both) == []


def bits(*numbers):
    codes = {"118": ["60"], "126": ["60", "75"], "128": ["75", "120"], "130": ["75", "120"]}
    return {f"bits/libbits_cuda{each}.so": library(cuda=codes[each]) for each in numbers}


@pytest.mark.parametrize(
    ("torch", "platform", "has"),
    [
        ("12.6", nvidia(PASCAL), None),
        ("12.8", nvidia(PASCAL), "CUDA code for 7.5, 12.0"),
        ("12.6", nvidia(RTX_5090), "CUDA code for 6.0, 7.5"),
        ("", nvidia(PASCAL), None),
        ("", nvidia(RTX_5090), None),
        # Those for CUDA 12 are not loaded.
        ("", nvidia(T4, driver="11.8"), "CUDA code for 6.0"),
        ("11.7", nvidia(T4, driver="11.8"), "CUDA code for 6.0"),
    ],
)
def test_libraries_for_a_version_each(install, torch, platform, has):
    folder = install("bits", bits("118", "126", "128", "130"))
    if torch:
        text = f"__version__ = 'x'\ncuda: Optional[str] = '{torch}'\nhip: Optional[str] = None\n"
        install("torch", {"torch/version.py": text})
    found = [each.text.partition(": it has ")[2] for each in lacking(folder, platform)]
    assert found == ([] if has is None else [has])


def test_libraries_of_the_vendor(install):
    """Those that a framework requires are not judged by themselves."""
    folder = install("nvidia-cusparselt", {"nvidia/lib.so.0": library(cuda=["80"])})
    assert lacking(folder, nvidia(T4), {"nvidia-cusparselt"}) == []
    assert len(lacking(folder, nvidia(T4))) == 1


def test_a_level_of_the_cpu(install):
    folder = install("app", {"app/fast.so": library(isa=0b100)})
    platform = Platform({"x86_64": Support({"level": ("v2", "v1")})})
    (hint,) = lacking(folder, platform)
    assert hint.text == "app 1.0 has libraries for CPUs of x86-64-v3, this one has x86-64-v2"
    assert not hint.fails
    newer = Platform({"x86_64": Support({"level": ("v3", "v2", "v1")})})
    assert lacking(folder, newer) == []


@pytest.mark.parametrize("layout", ["flat", "src"])
def test_an_editable_one(install, tmp_path, layout):
    folder = install("my-app", {"my_app.pth": ""})
    checkout = tmp_path / "checkout"
    origin = {"url": checkout.as_uri(), "dir_info": {"editable": True}}
    (folder / "my_app-1.0.dist-info" / "direct_url.json").write_text(json.dumps(origin))
    store = Store(tmp_path / "cache")
    items = list(find_installed([str(folder)]))
    assert read_codes(items, store) == {}
    place = checkout / ("src" if layout == "src" else ".") / "my_app"
    place.mkdir(parents=True)
    (place / "_C.so").write_bytes(library(cuda=["90"]))  # built by now
    assert list(read_codes(items, store)) == ["my-app"]
    assert len(lacking(folder, nvidia(T4))) == 1


@pytest.mark.parametrize("origin", ["[", "[]", "{}", '{"dir_info": {"editable": 1}, "url": 1}'])
def test_an_origin_that_is_broken(install, origin):
    folder = install("app", {"app/a.py": ""})
    (folder / "app-1.0.dist-info" / "direct_url.json").write_text(origin)
    assert lacking(folder, nvidia(T4)) == []


@pytest.mark.parametrize("named", [True, False])
def test_without_a_record(install, named):
    folder = install(
        "my-app", {"my_app/_C.so": library(cuda=["90"]), "other/x.so": library(cuda=["90"])}
    )
    info = folder / "my_app-1.0.dist-info"
    (info / "RECORD").unlink()
    if named:
        (info / "top_level.txt").write_text("my_app\n../other\n")
    (each,) = lacking(folder, nvidia(T4))
    assert each.text.startswith("my-app 1.0 has no code")


def test_files_that_are_missing_or_damaged(install):
    whole = library(cuda=["90"])
    folder = install(
        "app", {"app/a.so": whole, "app/b.so": whole[:70], "app/c.so": b"", "app/d.so": whole}
    )
    (folder / "app" / "a.so").unlink()
    assert len(lacking(folder, nvidia(T4))) == 1
    (folder / "app" / "d.so").write_bytes(whole[: len(whole) // 2])
    assert lacking(folder, nvidia(T4)) == []
    shutil.rmtree(folder / "app")
    assert lacking(folder, nvidia(T4)) == []


def test_what_was_read_is_kept(install, tmp_path):
    libraries = {f"app/{name}.so": library(cuda=["90"], isa=0b10) for name in "ab"}
    folder = install("app", libraries)
    store = Store(tmp_path / "cache")
    items = list(find_installed([str(folder)]))
    first = read_codes(items, store)
    OPENED.clear()
    assert read_codes(items, store) == first
    assert not [path for path in OPENED if path.endswith((".so", "RECORD"))]
    (folder / "app" / "b.so").write_bytes(library(cuda=["75"], isa=0b10))
    codes = read_codes(items, store)["app"]
    assert [sorted(code.cuda) for code in codes.values()] == [["90"], ["75"]]
    assert [path for path in OPENED if path.endswith(".so")] == 2 * [str(folder / "app" / "b.so")]
    (folder / "app" / "a.so").unlink()
    assert [*read_codes(items, store)["app"]] == [str(folder / "app" / "b.so")]
    # A cache that is damaged, or cannot be written.
    for path in (tmp_path / "cache").rglob("*"):
        if path.is_file():
            path.write_bytes(b"x")
    assert read_codes(items, store)["app"] == {
        str(folder / "app" / "b.so"): codes[str(folder / "app" / "b.so")]
    }
    assert list(read_codes(items, Store(folder / "app" / "b.so"))) == ["app"]


def test_the_part(install):
    folder = install(
        "app", {"app/a.so": library(cuda=["90", "75"], hip=["gfx90a"]), "app/b.so": library(isa=4)}
    )
    install("plain", {"plain/a.so": library()})
    items = list(find_installed([str(folder)]))
    part = code_part(items, read_codes(items, None))
    text = "CUDA code for 7.5, 9.0, HIP code for gfx90a and libraries for x86-64-v3"
    assert part.rows == (("app 1.0", text),)


def checkup(folder, platform, **preferences):
    return Checkup(
        [str(folder)], host_target(), lambda _: platform, Preferences(**preferences), Sources()
    )


@pytest.mark.parametrize(
    ("version", "machine", "requirement"),
    [
        ("1.23.0", "cuda=12.8,sm=12.0", "onnxruntime-gpu!=1.23.0,<1.27,>=1.21"),
        ("1.23.0", "cuda=13.0,sm=12.0", "onnxruntime-gpu>=1.27"),
        ("1.30.0", "cuda=12.8,sm=12.0", "onnxruntime-gpu<1.27,>=1.21"),
    ],
)
def test_another_release_of_a_publisher(install, version, machine, requirement):
    folder = install(
        "onnxruntime-gpu", {"onnxruntime/a.so": library(cuda=["75", "90a"], ptx=["90a"])}, version
    )
    for preferences in ({}, {"catalog": "default"}):
        (problem,) = checkup(folder, load_machine(machine), **preferences).problems()
        assert problem.code == "gpu-code"
        assert problem.text.endswith(f"; {requirement} fits")
        assert problem.command == f"pip install '{requirement}'"
        assert problem.fails
