"""Fuzzing of every reader of untrusted bytes: ``make fuzz SECONDS=60``.

- `targets`: what is fuzzed, and which errors a reader may raise.
- ``seeds``: a few small inputs for each target, and the words of its format.
- `worker`: fuzzes one target in a process of its own.
- ``__main__``: shares the time among the targets and prints what was found.
"""
