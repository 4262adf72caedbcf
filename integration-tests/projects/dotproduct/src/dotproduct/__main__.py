"""``python -m dotproduct``: the path that was compiled in, a result, and its speed."""

import time

from . import PATH, dot, repeat

SIZE = 1 << 13  # both stay in the first-level cache: arithmetic is measured, not memory
LEFT = bytes(number * 7 % 256 for number in range(SIZE + 3))
RIGHT = bytes(number * 13 % 256 for number in range(SIZE + 3))


def speed(seconds: float = 0.05, rounds: int = 5) -> float:
    """Return the bytes per second of the best of several rounds."""
    best, times = 0.0, 16
    while True:
        start = time.perf_counter()
        repeat(LEFT, RIGHT, times)
        elapsed = time.perf_counter() - start
        best = max(best, len(LEFT) * times / elapsed)
        if elapsed < seconds:
            times *= 2
            continue
        rounds -= 1
        if not rounds:
            return best


print(f"{PATH} {dot(LEFT, RIGHT)} {speed() / 1e9:.1f} GB/s")
