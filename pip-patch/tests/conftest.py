"""Modules of the shim without pip."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "pep_variants_shim"


@pytest.fixture
def shim_module(monkeypatch):
    """Imports a module of the shim anew: what is switched off in one test is on in the next."""

    def load(name):
        full = f"pep_variants_shim.{name}"
        for module in ("pep_variants_shim", "pep_variants_shim.guard", full):
            monkeypatch.delitem(sys.modules, module, raising=False)
        spec = importlib.util.spec_from_file_location(
            "pep_variants_shim", SOURCE / "__init__.py", submodule_search_locations=[str(SOURCE)]
        )
        package = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "pep_variants_shim", package)
        spec.loader.exec_module(package)
        module = importlib.import_module(full)
        monkeypatch.setitem(sys.modules, full, module)
        return module

    return load
