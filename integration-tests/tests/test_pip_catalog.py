"""The catalogue of existing builds in pip: other indexes, other names, extras."""

from __future__ import annotations

import pytest

from support.catalog_places import Places, entry, served_places, variant
from support.index import Index
from support.projects import DRIVER
from support.wheels import Wheel

CUDA_12_8 = {DRIVER: "12.8"}
CUDA_12_6 = {DRIVER: "12.6"}
NO_GPU = {DRIVER: "11.0"}


def torch(version: str, local: str, **options: object) -> Wheel:
    requires = (f"cudalib=={local[2:]}",) if local.startswith("cu") else ()
    own = f"{version}+{local}" if local else version
    return Wheel("torch", own, tag="py3-none-any", requires=requires, **options)


@pytest.fixture
def places():
    """PyTorch's index: torch and torchvision for three CUDA versions, and for the CPU."""
    found = Places()
    for name in ("cu130", "cu128", "cu126", "cpu"):
        for version in ("2.8.0", "2.9.0"):
            found.add(name, torch(version, name))
            vision = f"0.{version.split('.')[1]}.0+{name}"
            found.add(name, Wheel("torchvision", vision, requires=(f"torch=={version}",)))
    found.add("cpu", Wheel("torch", "2.9.0", tag="cp312-none-macosx_11_0_arm64"))
    found.without_hashes.add("/whl/cu126/torch/")
    with served_places(found):
        yield found


@pytest.fixture
def index(serve):
    """The user's own index: CUDA builds without local version, as on PyPI."""
    index = Index()
    for version in ("2.8.0", "2.9.0"):
        index.add_wheel(Wheel("torch", version, requires=("cudalib==1",)))
        vision = f"0.{version.split('.')[1]}.0"
        index.add_wheel(Wheel("torchvision", vision, requires=(f"torch=={version}",)))
    for version in ("1+cu130", "1+cu128", "1+cu126"):
        index.add_wheel(Wheel("cudalib", version.partition("+")[2].replace("cu", "")))
    return serve(index)


@pytest.fixture
def catalog(places, tmp_path):
    """A directory with entries of torch and torchvision."""
    folder = tmp_path / "catalog"
    folder.mkdir()
    for name, other in (("torch", "torchvision"), ("torchvision", "torch")):
        tables = [
            variant(
                f"cuda{local[2:4]}.{local[4:]}",
                f'index = "{places.place(local)}"\nlocal = "{local}"',
                cuda=bound,
                order=number,
            )
            for number, (local, bound) in enumerate(
                [("cu130", "13.0"), ("cu128", "12.0"), ("cu126", "12.0")], 1
            )
        ]
        null = f'index = "{places.place("cpu")}"\nlocal = ["cpu", ""]'
        text = entry(name, [*tables, variant("null", null)], coherent=[other])
        (folder / f"{name}.toml").write_text(text)
    return folder


def versions(environment):
    found = {}
    for folder in environment.site_packages.glob("*.dist-info"):
        name, _, version = folder.name.removesuffix(".dist-info").partition("-")
        if name not in ("pip", "pep_variants_shim"):
            found[name] = version
    return found


@pytest.mark.matrix
def test_install(fresh, index, places, catalog):
    """The build for the machine; again there is nothing to do; a better machine is advice."""
    options = ("-i", index.url, "--variant-catalog", str(catalog))
    done = fresh.pip("install", *options, "torch", env=CUDA_12_8)
    assert (done.code, done.err) == (0, ""), done
    assert "Variant cuda12.8 for torch 2.9.0+cu128: CUDA driver 12.0 or newer" in done.out, done
    assert "Successfully installed cudalib-128 torch-2.9.0+cu128-cuda12.8\n" in done.out, done
    assert versions(fresh) == {"torch": "2.9.0+cu128", "cudalib": "128"}
    assert fresh.pip("check").code == 0
    for more in ((), ("--upgrade",)):
        done = fresh.pip("install", *options, *more, "torch", env=CUDA_12_8)
        assert (done.code, done.err) == (0, ""), done
        assert "Successfully" not in done.out, done
        assert "to switch" not in done.out, done
    done = fresh.pip("install", *options, "--upgrade", "torch", env={DRIVER: "13.0"})
    assert "Successfully" not in done.out, done
    assert "torch 2.9.0+cu128 is installed as variant cuda12.8; variant cuda13.0 fits" in done.out
    done = fresh.pip("install", *options, "--variant-switch", "torch", env={DRIVER: "13.0"})
    assert "torch-2.9.0+cu130-cuda13.0\n" in done.out, done
    assert versions(fresh) == {"torch": "2.9.0+cu130", "cudalib": "130"}
