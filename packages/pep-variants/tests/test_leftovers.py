"""What builds leave behind that others replace."""

from __future__ import annotations

import shutil

import pytest

from pep_variants._choose.leftovers import repairs, required_by, unneeded
from pep_variants._wheelfile.installed import find_installed
from pep_variants._wheelfile.record import digest_of

LIBRARY = "nvidia/nccl/lib/libnccl.so.2"


class Site:
    """A package folder."""

    def __init__(self, folder):
        self.folder = folder
        self.before = {}

    @property
    def found(self):
        return {item.project: item for item in find_installed([str(self.folder)])}

    def install(self, name, version="1.0", *requires, files=(), installer="pip", asked=False):
        self.remove(name)
        info = self.folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        lines = [f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {r}" for r in requires)]
        (info / "METADATA").write_text("\n".join([*lines, "", ""]))
        (info / "INSTALLER").write_text(f"{installer}\n")
        if asked:
            (info / "REQUESTED").touch()
        rows = []
        for path, contents in dict(files).items():
            file = self.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(contents)
            rows.append(f"{path},{digest_of(contents.encode())},{len(contents)}")
        (info / "RECORD").write_text("\n".join([*rows, ""]))

    def remove(self, name):
        for info in self.folder.glob(f"{name.replace('-', '_')}-*.dist-info"):
            for row in (info / "RECORD").read_text().splitlines():
                (self.folder / row.split(",")[0]).unlink(missing_ok=True)
            shutil.rmtree(info)

    def nccl(self, cuda):
        self.install(f"nvidia-nccl-cu{cuda}", files={LIBRARY: f"for CUDA {cuda}"})

    def torch(self, cuda):
        self.install("torch", f"2.14.0+cu{cuda}", f"nvidia-nccl-cu{cuda}==1.0; sys_platform=='x'")

    def note(self):
        """Keep what there is before a change."""
        self.before = self.found
        required_by(self.before, ["torch"])

    def unneeded(self, *asked):
        return [item.project for item in unneeded(self.before, self.found, ["torch"], asked)]

    def repairs(self, *without):
        found = repairs([str(self.folder)], self.found, ["torch"], without)
        return [item.project for item in found.again], [item.owners for item in found.contested]


@pytest.fixture
def site(tmp_path):
    found = Site(tmp_path)
    found.nccl(12)
    found.torch(12)
    found.note()
    found.torch(13)
    return found


def test_what_only_the_old_build_required(site):
    site.nccl(13)
    assert site.unneeded() == ["nvidia-nccl-cu12"]
    assert site.unneeded("nvidia-nccl-cu12") == []
    site.install("app", "1.0", "Nvidia.NCCL-cu12 (>=1); extra == 'gpu'")
    assert site.unneeded() == []
    site.remove("app")
    site.install("nvidia-nccl-cu12", asked=True)
    assert site.unneeded() == []
    site.install("nvidia-nccl-cu12", installer="uv", asked=True)
    assert site.unneeded() == ["nvidia-nccl-cu12"]
    site.remove("nvidia-nccl-cu12")
    assert site.unneeded() == []


def test_what_the_libraries_of_the_old_build_required(tmp_path):
    site = Site(tmp_path)
    site.install("cublas-cu12")
    site.install("cudnn-cu12", "1.0", "cublas-cu12", "torch")
    site.install("torch", "1.0+cu126", "cudnn-cu12", "filelock")
    site.install("filelock")
    site.note()
    site.install("torch", "1.0+cpu", "filelock")
    assert site.unneeded() == ["cublas-cu12", "cudnn-cu12"]


def test_builds_that_are_extras(tmp_path):
    """The requirements of the extra are written out; those of the other extras stay as they are."""
    site = Site(tmp_path)
    extras = [f"jax-cuda{cuda}-plugin; extra == 'cuda{cuda}'" for cuda in (12, 13)]
    for cuda in (12, 13):
        site.install(f"cublas-cu{cuda}")
        site.install(f"jax-cuda{cuda}-plugin", "1.0", f"cublas-cu{cuda}; extra == 'with-cuda'")
    site.install("jax", "1.0", "jax-cuda12-plugin", *extras)
    site.before = site.found
    required_by(site.before, ["jax"])
    site.install("jax", "1.0", "jax-cuda13-plugin", *extras)
    gone = [item.project for item in unneeded(site.before, site.found, ["jax"])]
    assert gone == ["cublas-cu12", "jax-cuda12-plugin"]


def test_a_file_of_two_owners(site):
    site.nccl(13)
    assert site.repairs() == ([], [])
    site.nccl(12)  # written over that of the other
    assert site.repairs() == (["nvidia-nccl-cu13"], [])
    site.remove("nvidia-nccl-cu12")
    assert site.repairs() == (["nvidia-nccl-cu13"], [])
    site.nccl(13)
    assert site.repairs() == ([], [])


def test_a_file_that_two_owners_need(site):
    site.nccl(13)
    site.nccl(12)
    site.install("tensorflow", "1.0", "nvidia-nccl-cu12")
    owners = ("nvidia-nccl-cu12==1.0", "nvidia-nccl-cu13==1.0")
    assert site.repairs() == ([], [owners])
    assert site.repairs("tensorflow") == (["nvidia-nccl-cu13"], [])
    site.remove("tensorflow")
    site.install("other", files={"other.py": "a"})
    (site.folder / "other.py").unlink()  # no business of torch
    assert site.repairs() == (["nvidia-nccl-cu13"], [])
