"""Checking built wheels on this machine: `build.test` and `build.benchmark` of a matrix.

A wheel is put into the folder of wheels when it has passed. What was found is kept beside the logs,
so that a wheel that did not change is not checked again.
"""

from __future__ import annotations

import json
import platform
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pep_variants.detect.providers.cpu import detected_cpu
from pep_variants.errors import VariantError
from pep_variants.files import replacing

from .build_plan import BuildError, Plan
from .build_process import CommandRunner
from .build_results import Built, file_digest, fingerprint, read_result
from .checked_commands import AUTO, CPU, FASTER, PRINTED, WALL, Benchmark, filled
from .fresh_environment import Environment, make_environment
from .interpreters import find_interpreter
from .model import Variant
from .performance_gate import Comparison, compare, last_number, shown
from .runnable import reasons_not_here
from .source_archive import unpack

_RESULTS = "checks.json"


@dataclass(frozen=True)
class Checked:
    """What a check of a wheel found.

    Attributes:
        built: the wheel.
        tested: whether it passed a test now or before.
        untested: why it was not tested or measured here, empty if it was or there is no check.
        comparison: with the baseline, None if it was not measured.
        error: why it is refused, None if it is not.
    """

    built: Built
    tested: bool = False
    untested: str = ""
    comparison: Comparison | None = None
    error: VariantError | None = None


class Checker:
    """Checks the wheels of one run."""

    def __init__(
        self, plan: Plan, variants: Sequence[Variant], sdist: Path, stop: threading.Event
    ) -> None:
        """Set up.

        Args:
            plan: options.
            variants: all of the matrix.
            sdist: the source distribution, whose tree commands see if there is no other.
            stop: set to stop.
        """
        self._plan = plan
        self._variants = {variant.name: variant for variant in variants}
        self._sdist = sdist
        self._runner = CommandRunner(stop)
        self._results: dict[str, dict[str, Any]] = {} if plan.fresh else self._read()

    def check(self, built: Sequence[Built]) -> Generator[Checked, None, None]:
        """Test and measure the wheels of *built*; yield the result of each when it is there.

        Those that pass are in the plan's output afterwards, the others are not.
        """
        reasons = reasons_not_here(self._plan.matrix, self._variants.values())
        with tempfile.TemporaryDirectory(
            prefix="tree-", dir=self._plan.folder, ignore_cleanup_errors=True
        ) as folder:
            place = Path(folder)
            source = self._plan.matrix.build.source
            project = source.resolve() if source.is_dir() else unpack(self._sdist, place / "source")
            for item in built:
                checked = self._tested(item, reasons, project, place)
                if checked.error is None:
                    checked = self._measured(checked, reasons, project, place)
                self._place(checked)
                yield checked

    # Tests.

    def _tested(
        self, built: Built, reasons: Mapping[str, str], project: Path, folder: Path
    ) -> Checked:
        tests = [test for test in self._plan.matrix.build.tests if test.is_for(built.label)]
        if not tests:
            return Checked(built)
        if built.label in reasons:
            return Checked(built, untested=f"not tested here: {reasons[built.label]}")
        inputs = fingerprint(
            [built.fingerprint, built.contents, [asdict(test) for test in tests],
             _scripts([word for test in tests for word in test.words], project)]
        )  # fmt: skip
        if self._known(built, "test").get("inputs") == inputs:
            return Checked(built, tested=True)
        try:
            for test in tests:
                what = f"{built.name}: the test"
                environment = self._environment(built, test.requires, folder, "test")
                line = self._line(environment, test.words, built, project)
                log = self._plan.folder / f"{built.name}-test.log"
                self._runner.run(
                    line, log, environment.variables(), what, "correct build.test",
                    environment.folder.parent,
                )  # fmt: skip
        except VariantError as error:
            self._note(built, "test", {})
            return Checked(built, error=error)
        self._note(built, "test", {"inputs": inputs})
        return Checked(built, tested=True)

    def _environment(
        self, built: Built, requires: Sequence[str], folder: Path, kind: str
    ) -> Environment:
        variant = self._variants[built.name]
        python = find_interpreter(variant.python, self._plan.frontend).executable
        against = self._plan.against.get(built.name)
        return make_environment(
            folder / f"{kind}-{built.name}", self._plan.place(built.wheel), requires, python,
            self._runner, self._plan.folder / f"{built.name}-install.log",
            f"{built.name}: the environment of its {kind}",
            against.constraints(folder) if against is not None else None,
        )  # fmt: skip

    def _line(
        self, environment: Environment, words: Sequence[str], built: Built, project: Path
    ) -> list[str]:
        values = {
            "project": str(project),
            "label": built.label,
            "wheel": str(self._plan.place(built.wheel)),
        }
        return environment.command(filled(words, values))

    # Benchmarks.

    def _measured(
        self, checked: Checked, reasons: Mapping[str, str], project: Path, folder: Path
    ) -> Checked:
        benchmark, built = self._plan.matrix.build.benchmark, checked.built
        if benchmark is None or built.label == benchmark.baseline:
            return checked
        if built.label in reasons:
            text = f"not measured here: {reasons[built.label]}"
            return replace(checked, untested=checked.untested or text)
        baseline = self._baseline(self._variants[built.name], benchmark)
        if baseline is None:
            text = f"not measured: there is no wheel {benchmark.baseline!r} to compare it with"
            return replace(checked, untested=checked.untested or text)
        try:
            comparison = self._comparison(built, baseline, benchmark, project, folder)
        except VariantError as error:
            return replace(checked, error=error)
        wanted = benchmark.require == FASTER and not comparison.is_faster
        refused = (comparison.is_slower or wanted) and self._plan.gate
        refusal = self._refusal(comparison, benchmark) if refused else None
        return replace(checked, comparison=comparison, error=refusal)

    @staticmethod
    def _refusal(found: Comparison, benchmark: Benchmark) -> BuildError:
        own, other = (shown(value, found.unit) for value in (found.time, found.baseline_time))
        how = "slower" if found.is_slower else "not faster"
        return BuildError(
            f"{found.name}: refused, as it is {how} than {benchmark.baseline}: {own} against "
            f"{other}, {found.ratio:.3f} times as long ({found.low:.3f} to {found.high:.3f}): "
            "correct its flags, leave it out, or pass --no-gate"
        )

    def _baseline(self, variant: Variant, benchmark: Benchmark) -> Built | None:
        """Return the wheel that *variant* is compared with: of the same Python and platform."""
        for other in self._variants.values():
            same = (other.python, other.platform) == (variant.python, variant.platform)
            if same and other.label == benchmark.baseline:
                return read_result(self._plan, self._plan.folder / f"{other.name}.json")
        return None

    def _comparison(
        self, built: Built, baseline: Built, benchmark: Benchmark, project: Path, folder: Path
    ) -> Comparison:
        cpu = detected_cpu(platform.machine())
        inputs = fingerprint(
            [built.contents, baseline.contents, baseline.fingerprint, benchmark.words,
             benchmark.requires, benchmark.rounds, benchmark.measure, cpu.name if cpu else "",
             _scripts(benchmark.words, project)]
        )  # fmt: skip
        known = self._known(built, "benchmark")
        if known.get("inputs") == inputs:
            pairs, unit = [(float(a), float(b)) for a, b in known["pairs"]], str(known["unit"])
            return compare(built.name, pairs, unit, benchmark.tolerance)
        both = [
            self._environment(item, benchmark.requires, folder, "benchmark")
            for item in (baseline, built)
        ]
        lines = [
            self._line(environment, benchmark.words, item, project)
            for environment, item in zip(both, (baseline, built), strict=True)
        ]
        runs = [
            _Run(self._runner, line, environment, self._plan.folder / f"{item.name}-benchmark.log",
                 f"{item.name}: the benchmark")
            for line, environment, item in zip(lines, both, (baseline, built), strict=True)
        ]  # fmt: skip
        measure = benchmark.measure
        # The first run is slower: files are read, caches filled.
        for run in runs:
            measure = run.warm_up(measure)
        pairs = []
        for number in range(benchmark.rounds):
            order = (0, 1) if number % 2 == 0 else (1, 0)
            figures = {which: runs[which].figure(measure) for which in order}
            pairs.append((figures[0], figures[1]))
        unit = "" if measure == PRINTED else "s"
        try:
            found = compare(built.name, pairs, unit, benchmark.tolerance)
        except ValueError as error:
            raise BuildError(f"{built.name}: the benchmark: {error}") from None
        self._note(
            built, "benchmark",
            {"inputs": inputs, "measure": measure, "unit": unit, "pairs": pairs,
             "cpu": cpu.name if cpu else "", "ratio": found.ratio, "low": found.low,
             "high": found.high, "baseline": baseline.name, "verdict": found.verdict},
        )  # fmt: skip
        return found

    # Results.

    def _place(self, checked: Checked) -> None:
        """Put the wheel where it belongs."""
        name = checked.built.wheel
        source = self._plan.place(name)
        target = (self._plan.unchecked if checked.error else self._plan.output) / name
        if source != target:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(source, target)

    def _known(self, built: Built, kind: str) -> Mapping[str, Any]:
        found = self._results.get(built.name, {}).get(kind)
        return found if isinstance(found, dict) else {}

    def _note(self, built: Built, kind: str, result: Mapping[str, Any]) -> None:
        self._results.setdefault(built.name, {})[kind] = dict(result)
        with replacing(self._plan.folder / _RESULTS) as stream:
            stream.write(json.dumps(self._results, indent=2).encode())

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            tree = json.loads((self._plan.folder / _RESULTS).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return tree if isinstance(tree, dict) else {}


@dataclass(frozen=True)
class _Run:
    """A benchmark in the environment of one wheel."""

    runner: CommandRunner
    line: Sequence[str]
    environment: Environment
    log: Path
    what: str

    def warm_up(self, measure: str) -> str:
        """Run it once; return what to measure, which the output decides for `AUTO`."""
        self._run()
        number = last_number(self._output())
        if measure == AUTO:
            return PRINTED if number is not None else CPU if sys.platform != "win32" else WALL
        if measure == PRINTED and number is None:
            raise self._no_number()
        return measure

    def figure(self, measure: str) -> float:
        """Run it; return the number that it printed, or the seconds that it took."""
        start, before = time.perf_counter(), _cpu_seconds()
        self._run()
        wall, cpu = time.perf_counter() - start, _cpu_seconds() - before
        if measure == PRINTED:
            number = last_number(self._output())
            if number is None:
                raise self._no_number()
            return number
        return cpu if measure == CPU else wall

    def _run(self) -> None:
        self.runner.run(
            self.line, self.log, self.environment.variables(), self.what,
            "correct build.benchmark", self.environment.folder.parent,
        )  # fmt: skip

    def _no_number(self) -> BuildError:
        return BuildError(
            f"{self.what} printed no positive number on its last line: see {self.log}"
        )

    def _output(self) -> str:
        # The first line is the command.
        return self.log.read_text(encoding="utf-8", errors="replace").partition("\n")[2]


def _scripts(words: Sequence[str], project: Path) -> list[str]:
    """Return the digests of the files that the words of a command name."""
    paths = (Path(word) for word in filled(words, {"project": str(project)}))
    return [file_digest(path) for path in paths if path.is_file()]


def _cpu_seconds() -> float:
    """Return the CPU time in user mode of all processes that ended and were waited for."""
    if sys.platform == "win32":
        return 0.0
    import resource

    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
