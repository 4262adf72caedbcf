"""Flags that add: what each build backend is given, for what a project sets itself."""

import tarfile
import zipfile

import pytest

from variants_cli.matrix.build_plan import BuildError
from variants_cli.matrix.flags import additions, dropped_flags
from variants_cli.matrix.source_project import SourceProject, backend_of, read_source

V3 = ("-march=x86-64-v3",)
BOTH = {"c": V3, "cxx": (*V3, "-DX=1")}


OWN = "-DNDEBUG -O3 -Wall"


def added(flags, backend, environ=None, settings=None, *, system="linux", **project):
    source = SourceProject(backend, **project)
    found = additions(flags, source, environ or {}, settings or {}, system=system, interpreter=OWN)
    return {**found.environment, **found.config_settings}


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
    assert added(BOTH, "setuptools", environ) == expected


def test_other_languages():
    flags = {"fortran": V3, "cuda": ("--use_fast_math",), "link": ("-Wl,-O1",), "rust": ()}
    for backend in ("setuptools", "scikit-build-core", "meson-python", "maturin", "flit_core"):
        assert added(flags, backend, {"LDFLAGS": "-s", "NVCC_APPEND_FLAGS": "-v"}) == {
            "FFLAGS": "-march=x86-64-v3",
            "NVCC_APPEND_FLAGS": "-v --use_fast_math",
            "LDFLAGS": "-s -Wl,-O1",
        }


def test_words_stay_words():
    assert added({"c": ("-DX=a b", "-g")}, "maturin") == {"CFLAGS": "'-DX=a b' -g"}
    assert added({"c": ("-DX=a b",)}, "maturin", system="win32") == {"CFLAGS": '"-DX=a b"'}


def test_visual_studio():
    flags = {**BOTH, "msvc": ("/arch:AVX2",)}
    assert added(flags, "setuptools", system="win32") == {"_CL_": "/arch:AVX2"}
    assert sorted(added(flags, "setuptools", system="darwin")) == ["CFLAGS", "CXXFLAGS"]


def skbuild(**define):
    return {"pyproject": {"tool": {"scikit-build": {"cmake": {"define": define}}}}}


def test_scikit_build_core():
    assert added(BOTH, "scikit-build-core", {"CFLAGS": "-g"}) == {
        "CFLAGS": "-g -march=x86-64-v3",
        "CXXFLAGS": "-march=x86-64-v3 -DX=1",
    }
    # CMake ignores the variable where the project sets the option.
    own = skbuild(CMAKE_C_FLAGS="-Wall")
    expected = {
        "cmake.define.CMAKE_C_FLAGS": ("-Wall -march=x86-64-v3",),
        "CXXFLAGS": "-march=x86-64-v3 -DX=1",
    }
    assert added(BOTH, "scikit-build-core", **own) == expected
    given = {"cmake.define.CMAKE_C_FLAGS": ("-Wextra",)}
    assert added({"c": V3}, "scikit-build-core", settings=given, **own) == {
        "cmake.define.CMAKE_C_FLAGS": ("-Wextra -march=x86-64-v3",)
    }
    # Of two options the other one still comes from the variable.
    own = skbuild(CMAKE_SHARED_LINKER_FLAGS="-s")
    assert added({"link": ("-z,now",)}, "scikit-build-core", **own) == {
        "cmake.define.CMAKE_SHARED_LINKER_FLAGS": ("-s -z,now",),
        "LDFLAGS": "-z,now",
    }


@pytest.mark.parametrize(
    ("environ", "settings", "project", "problem"),
    [
        (
            {"CMAKE_ARGS": "-DCMAKE_C_FLAGS=-O1"},
            {},
            {},
            "CMAKE_ARGS sets CMAKE_C_FLAGS, which flags cannot be added to: set it as "
            "cmake.define.CMAKE_C_FLAGS, or give all flags in one place",
        ),
        ({}, {"cmake.args": ("-DCMAKE_C_FLAGS=-O1",)}, {}, "cmake.args sets CMAKE_C_FLAGS"),
        (
            {},
            {},
            skbuild(CMAKE_C_FLAGS={"env": "MY_FLAGS"}),
            "pyproject.toml: tool.scikit-build.cmake.define.CMAKE_C_FLAGS is {'env': 'MY_FLAGS'}, "
            "which flags cannot be added to: make it a string",
        ),
    ],
)
def test_options_that_cannot_be_added_to(environ, settings, project, problem):
    with pytest.raises(BuildError) as caught:
        added({"c": V3}, "scikit-build-core", environ, settings, **project)
    assert str(caught.value).startswith(problem)


def meson(*arguments):
    return {"pyproject": {"tool": {"meson-python": {"args": {"setup": list(arguments)}}}}}


@pytest.mark.parametrize(
    ("settings", "project", "expected"),
    [
        ({}, {}, {"CFLAGS": "-march=x86-64-v3"}),
        ({}, meson("-Dc_args=-Wall"), {"setup-args": ("-Dc_args=-Wall -march=x86-64-v3",)}),
        (
            {"setup-args": ("-Dfast=true", "-Dc_args=['-Wall', '-DX=a b']")},
            meson("-Dc_args=-Wextra"),
            {
                "setup-args": (
                    "-Dfast=true",
                    "-Dc_args=['-Wall', '-DX=a b']",
                    "-Dc_args=-Wall '-DX=a b' -march=x86-64-v3",
                )
            },
        ),
        (
            {},
            {"meson_build": "project('x', 'c', default_options: ['b=1', 'c_args=-Wall -g'])"},
            {"setup-args": ("-Dc_args=-Wall -g -march=x86-64-v3",)},
        ),
    ],
)
def test_meson_python(settings, project, expected):
    assert added({"c": V3}, "meson-python", settings=settings, **project) == expected


def test_meson_languages_share_one_setting():
    assert added(BOTH, "meson-python", **meson("-Dc_args=-a", "-Dcpp_args=-b")) == {
        "setup-args": ("-Dc_args=-a -march=x86-64-v3", "-Dcpp_args=-b -march=x86-64-v3 -DX=1")
    }


RUST = {"rust": ("-C", "target-cpu=x86-64-v3")}


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, {"CARGO_BUILD_RUSTFLAGS": "-C target-cpu=x86-64-v3"}),
        ({"RUSTFLAGS": "-g"}, {"RUSTFLAGS": "-g -C target-cpu=x86-64-v3"}),
        (
            {"RUSTFLAGS": "-g", "CARGO_ENCODED_RUSTFLAGS": "--cfg\x1fx"},
            {"CARGO_ENCODED_RUSTFLAGS": "--cfg\x1fx\x1f-C\x1ftarget-cpu=x86-64-v3"},
        ),
    ],
)
def test_rust(tmp_path, environ, expected):
    environ = {"CARGO_HOME": str(tmp_path), **environ}
    assert added(RUST, "maturin", environ) == expected
    assert added(RUST, "setuptools", environ) == expected
    with pytest.raises(BuildError, match="has a space in a word: Cargo splits there"):
        added({"rust": ("-C target-cpu=x",)}, "maturin", environ)


def test_rust_with_flags_of_a_target(tmp_path):
    """Cargo takes those of a target instead of those of the build, so they are added there."""
    rustc = tmp_path / "rustc"
    rustc.write_text("#!/bin/sh\necho 'host: x86_64-unknown-linux-gnu'\n")
    rustc.chmod(0o755)
    environ = {"CARGO_HOME": str(tmp_path), "RUSTC": str(rustc)}
    cargo = {"target": {"cfg(unix)": {"rustflags": ["-g"]}}}
    assert added(RUST, "maturin", environ, cargo=cargo) == {
        "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS": "-C target-cpu=x86-64-v3"
    }
    (tmp_path / "config.toml").write_text("[target.x]\nrustflags = '-g'\n")
    assert "CARGO_BUILD_RUSTFLAGS" not in added(RUST, "maturin", environ)
    environ["RUSTC"] = str(tmp_path / "none")
    with pytest.raises(BuildError, match="none -vV fails: install Rust on this machine"):
        added(RUST, "maturin", environ)


@pytest.mark.parametrize(
    ("system", "backend"),
    [
        (None, "setuptools"),
        ({"requires": ["setuptools"]}, "setuptools"),
        ({"build-backend": "setuptools.build_meta:__legacy__"}, "setuptools"),
        ({"build-backend": "scikit_build_core.setuptools.build_meta"}, "scikit-build-core"),
        ({"build-backend": "mesonpy"}, "meson-python"),
        ({"build-backend": "maturin"}, "maturin"),
        ({"build-backend": "own", "requires": ["Meson_Python>=0.18", "x @"]}, "meson-python"),
        ({"build-backend": "own", "requires": ["setuptools", "maturin"]}, "own"),
        ({"build-backend": "hatchling.build", "requires": ["hatchling"]}, "hatchling"),
        ("wrong", "setuptools"),
    ],
)
def test_backend_of(system, backend):
    assert backend_of({} if system is None else {"build-system": system}) == backend


def test_read_source(tmp_path):
    tree = tmp_path / "x-1"
    (tree / ".cargo").mkdir(parents=True)
    (tree / "pyproject.toml").write_text("[build-system]\nbuild-backend = 'mesonpy'\n")
    (tree / "meson.build").write_text("project('x')")
    (tree / ".cargo" / "config.toml").write_text("[build]\nrustflags = '-g'\n")
    expected = read_source(tree)
    assert (expected.backend, expected.meson_build) == ("meson-python", "project('x')")
    assert expected.cargo == {"build": {"rustflags": "-g"}}
    with tarfile.open(tmp_path / "x.tar.gz", "w:gz") as tar:
        tar.add(tree, "x-1")
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for path in tree.rglob("*"):
            if path.is_file():
                archive.write(path, path.relative_to(tmp_path))
    assert read_source(tmp_path / "x.tar.gz") == read_source(tmp_path / "x.zip") == expected
    (tree / "pyproject.toml").write_text("[build-system")
    with pytest.raises(BuildError, match=r"pyproject\.toml is not valid TOML"):
        read_source(tree)
    broken = tmp_path / "broken.tar.gz"
    broken.write_bytes(b"none")
    with pytest.raises(BuildError, match="not a source distribution"):
        read_source(broken)


@pytest.mark.parametrize(
    ("backend", "text", "environ", "lost"),
    [
        ("setuptools", "-march=x86-64-v3", {}, "-DNDEBUG -O3 -Wall"),
        ("setuptools", "-O2 -march=x86-64-v3", {}, ""),
        ("setuptools", "-march=x86-64-v3", {"CFLAGS": "-g"}, ""),
        ("meson-python", "-march=x86-64-v3", {}, ""),
    ],
)
def test_flags_that_are_lost(backend, text, environ, lost):
    assert dropped_flags("CFLAGS", text, SourceProject(backend), environ, OWN) == lost
    assert dropped_flags("OTHER", text, SourceProject(backend), environ, OWN) == ""
