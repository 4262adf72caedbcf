"""Every seed of the fuzzer, and every input that was a defect once, on its reader."""

from __future__ import annotations

import pytest

from fuzz.seeds import FOUND, TEXTS, WORDS, seeds
from fuzz.targets import TARGETS, check


@pytest.mark.parametrize("target", TARGETS)
def test_readers_stand_the_seeds(target: str) -> None:
    for data in seeds(target):
        check(target, data)


def test_every_target_has_seeds_and_no_seed_is_left_out() -> None:
    found = {path.name for path in FOUND.iterdir()} if FOUND.is_dir() else set()
    assert {*TEXTS, *WORDS, *found} <= TARGETS.keys()
    assert all(seeds(target) for target in TARGETS)


@pytest.mark.parametrize(
    "target",
    [
        "document", "pyproject", "core_metadata", "platform", "settings", "matrix", "catalog",
        "plugin_answer", "wheel", "library", "record", "html_page", "json_page", "lock_file",
        "requirements_file", "platform_key",
    ],
)  # fmt: skip
def test_seeds_are_read_to_their_end(target: str) -> None:
    """A seed that its reader refuses at once shows the fuzzer nothing of what lies behind."""
    TARGETS[target](seeds(target)[0])
