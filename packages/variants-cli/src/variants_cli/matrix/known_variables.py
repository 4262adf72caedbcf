"""Variables of builds whose values are known: what their readers take.

``TORCH_CUDA_ARCH_LIST`` is read by PyTorch's own build and by `torch.utils.cpp_extension`: names of
architectures and compute capabilities, with ``a`` for features of one architecture alone and
``+PTX``, separated by ``;`` or spaces. Both refuse ``sm_90``. vLLM reads it, too, and takes ``f``
for the features of a family.
https://github.com/pytorch/pytorch/blob/v2.10.0/cmake/Modules_CUDA_fix/upstream/FindCUDA/select_compute_arch.cmake
https://github.com/pytorch/pytorch/blob/v2.10.0/torch/utils/cpp_extension.py
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_NAMED = (
    "Kepler+Tesla", "Kepler", "Maxwell+Tegra", "Maxwell", "Pascal", "Volta+Tegra", "Volta",
    "Turing", "Ampere+Tegra", "Ampere", "Ada", "Hopper", "Blackwell+Tegra", "Blackwell",
)  # fmt: skip
_WHOLE = ("All", "Common", "Auto", "native")
"""Words that stand for the whole list, for one of the two readers."""
_CAPABILITY = re.compile(r"\d{1,2}\.\d[af]?(\(\d{1,2}\.\d\))?")
_CODE = re.compile(r"(?:sm|compute)?_?(\d{1,2})(\d)([af]?)(\+PTX)?")


def _torch_cuda_arch_list(text: str) -> str:
    """Return what is wrong with a value of ``TORCH_CUDA_ARCH_LIST``, empty if nothing is."""
    if text in _WHOLE:
        return ""
    words = re.split(r"[;\s]+", text.strip("; \t"))
    for word in words:
        name = word.removesuffix("+PTX")
        if name in _NAMED or _CAPABILITY.fullmatch(name):
            continue
        code = _CODE.fullmatch(word)
        meant = f": write {code[1]}.{code[2]}{code[3]}{code[4] or ''}" if code else ""
        return (
            f"PyTorch does not take {word!r}{meant}"
            if meant
            else f"PyTorch does not take {word!r}: write compute capabilities such as "
            "'8.6;9.0a;12.0+PTX', or names such as 'Hopper'"
        )
    return ""


_CHECKS: Mapping[str, Callable[[str], str]] = {"TORCH_CUDA_ARCH_LIST": _torch_cuda_arch_list}


def problem_of(name: str, text: str) -> str:
    """Return why the variable *name* cannot be *text*, empty if it can or is not known."""
    check = _CHECKS.get(name)
    return check(text) if check is not None else ""
