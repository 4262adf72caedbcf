"""Replacing functions of pip so that a fault of the shim never breaks pip.

Every replacement of a function of pip is made with `replace`. It handles three kinds of errors:

- Errors that pip's own function raises, any `PipError`, and what is not an `Exception`
  (KeyboardInterrupt) propagate.
- Errors of the engine about its input (`VariantError`), and those of a disk that is full or cannot
  be written, become an `InstallationError`.
- Anything else is a fault of this package, such as a private name of pip that no longer exists:
  variants are switched off for the rest of the run, with one line of explanation, and pip's own
  function does the work.

Handling a fault imports nothing: pip 26 refuses imports while it installs.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import importlib
import os
import sys
import tempfile
from typing import TYPE_CHECKING, Any, TypeVar

from . import ADVICE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

Item = TypeVar("Item")

_ROOT = __name__.rpartition(".")[0]
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_MAX_LENGTH = 300  # characters of an error message
_ASKING = (
    "--variant",
    "--variant-platform",
    "PIP_VARIANT",
    "PIP_VARIANT_PLATFORM",
    "VARIANTS_VARIANT",
)


class Switch:
    """Whether the patches are active. One per process, because a process has one patched pip.

    Patches check it when they are called: modules are patched one by one, and a pip that lacks
    what the last patch needs must behave as if none had been patched.

    Attributes:
        on: the patches are active.
        reason: why they are not.
        used: pip has accepted the name of a variant wheel. From then on variants cannot be
            switched off without looking at what pip has collected already.
        failed: a fault has switched the patches off. Installed variants are still understood.
        again: pip resolves again, without the variant wheels that it has collected.
        explicit: the user asked for a specific variant or described the machine, and must not get
            something else silently. None until the options are read, see `asked`.
    """

    def __init__(self) -> None:
        self.on = True
        self.reason = ""
        self.used = False
        self.failed = False
        self.explicit: bool | None = None
        self.again = False
        self._said = False

    def off(self, reason: str, remedy: str, *, installing: bool) -> None:
        """Switch the patches off for the rest of the run.

        Args:
            reason: why.
            remedy: what to do about it.
            installing: the command installs, so the reason is printed at once.
        """
        if self.on:
            self.on = False
            self.reason = f"{reason}: wheel variants are ignored; {remedy}"
            if installing:
                self.tell()

    def off_for_fault(self, error: BaseException) -> None:
        """Switch the patches off because of *error*, a fault of the shim."""
        if self.on:
            self.on, self.failed = False, True
            self.reason = f"{described(error)}: {ADVICE}"

    def asked(self) -> bool:
        """Return `explicit`, or before it is known whether the user gave any such option."""
        if self.explicit is not None:
            return self.explicit
        given = {word.partition("=")[0] for word in (*sys.argv[1:], *os.environ)}
        return "--no-variants" not in given and not given.isdisjoint(_ASKING)

    def yield_to_built_in(self) -> None:
        """Switch the patches off silently: this pip has its own, which are active."""
        self.on = False
        self._said = True

    def tell(self) -> None:
        """Print in one line why the patches are not active, once."""
        # Shell completion imports commands, too, and would show the line.
        if self.reason and not self._said and "PIP_AUTO_COMPLETE" not in os.environ:
            self._said = True
            # pip's logging may not be set up yet. Without a stderr, print would take stdout.
            if sys.stderr is not None:
                # stderr may be closed, or a broken pipe.
                with contextlib.suppress(OSError, ValueError):
                    print(f"pep-variants-shim: {self.reason}", file=sys.stderr)


switch = Switch()


class Original:
    """The replaced function of pip, for one call of its replacement.

    Attributes:
        function: the function itself.
        error: what its last call raised, None if it returned.
        returned: it has returned `result`.
        args, kwargs: of the call, see `after_fault`.
    """

    __slots__ = ("args", "error", "function", "kwargs", "result", "returned")

    def __init__(self, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.error: BaseException | None = None
        self.returned = False
        self.result: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        try:
            result = self.function(*args, **kwargs)
        except BaseException as error:
            self.error = error
            raise
        if not self.returned:
            self.returned, self.result = True, result
        self.error = None
        return result

    def after_fault(self, *args: Any, **kwargs: Any) -> None:
        """Set what the function is called with after a fault, unless it was called already."""
        self.args, self.kwargs = args, kwargs

    def outcome(self) -> Any:
        """Return its result, or raise its error; call it if it was not called yet."""
        if self.error is not None:
            raise self.error
        return self.result if self.returned else self.function(*self.args, **self.kwargs)


def guarded(
    original: Callable[..., Any],
    ours: Callable[..., Any],
    *,
    always: bool = False,
    shows: bool = False,
    checks: bool = False,
) -> Callable[..., Any]:
    """Return a function that calls *ours*, and *original* after a fault in *ours*.

    Args:
        original: pip's function.
        ours: called with *original* as an `Original`, then the arguments of the call. Not a
            generator function: iteration is not guarded.
        always: call *ours* also when the patches are switched off.
        shows: *ours* only changes output: after a fault pip goes on in any case.
        checks: the result of pip's function must not be used unless *ours* has checked it.
    """

    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        if not (switch.on or always):
            return original(*args, **kwargs)
        call = Original(original, args, kwargs)
        try:
            return ours(call, *args, **kwargs)
        except Exception as error:
            if error is call.error:
                call.error = None  # break the cycle of error, traceback and frame
                raise
            fault(error, goes_on=shows or (call.returned and not checks), shows=shows)
            return call.outcome()

    return function


def iterated(items: Iterator[Item]) -> Iterator[Item]:
    """Yield *items*, which the shim makes of variant wheels that pip has collected.

    Raises:
        Exception: as `fault` does.
    """
    while True:
        try:
            item = next(items)
        except StopIteration:
            return
        except Exception as error:
            fault(error)
            raise
        yield item


def fault(error: Exception, *, goes_on: bool = False, shows: bool = False) -> None:
    """Switch variants off because of *error*, unless it is an error for the user.

    Args:
        error: raised by the shim, not by the function of pip that it replaces.
        goes_on: pip's function has done its work.
        shows: only output is affected.

    Raises:
        Exception: *error* itself, if it is for the user.
        Fault: pip must not go on: the user asked for a specific variant.
        VariantsOff: pip must not go on with the variant wheels that it has collected already.
    """
    if type(error).__name__ == "Fault" and isinstance(error.__cause__, Exception):
        error = error.__cause__
    kinds = type(error).__mro__
    # A module, since pip 26.3 a package.
    if any(kind.__module__.startswith("pip._internal.exceptions") for kind in kinds):
        raise error
    if any(kind.__name__ == "VariantError" for kind in kinds):
        raise _errors().InstallationError(str(error)) from None
    if isinstance(error, OSError) and error.errno in _FULL:
        place = error.filename or f"temporary folder {tempfile.gettempdir()} (TMPDIR)"
        raise _errors().InstallationError(f"{place}: {error.strerror}") from None
    switch.off_for_fault(error)
    if switch.asked() and not shows:
        raise _errors().Fault(error) from error
    if switch.used and not (goes_on or switch.again):
        raise _errors().VariantsOff(switch.reason) from error
    switch.tell()


@contextlib.contextmanager
def off_after_fault() -> Iterator[None]:
    """Switch variants off after any error, with the line; for what Python's import calls."""
    try:
        yield
    except Exception as error:
        switch.off_for_fault(error)
        switch.tell()


def is_ours(error: BaseException) -> bool:
    """Return whether the shim raised *error*: of its frames and pip's, the last one is the shim's.

    pip calls objects of the shim, such as requirements and versions, without a door between them.
    """
    ours = False
    traceback = error.__traceback__
    while traceback is not None:
        module = str(traceback.tb_frame.f_globals.get("__name__"))
        if module.startswith(f"{_ROOT}."):
            ours = module != __name__
        elif module.startswith("pip."):
            ours = False
        traceback = traceback.tb_next
    return ours


def _errors() -> Any:
    """Return the shim's `errors`, which every patch but those of pip's start has imported."""
    return sys.modules.get(f"{_ROOT}._errors") or importlib.import_module(f"{_ROOT}._errors")


def described(error: BaseException) -> str:
    """Return type, message and place (``module:function:line``) of *error* in one line."""
    text = "".join(char if char.isprintable() else " " for char in _redacted(str(error)))
    if len(text) > _MAX_LENGTH:
        text = f"{text[:_MAX_LENGTH]}…"
    place = _place(error.__traceback__)
    return f"{type(error).__name__}: {text}" + (f" ({place})" if place else "")


def _redacted(text: str) -> str:
    """Return *text* with the secrets of URLs replaced."""
    try:
        # Every patch that handles URLs has imported it; pip's start does not import it.
        from pep_variants.errors import redacted

        return redacted(text)
    except Exception:  # the installation of the shim is damaged
        return "" if "://" in text else text


def _place(traceback: TracebackType | None) -> str:
    """Return the last place in *traceback* that is in this package."""
    place = ""
    while traceback is not None:
        frame = traceback.tb_frame
        module = str(frame.f_globals.get("__name__"))
        if module.startswith(f"{_ROOT}.") and module != __name__:
            place = f"{module}:{frame.f_code.co_name}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return place


def replace(
    owner: Any,
    name: str,
    *,
    always: bool = False,
    shows: bool = False,
    checks: bool = False,
) -> Callable[[Callable[..., Any]], None]:
    """Return a decorator that replaces ``owner.name`` by a function.

    The function is called with an `Original` and the arguments of the call. It passes on arguments
    that it does not know, such as new parameters of a new pip.

    Args:
        owner: a module or a class.
        name: of a function, method, class method or property.
        always, shows, checks: see `guarded`.

    Raises:
        AttributeError: *owner* itself has no such attribute, or its first parameters are not
            those of the decorated function.
    """
    original = vars(owner).get(name)
    place = f"{getattr(owner, '__qualname__', '')}.{name}".lstrip(".")
    if original is None:
        raise AttributeError(f"there is no {place}", name=place, obj=owner)

    def decorate(ours: Callable[..., Any]) -> None:
        function = original
        if isinstance(original, classmethod):
            function = original.__func__
        elif isinstance(original, property):
            function = original.fget
        expected = parameters(ours)[1:]
        if parameters(function)[: len(expected)] != expected:
            place_with = f"{place}({', '.join(expected)})"
            raise AttributeError(f"there is no {place_with}", name=place_with, obj=owner)
        replacement: Any = guarded(function, ours, always=always, shows=shows, checks=checks)
        if isinstance(original, (classmethod, property)):
            replacement = type(original)(replacement)
        setattr(owner, name, replacement)

    return decorate


def require(owner: Any, name: str, *wanted: str) -> None:
    """Check that ``owner.name`` is a function with the parameters *wanted*.

    Raises:
        AttributeError: it is not.
    """
    function = vars(owner).get(name)
    place = f"{getattr(owner, '__qualname__', '')}.{name}".lstrip(".")
    if function is None or not set(wanted) <= set(parameters(function)):
        place = f"{place}({', '.join(wanted)})" if function else place
        raise AttributeError(f"there is no {place}", name=place, obj=owner)


def parameters(function: Any) -> tuple[str, ...]:
    """Return the names of the parameters of a Python function, also of a decorated one."""
    code = getattr(function, "__wrapped__", function).__code__
    names: tuple[str, ...] = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return names
