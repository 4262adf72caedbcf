"""What pages of the documentation say of the engine: examples, and the table of limits."""

import re
import shutil
from pathlib import Path

import pytest

from pep_variants import limits

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("path", "examples"),
    [("docs/how-to/use-the-engine.md", 4), ("packages/pep-variants/README.md", 1)],
)
def test_examples(fixtures, tmp_path, monkeypatch, capsys, path, examples):
    monkeypatch.setenv("NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION", "12.8")
    monkeypatch.setenv("NV_VARIANT_PROVIDER_FORCE_SM_ARCH", "9.0")
    # Its provider is for Linux and Windows alone.
    monkeypatch.setattr("platform.system", lambda: "Linux")
    shutil.copy(fixtures / "torch-2.8.0-variants.json", tmp_path)
    monkeypatch.chdir(tmp_path)
    text = (ROOT / path).read_text("utf-8")
    names = {}
    printed = 0
    for kind, block in re.findall(r"```(python|text)\n(.*?)```", text, re.DOTALL):
        if kind == "python":
            exec(compile(block, path, "exec"), names)
        else:
            assert capsys.readouterr().out == block
            printed += 1
    assert printed == examples


def test_limits():
    text = (ROOT / "docs/reference/limits.md").read_text("utf-8")
    rows = re.findall(r"^\| `([A-Z_]+)` \| (\d+) \|", text, re.MULTILINE)
    assert len(rows) > 20
    assert {name: int(number) for name, number in rows} == {
        name: getattr(limits, name) for name, _ in rows
    }
