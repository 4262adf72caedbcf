"""What installers load at every start has to stay light."""

import subprocess
import sys

import pytest


def loaded_by(module):
    script = (
        f"import sys; before = set(sys.modules); import {module}; print(*set(sys.modules) - before)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


BASICS = ("pep_variants.errors", "pep_variants.limits")


def test_the_package_itself_loads_nothing():
    assert loaded_by("pep_variants") <= {"pep_variants"}


@pytest.mark.parametrize("module", ["pep_variants.labels", "pep_variants.options"])
def test_light_modules(module):
    loaded = loaded_by(module)
    ours = {name for name in loaded if name.startswith("pep_variants")}
    assert ours <= {"pep_variants", module.rpartition(".")[0], module, *BASICS}
    heavy = {"packaging", "archspec", "pynvml", "platformdirs", "json", "logging", "pathlib"}
    assert not heavy & loaded


def test_a_metadata_file_of_an_index_needs_nothing_of_zip_files():
    loaded = loaded_by("pep_variants._release")
    assert not {name for name in loaded if name.startswith("pep_variants._wheelfile.")}


def test_detection_loads_nothing_that_it_does_not_need():
    loaded = loaded_by("pep_variants._detect.detector")
    assert not {"packaging", "archspec", "pynvml", "ctypes", "json", "tomllib"} & loaded
    providers = {name for name in loaded if name.startswith("pep_variants._providers.")}
    assert providers <= {f"pep_variants._providers.{name}" for name in ("base", "registry")}
