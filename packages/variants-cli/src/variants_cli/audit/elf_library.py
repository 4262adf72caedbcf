"""Reading ELF libraries: their machine, code, functions and GPU code."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import IO, Any

from .disassembly import Code, Functions, count_extensions
from .fatbin import gpu_code
from .library import Library, Tally

MACHINES = {
    "EM_X86_64": "x86_64",
    "EM_AARCH64": "aarch64",
    "EM_386": "i686",
    "EM_ARM": "armv7l",
    "EM_PPC64": "ppc64le",
    "EM_S390": "s390x",
    "EM_RISCV": "riscv64",
    "EM_LOONGARCH": "loongarch64",
}
DISASSEMBLED = ("x86_64", "aarch64")
"""Machines whose code is looked at."""

_EXECUTABLE, _NO_DATA = 0x4, "SHT_NOBITS"
_IFUNC = ("STT_GNU_IFUNC", "STT_LOOS")
"""Functions that a resolver chooses: elftools has both names for their type."""
_MOST_SYMBOLS = 2_000_000
_GPU_SECTIONS = (".nv_fatbin", "__nv_relfatbin")

CHOSEN = re.compile(
    r"avx|sse[234]|ssse3|fma|bmi2?|popcnt|aesni|aes_ni|_aes|vaes|clmul|vnni|amx|sha_?ni|shani|"
    r"haswell|skylake|skx|cascade|icelake|ice_lake|_icl|sapphire|_spr|knl|knights|cooperlake|"
    r"zen[1-5]?|znver|excavator|piledriver|bulldozer|steamroller|sandybridge|sandy_bridge|nehalem|"
    r"arch_x86|x86[-_]64[-_]v[234]|sve|neon|i8mm|bf16|dotprod|asimd|armv8_|neoverse|_lse|lse_|outline|"
    r"\.resolver|ifunc|resolve_|dispatch|cpu_?feature|crc32|gf2p8|gfni|adx|mulx|prefetchw",
    re.IGNORECASE,
)
"""Parts of names of functions that are chosen at run time, as compilers (``target_clones``) and
libraries (OpenBLAS, OpenSSL, NumPy, oneDNN, memchr) name them."""
_ASKS = re.compile(r"__cpu_model|__cpu_indicator_init|__cpu_features|getauxval|elf_aux_info|"
                   r"__aarch64_have_lse|__aarch64_cpu_features")  # fmt: skip


def read_elf(stream: IO[bytes], path: str, deadline: float) -> Library:
    """Return what the ELF library in *stream* has.

    Args:
        stream: seekable.
        path: of the library in the wheel.
        deadline: on the clock of `time.monotonic`.

    Raises:
        elftools.common.exceptions.ELFError, and others of Python's own: it is broken.
    """
    from elftools.elf.elffile import ELFFile

    elf = ELFFile(stream)
    found = str(elf["e_machine"])
    machine = MACHINES.get(found, found)
    sections = list(elf.iter_sections())
    cubins, ptx = gpu_code(section.data() for section in sections if section.name in _GPU_SECTIONS)
    if machine not in DISASSEMBLED:
        return Library(path, "ELF", (machine,), cubins=cubins, ptx=ptx)
    now = time.monotonic()
    functions, asks = _functions(sections, now + (deadline - now) / 2)
    codes = [
        Code(section["sh_addr"], section.data())
        for section in sections
        if section["sh_flags"] & _EXECUTABLE
        and section["sh_type"] != _NO_DATA
        and not section.name.startswith(".plt")
    ]
    tally = Tally()
    share = count_extensions(machine, codes, Functions(functions), deadline, tally)
    return Library(
        path, "ELF", (machine,), tally.uses(CHOSEN), tally.instructions, share,
        asks or tally.asks, cubins, ptx,
    )  # fmt: skip


def _functions(sections: list[Any], deadline: float) -> tuple[list[tuple[int, int, str]], bool]:
    """Return address, size and name of the functions, and whether any choice depends on the CPU."""
    from elftools.elf.sections import SymbolTableSection

    found: dict[int, tuple[int, int, str]] = {}
    asks = False
    tables = [section for section in sections if isinstance(section, SymbolTableSection)]
    for name, address, size, kind in _symbols(tables, deadline):
        if kind in _IFUNC or _ASKS.match(name):
            asks = True
        if kind in ("STT_FUNC", *_IFUNC) and address:
            found.setdefault(address, (address, size, name))
    return list(found.values()), asks


def _symbols(tables: list[Any], deadline: float) -> Iterator[tuple[str, int, int, str]]:
    for table in tables:
        for number in range(min(table.num_symbols(), _MOST_SYMBOLS)):
            if number % 1000 == 0 and time.monotonic() > deadline:
                return
            symbol = table.get_symbol(number)
            yield (
                symbol.name, symbol["st_value"], symbol["st_size"],
                str(symbol["st_info"]["type"]),
            )  # fmt: skip
