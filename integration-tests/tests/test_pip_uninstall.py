"""`pip uninstall`: what other installed projects own as well."""

from __future__ import annotations

import subprocess

import pytest

from support.environments import clean_environ
from support.index import index_of
from support.wheels import Wheel

LIBRARY = "nvidia/nccl/lib/libnccl.so.2"


@pytest.fixture
def index(serve):
    """An index with two projects that own the same library, and one that has nothing of it."""

    def nccl(cuda):
        files = {"nvidia/__init__.py": "", LIBRARY: f"of CUDA {cuda}", f"nvidia/nccl/{cuda}.h": ""}
        return Wheel(f"nvidia-nccl-cu{cuda}", "2.28", files=files)

    found = index_of([])
    for wheel in (nccl("12"), nccl("13"), Wheel("alone", "1.0", files={"alone/it.py": "1"})):
        found.add_wheel(wheel)
    return serve(found)


@pytest.mark.matrix
def test_shared_file(fresh, index):
    """It stays if it is that of the project that stays; else one line says how to restore it."""
    url = ("-i", index.url)
    library = fresh.site_packages / LIBRARY
    both = ("nvidia-nccl-cu12", "nvidia-nccl-cu13")

    def pip(*args):
        done = fresh.pip(*args)
        assert done.code == 0, done
        return done.err

    for name in both:
        pip("install", *url, name)
    assert pip("uninstall", "-y", "nvidia-nccl-cu12", "alone") == (
        "WARNING: Skipping alone as it is not installed.\n"
    )
    assert library.read_text() == "of CUDA 13"
    assert not (fresh.site_packages / "nvidia/nccl/12.h").exists()
    assert (fresh.site_packages / "nvidia/__init__.py").exists()
    # What comes last writes it; an upgrade is no uninstallation.
    assert pip("install", *url, "--force-reinstall", "nvidia-nccl-cu12", "nvidia-nccl-cu13") == ""
    assert pip("install", *url, "--force-reinstall", "nvidia-nccl-cu12") == ""
    assert library.read_text() == "of CUDA 12"
    restore = "pip install --force-reinstall --no-deps nvidia-nccl-cu13==2.28"
    assert pip("uninstall", "-y", "nvidia-nccl-cu12") == (
        f"WARNING: {library} was removed, which nvidia-nccl-cu13 2.28 owns as well; "
        f"to restore it: {restore}\n"
    )
    assert not library.exists()
    pip(*restore.split()[1:], *url)
    assert library.read_text() == "of CUDA 13"
    # Both, in either order: nothing is left, and nothing is to be said.
    for order in (both, both[::-1]):
        pip("install", *url, *both)
        assert pip("uninstall", "-y", *order) == ""
        assert not (fresh.site_packages / "nvidia").exists()


@pytest.mark.one
def test_refused(fresh, index):
    """What pip asks for, and a person refuses, is not said to be removed."""
    for name in ("nvidia-nccl-cu13", "nvidia-nccl-cu12", "alone"):
        fresh.pip("install", "-i", index.url, name)
    done = subprocess.run(
        [fresh.python, "-m", "pip", "uninstall", "nvidia-nccl-cu12"],
        input="n\n", capture_output=True, text=True, check=True,
        env=clean_environ({"PIP_NO_INPUT": ""}),
    )  # fmt: skip
    assert done.stderr == ""
    assert (fresh.site_packages / LIBRARY).read_text() == "of CUDA 12"
    # A damaged RECORD of another project.
    (record,) = fresh.site_packages.glob("nvidia_nccl_cu13-*/RECORD")
    record.write_bytes(b'"\x00,\xff')
    done = fresh.pip("uninstall", "-y", "alone")
    assert (done.code, done.err) == (0, ""), done
