"""`make bench`: records, their comparison, the page, and counting with a stand-in for valgrind."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
from pathlib import Path

import pytest

from benchmarks import bench_limits, compare, page, record
from benchmarks.__main__ import main
from benchmarks.instructions import UNIT, counter
from benchmarks.record import Line, Record
from benchmarks.report import BenchmarkError, Row
from pep_variants.errors import VariantError
from resolvelib_variants.resolution import RequirementError

MACHINE = {
    "cpu": "A CPU", "cores": "2", "python": "3.11.7", "system": "Linux 6",
    "counter": "valgrind-3.19.0",
}  # fmt: skip


def counted(ours: float, theirs: float = 100.0, name: str = "engine/rank") -> Line:
    return Line(name, "rank", ours, theirs, UNIT, "json.loads")


def timed(ours: float) -> Line:
    return Line("cli/detect", "detect", ours, 9.0, "ms", "python -c pass", "at most 50 ms", False)


def of(*lines: Line, **machine: str) -> Record:
    return Record("2026-11-23T03:40:00+00:00", "0123456789ab", {**MACHINE, **machine}, lines)


@pytest.mark.parametrize(
    ("old", "new", "too_much", "text"),
    [
        (counted(100), counted(100), False, "+0.0%"),
        (counted(100), counted(105), False, "+5.0%"),
        (counted(100), counted(105.01), True, "+5.0%"),
        (counted(100), counted(200), True, "+100.0%"),
        (counted(100), counted(50), False, "-50.0%"),
        # A difference of two counts: a thousandth of what it is compared with is noise.
        (counted(0.1, theirs=40), counted(0.13, theirs=40), False, "+30.0%"),
        (counted(0.1, theirs=40), counted(0.15, theirs=40), True, "+50.0%"),
        (counted(-0.1, theirs=40), counted(0.1, theirs=40), True, "-"),
        (timed(50), timed(500), False, "+900.0%"),
        (counted(100), dataclasses.replace(timed(500), id="engine/rank"), False, "-"),
        (None, counted(100), False, "new"),
        (counted(100), None, False, "gone"),
    ],
)
def test_change(old, new, too_much, text):
    change = compare.Change("engine/rank", old, new)
    assert change.too_much is too_much
    assert text in str(change).split()


def written(path: Path, found: Record) -> str:
    record.write(found, path)
    return str(path)


def test_compare_command(tmp_path, capsys):
    old = written(
        tmp_path / "old.json", of(counted(100), timed(50), counted(1, name="engine/gone"))
    )
    same = written(
        tmp_path / "same.json", of(counted(1, name="engine/new"), counted(104), timed(99))
    )
    slow = written(tmp_path / "slow.json", of(counted(106), timed(50)))
    assert main(["compare", old, same]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [
        "line", "engine/new", "engine/rank", "cli/detect", "engine/gone",
    ]  # fmt: skip
    assert main(["compare", old, slow]) == 1
    assert capsys.readouterr().err == "error: engine/rank: more than 5% more instructions\n"


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (
            of(counted(100), python="3.12.0"),
            "python is 3.11.7 in the old one and 3.12.0 in the new",
        ),
        (of(counted(100), counter="perf"), "counter is valgrind-3.19.0 in the old one and perf in"),
        (of(counted(100), cores="64"), "cores is 2 in the old one and 64 in the new one"),
        (of(timed(50)), "no line with instructions is in both records"),
        # What ended early has fewer lines: that nothing else grew says nothing.
        (
            dataclasses.replace(of(counted(100)), skipped={"engine": "no valgrind"}),
            "engine was not counted to its end in the new record: no valgrind",
        ),
    ],
)
def test_records_that_do_not_compare(tmp_path, capsys, new, message):
    old = written(tmp_path / "old.json", of(counted(100)))
    assert main(["compare", old, written(tmp_path / "new.json", new)]) == 2
    assert message in capsys.readouterr().err


def test_record_is_read_as_written(tmp_path):
    found = dataclasses.replace(of(counted(1.5), timed(50)), skipped={"uv": "no uv"})
    record.write(found, tmp_path / "bench" / "record.json")
    assert record.read(tmp_path / "bench" / "record.json") == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "No such file"),
        ("{", "Expecting property name"),
        ("[]", "no record of format 1"),
        ('{"format": 2, "lines": []}', "no record of format 1"),
        ('{"format": 1}', "has no 'lines'"),
        ('{"format": 1, "lines": [{"id": "a"}]}', "has no 'ours'"),
        ('{"format": 1, "lines": [3]}', "record.json: "),
        ('{"format": 1, "lines": [], "machine": 3}', "record.json: "),
        (
            '{"format": 1, "lines": [{"id": "a", "what": "", "unit": "", "ours": NaN, "theirs": 1}'
            "]}",
            "line a: a figure is not finite",
        ),
    ],
)
def test_record_that_cannot_be_read(tmp_path, capsys, text, message):
    path = tmp_path / "record.json"
    if text is not None:
        path.write_text(text)
    assert main(["page", str(path)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert str(path) in error


def test_ids():
    rows = [
        Row("read + rank 10,000 variants", 2, 1, "ms", "json.loads"),
        Row("read + rank 10,000 variants", 2, 1, "ms", "variantlib 0.2.2"),
        Row("the same, peak memory", 2, 1, "MB", "json.loads"),
        Row("  wrapped", 2, 1, "MB", "json.loads"),
        Row("case (12 MB)", 2, 1, "MB", "json.loads", line="case"),
        Row("case (12 MB)", 2, 1, "MB", "json.loads", line="case"),
    ]
    lines = list(record.lines_of("engine", rows))
    assert [line.what for line in lines[2:5]] == [
        "read + rank 10,000 variants, peak memory",
        "read + rank 10,000 variants: wrapped",
        "case (12 MB)",
    ]
    assert [line.id for line in lines] == [
        "engine/read-rank-10000-variants/json.loads",
        "engine/read-rank-10000-variants/variantlib-0.2.2",
        "engine/read-rank-10000-variants-peak-memory/json.loads",
        "engine/read-rank-10000-variants-wrapped/json.loads",
        "engine/case",
        "engine/case-2",
    ]


HEAD = (
    "Measured with `make bench` on 2026-11-23 at commit 0123456789ab: A CPU, 2 cores, Linux 6, "
    "Python 3.11.7.\n"
    "Minstr: millions of instructions, counted by valgrind-3.19.0.\n"
)


def test_page():
    slow = dataclasses.replace(timed(70), id="limits/slow", what="slow")
    fast = dataclasses.replace(timed(7), id="limits/fast", what="fast")
    lines = (counted(491.6233, 208.9518), timed(58.42), counted(1e-3, 0, "cli/a|b"), slow, fast)
    found = dataclasses.replace(of(*lines), skipped={"uv": "no uv"})
    made = page.tables(found)
    assert made == (
        HEAD + "\n## cli\n\n| what | ours | ratio | compared with | goal |\n|---|---|---|---|---|\n"
        "| detect | 58.4\u00a0ms | 6.49x | python -c pass: 9\u00a0ms | at most 50 ms: not met |\n"
        "\n## limits\n\n| what | ours | ratio | compared with | goal |\n|---|---|---|---|---|\n"
        "| slow | 70\u00a0ms | 7.78x | python -c pass: 9\u00a0ms | at most 50 ms: not met |\n"
        "\nNot measured: uv (no uv).\n"
    )
    text = page.replaced(f"# Speed\n\n{page.BEGIN}\nold\n{page.END}\n\nafter\n", made)
    assert text == f"# Speed\n\n{page.BEGIN}\n{made}{page.END}\n\nafter\n"
    assert page.replaced(text, made) == text


def test_table_of_the_readme():
    rows = [
        Row("python -c pass", 8.3, 8.2, "ms", "without the shim"),
        Row("pip install --dry-run, 30 plain packages", 385, 368, "ms", "pip 26.3", "1.02x", True),
        Row("the same, 10 of them with variants", 400, 368, "ms", "pip 26.3, plain"),
        Row("other", 400, 368, "ms", "pip"),
    ]
    assert page.headlines(of(*record.lines_of("pip", rows))) == (
        "| what | ours | compared with | ratio |\n|---|---|---|---|\n"
        "| python -c pass | 8.30\u00a0ms | without the shim: 8.20\u00a0ms | 1.01x |\n"
        "| pip install --dry-run, 30 plain packages | 385\u00a0ms "
        "| pip 26.3: 368\u00a0ms | 1.05x |\n"
        "| pip install --dry-run, 30 plain packages, 10 of them with variants | 400\u00a0ms "
        "| pip 26.3, plain: 368\u00a0ms | 1.09x |\n"
    )


def test_page_command(tmp_path):
    for path in (page.PAGE, page.README):
        copy = tmp_path / path.relative_to(page.ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    new = of(timed(50))
    page.write(new, tmp_path)
    written = {path: path.read_text("utf-8") for path in tmp_path.rglob("*.*")}
    assert sorted(path.name for path in written) == ["README.md", "speed.md"]
    assert page.tables(new) in written[tmp_path / page.PAGE.relative_to(page.ROOT)]
    page.write(new, tmp_path)
    assert written == {path: path.read_text("utf-8") for path in tmp_path.rglob("*.*")}


@pytest.mark.parametrize(
    "text", ["", page.BEGIN, f"{page.END}{page.BEGIN}", f"{page.BEGIN}{page.END}" * 2]
)
def test_page_without_marks(text):
    with pytest.raises(BenchmarkError, match="the page needs"):
        page.replaced(text, "")


VALGRIND = """\
#!{python}
import os, re, subprocess, sys
if sys.argv[1:] == ["--version"]:
    sys.exit(print("valgrind-9.9"))
log = next(item.partition("=")[2] for item in sys.argv if item.startswith("--log-file="))
command = [item for item in sys.argv[1:] if not item.startswith("--")]
with open(log, "w") as stream:
    stream.write({report!r})
sys.exit(subprocess.call(command))
"""
REPORT = (
    "==6== I   refs:      1,000\n==6== \n==5== Command: python\n==5== I   refs:      39,054,849\n"
)
PERF = """\
#!{python}
import sys
path = next(item.partition("=")[2] for item in sys.argv if item.startswith("--output="))
with open(path, "w") as stream:
    stream.write({report!r})
"""


def program(folder: Path, name: str, text: str, report: str) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text.format(python=sys.executable, report=report))
    path.chmod(0o755)


@pytest.fixture
def programs(tmp_path, monkeypatch):
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.mark.skipif(os.name == "nt", reason="the stand-ins are scripts")
class TestCounter:
    def test_valgrind(self, programs, tmp_path):
        program(programs, "valgrind", VALGRIND, REPORT)
        found = counter()
        assert found is not None
        assert found.name == "valgrind-9.9"
        code = "import os; assert os.environ['PYTHONHASHSEED'] == '0'"
        assert found.count([sys.executable, "-c", code], tmp_path) == 39.054849

    def test_command_that_fails(self, programs, tmp_path):
        program(programs, "valgrind", VALGRIND, REPORT)
        with pytest.raises(BenchmarkError, match="exit code 1: Traceback"):
            counter().count([sys.executable, "-c", "1/0"], tmp_path)

    def test_perf(self, programs, tmp_path):
        program(programs, "perf", PERF, "# started on\n\n2500000,,instructions:u,900,100.00,,\n")
        found = counter()
        assert found is not None
        assert (found.name, found.count([sys.executable, "-c", "pass"], tmp_path)) == ("perf", 2.5)

    def test_neither_is_a_reason_in_the_record(self, programs, tmp_path, capsys):
        assert counter() is None
        path = tmp_path / "record.json"
        assert main(["run", "--record", str(path), "instructions"]) == 0
        assert "not measured: neither valgrind nor perf" in capsys.readouterr().out
        found = record.read(path)
        assert found.lines == ()
        assert "valgrind" in found.skipped["instructions"]


@pytest.mark.parametrize("name", bench_limits.CASES)
def test_worst_inputs_are_read(name, tmp_path):
    """Those of the least size; what a reader refuses is refused in its own words."""
    case = bench_limits.CASES[name]
    path = tmp_path / "input.txt"
    path.write_bytes(case.make(5))
    with contextlib.suppress(VariantError, RequirementError):
        case.read(path)
    with contextlib.suppress(ValueError):
        case.plain(path)


def test_unknown_group(capsys):
    assert main(["run", "unheard-of"]) == 2
    assert "no benchmark group unheard-of; there are engine" in capsys.readouterr().out
