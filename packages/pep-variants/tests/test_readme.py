"""The example of the README does what it says."""

import re
import shutil
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_example(fixtures, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION", "12.8")
    monkeypatch.setenv("NV_VARIANT_PROVIDER_FORCE_SM_ARCH", "9.0")
    # Its provider is for Linux and Windows alone.
    monkeypatch.setattr("platform.system", lambda: "Linux")
    shutil.copy(fixtures / "torch-2.8.0-variants.json", tmp_path)
    monkeypatch.chdir(tmp_path)
    text = README.read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (printed,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    exec(compile(code, str(README), "exec"), {})
    assert capsys.readouterr().out == printed
