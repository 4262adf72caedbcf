"""Fuzzing of every reader of untrusted bytes: ``make fuzz SECONDS=60``.

- `targets`: what is fuzzed, and which errors a reader may raise.
- ``seeds``: a few small inputs for each target, and the words of its format.
- ``__main__``: mutates the seeds, and prints what was found.
"""
