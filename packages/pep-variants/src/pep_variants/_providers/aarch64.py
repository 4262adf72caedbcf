"""The ``aarch64`` namespace: architecture versions and extensions of 64-bit Arm CPUs.

The order of the extensions keeps that of the package provider-variant-aarch64, so that both rank
builds alike; what it does not know stands beside its contemporaries.
"""

from __future__ import annotations

import re

from .base import FeatureWords, Vendor, numbers
from .cpu import CpuProvider

_EXTENSIONS = """
    sme2 sme f8fma f8dp4 f8dp2 f8cvt f8e4m3 f8e5m2 fpmr faminmax lut ls64 wfxt afp
    svesha3 svesm4 sveaes svepmull svebitperm
    sve2 flagm2 frint sb bti ecv paca pacg ssbs
    asimdfhm bf16 dcpodp dgh dit flagm i8mm ilrcpc jscvt rng sha3 sha512 sm4 sm3
    svebf16 svei8mm uscat
    asimddp lrcpc asimdhp dcpop fcma fphp sve asimdrdm atomics
    aes asimd cpuid crc32 evtstrm fp pmull sha1 sha2
"""


class AArch64Provider(CpuProvider):
    """``version``: ``9.0a``, ``8.5a`` … ``8.1a``, ``8a``, then extensions (``sve2``, ``bf16``, …).

    Newer versions follow as archspec learns them. Where the operating system does not tell the
    model of the CPU (Windows) only ``8a`` is supported; also under QEMU's user emulation, whose
    CPUs lack a flag (``evtstrm``) that archspec knows them by.
    """

    namespace = "aarch64"
    grade = "version"
    extensions = tuple(_EXTENSIONS.split())

    @staticmethod
    def _grade_of(generic: str) -> str | None:
        if generic == "aarch64":
            return "8a"
        match = re.fullmatch(r"armv([0-9.]+a)", generic)
        return match and match[1]

    @staticmethod
    def _title(grade: str) -> str:
        return f"armv{grade[:-1]}-a"


VENDOR = Vendor(
    provider=AArch64Provider,
    title="ARM",
    absent="a CPU of another family",
    features={
        "version": FeatureWords(
            "ARM CPU",
            fits=lambda value: f"ARMv{value}",
            needs=lambda values: f"needs ARMv{min(values, key=numbers)}",
            answer=lambda value: f"ARMv{value}",
            has=lambda values: f"this CPU has ARMv{values[0]}",
        )
    },
)
