"""The preset dictionary of `key_codec`: common parts of descriptions of machines.

Its bytes are part of the key format: another dictionary needs another prefix in `key`.
"""

from __future__ import annotations

import json

# CPU extensions in the order in which the built-in providers list them, for families of CPUs;
# every row adds what the rows before it do not have.
_X86_64 = (
    "amx_tile amx_bf16 amx_int8 cldemote serialize waitpkg movdir64b movdiri avx512_bf16 "
    "avx512_bitalg avx512_vbmi2 avx512_vnni avx512_vpopcntdq avx512ifma avx512vbmi rdpid sha_ni "
    "vaes vpclmulqdq clwb avx512bw avx512cd avx512dq avx512f avx512vl clflushopt gfni rdseed "
    "xsavec xsaveopt adx avx2 avx bmi2 bmi1 abm f16c fma movbe xsave rdrand aes pclmulqdq sse4_2 "
    "sse4_1 ssse3 sse3 cx16 lahf_lm popcnt sse2 sse mmx",
    "serialize waitpkg avx_vnni tsc_adjust flush_l1d movdir64b movdiri avx512_bf16 avx512_bitalg "
    "avx512_vbmi2 avx512_vnni avx512_vp2intersect avx512_vpopcntdq",
    "avx512vbmi vaes vpclmulqdq clwb clzero pku avx512bw",
    "clzero pku clflushopt rdseed xsavec xsaveopt avx2 avx",
    "fma movbe xsave aes pclmulqdq sse4a fsgsbase sse4_2 sse4_1",
    "xop fma4",
)
_AARCH64 = (
    "wfxt afp svesha3 svesm4 sveaes svepmull svebitperm sve2 flagm2 frint sb bti ecv paca pacg "
    "asimdfhm bf16 dcpodp dgh dit flagm i8mm ilrcpc jscvt sha3 sha512 sm4 sm3 svebf16 svei8mm "
    "uscat asimddp lrcpc asimdhp dcpop fcma fphp sve asimdrdm atomics aes asimd cpuid crc32 "
    "evtstrm fp pmull sha1 sha2",
    "sme2 sme flagm2 frint sb bti ecv paca pacg ssbs asimdfhm bf16 dcpodp dit flagm i8mm ilrcpc "
    "jscvt sha3 sha512 uscat asimddp",
    "jscvt rng sha3 sha512 svebf16 svei8mm uscat",
    "frint sb asimdfhm bf16",
    "lrcpc asimdhp dcpop fphp asimdrdm",
)
_ARM_VERSIONS = "9.2a 9.0a 8.6a 8.5a 8.4a 8.3a 8.2a 8.1a 8a"
_CAPABILITIES = "121 120 110 103 101 100 90 89 87 86 80 75 72 70 61 60"
_TARGETS = ("linux-x86_64", "linux-aarch64", "win-x86_64", "macosx-aarch64")


def _listed(words: list[str]) -> str:
    return json.dumps(words, separators=(",", ":"))[1:]


def _dictionary() -> bytes:
    versions = [  # as the built-in provider lists them: 15.20, 15.19, … 15.0, 15, 14.20, …
        f"{major}.{minor}" if minor >= 0 else str(major)
        for major in range(15, 10, -1)
        for minor in range(20, -2, -1)
    ]
    arches = [
        f"{number}_{kind}" for number in _CAPABILITIES.split() for kind in ("real", "virtual")
    ]
    parts = (
        '{"p":{"aarch64":[],"amd":[],"ascend":[],"intel":[],"nvidia":[],"x86_64":[]}',
        '{"p":{"nvidia":[["cuda_version_lower_bound",',
        _listed(versions),
        ',["cuda_version_upper_bound",',
        ',["sm_arch",',
        _listed(arches),
        '],"x86_64":[["level","v4","v3","v2","v1"],',
        *(_listed(row.split()) for row in _X86_64),
        "},",
        *(f'"t":"{target}"}}' for target in _TARGETS),
        '{"p":{"aarch64":[["version",',
        _listed(_ARM_VERSIONS.split()),
        ",",
        *(_listed(row.split()) for row in _AARCH64),
        '"amd":[["gfx_arch","gfx',
        '"],["rocm_version","',
        '"intel":[["device_ip","12.',
        '"ascend":[["npu_type","',
    )
    return "".join(parts).encode()


DICTIONARY = _dictionary()
