"""The examples of the README do what it says."""

import re
import shutil
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_examples(fixtures, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION", "12.8")
    monkeypatch.setenv("NV_VARIANT_PROVIDER_FORCE_SM_ARCH", "9.0")
    # Its provider is for Linux and Windows alone.
    monkeypatch.setattr("platform.system", lambda: "Linux")
    shutil.copy(fixtures / "torch-2.8.0-variants.json", tmp_path)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```(python|text)\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    names = {}
    examples = 0
    for kind, text in blocks:
        if kind == "python":
            exec(compile(text, str(README), "exec"), names)
        else:
            assert capsys.readouterr().out == text
            examples += 1
    assert examples == 4
