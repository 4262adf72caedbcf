"""The import hook: what takes a function's place, and when it does not."""

from __future__ import annotations

import functools
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "pep_variants_shim"


@pytest.fixture
def hook(shim_module):
    return shim_module("hook")


@pytest.fixture
def guard(hook, monkeypatch):
    """The module that replaces functions, fresh as well."""
    module = importlib.import_module("pep_variants_shim.guard")
    monkeypatch.setitem(sys.modules, "pep_variants_shim.guard", module)
    return module


class Owner:
    """What pip might have."""

    def method(self, first, second=2, *, third=3):
        return first, second, third

    @classmethod
    def made(cls, first):
        return cls, first

    @property
    def known(self):
        return "theirs"


@pytest.fixture
def owner():
    return type("Owner", (), dict(vars(Owner)))


def test_replaced(guard, owner):
    @guard.replace(owner, "method")
    def method(original, self, first, *args, **kwargs):
        return "ours", original(self, first, *args, **kwargs)

    @guard.replace(owner, "made")
    def made(original, cls, first):
        return "ours", original(cls, first)

    @guard.replace(owner, "known")
    def known(original, self):
        return f"ours, not {original(self)}"

    item = owner()
    assert item.method(1, third=5) == ("ours", (1, 2, 5))
    assert owner.made(1) == ("ours", (owner, 1))
    assert item.known == "ours, not theirs"
    guard.switch.off("a test", "a remedy", installing=False)
    assert item.method(1) == (1, 2, 3)
    assert owner.made(1) == (owner, 1)
    assert item.known == "theirs"


def test_always(guard, owner):
    @guard.replace(owner, "method", always=True)
    def method(original, self, first):
        return "ours"

    guard.switch.off("a test", "a remedy", installing=False)
    assert owner().method(1) == "ours"


@pytest.mark.parametrize(
    ("name", "ours", "lacks"),
    [
        ("absent", lambda original, self: None, "Owner.absent"),
        ("method", lambda original, self, other: None, "Owner.method(self, other)"),
        ("method", lambda original, self, second, first: None, "Owner.method(self, second, first)"),
        ("made", lambda original, cls, second: None, "Owner.made(cls, second)"),
    ],
)
def test_not_what_is_expected(guard, owner, name, ours, lacks):
    before = vars(owner).get(name)
    with pytest.raises(AttributeError) as caught:
        guard.replace(owner, name)(ours)
    assert caught.value.name == lacks
    assert vars(owner).get(name) is before


def test_decorated_functions_keep_their_parameters(guard):
    def decorated(function):
        @functools.wraps(function)
        def inner(*args, **kwargs):
            return function(*args, **kwargs)

        return inner

    module = ModuleType("module")
    module.function = decorated(lambda first, second: (first, second))

    @guard.replace(module, "function")
    def function(original, first, *args):
        return ("ours", *original(first, *args))

    assert module.function(1, 2) == ("ours", 1, 2)


def test_required(guard, owner):
    guard.require(owner, "method")
    guard.require(owner, "method", "third", "first")
    for name, wanted in (("absent", ()), ("method", ("fourth",))):
        with pytest.raises(AttributeError):
            guard.require(owner, name, *wanted)


@pytest.mark.parametrize("version", ["24.0", "24.0.1", "24.3.1", "26.3+variants.1", "27.0.dev0"])
def test_versions_that_are_looked_at(hook, version):
    assert hook._release(version) >= hook._release(hook.OLDEST)


@pytest.mark.parametrize("version", ["23.3.2", "9.0.3", "None", ""])
def test_versions_that_are_left_alone(hook, version):
    assert hook._release(version) < hook._release(hook.OLDEST)


def test_table(hook):
    """Every entry names a function that is there."""
    assert not hook.PATCHES.keys() & hook.EXTRAS.keys()
    for patch in (*hook.PATCHES.values(), *hook.EXTRAS.values()):
        module, _, function = patch.partition(":")
        code = (SOURCE / "patches" / f"{module}.py").read_text("utf-8")
        assert f"\ndef {function}(module: " in code
