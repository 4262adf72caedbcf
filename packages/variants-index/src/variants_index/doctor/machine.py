"""What detection tried and what it answers; forced values and the variables that force them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pep_variants.detect.examination import Examined, examine_host

from .findings import Part, Problem

if TYPE_CHECKING:
    from pep_variants.model.platform import Fact


def machine_part(environ: Mapping[str, str], root: Path) -> Part:
    """Return what every built-in provider says of this machine.

    Args:
        environ: environment variables.
        root: of the file system.
    """
    found = examine_host(environ, root)
    variables = {
        fact.source for each in found.values() for fact in each.support.facts if fact.forced
    }
    unforced = {name: text for name, text in environ.items() if name not in variables}
    real = examine_host(unforced, root) if variables else found
    rows: list[tuple[str, str]] = []
    problems: list[Problem] = []
    for namespace, examined in found.items():
        rows += ((namespace, text) for text in _texts(examined))
        problems += _problems(namespace, examined, real[namespace])
    return Part(tuple(rows), tuple(problems), {name: _tree(each) for name, each in found.items()})


def _texts(examined: Examined) -> list[str]:
    texts = [_fact(fact) for fact in examined.support.facts]
    if examined.support.notice:
        texts.append(examined.support.notice)
    texts += (f"tried {attempt.place}: {attempt.answer}" for attempt in examined.attempts)
    texts += (f"warning: {text}" for text in examined.warnings)
    return texts or ["not of this machine's kind"]


def _fact(fact: Fact) -> str:
    origin = "forced by" if fact.forced else "from"
    return f"{fact.what} {fact.value}, {origin} {fact.source}"


def _problems(namespace: str, examined: Examined, real: Examined) -> list[Problem]:
    problems = [Problem("driver", f"{namespace}: {text}") for text in examined.warnings]
    if examined.support.notice:
        problems.append(Problem("detection", f"{namespace}: {examined.support.notice}"))
    forced: dict[tuple[str, str], list[str]] = {}
    for fact in examined.support.facts:
        if fact.forced:
            forced.setdefault((fact.what, fact.source), []).append(fact.value)
    for (what, variable), values in forced.items():
        detected = [fact.value for fact in real.support.facts if fact.what == what]
        shown = f"{variable} says that {what} is {', '.join(values)}"
        if detected == values:
            text = f"{shown}, as detection does"
        elif detected:
            text = f"{shown}, but this machine has {', '.join(detected)}"
        else:
            text = f"{shown}; without the variable detection finds none here"
        differs = bool(detected) and detected != values
        problems.append(Problem("override", text, f"unset {variable}", fails=differs))
    return problems


def _tree(examined: Examined) -> dict[str, object]:
    return {
        "facts": [fact._asdict() for fact in examined.support.facts],
        "notice": examined.support.notice,
        "tried": [attempt._asdict() for attempt in examined.attempts],
        "warnings": list(examined.warnings),
    }
