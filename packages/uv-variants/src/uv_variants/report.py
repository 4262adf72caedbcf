"""What is said of the variants that were taken, in the words that every client has."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TextIO

from .decisions import Decision, decision_on
from .installed import Installed

if TYPE_CHECKING:
    from pep_variants.platform import Platform

_STYLES = {"chosen": "32", "compatible": "", "rejected": "2"}


def report(
    taken: Iterable[Installed],
    decisions: Mapping[str, Mapping[str, Decision]],
    *,
    verbose: bool,
    stream: TextIO | None = None,
) -> None:
    """Say which variants were taken, and why; with *verbose* also what of the others.

    Args:
        taken: what is installed now, or locked.
        decisions: by project and version.
        verbose: show the table of every version.
        stream: where to, standard error by default.
    """
    stream = stream or sys.stderr
    colored = stream.isatty() and not os.environ.get("NO_COLOR")
    said: set[str] = set()
    for each in taken:
        decision = decision_on(decisions, each)
        why = ""
        if decision is not None:
            why = next((row.why for row in decision.verdicts if row.label == each.label), "")
        if verbose and decision is not None:
            print(f"Variants of {each.name} {each.version}:", file=stream)
            width = max(len(row.label) for row in decision.verdicts)
            for row in decision.verdicts:
                line = f"  {row.label:<{width}}  {row.verdict:<10}  {row.why}"
                print(_styled(line, _STYLES.get(row.verdict, ""), on=colored), file=stream)
        elif each.label is not None:
            reason = f": {why}" if why else ""
            line = f"Variant {each.label} for {each.name} {each.version}{reason}"
            print(_styled(line, "2", on=colored), file=stream)
        if decision is not None:
            for text in (*decision.problems, *(decision.notices if verbose else ())):
                if text not in said:
                    said.add(text)
                    print(f"uv-variants: {text}", file=stream)


def report_platform(platform: Platform, stream: TextIO | None = None) -> None:
    """Say what is known of the machine, and who said so.

    Args:
        platform: of it.
        stream: where to, standard error by default.
    """
    stream = stream or sys.stderr
    if platform.source:
        print(f"uv-variants: the machine is the one of {platform.source}", file=stream)
        return
    for namespace, support in platform.namespaces.items():
        facts = [
            f"{fact.what} {fact.value} ({fact.source})"
            for fact in support.facts
            if support.features or fact.forced
        ]
        if facts:
            print(f"uv-variants: {namespace}: {', '.join(facts)}", file=stream)


def why_missing(name: str, label: str, versions: Mapping[str, Decision]) -> str | None:
    """Return why no version of a project has the variant that was asked for, None if one has.

    Args:
        name: normalized project name.
        label: that was forced; empty for the non-variant wheel.
        versions: decisions by version, newest first.
    """
    asked = f"--variant {name}={label}"
    for version, decision in versions.items():
        if decision.labels:
            return None
        if not label:
            return f"{name} {version} has no non-variant wheel, which {asked} asks for"
        labels = sorted(row.label for row in decision.verdicts)
        fitting = [row.label for row in decision.verdicts if row.verdict != "rejected"]
        why = next((row.why for row in decision.verdicts if row.label == label), None)
        if why is None:
            return (
                f"{name} {version} has no variant {label!r}, which {asked} asks for; "
                f"there are: {', '.join(labels) or 'none'}"
            )
        return (
            f"variant {label!r} of {name} {version}, which {asked} asks for, does not fit: {why}. "
            f"Variants that fit: {', '.join(fitting) or 'none'}"
        )
    return f"{name} has no variants, of which {asked} asks for one" if label else None


def _styled(text: str, style: str, *, on: bool) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if on and style else text
