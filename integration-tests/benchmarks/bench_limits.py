"""The worst inputs within the limits, beside the plain parser of their format.

Every input is read at a quarter of the limit and at the limit, in processes of its own, of which
the fastest counts. CPU time, which a busy machine does not change much, is set beside that of
`json.loads`, or of what else the standard library or `packaging` reads such bytes with. A row is
met if reading takes at most fifteen times as long, little time and memory, and twice as long for
twice the size.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pep_variants import limits

from .report import Row, peak_megabytes

MOST_RATIO = 15.0
LITTLE = 0.02
"""Seconds that an input may take however small it is: requirements have another parser."""
MOST_SECONDS = 2.0
MOST_MEGABYTES = 300
GROWTH = 2.45
"""Times the CPU time for twice the size; linear work has two, short times vary."""
SHORT = 0.05
"""Seconds, of which growth says nothing."""
ROUNDS = 3

_SCHEMA = "https://variants-schema.wheelnext.dev/v0.2.0.json"
_OLD_SCHEMA = "https://variants-schema.wheelnext.dev/v0.0.3.json"


@dataclass(frozen=True)
class Case:
    """One kind of input.

    Attributes:
        make: the bytes for a number.
        most: the number at the limit.
        read: what is measured, given the path of a file with the bytes.
        plain: what it is compared with, likewise.
    """

    make: Callable[[int], bytes]
    most: int
    read: Callable[[Path], object]
    plain: Callable[[Path], object]


# --- What is measured. Imports are not: `main` calls everything once on the smallest input.


def judge(path: Path) -> object:
    """Read metadata, detect, rank and explain."""
    from pep_variants.choose.explanation import verdicts
    from pep_variants.choose.ranking import rank
    from pep_variants.detect.detector import Detector
    from pep_variants.formats.reader import read_metadata

    metadata = read_metadata(path.read_bytes(), "x.json")
    ranking = rank(metadata, Detector().platform(metadata))
    return verdicts(ranking, None)


def page(path: Path) -> object:
    """Read a page of an index."""
    from variants_index.pages import JSON, read_page

    return read_page(path.read_bytes(), JSON, "https://index.example/simple/a/")


def core_metadata(path: Path) -> object:
    """Read the METADATA of a wheel, and parse and reduce its requirements."""
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.version import Version

    from pep_variants.choose.markers import NON_VARIANT, reduce_metadata
    from variants_index.distribution_metadata import read_core_metadata

    data = reduce_metadata(path.read_bytes(), NON_VARIANT)
    for text in read_core_metadata(data, "a", Version("1"), "x").requires:
        try:
            Requirement(text)
        except InvalidRequirement:
            continue
    return None


def requirements(path: Path) -> object:
    """Read a requirements file."""
    from resolvelib_variants.resolution import read_file

    return read_file(path, {})


# --- What it is compared with: only parsing, of what is in the bytes.


def json_loads(path: Path) -> object:
    """`json.loads`."""
    return json.loads(path.read_bytes())


def packaging_requirements(path: Path) -> object:
    """`packaging.requirements`."""
    from packaging.requirements import InvalidRequirement, Requirement

    found = []
    for line in path.read_text().splitlines():
        # packaging does not know the variables of variants.
        text = line.removeprefix("Requires-Dist: ").replace("variant_namespaces", "os_name")
        try:
            found.append(Requirement(text))
        except InvalidRequirement:
            continue
    return found


# --- Inputs.


def document(
    variants: dict[str, Any],
    namespaces: list[str] | None = None,
    providers: dict[str, Any] | None = None,
    schema: str = _SCHEMA,
) -> bytes:
    """Return metadata; by default of one namespace, whose provider has a value of its own."""
    tree = {
        "$schema": schema,
        "default-priorities": {"namespace": namespaces or ["a"]},
        "providers": providers
        if providers is not None
        else {"a": {"static-properties": {"f": ["1"]}}},
        "variants": variants,
    }
    return json.dumps(tree, separators=(",", ":")).encode()


def numbered(prefix: str, count: int) -> list[str]:
    """Return that many names."""
    return [f"{prefix}{number}" for number in range(count)]


def labels(count: int) -> bytes:
    """Return compatible variants, each with values that no other has."""
    return document({name: {"a": {"f": ["1", name]}} for name in numbered("l", count)})


def namespaces(count: int) -> bytes:
    """Return variants of many namespaces nothing of which is supported."""
    names = numbered("n", 12)
    provider = {"requires": ["p" * 100]}
    return document(
        {label: {name: {"f": ["v"]} for name in names} for label in numbered("l", count)},
        names,
        dict.fromkeys(names, provider),
    )


def values(count: int) -> bytes:
    """Return variants with thousands of values, which a provider has in another order."""
    names = numbered("v", limits.VALUES - 1)
    provider = {"static-properties": {"f": names[::-1]}}
    return document(
        {label: {"a": {"f": [*names, label]}} for label in numbered("l", count)},
        providers={"a": provider},
    )


def natural(count: int) -> bytes:
    """Return values that are sorted by the numbers in them, with as many numbers as fit."""
    half = limits.VALUE_LENGTH // 2 - 5
    return document(
        {name: {"a": {"f": [f"{'1a' * half}{name}"]}} for name in numbered("l", count)},
        providers={"a": {"install-time": False}},
        schema=_OLD_SCHEMA,
    )


def plugins(count: int) -> bytes:
    """Return requirements of plugins of that many characters, with long markers."""
    text = "nvidia-variant-provider; " + " and ".join(["python_version > '3'"] * 76)
    assert len(text) < limits.REQUIREMENT_LENGTH
    many, rest = divmod(count - 1, len(text))
    return document(
        {"x": {"a": {"f": ["1"]}}},
        providers={"a": {"requires": [text] * many + ["p" * (rest + 1)]}},
    )


def markers(count: int) -> bytes:
    """Return markers of providers of that many characters."""
    names = numbered("n", max(1, count // limits.MARKER_LENGTH))
    marker = " and ".join(["python_version > '3'"] * 75)
    return document(
        {"x": {"n0": {"f": ["1"]}}},
        names,
        {name: {"requires": ["p"], "enable-if": marker} for name in names},
        schema=_OLD_SCHEMA,
    )


def features_alone(count: int) -> bytes:
    """Return variants with features that no other has, values of which are sorted."""
    return document(
        {
            name: {"a": {feature: [name] for feature in numbered("f", 10)}}
            for name in numbered("l", count)
        },
        providers={"a": {"install-time": False}},
        schema=_OLD_SCHEMA,
    )


def known(count: int) -> bytes:
    """Return variants for GPUs, of a provider that is built in."""
    return document(
        {
            f"l{number}": {
                "nvidia": {
                    "cuda_version_lower_bound": [f"{number % 100}.{number // 100}"],
                    "sm_arch": [f"{number}_real"],
                }
            }
            for number in range(count)
        },
        ["nvidia"],
        {"nvidia": {"requires": ["nvidia-variant-provider>=0.0.1,<1"]}},
    )


def json_page(count: int) -> bytes:
    """Return a page of wheels."""
    hashes = {"sha256": "0" * 64}
    files = [
        {"filename": f"a-{number}-py3-none-any.whl", "url": f"a{number}", "hashes": hashes}
        for number in range(count)
    ]
    return json.dumps({"meta": {"api-version": "1.0"}, "name": "a", "files": files}).encode()


def fields(count: int) -> bytes:
    """Return METADATA of many requirements."""
    text = "Requires-Dist: p>=1; 'a' in variant_namespaces or python_version > '3'\n"
    return b"Metadata-Version: 2.4\nName: a\nVersion: 1\n" + text.encode() * count


def requirement_lines(count: int) -> bytes:
    """Return a requirements file of many requirements."""
    return "".join(
        f"p{number}>=1 ; python_version > '3' and os_name == 'posix'\n" for number in range(count)
    ).encode()


CASES = {
    "document: variants": Case(labels, limits.LABELS, judge, json_loads),
    "document: unsupported namespaces": Case(namespaces, 16_000, judge, json_loads),
    "document: values": Case(values, 80, judge, json_loads),
    "document: sorted values": Case(natural, limits.LABELS, judge, json_loads),
    "document: requirements": Case(
        plugins, limits.PROVIDER_REQUIREMENT_CHARACTERS, judge, json_loads
    ),
    "document: markers": Case(markers, limits.PROVIDER_REQUIREMENT_CHARACTERS, judge, json_loads),
    "document: features of one variant each": Case(features_alone, 24_000, judge, json_loads),
    "document: a known provider": Case(known, limits.LABELS, judge, json_loads),
    "page": Case(json_page, limits.PAGE_FILES, page, json_loads),
    "METADATA": Case(fields, limits.CORE_REQUIREMENTS, core_metadata, packaging_requirements),
    "requirements file": Case(
        requirement_lines, limits.REQUIREMENT_LINES, requirements, packaging_requirements
    ),
}
"""The number is that at which the input reaches the first of its limits."""


# --- Measuring.


def main(name: str, path: Path) -> None:
    """Print CPU seconds of reading the file at *path*, of the comparison, and peak megabytes."""
    case = CASES[name]
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder, path.name)
        small.write_bytes(case.make(5))
        for call in (case.read, case.plain):
            _outcome(call, small)  # what is imported on the way is no part of it
    seconds, problem = _outcome(case.read, path)
    peak = peak_megabytes()
    theirs, _ = _outcome(case.plain, path)
    print(json.dumps([seconds, theirs, peak, problem]))


def _outcome(read: Callable[[Path], object], path: Path) -> tuple[float, str]:
    """Return CPU seconds, and the error that it ended with, empty for none."""
    start = time.process_time()
    problem = ""
    try:
        kept = read(path)  # noqa: F841 - what it returns counts as memory
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    return time.process_time() - start, problem


class Measured(NamedTuple):
    """What reading an input took.

    Attributes:
        seconds: of CPU; *theirs* those of the comparison.
        megabytes: the most memory of the process, of Python and imports too.
        problem: the error that it ended with; empty for none.
        size: bytes of the input.
    """

    seconds: float
    theirs: float
    megabytes: float
    problem: str
    size: int


def measured(name: str, number: int) -> Measured:
    """Return what processes of their own say of an input of that number, the fastest of each."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "input.txt")
        path.write_bytes(CASES[name].make(number))
        command = [sys.executable, "-m", "benchmarks.bench_limits", name, str(path)]
        runs = [
            json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            for _ in range(ROUNDS)
        ]
        seconds, theirs, megabytes, problems = zip(*runs, strict=True)
        return Measured(min(seconds), min(theirs), max(megabytes), problems[0], path.stat().st_size)


def rows() -> Iterator[Row]:
    """Measure every case, worst first."""
    found = [_row(name, case) for name, case in CASES.items()]
    yield from sorted(found, key=lambda row: row.ratio, reverse=True)


def _row(name: str, case: Case) -> Row:
    quarter, most = (measured(name, case.most // part) for part in (4, 1))
    growth = (most.seconds / quarter.seconds) ** 0.5
    met = (
        most.seconds <= max(MOST_RATIO * most.theirs, LITTLE)
        and (growth <= GROWTH or most.seconds < SHORT)
        and most.seconds < MOST_SECONDS
        and most.megabytes < MOST_MEGABYTES
    )
    size = f"{most.size / 1e6:.1f} MB" if most.size >= 1e5 else f"{most.size / 1e3:.1f} kB"
    return Row(
        f"{name}: {size}, {growth:.1f}x for twice of it, {most.megabytes:.0f} MB of memory",
        most.seconds * 1e3,
        most.theirs * 1e3,
        "ms",
        (case.plain.__doc__ or "").strip(".`"),
        f"at most {MOST_RATIO:.0f}x or {LITTLE * 1e3:.0f} ms, linear,"
        f" under {MOST_SECONDS:.0f} s and {MOST_MEGABYTES} MB",
        met,
        line=name,
    )


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
