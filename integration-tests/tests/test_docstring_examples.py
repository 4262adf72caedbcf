"""The examples in docstrings of public modules give what they show, and the engine has them."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from importlib import import_module

import pytest

import doors
from support.environments import ROOT

OPTIONAL = {"variants_proxy.simple_repository": "simple_repository"}
"""Public modules that need a library which is optional."""

MODULES = [
    module
    for package in doors.packages(ROOT).values()
    for module in doors.public_modules(package)
    if not module.startswith("pep_variants_shim")  # imports pip
]


def examples(name: str) -> Iterator[doctest.DocTest]:
    """Yield those of a module's own docstring and of what its ``__all__`` names."""
    if name in OPTIONAL:
        pytest.importorskip(OPTIONAL[name])
    module = import_module(name)
    finder = doctest.DocTestFinder(exclude_empty=True)
    yield from (test for test in finder.find(module, name) if test.name == name)
    for item in getattr(module, "__all__", ()):
        value = getattr(module, item)
        if inspect.isclass(value) or inspect.isfunction(value):
            yield from finder.find(value, f"{name}.{item}", module=False, globs={})


@pytest.mark.parametrize("module", MODULES)
def test_examples(module):
    shown = [test for test in examples(module) if test.examples]
    runner = doctest.DocTestRunner(verbose=False)
    for test in shown:
        printed: list[str] = []
        runner.run(test, out=printed.append, clear_globs=False)
        assert not printed, "".join(printed)
    assert shown or not module.startswith("pep_variants."), f"{module} shows no example"
