"""What detection tried and what it answers; the variables that force values or hide GPUs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pep_variants.internal import Examined, examine_host

from .drivers import VENDORS, Drivers
from .findings import Part, Problem

if TYPE_CHECKING:
    from pep_variants.internal import Fact

HIDING = {
    name: tuple(each for each, vendor in VENDORS.items() if name in vendor.hidden_by)
    for vendor in VENDORS.values()
    for name in vendor.hidden_by
}
"""Variables that hide GPUs from programs, and the namespaces of these GPUs."""

_COUNTED = {vendor.counted for vendor in VENDORS.values()}
"""Facts that there is one of for every device."""
_NOTHING = ("", "-1", "none", "void", "nodevfiles")
"""Values that hide all GPUs."""


def machine_part(environ: Mapping[str, str], root: Path) -> tuple[Part, Drivers]:
    """Return what every built-in provider says of this machine, and the drivers among it.

    Args:
        environ: environment variables.
        root: of the file system.
    """
    found = examine_host(environ, root)
    forcing = {fact.source for each in found.values() for fact in each.support.facts if fact.forced}
    real = _without(forcing, environ, root) if forcing else found
    hiding = [name for name in HIDING if name in environ]
    shown = _without(hiding, environ, root) if hiding else found
    rows: list[tuple[str, str]] = []
    problems: list[Problem] = []
    for namespace, examined in found.items():
        rows += ((namespace, text) for text in _texts(examined))
        problems += _problems(namespace, examined, real[namespace], environ)
        problems += _hidden(namespace, examined, shown[namespace], environ)
    part = Part(tuple(rows), tuple(problems), {name: _tree(each) for name, each in found.items()})
    return part, Drivers.of(found)


def _without(
    names: set[str] | list[str], environ: Mapping[str, str], root: Path
) -> dict[str, Examined]:
    """Return what detection finds without some of the variables."""
    return examine_host({name: text for name, text in environ.items() if name not in names}, root)


def _texts(examined: Examined) -> list[str]:
    texts = [_fact(fact) for fact in examined.support.facts]
    if examined.support.notice:
        texts.append(examined.support.notice)
    texts += (f"tried {attempt.place}: {attempt.answer}" for attempt in examined.attempts)
    texts += (f"warning: {text}" for text in examined.warnings)
    return texts or ["forced by no variable, and nothing was tried"]


def _fact(fact: Fact) -> str:
    origin = "forced by" if fact.forced else "from"
    return f"{fact.what} {fact.value}, {origin} {fact.source}"


def _problems(
    namespace: str, examined: Examined, real: Examined, environ: Mapping[str, str]
) -> Iterator[Problem]:
    for text in examined.warnings:
        yield Problem("driver", f"{namespace}: {text}")
    if examined.support.notice:
        text = examined.support.notice
        names = [name for name in environ if re.search(rf"\b{re.escape(name)}\b", text)]
        command = f"unset {' '.join(names)}" if names else ""
        yield Problem("detection", f"{namespace}: {text}", command)
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
        yield Problem("override", text, f"unset {variable}", fails=differs)


def _hidden(
    namespace: str, examined: Examined, shown: Examined, environ: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield what is wrong with the variables that hide GPUs of *namespace*.

    Args:
        namespace: of the GPUs.
        examined: the answer.
        shown: the answer without these variables.
        environ: environment variables.
    """
    names = [name for name, hidden in HIDING.items() if namespace in hidden and name in environ]
    if not names:
        return
    values = " and ".join(f"{name}={environ[name]}" for name in names)
    command = f"unset {' '.join(names)}"
    hides = "hide" if len(names) > 1 else "hides"
    gpus, all_gpus = _gpus(examined), _gpus(shown)
    if lost := sorted((all_gpus - gpus).elements()):
        yield Problem(
            "hidden-gpu",
            f"{values} {hides} {', '.join(lost)}, so no variant for it is chosen",
            command,
        )
    elif gpus and not VENDORS[namespace].heeds_hiding:
        texts = [environ[name].strip().lower() for name in names]
        if any(text in _NOTHING for text in texts):
            how = f"every {VENDORS[namespace].title} GPU"
        elif len(gpus) > 1 and any(text.count(",") + 1 < sum(gpus.values()) for text in texts):
            how = f"some {VENDORS[namespace].title} GPUs"
        else:
            return
        text = (
            f"{values} {hides} {how} from programs; detection does not see that, and variants "
            f"are chosen for {', '.join(sorted(gpus))}"
        )
        yield Problem("hidden-gpu", text, command, fails=False)


def _gpus(examined: Examined) -> Counter[str]:
    return Counter(
        f"{fact.what} {fact.value}" for fact in examined.support.facts if fact.what in _COUNTED
    )


def _tree(examined: Examined) -> dict[str, object]:
    return {
        "facts": [fact._asdict() for fact in examined.support.facts],
        "notice": examined.support.notice,
        "tried": [attempt._asdict() for attempt in examined.attempts],
        "warnings": list(examined.warnings),
    }
