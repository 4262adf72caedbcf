"""The worst inputs within the limits, beside the plain parser of their format.

That work grows with the number of labels, features and values is tested in `pep-variants`.

Every input is read at a quarter of the limit and at the limit, in processes of its own, of which
the fastest counts. A row is met if reading takes at most fifteen times the CPU time of the plain
parser, little time and memory, and twice as long for twice the size.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import parse_wheel_filename
from packaging.version import Version

from pep_variants import limits
from pep_variants._choose.explanation import verdicts
from pep_variants._choose.ranking import rank
from pep_variants._choose.selection import by_tags
from pep_variants._detect.detector import Detector
from pep_variants._formats.reader import read_metadata
from pep_variants.errors import VariantError
from pep_variants.markers import NON_VARIANT, reduce_metadata
from resolvelib_variants.resolution import RequirementError, read_file
from support.wheels import V0_2_0, metadata
from variants_index._distribution_metadata import read_core_metadata
from variants_index._lock_files import read_lock
from variants_index.pages import JSON, read_page
from variants_index.target import meets_python

from .report import Row

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

_OLD_SCHEMA = "https://variants-schema.wheelnext.dev/v0.0.3.json"
_SORTED = {"a": {"install-time": False}}
"""A provider whose values are sorted, with the old schema."""


class Case(NamedTuple):
    """One kind of input: the bytes for a number, the number at the limit, and two readers."""

    make: Callable[[int], bytes]
    most: int
    read: Callable[[Path], object]
    plain: Callable[[Path], object]


def judge(path: Path) -> object:
    """Read metadata, detect, rank and explain."""
    found = read_metadata(path.read_bytes(), "x.json")
    return verdicts(rank(found, Detector().platform(found)), None)


def page(path: Path) -> object:
    """Read a page of an index."""
    return read_page(path.read_bytes(), JSON, "https://index.example/simple/a/")


def judged_page(path: Path) -> object:
    """Read a page of an index, and what its files are judged by."""
    files = read_page(path.read_bytes(), JSON, "https://index.example/simple/a/").files
    meets = [meets_python(file.requires_python, "3.12") for file in files]
    return by_tags(files, attrgetter("filename"), {}), meets


def core_metadata(path: Path) -> object:
    """Read the METADATA of a wheel, and parse and reduce its requirements."""
    data = reduce_metadata(path.read_bytes(), NON_VARIANT)
    return _parsed(read_core_metadata(data, "a", Version("1"), "x").requires)


def requirements(path: Path) -> object:
    """Read a requirements file."""
    return read_file(path, {})


def json_loads(path: Path) -> object:
    """`json.loads`."""
    return json.loads(path.read_bytes())


def packaging_parts(path: Path) -> object:
    """Parse with packaging."""
    files = json.loads(path.read_bytes())["files"]
    pythons = {file.get("requires-python", "") for file in files}
    builds = [parse_wheel_filename(file["filename"])[2] for file in files]
    return builds, [text for text in pythons if SpecifierSet(text).contains("3.12")]


def packaging_markers(path: Path) -> object:
    """`packaging.markers`."""
    return [Marker(text) for text in re.findall('marker = "(.*)"', path.read_text())]


def packaging_requirements(path: Path) -> object:
    """`packaging.requirements`."""
    # packaging does not know the variables of variants.
    text = path.read_text().replace("variant_namespaces", "os_name")
    return _parsed([line.removeprefix("Requires-Dist: ") for line in text.splitlines()])


def _parsed(texts: Any) -> list[Requirement]:
    found = []
    for text in texts:
        try:
            found.append(Requirement(text))
        except InvalidRequirement:
            continue
    return found


def document(variants: dict[str, Any], providers: dict[str, Any], schema: str = V0_2_0) -> bytes:
    """Return metadata."""
    tree = metadata(variants, namespaces=providers, providers=providers, schema=schema)
    return json.dumps(tree, separators=(",", ":")).encode()


def numbered(prefix: str, count: int) -> list[str]:
    """Return that many names."""
    return [f"{prefix}{number}" for number in range(count)]


def namespaces(count: int) -> bytes:
    """Return variants of many namespaces nothing of which is supported."""
    names = numbered("n", 12)
    return document(
        {label: {name: {"f": ["v"]} for name in names} for label in numbered("l", count)},
        {name: {"requires": ["p" * 100]} for name in names},
    )


def natural(count: int) -> bytes:
    """Return values that are sorted by the numbers in them, with as many numbers as fit."""
    text = "1a" * (limits.VALUE_LENGTH // 2 - 5)
    variants = {name: {"a": {"f": [f"{text}{name}"]}} for name in numbered("l", count)}
    return document(variants, _SORTED, schema=_OLD_SCHEMA)


def plugins(count: int) -> bytes:
    """Return requirements of plugins of that many characters, with long markers."""
    text = "nvidia-variant-provider; " + " and ".join(["python_version > '3'"] * 76)
    many, rest = divmod(count - 1, len(text))
    provider = {"requires": [text] * many + ["p" * (rest + 1)]}
    return document({"x": {"a": {"f": ["1"]}}}, {"a": provider})


def features_alone(count: int) -> bytes:
    """Return variants with features that no other has, values of which are sorted."""
    variants = {
        name: {"a": {feature: [name] for feature in numbered("f", 10)}}
        for name in numbered("l", count)
    }
    return document(variants, _SORTED, schema=_OLD_SCHEMA)


def known(count: int) -> bytes:
    """Return variants for GPUs, of a provider that is built in."""

    def features(number: int) -> dict[str, list[str]]:
        version = f"{number % 100}.{number // 100}"
        return {"cuda_version_lower_bound": [version], "sm_arch": [f"{number}_real"]}

    return document(
        {f"l{number}": {"nvidia": features(number)} for number in range(count)},
        {"nvidia": {"requires": ["nvidia-variant-provider>=0.0.1,<1"]}},
    )


def json_page(count: int) -> bytes:
    """Return a page of wheels."""
    files = [
        {"filename": f"a-{n}-py3-none-any.whl", "url": f"a{n}", "hashes": {"sha256": "0" * 64}}
        for n in range(count)
    ]
    return json.dumps({"meta": {"api-version": "1.0"}, "name": "a", "files": files}).encode()


def _judged(files: list[dict[str, Any]]) -> bytes:
    listed = [{**file, "url": file["filename"]} for file in files]
    return json.dumps({"meta": {"api-version": "1.0"}, "name": "a", "files": listed}).encode()


def many_tags(count: int) -> bytes:
    """Return a page of wheels for that many platform tags, a hundred each."""
    tags = "-".join(".".join(numbered(letter, 10)) for letter in "ab")
    return _judged([{"filename": f"a-1-{n}-{tags}-any.whl"} for n in range(count // 100)])


def many_pythons(count: int) -> bytes:
    """Return a page of wheels with that many characters of Requires-Python."""
    text = ",".join(["!=4.1"] * 200)
    return _judged(
        [
            {"filename": f"a-1-{n}-py3-none-any.whl", "requires-python": f"{text},!=2.{n:04}"}
            for n in range(count // (len(text) + 8))
        ]
    )


def lock_file(count: int) -> bytes:
    """Return a lock file with that many characters of markers."""
    text = " or ".join(["os_name == 'x'"] * 50)
    head = 'lock-version = "1.0"\ncreated-by = "x"\n'
    wheel = 'wheels = [{name = "a-1-py3-none-any.whl", path = "a", hashes = {sha256 = "0"}}]'
    package = f'[[packages]]\nname = "a"\nversion = "1"\nmarker = "{text}"\n{wheel}\n'
    return (head + package * (count // len(text))).encode()


def fields(count: int) -> bytes:
    """Return METADATA of many requirements."""
    text = b"Requires-Dist: p>=1; 'a' in variant_namespaces or python_version > '3'\n"
    return b"Metadata-Version: 2.4\nName: a\nVersion: 1\n" + text * count


def requirement_lines(count: int) -> bytes:
    """Return a requirements file of many requirements."""
    rest = ">=1 ; python_version > '3' and os_name == 'posix'\n"
    return "".join(f"{name}{rest}" for name in numbered("p", count)).encode()


CASES = {
    "document: unsupported namespaces": Case(namespaces, 16_000, judge, json_loads),
    "document: sorted values": Case(natural, limits.LABELS, judge, json_loads),
    "document: requirements": Case(
        plugins, limits.PROVIDER_REQUIREMENT_CHARACTERS, judge, json_loads
    ),
    "document: features of one variant each": Case(features_alone, 24_000, judge, json_loads),
    "document: a known provider": Case(known, limits.LABELS, judge, json_loads),
    "page": Case(json_page, limits.PAGE_FILES, page, json_loads),
    "page: platform tags": Case(many_tags, limits.PAGE_TAGS, judged_page, packaging_parts),
    "page: Requires-Python": Case(
        many_pythons, limits.PAGE_PYTHON_CHARACTERS, judged_page, packaging_parts
    ),
    "lock file": Case(lock_file, limits.LOCK_MARKER_CHARACTERS, read_lock, packaging_markers),
    "METADATA": Case(fields, limits.CORE_REQUIREMENTS, core_metadata, packaging_requirements),
    "requirements file": Case(
        requirement_lines, limits.REQUIREMENT_LINES, requirements, packaging_requirements
    ),
}
"""The number is that at which the input reaches the first of its limits."""


def main(name: str, path: Path) -> None:
    """Print CPU seconds of reading the file at *path*, of the comparison, and peak megabytes."""
    case = CASES[name]
    small = path.with_name("small.txt")
    small.write_bytes(case.make(5))
    for read in (case.read, case.plain):
        _seconds(read, small)  # what is imported on the way is no part of it
    seconds = _seconds(case.read, path)
    status = Path("/proc/self/status").read_text("utf-8")
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 1e3
    print(json.dumps([seconds, _seconds(case.plain, path), peak]))


def _seconds(read: Callable[[Path], object], path: Path) -> float:
    start = time.process_time()
    with suppress(VariantError, RequirementError):  # to be refused takes time as well
        kept = read(path)  # noqa: F841 - what it returns counts as memory
    return time.process_time() - start


def measured(name: str, path: Path) -> tuple[float, float, float]:
    """Return the least CPU seconds of both programs in `ROUNDS`, and the peak memory in MB."""
    command = [sys.executable, "-m", "benchmarks.bench_limits", name, str(path)]
    runs = [
        json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        for _ in range(ROUNDS)
    ]
    ours, theirs, megabytes = zip(*runs, strict=True)
    return min(ours), min(theirs), max(megabytes)


def rows() -> Iterator[Row]:
    """Measure every case."""
    goal = f"at most {MOST_RATIO:.0f}x or {LITTLE * 1e3:.0f} ms, linear,"
    goal += f" under {MOST_SECONDS:.0f} s and {MOST_MEGABYTES} MB"
    for name, case in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "input.txt")
            path.write_bytes(case.make(case.most // 4))
            quarter, *_ = measured(name, path)
            path.write_bytes(case.make(case.most))
            ours, theirs, megabytes = measured(name, path)
            size = path.stat().st_size
        growth = (ours / quarter) ** 0.5
        met = (
            ours <= max(MOST_RATIO * theirs, LITTLE)
            and (growth <= GROWTH or ours < SHORT)
            and ours < MOST_SECONDS
            and megabytes < MOST_MEGABYTES
        )
        what = f"{name}: {size / 1e6:.1f} MB, {growth:.1f}x for twice of it, {megabytes:.0f} MB"
        against = (case.plain.__doc__ or "").strip(".`")
        yield Row(f"{what} of memory", ours * 1e3, theirs * 1e3, "ms", against, goal, met)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
