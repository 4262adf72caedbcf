"""After any command a lock is the one that is made from nothing for its machine and versions.

Random worlds of `support.lock_worlds`: a few in ``make test``, 140 in ``make test-matrix``, or as
many as ``LOCK_WORLDS`` says, from the seed ``LOCK_SEED`` on. A failure prints the world and what
was typed; ``python -m support.lock_play SEED 1 UV`` plays it again and makes it smaller.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support import lock_worlds
from support.environments import Environments
from support.lock_play import EVERY_UV, play
from support.lock_worlds import REPORTED, World, world_of

SEED = int(os.environ.get("LOCK_SEED", "1"))
WORLDS = int(os.environ.get("LOCK_WORLDS", "0"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Play each world with one uv, and those that were reported with all in the matrix."""
    if "world" in metafunc.fixturenames:
        full = metafunc.config.getoption("full_matrix")
        uvs = EVERY_UV if full else (EVERY_UV[0], EVERY_UV[-1])
        cases = []
        for number, (name, world) in enumerate(REPORTED.items()):
            for uv in uvs if full else [uvs[number % 2]]:
                cases.append((f"{name}-{uv}", world, uv))
        for seed in range(SEED, SEED + (WORLDS or (140 if full else 2))):
            uv = uvs[seed % len(uvs)]
            cases.append((f"{seed}-{uv}", world_of(seed), uv))
        ids = [name for name, *_ in cases]
        metafunc.parametrize(("world", "uv"), [case for _, *case in cases], ids=ids)


@pytest.mark.everywhere
def test_a_lock_is_one_from_nothing(
    world: World, uv: str, environments: Environments, tmp_path: Path
) -> None:
    played = play(world, uv, environments, tmp_path / "world")
    assert played.compared or played.unsolved, played.typed


def test_worlds_are_made_of_seeds() -> None:
    assert world_of(7) == world_of(7) != world_of(8)
    assert eval(repr(world_of(7)), vars(lock_worlds)) == world_of(7)
