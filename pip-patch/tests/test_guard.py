"""What takes the place of a function of pip, and what a fault of the shim does there."""

from __future__ import annotations

import functools
import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "pep_variants_shim"


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
def hook(monkeypatch):
    """The module, imported anew: what is switched off in one test is on in the next."""
    for name in ("pep_variants_shim", "pep_variants_shim._guard", "pep_variants_shim._hook"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    spec = importlib.util.spec_from_file_location(
        "pep_variants_shim", SOURCE / "__init__.py", submodule_search_locations=[str(SOURCE)]
    )
    package = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "pep_variants_shim", package)
    spec.loader.exec_module(package)
    # pip, which the errors come from, is not imported here.
    errors = SimpleNamespace(
        InstallationError=InstallationError, Fault=Fault, VariantsOff=VariantsOff
    )
    monkeypatch.setitem(sys.modules, "pep_variants_shim._errors", errors)
    for name in ("guard", "hook"):
        module = importlib.import_module(f"pep_variants_shim._{name}")
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


@pytest.fixture
def guard(hook):
    return sys.modules["pep_variants_shim._guard"]


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


# Faults.


@pytest.mark.parametrize(
    ("state", "options", "ours"),
    [
        ({}, {}, before),
        ({}, {}, after),
        ({"used": True}, {}, after),
        ({"used": True}, {"shows": True}, before),
    ],
)
def test_fault(guard, module, calls, capsys, state, options, ours):
    """What pip's function does is done once, and variants are off from then on."""
    vars(guard.switch).update(state)
    guard.replace(module, "function", **options)(ours)
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


@pytest.mark.parametrize(
    ("state", "options", "ours", "raised"),
    [
        ({"used": True}, {}, before, VariantsOff),
        ({"used": True}, {"checks": True}, after, VariantsOff),
        ({"explicit": True}, {}, before, Fault),
    ],
)
def test_fault_that_is_an_error(guard, module, calls, capsys, state, options, ours, raised):
    """pip does not go on with half of it, nor without the variant that was asked for."""
    vars(guard.switch).update(state)
    guard.replace(module, "function", **options)(ours)
    match = "wheel variants are ignored" if raised is VariantsOff else "gone"
    with pytest.raises(raised, match=match):
        module.function(1)
    assert len(calls) == (ours is after)
    assert capsys.readouterr().err == ""
    assert not guard.switch.on


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
    @guard.replace(module, "function")
    def ours(original, first):
        try:
            return original(first)
        except OSError as error:
            error.gone
            raise

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
    @guard.replace(module, "function")
    def ours(original, first):
        raise error

    with pytest.raises(expected, match=str(error)):
        module.function(1)
    assert not calls
    assert guard.switch.on


def test_arguments_that_are_read_once(guard, module):
    @guard.replace(module, "function")
    def ours(original, first):
        items = list(first)
        original.after_fault(items)
        raise KeyError(items)

    assert module.function(first=iter("ab")) == ("theirs", ["a", "b"], 2)


def test_fault_in_iteration(guard):
    def items():
        yield 1
        raise KeyError(2)

    guard.switch.used = True
    found = guard.iterated(items())
    assert next(found) == 1
    with pytest.raises(VariantsOff):
        next(found)


def test_line_says_where(guard):
    code = "def ours():\n    raise ValueError('first\\nsecond \\x1b[31m https://user:secret@host/')"
    place = {"__name__": "pep_variants_shim._patches.made"}
    exec(compile(code, "ours", "exec"), place)
    with pytest.raises(ValueError, match="first") as caught:
        place["ours"]()
    assert guard.described(caught.value) == (
        "ValueError: first second  [31m https://****@host/ (pep_variants_shim._patches.made:ours:2)"
    )


@pytest.mark.parametrize(("modules", "ours"), [
    (["pep_variants_shim._links"], True),
    (["pip._internal.a", "pep_variants_shim._links", "other"], True),
    (["pep_variants_shim._links", "pip._internal.a"], False),
    (["pip._internal.a", "pep_variants_shim._guard"], False),
])  # fmt: skip
def test_whose_fault_it_is(guard, modules, ours):
    """The last of the shim's and pip's frames tells."""

    def call():
        raise KeyError

    for name in reversed(modules):
        place = {"__name__": name, "call": call}
        exec("def function():\n    call()", place)
        call = place["function"]
    with pytest.raises(KeyError) as caught:
        call()
    assert guard.is_ours(caught.value) is ours


@pytest.mark.parametrize("name", ["pep_variants_shim._links", "pip._internal.links"])
def test_a_command_runs_again_after_a_fault_of_ours(guard, monkeypatch, name):
    """One in an object of the shim that pip calls itself."""
    monkeypatch.delitem(sys.modules, "pep_variants_shim._patches.start", raising=False)
    start = importlib.import_module("pep_variants_shim._patches.start")
    monkeypatch.setitem(sys.modules, start.__name__, start)
    place = {"__name__": name, "runs": []}
    exec("def run(*args):\n    runs.append(args)\n    assert len(runs) > 1\n    return 0", place)
    module = ModuleType("commands")
    module.create_command = lambda name: SimpleNamespace(run=place["run"])
    start.patch_create(module)
    command = module.create_command("install")
    if name.startswith("pip."):
        with pytest.raises(AssertionError):
            command.run("app")
        assert guard.switch.on
    else:
        assert command.run("app") == 0
        assert place["runs"] == [("app",)] * 2
        assert not guard.switch.on


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


# Replacements.


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

    @guard.replace(owner, "made", always=True)
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
    assert owner.made(1) == ("ours", (owner, 1))
    assert item.known == "theirs"


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
    was = vars(owner).get(name)
    with pytest.raises(AttributeError) as caught:
        guard.replace(owner, name)(ours)
    assert caught.value.name == lacks
    assert vars(owner).get(name) is was


def test_decorated_functions_keep_their_parameters(guard, module):
    def decorated(first, second):
        return first, second

    module.function = functools.wraps(decorated)(lambda *args: decorated(*args))
    guard.replace(module, "function")(lambda original, first, *args: original(first, *args))
    assert module.function(1, 2) == (1, 2)


def test_required(guard, owner):
    guard.require(owner, "method")
    guard.require(owner, "method", "third", "first")
    for name, wanted in (("absent", ()), ("method", ("fourth",))):
        with pytest.raises(AttributeError):
            guard.require(owner, name, *wanted)


# The hook.


@pytest.mark.parametrize(
    ("version", "patched"),
    [("24.0", True), ("24.0.1", True), ("26.3+variants.1", True), ("27.0.dev0", True),
     ("23.3.2", False), ("9.0.3", False), ("None", False)],
)  # fmt: skip
def test_versions_that_are_patched(hook, version, patched):
    assert (hook.release(version) >= hook.release(hook.OLDEST)) is patched


def test_table(hook):
    """Every entry names a function that is there."""
    assert not hook.PATCHES.keys() & hook.EXTRAS.keys()
    for patch in (*hook.PATCHES.values(), *hook.EXTRAS.values()):
        module, _, function = patch.partition(":")
        code = (SOURCE / "_patches" / f"{module}.py").read_text("utf-8")
        assert f"\ndef {function}(module: " in code
