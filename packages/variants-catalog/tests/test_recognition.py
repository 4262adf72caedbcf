"""Which build an installed distribution is."""

import pytest
from packaging.version import Version

import variants_catalog
from variants_catalog._catalogs import DirectoryCatalog
from variants_catalog._recognition import installed_build

CATALOG = DirectoryCatalog(variants_catalog.projects())
LINUX, ARM = "manylinux_2_28_x86_64", "manylinux_2_28_aarch64"
JAX = (
    'jax-cuda12-plugin<=0.10.2,>=0.10.2; extra == "cuda12"',
    'jax-cuda13-plugin<=0.10.2,>=0.10.2; extra == "cuda13"',
)


@pytest.mark.parametrize(
    ("project", "version", "platform", "requires", "installed", "label"),
    [
        ("torch", "2.15.0", LINUX, (), {}, "cuda13.2"),
        ("torch", "2.15.0", ARM, (), {}, "cuda13.2"),
        ("torch", "2.15.0", "win_amd64", (), {}, None),
        ("torch", "2.15.0", "macosx_14_0_arm64", (), {}, None),
        ("torch", "2.14.1", LINUX, (), {}, "cuda13.0"),
        ("torch", "2.10.0", LINUX, (), {}, "cuda12.8"),
        ("torch", "2.10.0", ARM, (), {}, None),
        ("torch", "2.6.0", "manylinux1_x86_64", (), {}, "cuda12.4"),
        ("torch", "1.12.1", "manylinux1_x86_64", (), {}, None),
        ("torch", "1.13.1", "manylinux1_x86_64", (), {}, "cuda11.7"),
        ("torch", "2.14.0+cu126", LINUX, (), {}, "cuda12.6"),
        ("torch", "2.14.0+cpu", "win_amd64", (), {}, "null"),
        ("torch", "2.14.0+mine", LINUX, (), {}, None),
        ("torchvision", "0.29.1", LINUX, (), {}, "cuda13.0"),
        ("torchvision", "0.29.2", LINUX, (), {}, "cuda13.2"),
        ("torchaudio", "2.11.0", LINUX, (), {}, "cuda13.0"),
        ("jax", "0.10.2", "any", JAX, {"jax-cuda12-plugin": "0.10.2"}, "cuda12"),
        ("jax", "0.10.2", "any", JAX, {"jax-cuda12-plugin": "0.9.0"}, None),
        ("jax", "0.10.2", "any", JAX, {}, None),
        ("vllm", "0.29.0", "manylinux_2_31_x86_64", (), {}, "cuda13.0"),
    ],
)
def test_installed_builds(project, version, platform, requires, installed, label):
    found = installed_build(
        CATALOG.project(project),
        Version(version),
        [platform],
        requires,
        {name: Version(text) for name, text in installed.items()},
    )
    assert (found and found.label) == label
