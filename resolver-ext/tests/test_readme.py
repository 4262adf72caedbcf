"""The README example runs and prints what it says: with resolvelib and with pip's copy of it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pip._vendor.resolvelib
import pytest

import resolvelib_variants

README = Path(__file__).parent.parent / "README.md"


@pytest.fixture(scope="module")
def example():
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    return code


@pytest.fixture(scope="module")
def printed():
    (output,) = re.findall(r"It prints\n\n```\n(.*?)```", README.read_text(), re.DOTALL)
    return output


def run(code, folder):
    script = folder / "example.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, str(script)], cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_prints_what_it_says(example, printed, tmp_path):
    assert run(example, tmp_path) == printed


def for_pip(code):
    return re.sub(r"^(\s*from )resolvelib\b", r"\1pip._vendor.resolvelib", code, flags=re.MULTILINE)


def test_with_the_resolver_of_pip(example, printed, tmp_path):
    code = for_pip(example) + "print(Resolver.__module__)\n"
    assert run(code, tmp_path) == f"{printed}{pip._vendor.resolvelib.Resolver.__module__}\n"


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
