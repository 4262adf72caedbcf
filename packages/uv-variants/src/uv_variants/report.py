"""Lines about the variants that were chosen, printed beside uv's output."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pep_variants import Platform

    from .proxy_client import Choices, VersionChoice
    from .site_packages import Installed

_STYLES = {"chosen": "32", "compatible": "", "rejected": "2"}
_DIM = "2"


def warn(text: str) -> None:
    """Print *text* as a line of uv-variants."""
    print(f"uv-variants: {text}", file=sys.stderr)


def report_variants(
    taken: Iterable[Installed],
    choices: Choices,
    *,
    verbose: bool,
) -> None:
    """Print which variants were taken, and why; with *verbose* also the other ones.

    Args:
        taken: what is installed now, or locked.
        choices: of the proxy.
        verbose: print the verdicts on all variants of every version.
    """
    stream = sys.stderr
    colored = stream.isatty() and not os.environ.get("NO_COLOR")
    printed: set[str] = set()
    hinted = False
    for each in taken:
        choice = choices.of_installed(each)
        if verbose and choice is not None:
            print(f"Variants of {each.name} {each.version}:", file=stream)
            from pep_variants.internal import table_lines

            for row, line in zip(choice.verdicts, table_lines(choice.verdicts), strict=True):
                style = _STYLES.get(row.verdict, "")
                print(_styled(f"  {line}", style, on=colored), file=stream)
            for text in choice.notices:
                if text not in printed:
                    printed.add(text)
                    warn(text)
        elif each.label is not None:
            why = choice.reason_for(each.label) if choice is not None else ""
            reason = f": {why}" if why else ""
            origin = choice.origin_of(each.label) if choice is not None else ""
            named = f" (published as {origin.partition('==')[0]})" if origin else ""
            line = f"Variant {each.label} for {each.name} {each.version}{named}{reason}"
            if choice is not None and choice.is_missed and not hinted:
                from pep_variants.internal import MORE

                hinted = True
                line += MORE.format(each.name)
            print(_styled(line, _DIM, on=colored), file=stream)


def report_platform(platform: Platform) -> None:
    """Print what is known of the machine, and where it is from."""
    if platform.source:
        warn(f"the machine is described by {platform.source}")
        return
    for namespace, support in platform.namespaces.items():
        facts = [
            f"{fact.what} {fact.value} ({fact.source})"
            for fact in support.facts
            if support.features or fact.forced
        ]
        if facts:
            warn(f"{namespace}: {', '.join(facts)}")


def why_missing(name: str, label: str, versions: dict[str, VersionChoice]) -> str | None:
    """Return why no version of a project has the variant that was asked for, None if one has.

    Args:
        name: normalized project name.
        label: that was forced; empty for the non-variant wheel.
        versions: choices by version, newest first.
    """
    if any(choice.shows(label) for choice in versions.values()):
        return None
    for choice in versions.values():
        return choice.missing or None
    return f"{name} has no variants, but --variant {name}={label} asks for one" if label else None


def _styled(text: str, style: str, *, on: bool) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if on and style else text
