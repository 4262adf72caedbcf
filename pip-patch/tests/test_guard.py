"""Faults of the shim in the place of pip's functions: pip goes on, with one line."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest


class PipError(Exception):
    """As pip's."""


PipError.__module__ = "pip._internal.exceptions._base"  # as of 26.3


class InstallationError(PipError):
    pass


class Fault(InstallationError):
    pass


class VariantsOff(InstallationError):
    pass


class VariantError(Exception):
    pass


@pytest.fixture
def guard(monkeypatch, shim_module):
    module = shim_module("guard")
    errors = SimpleNamespace(
        InstallationError=InstallationError, Fault=Fault, VariantsOff=VariantsOff
    )
    # pip, which its errors come from, is not imported here.
    monkeypatch.setitem(sys.modules, "pep_variants_shim.errors", errors)
    return module


@pytest.fixture
def calls():
    return []


@pytest.fixture
def module(calls):
    """One of pip's, with a function."""
    found = ModuleType("theirs")

    def function(first, *, second=2):
        calls.append((first, second))
        if isinstance(first, BaseException):
            raise first
        return "theirs", first, second

    found.function = function
    return found


def before(original, first, *args, **kwargs):
    first.gone
    return original(first, *args, **kwargs)


def after(original, first, *args, **kwargs):
    result = original(first, *args, **kwargs)
    raise KeyError(result)


def in_the_handler(original, first, *args, **kwargs):
    try:
        return original(first, *args, **kwargs)
    except OSError as error:
        error.gone
        raise


@pytest.mark.parametrize("ours", [before, after])
def test_fault(guard, module, calls, capsys, ours):
    """What pip's function does is done once, and variants are off from then on."""
    guard.replace(module, "function")(ours)
    assert module.function(1, second=3) == ("theirs", 1, 3)
    assert calls == [(1, 3)]
    assert not guard.switch.on
    line = capsys.readouterr().err
    assert line.startswith("pep-variants-shim: ")
    assert line.count("\n") == 1
    assert "wheel variants are ignored in this run. Please report this line to" in line
    assert "PEP_VARIANTS_SHIM=0" in line
    assert module.function(4) == ("theirs", 4, 2)
    assert capsys.readouterr().err == ""


class Gone:
    """A standard error whose reader is gone."""

    def write(self, _text):
        raise BrokenPipeError

    def flush(self):
        raise BrokenPipeError


@pytest.mark.parametrize("stderr", [None, Gone()])
def test_fault_that_cannot_be_said(guard, module, calls, capsys, monkeypatch, stderr):
    monkeypatch.setattr(sys, "stderr", stderr)
    guard.replace(module, "function")(before)
    assert module.function(1) == ("theirs", 1, 2)
    assert len(calls) == 1
    assert capsys.readouterr().out == ""


def test_line_says_where(guard, module, capsys):
    guard.replace(module, "function")(lambda original, first: guard.require(module, "absent"))
    module.function(1)
    assert "AttributeError: there is no absent" in capsys.readouterr().err

    def ours(original, first):
        raise ValueError("first\nsecond \x1b[31m https://user:secret@host/path")

    code = compile("def ours(*a):\n    return given(*a)", "ours", "exec")
    place = {"__name__": "pep_variants_shim.patches.made", "given": ours}
    exec(code, place)
    error = None
    try:
        place["ours"](None, 1)
    except ValueError as caught:
        error = caught
    text = guard.described(error)
    assert text == (
        "ValueError: first second  [31m https://****@host/path"
        " (pep_variants_shim.patches.made:ours:2)"
    )


@pytest.mark.parametrize("error", [OSError("no"), PipError("no"), AttributeError("theirs"),
                                   KeyboardInterrupt(), SystemExit(3)])  # fmt: skip
def test_errors_of_pip_pass(guard, module, capsys, error):
    guard.replace(module, "function")(lambda original, first: original(first))
    with pytest.raises(type(error)) as caught:
        module.function(error)
    assert caught.value is error
    assert guard.switch.on
    assert capsys.readouterr().err == ""


def test_fault_while_an_error_of_pip_is_handled(guard, module, calls):
    guard.replace(module, "function")(in_the_handler)
    error = OSError("theirs")
    with pytest.raises(OSError) as caught:
        module.function(error)
    assert caught.value is error
    assert len(calls) == 1
    assert not guard.switch.on


@pytest.mark.parametrize(
    ("error", "expected"),
    [(InstallationError("on purpose"), InstallationError), (VariantError("bad"), InstallationError),
     (KeyboardInterrupt("now"), KeyboardInterrupt)],
)  # fmt: skip
def test_errors_on_purpose(guard, module, calls, error, expected):
    def ours(original, first):
        raise error

    guard.replace(module, "function")(ours)
    with pytest.raises(expected, match=str(error)):
        module.function(1)
    assert not calls
    assert guard.switch.on


def test_fault_where_a_variant_was_asked_for(guard, module, calls):
    guard.switch.explicit = True
    guard.replace(module, "function")(before)
    with pytest.raises(Fault):
        module.function(1)
    assert not calls


@pytest.mark.parametrize(("word", "asked"), [
    ("--variant=app=cu128", True), ("--variant-platform", True), ("--variant-prefer=x", False),
])  # fmt: skip
def test_fault_before_the_options_are_read(guard, module, calls, monkeypatch, word, asked):
    """The command line tells whether a variant or a machine was asked for."""
    monkeypatch.setattr(sys, "argv", ["pip", "install", word])
    guard.replace(module, "function")(before)
    if asked:
        with pytest.raises(Fault):
            module.function(1)
    else:
        assert module.function(1) == ("theirs", 1, 2)
    assert len(calls) == (not asked)


@pytest.mark.parametrize(("options", "ours", "raises"), [
    ({}, before, True),
    ({}, after, False),
    ({"checks": True}, after, True),
    ({"shows": True}, before, False),
])  # fmt: skip
def test_fault_after_variants_were_let_in(guard, module, capsys, options, ours, raises):
    """pip does not go on with half of it; the line is the error then."""
    guard.switch.used = True
    guard.replace(module, "function", **options)(ours)
    if raises:
        with pytest.raises(VariantsOff, match="wheel variants are ignored"):
            module.function(1)
    else:
        assert module.function(1) == ("theirs", 1, 2)
    assert capsys.readouterr().err.count("\n") == (not raises)
    assert not guard.switch.on


def test_arguments_that_are_read_once(guard, module):
    def ours(original, first):
        items = list(first)
        original.after_fault(items)
        raise KeyError(items)

    guard.replace(module, "function")(ours)
    assert module.function(first=iter("ab")) == ("theirs", ["a", "b"], 2)


@pytest.mark.parametrize("url", [
    "https://user:SECRET@host/simple/", "https://user:SE@CRET@host/", "https://SECRET@host",
    "https://host/app.whl?X-Amz-Signature=SECRET", "https://host/app.whl#SECRET",
])  # fmt: skip
def test_secrets_are_not_shown(guard, url):
    for text in (url, f"bad link {url}: gone", f"\x1b[1m{url}"):
        shown = guard.described(ValueError(text))
        assert "SE" not in shown
        assert "CRET" not in shown
        assert "https://" in shown
        assert shown.isprintable()


def test_nothing_is_shown_unredacted(guard, monkeypatch):
    """The engine may be missing or damaged."""
    monkeypatch.setitem(sys.modules, "pep_variants.errors", None)
    assert guard.described(ValueError("at https://user:SECRET@host/")) == "ValueError: "
    assert guard.described(ValueError("plain")) == "ValueError: plain"


def test_fault_in_iteration(guard):
    def items():
        yield 1
        raise KeyError(2)

    guard.switch.used = True
    found = guard.iterated(items())
    assert next(found) == 1
    with pytest.raises(VariantsOff):
        next(found)
