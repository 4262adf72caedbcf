"""The examples of the documentation run and print what it says: with resolvelib and pip's copy."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import resolvelib_variants
from support.wheels import Wheel

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "how-to"
GUIDE = (PAGES / "write-an-installer.md").read_text("utf-8")
EXAMPLE = (PAGES / "installer_example.py").read_text("utf-8")
(PRINTED,) = re.findall(r"It prints\n\n```\n(.*?)```", GUIDE, re.DOTALL)


def code_below(heading):
    section = GUIDE.partition(f"## {heading}\n")[2]
    return re.search(r"```python\n(.*?)```", section, re.DOTALL)[1]


@pytest.fixture
def run(tmp_path):
    """Run code beside the tool of the short example; return exit code, output and errors."""
    shutil.copy(Path(__file__).with_name("mytool.py"), tmp_path)

    def started(code, **environ):
        (tmp_path / "example.py").write_text(code)
        done = subprocess.run(
            [sys.executable, "example.py"],
            cwd=tmp_path,
            env=os.environ | environ,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return done.returncode, done.stdout, done.stderr

    return started


def for_pip(code):
    return re.sub(r"^(\s*from )resolvelib\b", r"\1pip._vendor.resolvelib", code, flags=re.MULTILINE)


def test_it_prints_what_it_says(run):
    assert run(EXAMPLE) == (0, PRINTED, "")


def test_bundled_for_pip_without_any_other_resolvelib(run, tmp_path):
    bundled = tmp_path / "resolvelib_variants"
    shutil.copytree(Path(resolvelib_variants.__file__).parent, bundled)
    provider = bundled / "provider.py"
    provider.write_text(for_pip(provider.read_text()))
    code = (
        "import sys\nsys.modules['resolvelib'] = None\n"
        + for_pip(EXAMPLE)
        + "import resolvelib_variants\nprint(resolvelib_variants.__file__)\n"
        + "print(isinstance(provider, AbstractProvider))\n"
    )
    assert run(code) == (0, f"{PRINTED}{bundled / '__init__.py'}\nTrue\n", "")


@pytest.mark.parametrize(
    ("options", "label"), [({}, "cu128"), ({"VARIANTS_VARIANT": "tensors=cu126"}, "cu126")]
)
def test_for_a_tool(run, options, label):
    driver = {"NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION": "12.8"}
    code, printed, _ = run(code_below("For a tool"), **driver, **options)
    assert code == 0
    assert sorted(printed.split()) == [
        "runtime-12.6-py3-none-any.whl",
        f"tensors-2.0-py3-none-any-{label}.whl",
        "vision-1.0-py3-none-any-cu126.whl",
    ]


def test_for_a_tool_when_nothing_fits(run):
    driver = {"NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION": "12.0"}
    code, _, errors = run(code_below("For a tool"), **driver)
    assert code == 1
    assert errors.splitlines() == [
        "you asked for vision",
        "variants of vision 1.0:",
        "  cu126  rejected    needs CUDA driver 12.6 or newer, this one supports up to 12.0",
        "  cu130  rejected    needs CUDA driver 13.0 or newer, this one supports up to 12.0",
    ]


def test_the_readme_over_real_indexes(run, tmp_path):
    wheel = tmp_path / "demo-1.0-py3-none-any.whl"
    wheel.write_bytes(Wheel("demo", "1.0").build())
    readme = (ROOT / "resolver-ext" / "README.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    sources = f"Sources(find_links=({str(tmp_path)!r},), no_index=True)"
    assert run(code.replace("Sources()", sources)) == (0, f"demo 1.0 None {wheel.as_uri()} \n", "")
