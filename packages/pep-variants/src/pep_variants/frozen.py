"""Frozen dataclasses that are cheap to define.

`dataclasses` writes and compiles six methods for each class when its module is imported, which took
a third of the time in which pip imports the engine: 2 million instructions for each class. Here it
compiles ``__init__`` alone, and all classes share the others.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass

    from _typeshed import DataclassInstance as Instance
else:

    def dataclass(
        *,
        frozen: bool,
        eq: bool = True,
        repr: bool = True,  # noqa: A002 - as in `dataclasses`
    ) -> Callable[[type], type]:
        """Return the decorator of `dataclasses`, for frozen classes without slots and order."""
        if not frozen:
            raise ValueError("only for frozen dataclasses")

        def decorate(cls: type) -> type:
            dataclasses.dataclass(eq=False, repr=False)(cls)
            methods = {"__setattr__": _set_once, "__delattr__": _refuse}
            if repr:
                methods["__repr__"] = _represent
            if eq:
                methods |= {"__eq__": _equal, "__hash__": _hash}
            for name, method in methods.items():
                if vars(cls).get(name) is None:  # a class with a method of its own keeps that
                    setattr(cls, name, method)
            return cls

        return decorate


def _set_once(self: Instance, name: str, value: object) -> None:
    """Set a field, as only ``__init__`` may."""
    if name in self.__dict__ or name not in self.__dataclass_fields__:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
    self.__dict__[name] = value


def _refuse(self: object, name: str) -> None:  # noqa: ARG001
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _represent(self: Instance) -> str:
    shown = (field.name for field in dataclasses.fields(self) if field.repr)
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
    return f"{type(self).__qualname__}({values})"


def _equal(self: Instance, other: object) -> object:
    if type(other) is not type(self):
        return NotImplemented
    compared = _compared(type(self))
    return compared(self) == compared(other)


def _hash(self: Instance) -> int:
    return hash(_compared(type(self))(self))


@cache
def _compared(cls: type[Instance]) -> Callable[[object], object]:
    """Return what gives all of an instance that is compared: its class too, so never nothing."""
    return attrgetter(
        "__class__", *(field.name for field in dataclasses.fields(cls) if field.compare)
    )
