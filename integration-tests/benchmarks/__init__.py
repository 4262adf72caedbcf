"""Benchmarks: ours beside theirs, in one run. Run with make bench."""
