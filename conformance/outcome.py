"""What a client did with a case, and how that differs from what is expected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from .case import Case
from .program import Finished


@dataclass(frozen=True)
class Outcome:
    """What a client did; what is None is not compared.

    Attributes:
        failed: it ended with an error.
        error: kind of the error, for clients that tell kinds apart.
        order: compatible labels, best first.
        rejected: features that do not fit by label.
        chosen: the chosen label, "" for the non-variant wheel. Compared if `has_choice`.
        requires: dependencies of the chosen wheel, reduced.
        installed: ``VERSION`` or ``VERSION-LABEL`` by project.
        filename: parts of a filename.
        output: what was printed.
    """

    failed: bool
    error: str | None = None
    order: Sequence[str] | None = None
    rejected: Mapping[str, Sequence[str]] | None = None
    chosen: str | None = None
    has_choice: bool = False
    requires: Sequence[str] | None = None
    installed: Mapping[str, str] | None = None
    filename: Mapping[str, Any] | None = None
    output: str = ""


def differences(case: Case, outcome: Outcome, *, words: bool) -> list[str]:
    """Return what differs between *outcome* and the expectation of *case*, one line each.

    What was printed is compared with *words*, messages whatever their line breaks.
    """
    found = [
        f"{name}: expected {expected!r}, found {there!r}"
        for name, expected, there in _compared(case, outcome)
        if expected != there
    ]
    found += _errors(case, outcome)
    if words and outcome.installed is not None:
        wanted = list(case.expect.get("says", ()))
        if case.installed is None:
            wanted += case.expect.get("error", {}).get("names", ())
        found += _unsaid(wanted, outcome.output)
    return found


def differences_of_step(
    step: Case, done: Finished, installed: Mapping[str, str], folder: Path, *, words: bool
) -> list[str]:
    """Return what differs after a *step*, one line each.

    Args:
        step: its expectation says what is there after it, see `states.steps`.
        done: how the command ended.
        installed: what is there.
        folder: where that is.
        words: whether what was printed is compared.
    """
    error = step.expect.get("error")
    wanted, there = _normal_names(step.expect["installed"]), _normal_names(installed)
    found = [] if wanted == there else [f"installed: expected {wanted!r}, found {there!r}"]
    if bool(done.code) != (error is not None):
        found.append("succeeded, and should not" if error else f"failed with {done.code}")
    for path, text in step.expect.get("files", {}).items():
        file = folder / path
        content = file.read_text("utf-8") if file.exists() else None
        found += [] if content == text else [f"{path}: expected {text!r}, found {content!r}"]
    if words:
        found += _unsaid(
            [*step.expect.get("says", ()), *(error or {}).get("names", ())], done.output
        )
    return found


def _unsaid(words: Sequence[str], output: str) -> list[str]:
    flat = " ".join(output.lower().split())
    return [f"does not say {word!r}" for word in words if word.lower() not in flat]


def _compared(case: Case, outcome: Outcome) -> Iterator[tuple[str, object, object]]:
    """Yield what is compared: its name, what is expected, what is there."""
    expect = case.expect
    if outcome.order is not None and "order" in expect:
        yield "order", expect["order"], list(outcome.order)
    if outcome.rejected is not None and "rejected" in expect:
        wanted = expect["rejected"]
        if isinstance(wanted, list):
            yield "rejected", sorted(wanted), sorted(outcome.rejected)
        else:
            yield "rejected", _sorted(wanted), _sorted(outcome.rejected)
    if outcome.has_choice and case.form == "document":
        yield "chosen", _normal_label(case.chosen), _normal_label(outcome.chosen)
    if outcome.requires is not None and "requires" in expect:
        yield "requires", _requirements(expect["requires"]), _requirements(outcome.requires)
    if outcome.installed is not None:
        yield "installed", _normal_names(case.installed or {}), _normal_names(outcome.installed)
    if outcome.filename is not None:
        for name, value in expect.get("filename", {}).items():
            yield name, value, outcome.filename.get(name)


def _errors(case: Case, outcome: Outcome) -> list[str]:
    error = case.expect.get("error")
    if outcome.error is not None or (outcome.failed and outcome.installed is None):
        # A library: every error is one.
        if error is None:
            return [f"failed: {outcome.error or 'with an error'}"]
        if outcome.error is not None and outcome.error != error["kind"]:
            return [f"error: expected kind {error['kind']}, found {outcome.error}"]
    elif outcome.installed is not None and outcome.failed != (case.installed is None):
        if outcome.failed:
            return ["failed, though there is something to install"]
        return ["succeeded, though nothing can be installed"]
    return []


def _requirements(lines: Sequence[str]) -> list[str]:
    return sorted(str(Requirement(line)) for line in lines)


def _sorted(labels: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    return {label: sorted(features) for label, features in labels.items()}


def _normal_names(installed: Mapping[str, str]) -> dict[str, str]:
    """Return *installed* with normalized names, and with one spelling of the null variant."""
    found: dict[str, str] = {}
    for name, text in installed.items():
        version, dash, label = text.rpartition("-")
        found[canonicalize_name(name)] = f"{version}{dash}{_normal_label(label)}"
    return found


def _normal_label(label: str | None) -> str | None:
    return "null" if label == "00000000" else label
