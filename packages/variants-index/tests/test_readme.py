"""The example of the README prints what it says; the public names can be imported."""

import re
from pathlib import Path

import pytest

from support.index import served
from support.wheels import NVIDIA, Release, metadata

README = Path(__file__).parents[1] / "README.md"


@pytest.fixture
def index():
    variants = {
        f"cu{number}": {"nvidia": {"cuda_version_lower_bound": [f"{number[:2]}.{number[2]}"]}}
        for number in ("126", "128", "130")
    }
    tree = metadata(variants, namespaces=["nvidia"], providers={"nvidia": NVIDIA})
    wheels = Release("demo", "1.0", tree).wheels()
    with served() as server:
        for wheel in wheels:
            server.add_wheel(wheel)
        yield server


def test_example(index, monkeypatch, capsys):
    monkeypatch.setenv("NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION", "12.8")
    # Its provider is for Linux and Windows alone.
    monkeypatch.setattr("platform.system", lambda: "Linux")
    text = README.read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (printed,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    assert len(re.findall(r"^(?!from |$)", code, re.MULTILINE)) <= 15
    code = code.replace("https://wheels.example/simple/", index.url)
    exec(compile(code, str(README), "exec"), {})
    assert capsys.readouterr().out == printed
