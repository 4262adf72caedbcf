"""The ``x86_64`` namespace: microarchitecture levels and extensions of x86-64 CPUs.

Levels are those of the x86-64 psABI. The order of the extensions keeps that of the package
provider-variant-x86-64, so that both rank builds alike; what it does not know stands beside its
contemporaries.
"""

from __future__ import annotations

import re

from .base import FeatureWords, Vendor
from .cpu import CpuProvider

_EXTENSIONS = """
    amx_tile amx_bf16 amx_int8 avx512_fp16
    avx_vnni_int16 avx_vnni_int8 avx_ne_convert avx_ifma cmpccxadd sha512 sm4 sm3
    cldemote serialize waitpkg
    avx_vnni cppc ibrs_enhanced tsc_adjust flush_l1d movdir64b movdiri
    avx512_bf16 avx512_bitalg avx512_vbmi2 avx512_vnni avx512_vp2intersect avx512_vpopcntdq
    avx512ifma avx512vbmi rdpid sha_ni vaes vpclmulqdq clwb clzero pku
    avx512er avx512pf avx512bw avx512cd avx512dq avx512f avx512vl
    clflushopt gfni rdseed xsavec xsaveopt adx
    avx2 avx bmi2 bmi1 abm f16c fma movbe xsave
    rdrand aes pclmulqdq xop fma4 tbm sse4a fsgsbase
    sse4_2 sse4_1 ssse3 sse3 cx16 lahf_lm popcnt
    sse2 sse mmx 3dnowext 3dnow
"""


class X8664Provider(CpuProvider):
    """``level``: ``v4`` … ``v1``, then extensions (``avx512_bf16``, ``avx2``, …).

    Every x86-64 CPU supports ``v1``; archspec has no separate name for that level.
    """

    namespace = "x86_64"
    grade = "level"
    extensions = tuple(_EXTENSIONS.split())

    @staticmethod
    def _grade_of(generic: str) -> str | None:
        match = re.fullmatch(r"x86_64(?:_v([0-9]+))?", generic)
        return match and f"v{match[1] or 1}"

    @staticmethod
    def _title(grade: str) -> str:
        return f"x86-64-{grade}"


VENDOR = Vendor(
    provider=X8664Provider,
    title="x86-64",
    absent="a CPU of another family",
    features={
        "level": FeatureWords(
            "x86-64 CPU",
            fits=lambda value: f"x86-64-{value}",
            needs=lambda values: f"needs x86-64-{min(values)}",
            answer=lambda value: f"x86-64-{value}",
            has=lambda values: f"this CPU has x86-64-{values[0]}",
        )
    },
)
