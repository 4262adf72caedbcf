"""Cases with a state: what is installed before, and several commands in a row.

A case with ``steps`` is played in an environment. Each step is a case of its own, whose machine and
requirements go on from those before it; what is in the environment is read after each.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from hostile.clients import found
from pep_variants.markers import NON_VARIANT, VariantContext, reduce_metadata

from .case import Case
from .indexes import wheels_of
from .outcome import differences_of_step
from .place import Place, clear, platform_file
from .program import Finished
from .runners.base import Runner

WRITTEN_AS_DECIDED = frozenset({"pip-with-shim", "uv-variants"})
"""Installers that write which dependencies were decided for, not the markers of the wheel."""


def wants(case: Case) -> frozenset[str]:
    """Return what a client has to be able to do to play *case*, see ``README.md``."""
    steps = case.tree.get("steps", ())
    found = {step["do"] for step in steps}
    found |= {"installed"} if case.tree.get("installed") else set()
    found |= {"options" for step in steps if "options" in step}
    return frozenset(found | {"other-machine" for step in steps if "machine" in step})


def steps(case: Case) -> Iterator[Case]:
    """Yield the steps of *case*, each with what holds for it.

    ``install`` is what the step names, ``locked`` all that was locked so far.
    """
    tree = {key: value for key, value in case.tree.items() if key not in ("steps", "installed")}
    locked: list[str] = []
    there = {item["project"]: text_of(item) for item in case.tree.get("installed", ())}
    for number, step in enumerate(case.tree["steps"], 1):
        words = step.get("what", [])
        locked = (
            words if step["do"] == "lock" else [*locked, *words] if step["do"] == "add" else locked
        )
        expect = {"installed": there, **step.get("expect", {})}
        there = expect["installed"]
        known = {key: step[key] for key in ("do", "machine", "options") if key in step}
        tree = {**tree, **known, "install": words, "locked": locked, "expect": expect}
        yield Case(f"{case.id}#{number}", tree, case.family)


class Played(NamedTuple):
    """A step that was played.

    Attributes:
        number: of it, from 1.
        step: what was asked for.
        done: how the command ended.
        installed: what is installed after it.
        folder: where that is.
    """

    number: int
    step: Case
    done: Finished
    installed: Mapping[str, str]
    folder: Path


def play_steps(runner: Runner, case: Case, place: Place) -> tuple[list[str], str]:
    """Let *runner* play *case* until a step differs; return what differs, and what was printed."""
    output = ""
    for number, step, done, installed, folder in played(runner, case, place):
        output += done.output
        lines = differences_of_step(step, done, installed, folder, words=runner.is_ours)
        if lines:
            head = f"step {number} ({step.tree['do']})"
            return [f"{head}: {line}" for line in lines], output
    return [], output


def played(runner: Runner, case: Case, place: Place) -> Iterator[Played]:
    """Let *runner* play the steps of *case*; yield each."""
    with runner.environment(place) as folder:
        before = {path.name for path in folder.iterdir()}
        for item in case.tree.get("installed", ()):
            put(case, item, folder)
        for number, step in enumerate(steps(case), 1):
            there = place.root / f"step-{number}"
            there.mkdir()
            served = replace(place.served, install=step.tree["install"])
            where = replace(place, served=served, platform=platform_file(step, there))
            if step.tree["do"] == "sync":
                clear(folder, before)
            done = runner.step(step, where, folder)
            installed = {
                name: text
                for name, text in found(folder).items()
                if not any(path.startswith(f"{name}-") for path in before)
            }
            yield Played(number, step, done, installed, folder)


def put(case: Case, item: Mapping[str, Any], folder: Path) -> None:
    """Have *item* of ``installed`` in *folder*, as its installer leaves it there."""
    wheel = next(
        wheel
        for wheel in wheels_of(case)
        if (wheel.name.replace("_", "-"), wheel.version) == (item["project"], item["version"])
        and wheel.label == item.get("label")
    )
    with zipfile.ZipFile(io.BytesIO(wheel.build())) as archive:
        archive.extractall(folder)
    installer = item.get("by", "pip")
    (info,) = folder.glob(f"{wheel.name}-{wheel.version}.dist-info")
    if installer in WRITTEN_AS_DECIDED:
        metadata = info / "METADATA"
        metadata.write_bytes(reduce_metadata(metadata.read_bytes(), _context(case, wheel)))
    (info / "INSTALLER").write_text("uv\n" if installer.startswith("uv") else "pip\n")
    (info / "REQUESTED").touch()
    with (info / "RECORD").open("a") as record:
        record.write(f"{info.name}/INSTALLER,,\n{info.name}/REQUESTED,,\n")


def _context(case: Case, wheel: Any) -> VariantContext:  # noqa: ANN401
    """Return what markers of *wheel* see where it was installed: on the machine of *case*."""
    if wheel.label is None:
        return NON_VARIANT
    machine = case.tree.get("machine", {})
    supported = machine if isinstance(machine, dict) else {}
    (held,) = wheel.variant_json["variants"].values()

    def here(namespace: str, feature: str, values: list[str]) -> tuple[str, ...]:
        known = supported.get(namespace, {}).get(feature, values)
        return tuple(value for value in values if value in known)

    properties = {
        namespace: {feature: here(namespace, feature, items) for feature, items in found.items()}
        for namespace, found in held.items()
    }
    return VariantContext(wheel.label, properties)


def text_of(item: Mapping[str, Any]) -> str:
    """Return version and label of *item* of ``installed``, as expectations have them."""
    return "-".join(filter(None, (item["version"], item.get("label"))))
