"""Lines that give a build of the catalogue without it."""

import pytest

from pep_variants.safe_files import read_toml
from variants_catalog.catalogs import Source, our_lines, plain_lines

WHL = "https://download.pytorch.org/whl"
TORCH = Source("torch", "2.14.0", "cu126", place=f"{WHL}/cu126")
VISION = Source("torchvision", "0.29.0", "cu126", place=f"{WHL}/cu126")
ASTRAL = "https://wheels.astral.sh/simple/cu126"
FLASH = Source("flash-attn", "2.8.3", "cu.12.6.torch.2.14", place=ASTRAL)
DEVICE = "device-gfx1103"
AMD = "https://stable.repo.amd.com/rocm/whl-next"
PYG = "https://data.pyg.org/whl/torch-2.9.0+cu128.html"


@pytest.mark.parametrize(
    ("sources", "pip", "uv"),
    [
        ([TORCH], f"torch==2.14.0 --index-url {WHL}/cu126", "as pip"),
        (
            [TORCH, VISION],
            f"torch==2.14.0 torchvision==0.29.0 --index-url {WHL}/cu126",
            "as pip",
        ),
        (
            [FLASH],
            f"flash-attn==2.8.3+cu.12.6.torch.2.14 --extra-index-url {ASTRAL}",
            f"flash-attn==2.8.3+cu.12.6.torch.2.14 --index {ASTRAL}",
        ),
        (
            [TORCH, FLASH],
            "torch==2.14.0+cu126 flash-attn==2.8.3+cu.12.6.torch.2.14 "
            f"--extra-index-url {WHL}/cu126 --extra-index-url {ASTRAL}",
            "torch==2.14.0+cu126 flash-attn==2.8.3+cu.12.6.torch.2.14 "
            f"--index {WHL}/cu126 --index {ASTRAL} --index-strategy unsafe-best-match",
        ),
        ([Source("torch", "2.15.0")], "torch==2.15.0", "as pip"),
        ([Source("jax[cuda13]", "0.10.2")], '"jax[cuda13]==0.10.2"', "as pip"),
        (
            [Source(f"torch[{DEVICE}]", "2.13.0", "rocm10.0.0", place=AMD, needs_place=True)],
            f'"torch[{DEVICE}]==2.13.0" --index-url {AMD}',
            "as pip",
        ),
        (
            [Source("torch-scatter", "2.1.2", "pt29cu128", place=PYG, is_links=True)],
            f"torch-scatter==2.1.2+pt29cu128 --find-links {PYG}",
            "as pip",
        ),
        ([Source("tool", "1.0", place=ASTRAL, is_ambiguous=True)], "", ""),
    ],
)
def test_lines_of_pip_and_uv(sources, pip, uv):
    lines = plain_lines(sources)
    assert lines["pip"].text == (pip and f"pip install {pip}")
    assert lines["uv"].text == (uv and f"uv pip install {pip if uv == 'as pip' else uv}").replace(
        "--extra-index-url", "--index"
    )
    assert all(bool(each.text) != bool(each.why) for each in lines.values())


def test_files_of_poetry_and_pixi():
    amd = Source(f"torch[{DEVICE}]", "2.13.0", "rocm10.0.0", place=AMD, needs_place=True)
    assert plain_lines([TORCH, Source("numba", "1.0")])["poetry"].text.splitlines() == [
        f"poetry source add --priority=explicit pytorch-cu126 {WHL}/cu126",
        "poetry add torch==2.14.0+cu126 --source pytorch-cu126",
        "poetry add numba==1.0",
    ]
    assert "--priority=supplemental amd-whl-next" in plain_lines([amd])["poetry"].text
    assert read_toml(plain_lines([TORCH])["pixi"].text) == {
        "pypi-dependencies": {"torch": {"version": "==2.14.0+cu126", "index": f"{WHL}/cu126"}}
    }
    assert read_toml(plain_lines([amd])["pixi"].text) == {
        "pypi-options": {"extra-index-urls": [AMD]},
        "pypi-dependencies": {"torch": {"version": "==2.13.0+rocm10.0.0", "extras": [DEVICE]}},
    }


def test_lines_with_the_catalogue():
    lines = our_lines(["torch", "torchvision"])
    assert lines["uv"].text == (
        "uv-variants --variant-catalog default pip install torch torchvision"
    )
    assert lines["poetry"].text.endswith("poetry add torch torchvision")
    assert lines["pixi"].why


def test_a_mirror_has_a_short_name():
    at = [Source("torch", "2.14.0", "cu126", place="http://mirror/whl/cu126")]
    assert (
        "source add --priority=explicit mirror-cu126 http://mirror/"
        in plain_lines(at)["poetry"].text
    )
