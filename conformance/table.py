"""The table of the clients' results, and the page of the documentation with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from .case import Case
from .runners import LIBRARIES
from .verdict import Verdict

WHO = {"corpus": "the corpus", "client": "the client", "open": "open"}


def summary(
    cases: Mapping[str, Case], titles: Mapping[str, str], verdicts: Sequence[Verdict]
) -> list[list[str]]:
    """Return rows, the first of which is the header: areas by clients.

    A cell is ``AGREED/PLAYED``, and empty where the client was given no case of the area.
    """
    counts: Counter[tuple[str, str, str]] = Counter()
    for verdict in verdicts:
        counts[cases[verdict.case].area, verdict.client, verdict.state] += 1
    areas = sorted({case.area for case in cases.values()})
    rows = [["area", "cases", *titles]]
    for area in areas:
        number = sum(case.area == area for case in cases.values())
        rows.append([area, str(number), *(_cell(counts, [area], name) for name in titles)])
    rows.append(["all", str(len(cases)), *(_cell(counts, areas, name) for name in titles)])
    return rows


def _cell(counts: Counter[tuple[str, str, str]], areas: Sequence[str], client: str) -> str:
    agreed = sum(counts[area, client, "agrees"] for area in areas)
    played = agreed + sum(
        counts[area, client, state] for area in areas for state in ("differs", "explained")
    )
    return f"{agreed}/{played}" if played else ""


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """Return *rows* as a Markdown table."""
    header, *body = rows
    lines = [header, ["---"] * len(header), *body]
    return "\n".join(f"| {' | '.join(_escaped(cell) for cell in row)} |" for row in lines)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def page(cases: Mapping[str, Case], titles: Mapping[str, str], verdicts: Sequence[Verdict]) -> str:
    """Return the page of the documentation."""
    generated = Counter(case.family for case in cases.values() if case.family)
    lines = [
        "# Conformance",
        "",
        "Results of each client on the [conformance corpus](../../conformance/README.md), written",
        "by `make conformance`. A cell has the number of cases passed, of those that were run.",
        "Cases that a client has no interface for, such as lock files or options of this project,",
        "are not run with it.",
        "",
        *_what_was_run(cases, titles, verdicts),
        "",
        markdown_table(summary(cases, titles, verdicts)),
        "",
        *(f"- **{name}**: {title}" for name, title in titles.items()),
        "",
        f"{len(cases)} cases, {sum(generated.values())} of them in generated families: "
        + ", ".join(f"{name} ({number})" for name, number in sorted(generated.items()))
        + ".",
        "",
        "## Where clients differ",
        "",
    ]
    explained: dict[tuple[str, str, str], list[str]] = {}
    for verdict in verdicts:
        if verdict.difference is not None:
            key = (verdict.client, verdict.difference.why, verdict.difference.right)
            explained.setdefault(key, []).append(verdict.case)
    rows = [["client", "cases", "why", "right", "for example"]]
    rows += [
        [client, str(len(found)), why, WHO[right], f"`{found[0]}`"]
        for (client, why, right), found in sorted(explained.items())
    ]
    unexplained = [verdict for verdict in verdicts if verdict.state == "differs"]
    rows += [
        [verdict.client, "1", "; ".join(verdict.lines), "not explained yet", f"`{verdict.case}`"]
        for verdict in unexplained
    ]
    lines.append(markdown_table(rows) if len(rows) > 1 else "Nowhere.")
    return "\n".join(lines) + "\n"


def _what_was_run(
    cases: Mapping[str, Case], titles: Mapping[str, str], verdicts: Sequence[Verdict]
) -> list[str]:
    given = frozenset(item.case for item in verdicts if item.client not in LIBRARIES)
    written = [case.id for case in cases.values() if not case.is_one_of_many]
    many = [case.id for case in cases.values() if case.is_one_of_many]
    lines = [
        f"The libraries were given all cases; the other clients {_of(given, written)} that were",
        f"written by hand, and {_of(given, many)} that were generated or recorded.",
    ]
    if not any("oldest" in name for name in titles):
        lines.append("The oldest supported pip and uv are run nightly.")
    return lines


def _of(given: frozenset[str], group: Sequence[str]) -> str:
    number = len(given.intersection(group))
    return f"all {number}" if number == len(group) else f"{number} of the {len(group)}"
