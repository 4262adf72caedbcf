"""The examples of the documentation run and print what it says: with resolvelib and pip's copy."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import resolvelib_variants

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "write-an-installer.md"


@pytest.fixture(scope="module")
def example():
    return code_below("Example")


@pytest.fixture(scope="module")
def printed():
    (output,) = re.findall(r"It prints\n\n```\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    return output


def code_below(heading):
    section = PAGE.read_text("utf-8").partition(f"## {heading}\n")[2]
    return re.search(r"```python\n(.*?)```", section, re.DOTALL)[1]


def run(code, folder, **environ):
    script = folder / "example.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=folder,
        env=os.environ | environ,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_prints_what_it_says(example, printed, tmp_path):
    assert run(example, tmp_path) == printed


def for_pip(code):
    return re.sub(r"^(\s*from )resolvelib\b", r"\1pip._vendor.resolvelib", code, flags=re.MULTILINE)


def test_bundled_for_pip_without_any_other_resolvelib(example, printed, tmp_path):
    bundled = tmp_path / "resolvelib_variants"
    shutil.copytree(Path(resolvelib_variants.__file__).parent, bundled)
    provider = bundled / "provider.py"
    provider.write_text(for_pip(provider.read_text()))
    code = (
        "import sys\nsys.modules['resolvelib'] = None\n"
        + for_pip(example)
        + "import resolvelib_variants\nprint(resolvelib_variants.__file__)\n"
        + "print(isinstance(provider, AbstractProvider))\n"
    )
    assert run(code, tmp_path) == f"{printed}{bundled / '__init__.py'}\nTrue\n"


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        ({}, ["tensors-2.0-py3-none-any-cu128.whl", "vision-1.0-py3-none-any-cu126.whl"]),
        (
            {"VARIANTS_VARIANT": "tensors=cu126"},
            ["tensors-2.0-py3-none-any-cu126.whl", "vision-1.0-py3-none-any-cu126.whl"],
        ),
    ],
)
def test_for_a_tool(tmp_path, options, chosen):
    shutil.copy(Path(__file__).with_name("mytool.py"), tmp_path)
    driver = {"NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION": "12.8"}
    printed = run(code_below("For a tool"), tmp_path, **driver, **options)
    assert sorted(printed.split()) == ["runtime-12.6-py3-none-any.whl", *chosen]


def test_for_a_tool_when_nothing_fits(tmp_path):
    shutil.copy(Path(__file__).with_name("mytool.py"), tmp_path)
    script = tmp_path / "example.py"
    script.write_text(code_below("For a tool"))
    environ = os.environ | {"NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION": "12.0"}
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, env=environ, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "you asked for vision",
        "variants of vision 1.0:",
        "  cu126  rejected    needs CUDA driver 12.6 or newer, this one supports up to 12.0",
        "  cu130  rejected    needs CUDA driver 13.0 or newer, this one supports up to 12.0",
    ]
