"""The dot product of bytes, compiled for one instruction set."""

from ._kernel import PATH, dot, repeat

__all__ = ["PATH", "dot", "repeat"]
