"""Flags that add: what each build backend is given, for what a project sets itself."""

import tarfile

import pytest

from variants_cli.matrix.backends import additions, is_setuptools, problem_of, read_pyproject
from variants_cli.matrix.model import BuildError

V3 = ("-march=x86-64-v3",)
BOTH = {"c": V3, "cxx": (*V3, "-DX=1")}
OTHER = {"build-system": {"build-backend": "mesonpy"}}


def added(flags, pyproject=(), environ=(), *, system="linux"):
    own = "-DNDEBUG -O3 -Wall"
    return additions(flags, dict(pyproject), dict(environ), system=system, interpreter=own)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        (
            {},
            {
                "CFLAGS": "-DNDEBUG -O3 -Wall -march=x86-64-v3",
                "CXXFLAGS": "-DNDEBUG -O3 -Wall -march=x86-64-v3 -DX=1",
            },
        ),
        # What null compiles with then, and the flags behind it.
        (
            {"CFLAGS": "-O2", "CXXFLAGS": ""},
            {"CFLAGS": "-O2 -march=x86-64-v3", "CXXFLAGS": "-march=x86-64-v3 -DX=1"},
        ),
    ],
)
def test_setuptools(environ, expected):
    assert added(BOTH, environ=environ) == expected


def test_other_backends_and_languages():
    flags = {"c": V3, "fortran": V3, "link": ("-Wl,-O1",), "rust": ("-C", "target-cpu=x86-64-v3")}
    assert added({**flags, "cuda": ()}, OTHER, {"LDFLAGS": "-s"}) == {
        "CFLAGS": "-march=x86-64-v3",
        "FFLAGS": "-march=x86-64-v3",
        "LDFLAGS": "-s -Wl,-O1",
        "RUSTFLAGS": "-C target-cpu=x86-64-v3",
    }


def test_words_stay_words():
    assert added({"c": ("-DX=a b", "-g")}, OTHER) == {"CFLAGS": "'-DX=a b' -g"}
    assert added({"c": ("-DX=a b",)}, OTHER, system="win32") == {"CFLAGS": '"-DX=a b"'}


def test_visual_studio():
    flags = {**BOTH, "msvc": ("/arch:AVX2",)}
    assert added(flags, system="win32") == {"_CL_": "/arch:AVX2"}
    assert sorted(added(flags, system="darwin")) == ["CFLAGS", "CXXFLAGS"]


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        (None, True),
        ({"requires": ["setuptools"]}, True),
        ({"build-backend": "setuptools.build_meta:__legacy__"}, True),
        ({"build-backend": "scikit_build_core.setuptools.build_meta"}, False),
        ({"build-backend": "own", "backend-path": ["."], "requires": ["Setuptools>=70"]}, True),
        ({"build-backend": "own", "requires": ["setuptools"]}, False),
        ("wrong", True),
    ],
)
def test_is_setuptools(system, expected):
    assert is_setuptools({} if system is None else {"build-system": system}) == expected


def test_read_pyproject(tmp_path):
    tree = tmp_path / "x-1"
    tree.mkdir()
    (tree / "pyproject.toml").write_text("[build-system]\nbuild-backend = 'mesonpy'\n")
    with tarfile.open(tmp_path / "x.tar.gz", "w:gz") as tar:
        tar.add(tree, "x-1")
    for source in (tree, tmp_path / "x.tar.gz"):
        assert read_pyproject(source) == OTHER
    (tree / "pyproject.toml").write_text("[build-system")
    with pytest.raises(BuildError, match=r"pyproject\.toml is not valid TOML"):
        read_pyproject(tree)
    broken = tmp_path / "broken.tar.gz"
    broken.write_bytes(b"none")
    with pytest.raises(BuildError, match="not a source distribution"):
        read_pyproject(broken)


@pytest.mark.parametrize(
    "text", ["9.0", "8.6;9.0a;12.0+PTX", "Ampere+Tegra 8.0(8.6)", "native", "All", "10.0f"]
)
def test_architectures_that_pytorch_takes(text):
    assert problem_of("TORCH_CUDA_ARCH_LIST", text) == ""


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("sm_90", "write 9.0"),
        ("9.0;120a", "write 12.0a"),
        ("8.0,86", "write 8.6"),
        ("compute_75", "write 7.5"),
    ],
)
def test_architectures_that_pytorch_refuses(text, meant):
    assert meant in problem_of("TORCH_CUDA_ARCH_LIST", text)
    assert problem_of("OTHER", text) == ""
