"""What an audit found, compared with what the label of the wheel declares."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from pep_variants.errors import shortened
from pep_variants.model.filename import parse_filename
from pep_variants.model.label import NULL_LABEL
from pep_variants.model.metadata import Metadata
from pep_variants.model.property import Properties

from ..checks.finding import Finding, warning
from .declared import Declared, declared, level_of
from .library import UNNAMED, Library, Use
from .wheel_audit import SECONDS, WheelAudit, audit_wheel

_FEW = 2
"""Instructions that may be data between functions, decoded as code."""
_SHARE = 0.02
"""Share of the instructions from which on they are no longer taken for what is chosen at run time,
in a library that asks the CPU."""


def check_instructions(
    path: Path, metadata: Metadata | None, seconds: float = SECONDS
) -> list[Finding]:
    """Audit the wheel at *path*; a plain one declares as little as the null variant.

    Raises:
        AuditUnavailable: what reads libraries is not installed.
        OSError: the file cannot be read.
    """
    label = parse_filename(path.name).label or NULL_LABEL
    properties = (metadata.properties_of(label) if metadata is not None else None) or {}
    try:
        audit = audit_wheel(path, seconds)
    except zipfile.BadZipFile:
        return []  # said by the other checks
    return list(audit_findings(audit, str(path), properties))


def audit_findings(audit: WheelAudit, file: str, properties: Properties) -> Iterator[Finding]:
    """Yield warnings: instructions above the label, a label above the instructions, GPU code.

    Args:
        audit: what was found.
        file: the wheel, for messages.
        properties: of its label.
    """
    for library in audit.libraries:
        if library.problem and library.kind == "ELF":
            yield warning(
                "library-unreadable", file, library.path, shortened(library.problem),
                "build it again; the loader may refuse it, too",
            )  # fmt: skip
        for machine in library.machines:
            wanted = declared(machine, properties)
            if wanted is not None:
                yield from _above(library, machine, wanted, file)
    yield from _unused(audit, file, properties)
    yield from _gpu(audit, file, properties)


def summary(audit: WheelAudit) -> str:
    """Return on one line what the libraries of a wheel have."""
    if not audit.libraries:
        return "no libraries"
    names = sorted({name for library in audit.libraries for name in library.uses})
    parts = [", ".join(names) if names else "no extensions"]
    gpus = _numbers(name for library in audit.libraries for name in library.cubins)
    ptx = _numbers(name for library in audit.libraries for name in library.ptx)
    parts += [f"sm_{', sm_'.join(map(str, gpus))}"] if gpus else []
    parts += [f"PTX {', '.join(map(str, ptx))}"] if ptx else []
    partly = [library for library in audit.libraries if library.uses and library.audited < 1]
    unread = [*audit.left_out, *(lib.path for lib in audit.libraries if lib.problem)]
    parts += ["parts of the code only"] if partly else []
    parts += [f"not looked at: {', '.join(unread)}"] if unread else []
    return "; ".join(parts)


def _above(library: Library, machine: str, wanted: Declared, file: str) -> Iterator[Finding]:
    found = {
        name: use
        for name, use in library.uses.items()
        if name not in wanted.allowed and _counts(library, use)
    }
    if not found:
        return
    functions = list(dict.fromkeys(name for use in found.values() for name in use.functions))
    levels = sorted({level_of(machine, name) for name in found} - {""})
    number = sum(use.instructions - use.chosen for use in found.values())
    highest = f" ({levels[-1]})" if levels else ""
    named = [name for name in functions if not name.startswith(UNNAMED)]
    place = f"such as {named[0]}" if named else f"near {functions[0]}"
    asks = ", although it asks the CPU what it can do" if library.dispatch else ""
    yield warning(
        "instructions-above-label",
        file,
        library.path,
        f"has {number} instructions of {', '.join(found)}{highest} in functions {place}{asks}; "
        f"the label declares {wanted.title}",
        "build it without flags for newer CPUs, or declare the level as a property of the label",
    )


def _counts(library: Library, use: Use) -> bool:
    """Return whether instructions are there for every CPU, not where one is chosen at run time."""
    if library.dispatch:
        plain = use.instructions - use.chosen - use.unnamed
        return plain >= max(_FEW, _SHARE * library.instructions)
    return use.instructions - use.chosen >= _FEW


def _unused(audit: WheelAudit, file: str, properties: Properties) -> Iterator[Finding]:
    for machine in ("x86_64", "aarch64"):
        libraries = [lib for lib in audit.libraries if machine in lib.machines and not lib.problem]
        wanted = declared(machine, properties)
        if not libraries or wanted is None:
            continue
        uses = {name for library in libraries for name in library.uses}
        share = min(library.audited for library in libraries)
        for title, extensions in wanted.expected.items():
            if uses & extensions:
                continue
            where = "nothing in its libraries"
            if share < 1 or audit.left_out:
                where = f"nothing in the {100 * share:.0f} % of its code that was looked at"
            yield warning(
                "instructions-not-used",
                file,
                libraries[0].path,
                f"the label declares {title}, but {where} uses {_any(extensions)}",
                "check that the flags of this variant reach the compiler, and are not dropped",
            )


def _any(extensions: Iterable[str]) -> str:
    names = sorted(extensions)
    return names[0] if len(names) == 1 else f"any of {', '.join(names)}"


def _gpu(audit: WheelAudit, file: str, properties: Properties) -> Iterator[Finding]:
    cubins = _numbers(name for library in audit.libraries for name in library.cubins)
    ptx = _numbers(name for library in audit.libraries for name in library.ptx)
    if not cubins and not ptx:
        return
    for value in properties.get("nvidia", {}).get("sm_arch", ()):
        match = re.fullmatch(r"(\d+)[a-z]?_(real|virtual)", value)
        if match is None:
            continue
        number = int(match[1])
        if match[2] == "real":
            served = any(code // 10 == number // 10 and code <= number for code in cubins)
        else:
            served = any(code <= number for code in ptx)
        if not served:
            has = [*(f"sm_{code}" for code in cubins), *(f"PTX {code}" for code in ptx)]
            yield warning(
                "gpu-code-missing", file, "",
                f"the label declares nvidia :: sm_arch :: {value}, but its libraries have code "
                f"for {', '.join(has)} only",
                "build for this architecture (-gencode, TORCH_CUDA_ARCH_LIST), or correct the "
                "label",
            )  # fmt: skip


def _numbers(names: Iterable[str]) -> list[int]:
    return sorted({int(name) for name in names})
