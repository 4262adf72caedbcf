"""`make bench`: records and the documents made from them; the worst inputs are read."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil

import pytest

from benchmarks import bench_limits, page
from benchmarks.__main__ import GROUPS, main
from benchmarks.report import Row
from pep_variants.errors import VariantError
from resolvelib_variants.resolution import RequirementError

START = Row("python -c pass", 8.3, 8.2, "ms", "without the shim", "at most 0.5 ms more", True)
SLOW = Row("slow|er", 1262.4, 9, "ms", "json.loads", "at most 15x", False)
FAST = dataclasses.replace(SLOW, what="fast", ours=7)
RECORD = page.Record(
    "2026-11-23",
    "0123456789ab",
    "A CPU, 2 cores, Linux 6, Python 3.11.7",
    {"pip": [START], "limits": [FAST, SLOW, FAST]},
)


def test_documents(tmp_path):
    path = tmp_path / "build" / "record.json"
    RECORD.write(path)
    assert page.Record.read(path) == RECORD
    for name in (page.PAGE, page.README):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(page.ROOT / name, tmp_path / name)
    page.write(RECORD, tmp_path)
    assert (
        "Measured with `make bench` on 2026-11-23 at commit 0123456789ab: "
        "A CPU, 2 cores, Linux 6, Python 3.11.7.\n\n## pip\n\n"
        "| what | ours | ratio | compared with | goal |\n|---|---|---|---|---|\n"
        "| python -c pass | 8.30\u00a0ms | 1.01x | without the shim: 8.20\u00a0ms "
        "| at most 0.5 ms more |\n\n## limits\n\n"
        "| what | ours | ratio | compared with | goal |\n|---|---|---|---|---|\n"
        "| slow\\|er | 1,262\u00a0ms | 140x | json.loads: 9\u00a0ms | at most 15x: not met |\n"
    ) in (tmp_path / page.PAGE).read_text("utf-8")
    readme = (tmp_path / page.README).read_text("utf-8")
    table = readme.partition(page.BEGIN)[2].partition(page.END)[0]
    assert table.splitlines()[3:] == [
        "| python -c pass | 8.30\u00a0ms | without the shim: 8.20\u00a0ms | 1.01x |"
    ]
    page.write(RECORD, tmp_path)
    assert (tmp_path / page.README).read_text("utf-8") == readme


def test_groups(capsys):
    assert GROUPS == ["engine", "limits", "pip", "proxy", "publish", "resolver", "uv"]
    with pytest.raises(SystemExit, match="2"):
        main(["run", "unheard-of"])
    assert "no group unheard-of; there are engine, limits" in capsys.readouterr().err


@pytest.mark.parametrize("case", bench_limits.CASES.values(), ids=list(bench_limits.CASES))
def test_worst_inputs_are_read(case, tmp_path):
    """Those of the least size; what a reader refuses is refused in its own words."""
    path = tmp_path / "input.txt"
    path.write_bytes(case.make(5))
    with contextlib.suppress(VariantError, RequirementError):
        case.read(path)
    with contextlib.suppress(ValueError):
        case.plain(path)
