"""Fuzzing one target in a process of its own.

For a time, guided by coverage where Atheris (libFuzzer) is installed: it has wheels for CPython on
Linux. Elsewhere, and for a number of inputs, by Hypothesis, which mutates the seeds without looking
at coverage: its inputs depend on the random seed only, and not on the build or the machine.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from .seeds import seeds, words

PACKAGES = [
    "pep_variants", "variants_plugins", "variants_index", "variants_proxy", "resolvelib_variants",
    "uv_variants", "variants_cli", "packaging",
]  # fmt: skip
"""Whose coverage guides the fuzzer."""

MEMORY_MIB = 1024
"""Of the whole process; its own code, instrumented, takes 200 of it."""


def main() -> None:
    """Run as ``python -m fuzz.worker TARGET SECONDS SEED FOLDER [FILE]``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("target")
    parser.add_argument("seconds", type=int)
    parser.add_argument("seed", type=int)
    parser.add_argument("folder", type=Path, help="where a failing input is written to")
    parser.add_argument("file", type=Path, nargs="?", help="run this one input")
    parser.add_argument("--inputs", type=int, help="stop after so many, instead of the seconds")
    given = parser.parse_args()
    if given.file is not None:
        _check(given.target)(given.file.read_bytes())
    elif not given.inputs and importlib.util.find_spec("atheris") is not None:
        _with_atheris(given.target, given.seconds, given.seed, given.folder)
    else:
        _with_hypothesis(given.target, given.seconds, given.inputs, given.seed, given.folder)


def _check(name: str) -> Callable[[bytes], None]:
    """Return what reads inputs of a target, and fails for those that take too long."""
    # Imported late, so that Atheris can instrument what is imported with it.
    from .targets import CPU_SECONDS, check

    def timed(data: bytes) -> None:
        start = time.process_time()
        check(name, data)
        spent = time.process_time() - start
        if spent > CPU_SECONDS:
            raise AssertionError(f"took {spent:.1f} seconds of CPU for {len(data)} bytes")

    return timed


def _with_atheris(name: str, seconds: int, seed: int, folder: Path) -> None:
    import atheris

    # Modules are instrumented as they are imported.
    with atheris.instrument_imports(include=PACKAGES, enable_loader_override=False):
        check = _check(name)
    with tempfile.TemporaryDirectory() as work:
        corpus = Path(work, "corpus")
        corpus.mkdir()
        for number, data in enumerate(seeds(name)):
            (corpus / f"seed-{number}").write_bytes(data)
        options = [
            f"-max_total_time={seconds}",
            f"-seed={seed}",
            f"-rss_limit_mb={MEMORY_MIB}",
            "-timeout=30",  # of wall time: what hangs; `_timed` measures CPU time
            "-max_len=65536",
            "-print_final_stats=1",
            f"-artifact_prefix={folder}/{name}-",
        ]
        if words(name):
            dictionary = Path(work, "dictionary")
            coded = ("".join(f"\\x{byte:02x}" for byte in word.encode()) for word in words(name))
            dictionary.write_text("".join(f'"{word}"\n' for word in coded))
            options.append(f"-dict={dictionary}")
        atheris.Setup([sys.argv[0], *options, str(corpus)], check)
        atheris.Fuzz()


def _with_hypothesis(name: str, seconds: int, inputs: int | None, seed: int, folder: Path) -> None:
    import hypothesis
    from hypothesis import strategies as st

    check = _check(name)
    base = seeds(name)
    pieces = st.one_of(
        st.binary(max_size=8), st.sampled_from([word.encode() for word in words(name)] or [b""])
    )
    edits = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 16), pieces), max_size=8)
    end = time.monotonic() + seconds
    count = 0

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=10**9,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(st.sampled_from(base), edits)
    def run(data: bytes, changes: list[tuple[float, int, bytes]]) -> None:
        nonlocal count
        if count == inputs if inputs else time.monotonic() > end:
            raise _Finished
        for place, removed, added in changes:
            start = int(place * len(data))
            data = data[:start] + added + data[start + removed :]
        count += 1
        last.write_bytes(data)
        check(data)

    with tempfile.TemporaryDirectory() as work:
        last = Path(work, "last")
        try:
            run()
        except _Finished:
            pass
        except BaseException:
            (folder / f"{name}-crash").write_bytes(last.read_bytes())
            raise
    print(f"stat::number_of_executed_units: {count}", file=sys.stderr)


class _Finished(BaseException):
    """The time is over; no `Exception`, which Hypothesis would take for a defect."""


if __name__ == "__main__":
    main()
