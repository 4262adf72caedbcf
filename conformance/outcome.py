"""What a client did with a case, and how that differs from what is expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from .case import Case


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
        is_ours: its words are compared as well.
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
    is_ours: bool = True


def differences(case: Case, outcome: Outcome) -> list[str]:
    """Return what differs between *outcome* and the expectation of *case*, one line each."""
    return [*_choices(case, outcome), *_errors(case, outcome), *_words(case, outcome)]


def _choices(case: Case, outcome: Outcome) -> list[str]:
    expect = case.expect
    found = []
    if outcome.order is not None and "order" in expect and list(outcome.order) != expect["order"]:
        found.append(f"order: expected {expect['order']}, found {list(outcome.order)}")
    if outcome.rejected is not None and "rejected" in expect:
        wanted = expect["rejected"]
        if isinstance(wanted, list):
            if sorted(wanted) != sorted(outcome.rejected):
                found.append(f"rejected: expected {wanted}, found {sorted(outcome.rejected)}")
        elif {k: sorted(v) for k, v in wanted.items()} != {
            k: sorted(v) for k, v in outcome.rejected.items()
        }:
            found.append(f"rejected: expected {wanted}, found {dict(outcome.rejected)}")
    if (
        outcome.has_choice
        and case.form == "document"
        and _normal_label(outcome.chosen) != _normal_label(case.chosen)
    ):
        found.append(f"chosen: expected {case.chosen!r}, found {outcome.chosen!r}")
    if outcome.requires is not None and "requires" in expect:
        wanted = sorted(map(_normal, expect["requires"]))
        if wanted != sorted(map(_normal, outcome.requires)):
            found.append(f"requires: expected {wanted}, found {sorted(outcome.requires)}")
    if outcome.installed is not None:
        expected, installed = _normal_names(case.installed or {}), _normal_names(outcome.installed)
        if installed != expected:
            found.append(f"installed: expected {expected}, found {installed}")
    if outcome.filename is not None:
        for name, value in expect.get("filename", {}).items():
            if outcome.filename.get(name) != value:
                found.append(f"{name}: expected {value!r}, found {outcome.filename.get(name)!r}")
    return found


def _errors(case: Case, outcome: Outcome) -> list[str]:
    error = case.expect.get("error")
    if outcome.error is not None or (outcome.failed and outcome.installed is None):
        # A library: every error is one.
        if error is None:
            return [f"failed: {outcome.error or 'with an error'}"]
        if outcome.error is not None and outcome.error != error["kind"]:
            return [f"error: expected kind {error['kind']}, found {outcome.error}"]
        return []
    if outcome.installed is None:
        return []
    if outcome.failed and case.installed is not None:
        return ["failed, though there is something to install"]
    if not outcome.failed and case.installed is None:
        return ["succeeded, though nothing can be installed"]
    return []


def _words(case: Case, outcome: Outcome) -> list[str]:
    if not outcome.is_ours or outcome.installed is None:
        return []
    words = list(case.expect.get("says", ()))
    if case.installed is None:
        words += case.expect.get("error", {}).get("names", ())
    # Messages may be wrapped.
    output = " ".join(outcome.output.lower().split())
    return [f"does not say {word!r}" for word in words if word.lower() not in output]


def _normal_names(installed: Mapping[str, str]) -> dict[str, str]:
    """Return *installed* with normalized names, and with one spelling of the null variant."""
    found: dict[str, str] = {}
    for name, text in installed.items():
        version, dash, label = text.rpartition("-")
        found[canonicalize_name(name)] = f"{version}{dash}{_normal_label(label)}"
    return found


def _normal_label(label: str | None) -> str | None:
    return "null" if label == "00000000" else label


def _normal(requirement: str) -> str:
    return str(Requirement(requirement))
