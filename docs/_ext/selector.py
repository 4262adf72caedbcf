"""The directive `selector`: a form that finds a build, and the same answers as tables.

The answers are made elsewhere; see `Answers` for their shape. Here rows that say the same are put
together, for readers without JavaScript, and the data is written for `selector.js`.
"""

from __future__ import annotations

import json
import zlib
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from docutils import nodes
from jinja2 import Environment, FileSystemLoader
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sphinx.application import Sphinx

    Answers = Mapping[str, Any]

TEMPLATES = Path(__file__).parent.parent / "_templates"
DATA = "selector-answers.js"
INSTALLERS = {"pip": "pip", "uv": "uv", "poetry": "Poetry", "pixi": "pixi"}
PYTHON = "3.12"
"""The Python that is chosen at first: that of the most machines."""


class Row(NamedTuple):
    """A row of a table: for these GPUs, drivers and Pythons the answer is the same."""

    anchor: str
    gpus: str
    drivers: str
    pythons: str
    title: str
    line: str


@cache
def answers_of(path: str) -> Answers:
    """Read the answers from the file that the configuration names, or make them."""
    return json.loads(Path(path).read_text("utf-8"))


def script(data: Answers) -> str:
    """Write the answers as a script, which a page that was opened as a file may load as well."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return f"selectorAnswers = {text};\n"


def span(members: Iterable[str], order: Sequence[str]) -> str:
    """Join *members*, with those that follow one another in *order* as 'first to last'."""
    numbers = sorted(order.index(member) for member in members)
    found = []
    for _, each in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        run = [order[number] for _, number in each]
        found.append(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(run))
    return ", ".join(found)


def runs(row: Sequence[int | None], pythons: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield each answer of a *row* of choices with the Pythons that have it."""
    for answer in dict.fromkeys(each for each in row if each is not None):
        same = [python for python, each in zip(pythons, row, strict=True) if each == answer]
        yield answer, span(same, pythons)


def rows(data: Answers, project: str, system: str) -> list[Row]:
    """Return the rows of the table of a project on a system."""
    gpus = [gpu for gpu in data["gpus"] if system in gpu["systems"]]
    kinds = {gpu["class"]: gpu["drivers"] for gpu in gpus}
    drivers: dict[tuple[int, str, str], list[str]] = {}
    for key, row in data["choices"][project].get(system, {}).items():
        kind, _, driver = key.partition("/")
        if kind in kinds and (driver or not data["drivers"].get(kinds[kind])):
            for answer, pythons in runs(row, data["pythons"]):
                drivers.setdefault((answer, pythons, kind), []).append(driver)
    together: dict[tuple[int, str, str], list[str]] = {}
    for (answer, pythons, kind), members in drivers.items():
        order = [each["id"] for each in data["drivers"].get(kinds[kind], [])]
        text = span(members, order) if order else "–"
        together.setdefault((answer, text, pythons), []).append(kind)
    found: list[Row] = []
    for (answer, text, pythons), members in together.items():
        told = data["answers"][answer]
        builds = "-".join(f"{each['release']}-{each['build']}" for each in told["chosen"])
        anchor = nodes.make_id(f"{project}-{system}-{builds}")
        number = sum(row.anchor.startswith(anchor) for row in found)
        found.append(
            Row(
                f"{anchor}-{number + 1}" if number else anchor,
                ", ".join(gpu["title"] for gpu in gpus if gpu["class"] in members),
                text,
                pythons,
                told["title"],
                told["without"].get("pip") or told["with"].get("pip") or "",
            )
        )
    return found


def html(data: Answers, static: str) -> str:
    """Render the form, and the tables of all projects; *static* is the path to the scripts."""
    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True)
    return environment.get_template("selector.html").render(
        static=static,
        data=DATA,
        version=f"{zlib.crc32(script(data).encode()):08x}",
        projects=[
            (group, [*members])
            for group, members in groupby(data["projects"], lambda each: each["group"])
        ],
        systems=[(each["id"], each["title"]) for each in data["systems"]],
        pythons=[(each, each) for each in data["pythons"]],
        python=PYTHON if PYTHON in data["pythons"] else data["pythons"][-1],
        installers=[(each, INSTALLERS[each]) for each in data["installers"]],
        tables=[
            {
                "id": nodes.make_id(project["id"]),
                "title": project["title"],
                "systems": [
                    (system["title"], found)
                    for system in data["systems"]
                    if (found := rows(data, project["id"], system["id"]))
                ],
            }
            for project in data["projects"]
        ],
    )


class Selector(SphinxDirective):
    """The form and the tables."""

    def run(self) -> list[nodes.Node]:
        """Return them as HTML."""
        static = "../" * self.env.docname.count("/") + "_static/"
        return [
            nodes.raw("", html(answers_of(self.config.selector_answers), static), format="html")
        ]


def write_script(app: Sphinx, error: Exception | None) -> None:
    """Write the answers beside the other files of the site."""
    if error is None and app.builder.format == "html" and app.config.selector_answers:
        text = script(answers_of(app.config.selector_answers))
        (Path(app.outdir) / "_static" / DATA).write_text(text, "utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.add_config_value("selector_answers", "", "env", types=frozenset({str}))
    app.add_directive("selector", Selector)
    app.connect("build-finished", write_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
