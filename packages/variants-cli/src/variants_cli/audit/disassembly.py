"""Disassembling machine code within a time limit."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from .extensions import arm_extension, evex_extension, x86_extension
from .library import Tally

_CHUNK = 64 * 1024
"""Bytes that are decoded at a time."""
_SETTLED = 8
"""Instructions after which a decoder that started in the middle of one is in step again."""
_PREFIXES = frozenset(b"\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3")
_ASKS = frozenset({"cpuid", "xgetbv"})
"""Instructions of code that chooses by what the CPU can do."""


@dataclass(frozen=True)
class Code:
    """The code of a section.

    Attributes:
        address: where it is loaded.
        data: the bytes.
    """

    address: int
    data: bytes


class Functions:
    """The functions of a library by address."""

    def __init__(self, named: Sequence[tuple[int, int, str]]) -> None:
        """Take address, size and name of each."""
        self._sorted = sorted(named)
        self._starts = [start for start, _, _ in self._sorted]

    def at(self, address: int) -> str:
        """Return the name of the function at *address*, or the address in hexadecimal."""
        index = bisect_right(self._starts, address) - 1
        if index >= 0:
            start, size, name = self._sorted[index]
            if address < start + max(size, 1):
                return name
        return f"0x{address & ~0xFFF:x}"


def count_extensions(
    machine: str, codes: Sequence[Code], functions: Functions, deadline: float, tally: Tally
) -> float:
    """Count the instructions of extensions in *codes* into *tally*.

    Where the time does not suffice, evenly spread parts are looked at.

    Args:
        machine: ``x86_64`` or ``aarch64``.
        codes: the code.
        functions: names of what is found.
        deadline: on the clock of `time.monotonic`.
        tally: gets the counts.

    Returns:
        The share of the code that was looked at.
    """
    import capstone

    if machine == "x86_64":
        decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    else:
        decoder = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM)
    decoder.skipdata = True
    total = sum(len(code.data) for code in codes)
    seen = 0
    for code, start, end in _spread(codes):
        if seen and time.monotonic() > deadline:
            break
        chunk = code.data[start:end]
        seen += len(chunk)
        instructions = decoder.disasm_lite(chunk, code.address + start)
        classify = _x86(chunk, code.address + start) if machine == "x86_64" else _arm
        settled = _SETTLED if start == 0 else 0
        for address, size, mnemonic, operands in instructions:
            unknown = mnemonic == ".byte"
            settled = settled + 1
            if settled <= _SETTLED:
                settled *= not unknown
                continue
            tally.instructions += 1
            tally.asks = tally.asks or mnemonic in _ASKS
            extension = classify(address, size, mnemonic, operands)
            if extension:
                tally.add(extension, functions.at(address))
            settled *= not unknown
    return seen / total if total else 1.0


def _x86(chunk: bytes, start: int) -> Callable[[int, int, str, str], str]:
    def classify(address: int, size: int, mnemonic: str, operands: str) -> str:
        place = address - start
        if mnemonic == ".byte":  # one that capstone does not know
            return evex_extension(chunk[place : place + 5])
        while size > 1 and chunk[place] in _PREFIXES:
            place, size = place + 1, size - 1
        return x86_extension(chunk[place], mnemonic, operands)

    return classify


def _arm(address: int, size: int, mnemonic: str, operands: str) -> str:
    del address, size
    return arm_extension(mnemonic, operands)


def _spread(codes: Sequence[Code]) -> Iterator[tuple[Code, int, int]]:
    """Yield chunks of all codes, such that the first ones are spread evenly over all of them."""
    chunks = [
        (code, start, min(start + _CHUNK, len(code.data)))
        for code in codes
        for start in range(0, len(code.data), _CHUNK)
    ]
    yield from chunks[:1]
    step = 1 << len(chunks).bit_length()
    while step := step // 2:
        for index in range(step, len(chunks), 2 * step):
            yield chunks[index]
