"""Public indexes with variant wheels, and what each of them has.

They are named to users, never asked unless the user names them. As listed by
https://github.com/wheelnext/variants-index in January 2026.
"""

from __future__ import annotations

from typing import NamedTuple


class VariantIndex(NamedTuple):
    """One index.

    Attributes:
        url: of its simple repository API.
        projects: normalized names of those with variant wheels, ascending.
    """

    url: str
    projects: tuple[str, ...]


VARIANT_INDEXES = (
    VariantIndex("https://download.pytorch.org/whl/variant/", ("torch", "torchvision")),
    VariantIndex(
        "https://variants-index.wheelnext.dev/",
        (
            "cupy",
            "numpy",
            "nvidia-cublas",
            "nvidia-cuda-cupti",
            "nvidia-cuda-nvrtc",
            "nvidia-cuda-runtime",
            "nvidia-cudnn",
            "nvidia-cufft",
            "nvidia-cufile",
            "nvidia-curand",
            "nvidia-cusolver",
            "nvidia-cusparse",
            "nvidia-cusparselt",
            "nvidia-nccl",
            "nvidia-nvjitlink",
            "nvidia-nvshmem",
            "nvidia-nvtx",
            "scikit-learn",
            "scipy",
            "torch",
            "torchvision",
            "transformer-engine-lib",
            "vllm-ascend",
            "xgboost",
        ),
    ),
    VariantIndex("https://wheels-variant.xgboost-ci.com/", ("xgboost",)),
    VariantIndex("https://pypi.anaconda.org/mgorny/simple/", ("numpy", "scikit-learn", "scipy")),
    VariantIndex(
        "https://mirrors.huaweicloud.com/ascend/repos/pypi/variant/",
        ("vllm-ascend",),
    ),
)


def indexes_with(project: str) -> tuple[str, ...]:
    """Return the URLs of indexes with variants of *project* (normalized), its publisher's first."""
    found = sorted(
        (index for index in VARIANT_INDEXES if project in index.projects),
        key=lambda index: len(index.projects),
    )
    return tuple(index.url for index in found)
