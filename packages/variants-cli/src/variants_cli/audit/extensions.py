"""Which extension of the instruction set an instruction belongs to, in archspec's names.

Instructions of the base architecture, and those that are harmless on older CPUs (``tzcnt``, hints),
belong to none. Sources: Intel's Software Developer's Manual, volume 2; the x86-64 psABI; the Arm
Architecture Reference Manual.
"""

from __future__ import annotations

import re

_EVEX, _VEX = 0x62, (0xC4, 0xC5)


def _table(rows: dict[str, str]) -> dict[str, str]:
    return {mnemonic: name for name, words in rows.items() for mnemonic in words.split()}


_SCALAR = _table(
    {
        "bmi1": "andn bextr blsi blsmsk blsr",
        "bmi2": "bzhi mulx pdep pext rorx sarx shlx shrx",
        "abm": "lzcnt",
        "popcnt": "popcnt",
        "movbe": "movbe",
        "cx16": "cmpxchg16b",
        "adx": "adcx adox",
        "rdrand": "rdrand",
        "rdseed": "rdseed",
        "fsgsbase": "rdfsbase rdgsbase wrfsbase wrgsbase",
        "movdiri": "movdiri",
        "movdir64b": "movdir64b",
        "aes": "aesenc aesenclast aesdec aesdeclast aesimc aeskeygenassist",
        "pclmulqdq": "pclmulqdq",
        "sha_ni": "sha1rnds4 sha1nexte sha1msg1 sha1msg2 sha256rnds2 sha256msg1 sha256msg2",
        "sse3": "addsubps addsubpd haddps haddpd hsubps hsubpd lddqu movddup movshdup movsldup"
        " fisttp",
        "ssse3": "pabsb pabsw pabsd palignr phaddw phaddd phaddsw phsubw phsubd phsubsw pmaddubsw"
        " pmulhrsw pshufb psignb psignw psignd",
        "sse4_1": "blendpd blendps blendvpd blendvps dppd dpps extractps insertps movntdqa mpsadbw"
        " packusdw pblendvb pblendw pcmpeqq pextrb pextrd pextrq phminposuw pinsrb pinsrd pinsrq"
        " pmaxsb pmaxsd pmaxud pmaxuw pminsb pminsd pminud pminuw pmovsxbw pmovsxbd pmovsxbq"
        " pmovsxwd pmovsxwq pmovsxdq pmovzxbw pmovzxbd pmovzxbq pmovzxwd pmovzxwq pmovzxdq pmuldq"
        " pmulld ptest roundpd roundps roundsd roundss",
        "sse4_2": "crc32 pcmpestri pcmpestrm pcmpistri pcmpistrm pcmpgtq",
        "sse4a": "extrq insertq movntsd movntss",
        "gfni": "gf2p8affineqb gf2p8affineinvqb gf2p8mulb",
    }
)
_VECTOR = _table(
    {
        "vnni": "vpdpbusd vpdpbusds vpdpwssd vpdpwssds",
        "avx512_bf16": "vcvtne2ps2bf16 vcvtneps2bf16 vdpbf16ps",
        "avx512ifma": "vpmadd52luq vpmadd52huq",
        "avx512vbmi": "vpermb vpermi2b vpermt2b vpmultishiftqb",
        "avx512_vbmi2": "vpcompressb vpcompressw vpexpandb vpexpandw vpshldw vpshldd vpshldq"
        " vpshldvw vpshldvd vpshldvq vpshrdw vpshrdd vpshrdq vpshrdvw vpshrdvd vpshrdvq",
        "avx512_bitalg": "vpopcntb vpopcntw vpshufbitqmb",
        "avx512_vpopcntdq": "vpopcntd vpopcntq",
        "avx512cd": "vpconflictd vpconflictq vplzcntd vplzcntq vpbroadcastmb2q vpbroadcastmw2d",
        "avx512dq": "vpmullq"
        " vandps vandpd vandnps vandnpd vorps vorpd vxorps vxorpd vpextrd vpextrq"
        " vpinsrd vpinsrq vpmovm2d vpmovm2q vpmovd2m vpmovq2m vextractf32x8 vextracti32x8"
        " vextractf64x2 vextracti64x2 vinsertf32x8 vinserti32x8 vinsertf64x2 vinserti64x2"
        " vbroadcastf32x2 vbroadcasti32x2 vbroadcastf32x8 vbroadcasti32x8 vbroadcastf64x2"
        " vbroadcasti64x2 vcvtqq2pd vcvtqq2ps vcvtuqq2pd vcvtuqq2ps vcvtpd2qq vcvtpd2uqq vcvtps2qq"
        " vcvtps2uqq vcvttpd2qq vcvttpd2uqq vcvttps2qq vcvttps2uqq vfpclasspd vfpclassps vfpclasssd"
        " vfpclassss vrangepd vrangeps vrangesd vrangess vreducepd vreduceps vreducesd vreducess",
    }
)
_WORDS = re.compile(
    r"vmovdqu(?:8|16)|vpack\w+|vpunpck[lh](?:bw|wd)|vpalignr|vdbpsadbw|vpsadbw|vpmadd(?:wd|ubsw)"
    r"|vp(?:add|sub|abs|avg|cmp|max|min|mul|shuf|sll|sra|srl|blendm|broadcast|extr|insr|test|mov|perm)"
    r"\w*?(?:[bw]|bw|wb|[bw]2m|2[bw])"
)
"""AVX-512 instructions on bytes and words (``avx512bw``)."""
_FLOAT_PERMUTES = ("vpermilps", "vpermilpd", "vperm2f128", "vptest")
_SYSTEM = re.compile(
    r"ver[rw]|vm(?:call|clear|func|launch|load|mcall|ptr|read|res|run|save|write|x)"
)
_AVX2 = re.compile(
    r"vp(?:gather|sllv|srlv|srav|blendd|maskmov|broadcast)\w*|v(?:gather\w+|inserti128|extracti128"
    r"|broadcasti128|perm2i128|perm[dq]|permp[sd])"
)
_FMA = re.compile(r"vfn?m(?:add|sub|addsub|subadd)\d*[ps][sd]")
_MASKS = re.compile(r"k(?:mov|add|and|andn|not|or|ortest|shift[lr]|test|unpck|xn?or)\w*([bwdq])")


def x86_extension(first: int, mnemonic: str, operands: str) -> str:
    """Return the extension of an instruction of x86-64, empty for the base architecture.

    Args:
        first: its first byte that is not a prefix; it tells the encodings of vectors apart.
        mnemonic: in Intel's syntax, lower case.
        operands: in Intel's syntax.
    """
    if mnemonic[:1] in "vk":
        if first == _EVEX:
            return _evex(mnemonic, operands)
        mask = _MASKS.fullmatch(mnemonic)
        if mask is not None:
            return {"w": "avx512f", "b": "avx512dq"}.get(mask[1], "avx512bw")
        if mnemonic[0] == "v" and first in _VEX and not _SYSTEM.match(mnemonic):
            return _vex(mnemonic, operands)
    return _SCALAR.get(mnemonic, "")


def evex_extension(data: bytes) -> str:
    """Return the extension of an instruction whose mnemonic is not known, by its first five bytes.

    Capstone 5 knows neither FP16, which has the opcode maps 5 and 6, nor BF16.
    """
    if len(data) < 5 or data[0] != _EVEX or data[1] & 0x08 or not data[2] & 0x04:
        return ""
    opcode_map = data[1] & 0x07
    if opcode_map in (5, 6):
        return "avx512_fp16"
    return "avx512_bf16" if opcode_map == 2 and data[4] in (0x52, 0x72) else ""


def _vex(mnemonic: str, operands: str) -> str:
    if _FMA.fullmatch(mnemonic):
        return "fma4" if operands.count(",") == 3 else "fma"
    if mnemonic in ("vcvtph2ps", "vcvtps2ph"):
        return "f16c"
    wide = "ymm" in operands
    if mnemonic.startswith("vgf2p8"):
        return "gfni"
    if wide and mnemonic.startswith("vaes"):
        return "vaes"
    if wide and mnemonic == "vpclmulqdq":
        return "vpclmulqdq"
    if _VECTOR.get(mnemonic) == "vnni":
        return "avx_vnni"
    integers = mnemonic.startswith("vp") and mnemonic not in _FLOAT_PERMUTES
    return "avx2" if _AVX2.fullmatch(mnemonic) or (wide and integers) else "avx"


def _evex(mnemonic: str, operands: str) -> str:
    found = _VECTOR.get(mnemonic)
    if found is not None:
        return "avx512_vnni" if found == "vnni" else found
    if mnemonic.startswith("vgf2p8"):
        return "gfni"
    if mnemonic.startswith("vaes"):
        return "vaes"
    if mnemonic == "vpclmulqdq":
        return "vpclmulqdq"
    if _WORDS.fullmatch(mnemonic):
        return "avx512bw"
    scalar = re.search(r"s[sd]$", mnemonic) and "mm" in operands and "ymm" not in operands
    return "avx512f" if "zmm" in operands or scalar else "avx512vl"


_ARM = _table(
    {
        "asimddp": "sdot udot",
        "i8mm": "smmla ummla usmmla usdot sudot",
        "bf16": "bfdot bfmmla bfmlalb bfmlalt bfcvt bfcvtn bfcvtn2",
        "asimdrdm": "sqrdmlah sqrdmlsh",
        "fcma": "fcmla fcadd",
        "jscvt": "fjcvtzs",
        "crc32": "crc32b crc32h crc32w crc32x crc32cb crc32ch crc32cw crc32cx",
        "aes": "aese aesd aesmc aesimc",
        "sha1": "sha1c sha1h sha1m sha1p sha1su0 sha1su1",
        "sha2": "sha256h sha256h2 sha256su0 sha256su1",
        "sha512": "sha512h sha512h2 sha512su0 sha512su1",
        "sha3": "eor3 rax1 xar bcax",
        "sm3": "sm3partw1 sm3partw2 sm3ss1 sm3tt1a sm3tt1b sm3tt2a sm3tt2b",
        "sm4": "sm4e sm4ekey",
        "lrcpc": "ldapr ldaprb ldaprh",
        "ilrcpc": "ldapur ldapurb ldapurh ldapursb ldapursh ldapursw stlur stlurb stlurh",
        "asimdfhm": "fmlal fmlal2 fmlsl fmlsl2",
        "rng": "rndr rndrrs",
    }
)
_ATOMICS = re.compile(r"(?:cas|casp|swp|(?:ld|st)(?:add|clr|eor|set|smax|smin|umax|umin))a?l?[bh]?")
_SVE = re.compile(r"\bz\d+(?:\.[bhsdq])?\b|\bp\d+[./]")


def arm_extension(mnemonic: str, operands: str) -> str:
    """Return the extension of an instruction of AArch64, empty for ARMv8.0.

    SVE and SVE2 are not distinguished: both are ``sve``.
    """
    if _SVE.search(operands):
        return "sve"
    return "atomics" if _ATOMICS.fullmatch(mnemonic) else _ARM.get(mnemonic, "")


ARM_VERSIONS: dict[str, tuple[str, ...]] = {
    "8.1a": ("atomics", "asimdrdm", "crc32"),
    "8.2a": (),
    "8.3a": ("fcma", "jscvt", "lrcpc"),
    "8.4a": ("asimddp", "asimdfhm", "ilrcpc"),
    "8.5a": (),
    "8.6a": ("i8mm", "bf16"),
    "9.0a": ("sve",),
    "9.2a": (),
}
"""Extensions that each version of the architecture adds to the one before it, of those above.

9.0 starts from 8.5, so ``i8mm`` and ``bf16`` come with 9.1. Cryptography is never included.
"""
