"""The test of a wheel that was built: one command in a fresh environment that has it installed."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from pep_variants import metadata as variant_metadata
from pep_variants import safe_files, selection
from pep_variants.errors import VariantError
from pep_variants.machines import Detector

from .building import Built, Plan, find_uv, fingerprint, plain_wheel, run
from .combination import metadata_of
from .model import Matrix, Variant

Result = tuple[Variant, Built | VariantError]
"""How the build of a variant ended."""


def tested(plan: Plan, results: Iterable[Result]) -> Iterator[Result]:
    """Run ``build.test`` of *plan* with each wheel of *results*; a failure takes the wheel's place.

    The wheels that one is built against are installed, too. The command runs in an empty folder, so
    that it imports what is installed. ``how`` gets the last line that it printed, or why it did not
    run. A wheel with which it passed before is not tested again.
    """
    for variant, result in results:
        if not plan.matrix.build.test or not isinstance(result, Built):
            yield variant, result
            continue
        try:
            yield variant, replace(result, how=f"{result.how}; {_test(plan, variant, result)}")
        except VariantError as error:
            yield variant, error


def _test(plan: Plan, variant: Variant, built: Built) -> str:
    command = plan.matrix.build.test
    if not _runs_here(plan.matrix, variant):
        return "not tested, as this machine lacks what it needs"
    note = plan.folder / f"{built.wheel.partition('-')[0]}-{variant.label}.tested"
    key = fingerprint([list(command), built.sha256])
    if (former := _read_note(note)).get("key") == key:
        return former.get("last", "")
    log = plan.folder / f"{variant.label}-test.log"
    with tempfile.TemporaryDirectory(prefix="tree-", dir=plan.folder) as name:
        folder = Path(name)
        wheels = [plan.output / built.wheel, *plan.against.get(variant.label, ())]
        (folder / "test").mkdir()
        line = [
            *(find_uv(), "run", "--quiet", "--no-project", "--isolated"),
            *("--python", sys.executable, "--directory", str(folder / "test")),
            *(word for wheel in wheels for word in ("--with", str(plain_wheel(wheel, folder)))),
            *("--", *command),
        ]
        run(line, log, os.environ, f"the test of {variant.label}")
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[1:]
    last = next((text.strip() for text in reversed(lines) if text.strip()), "passed")
    with safe_files.replacing(note) as stream:
        stream.write(json.dumps({"key": key, "last": last}).encode())
    return last


def _read_note(path: Path) -> dict[str, str]:
    """Return what an earlier test left in *path*, nothing if it did not."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _runs_here(matrix: Matrix, variant: Variant) -> bool:
    """Return whether this machine has all that *variant* needs.

    What it is built against counts as installed, and optional providers as enabled.
    """
    settings = variant.settings
    kept = tuple(
        item for item in settings.properties if item.namespace != variant_metadata.ABI_DEPENDENCY
    )
    metadata = metadata_of(matrix, [replace(variant, settings=replace(settings, properties=kept))])
    optional = [name for name, provider in metadata.providers.items() if provider.optional]
    platform = Detector(enabled=optional).platform(metadata)
    return variant.label in selection.rank(metadata, platform).labels
