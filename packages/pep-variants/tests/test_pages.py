"""What pages of the documentation say of the engine: examples, and the table of limits."""

import re
import shutil
from pathlib import Path

from pep_variants import limits

DOCS = Path(__file__).parents[3] / "docs"


def test_use_the_engine(fixtures, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION", "12.8")
    monkeypatch.setenv("NV_VARIANT_PROVIDER_FORCE_SM_ARCH", "9.0")
    # Its provider is for Linux and Windows alone.
    monkeypatch.setattr("platform.system", lambda: "Linux")
    shutil.copy(fixtures / "torch-2.8.0-variants.json", tmp_path)
    monkeypatch.chdir(tmp_path)
    page = DOCS / "how-to" / "use-the-engine.md"
    blocks = re.findall(r"```(python|text)\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    names = {}
    examples = 0
    for kind, text in blocks:
        if kind == "python":
            exec(compile(text, str(page), "exec"), names)
        else:
            assert capsys.readouterr().out == text
            examples += 1
    assert examples == 4


def test_limits():
    text = (DOCS / "reference" / "limits.md").read_text("utf-8")
    rows = re.findall(r"^\| `([A-Z_]+)` \| (\d+) \|", text, re.MULTILINE)
    assert len(rows) > 20
    assert {name: int(number) for name, number in rows} == {
        name: getattr(limits, name) for name, _ in rows
    }
