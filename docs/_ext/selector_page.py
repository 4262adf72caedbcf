"""The directive `selector`: a form that finds a build, and the same answers as tables.

The answers are made elsewhere; see `Answers` for their shape. Here rows that say the same are put
together, for readers without JavaScript, and the data is written for `selector.js`.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from docutils import nodes
from jinja2 import Environment, FileSystemLoader
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sphinx.application import Sphinx

    Answers = Mapping[str, Any]

TEMPLATES = Path(__file__).parent.parent / "_templates"
DATA = "selector-answers.js"
INSTALLERS = {"pip": "pip", "uv": "uv", "poetry": "Poetry", "pixi": "pixi"}
PYTHON = "3.12"
"""The Python that is chosen at first: that of the most machines."""


class Told(NamedTuple):
    """What a table says of an answer."""

    builds: str
    title: str
    line: str

    @classmethod
    def of(cls, answer: Mapping[str, Any], ours: Mapping[str, str]) -> Told:
        """Take from *answer*, and *ours*, the lines of the project with us, what a table says."""
        builds = (f"{each['release']}-{each['build']}" for each in answer.get("chosen", ()))
        lines = {**(ours if "ask" in answer else {}), **answer.get("without", {})}
        return cls("-".join(builds) or "none", answer["title"], lines.get("pip", ""))


class Row(NamedTuple):
    """A row of a table: for these GPUs, drivers and Pythons the answer is the same."""

    anchor: str
    gpus: str
    drivers: str
    pythons: str
    told: Told


@cache
def answers_of(path: str) -> Answers:
    """Read the answers from the file that the configuration names, or make them."""
    if path:
        return json.loads(Path(path).read_text("utf-8"))
    from selector import all_answers

    return all_answers()


def script(data: Answers) -> str:
    """Write the answers as a script, which a page that was opened as a file may load as well."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return f"selectorAnswers = {text};\n"


def span(members: Iterable[str], order: Sequence[str], *, newest: bool = False) -> str:
    """Join *members*, with those that follow one another in *order* as 'first to last'.

    With *newest* the last of *order* stands for all that come after it.
    """
    numbers = sorted(map(order.index, members))
    found = []
    for _, each in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        run = [order[number] for _, number in each]
        if newest and len(run) > 1 and run[-1] == order[-1]:
            found.append(f"{run[0]} or newer")
        else:
            found.append(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(run))
    return ", ".join(found)


def names(gpus: Iterable[str]) -> str:
    """Join the names of GPUs, each maker's once."""
    makers = groupby(dict.fromkeys(gpus), lambda name: name.partition(" ")[0])
    return "; ".join(", ".join(members).replace(f", {maker} ", ", ") for maker, members in makers)


def rows(data: Answers, project: Mapping[str, Any], system: str) -> list[Row]:
    """Return the rows of the table of a project on a system; what reads the same is one."""
    told = [Told.of(answer, project["with"]) for answer in data["answers"]]
    gpus = [gpu for gpu in data["gpus"] if system in gpu["systems"]]
    known = {gpu["systems"][system]: gpu["drivers"].get(system) for gpu in gpus}
    drivers: dict[tuple[Told, str, str], list[str]] = {}
    for key, number in zip(
        data["machines"][system], data["choices"][project["id"]][system], strict=True
    ):
        facts, _, driver = key.partition("/")
        if not driver and known[facts]:
            continue  # the driver is not known
        here = [told[answer] for answer in data["rows"][number]]
        for each in dict.fromkeys(here):
            same = [
                python for python, other in zip(data["pythons"], here, strict=True) if other == each
            ]
            drivers.setdefault((each, span(same, data["pythons"]), facts), []).append(driver)
    together: dict[tuple[Told, str, str], list[str]] = {}
    for (each, pythons, facts), members in drivers.items():
        text = "–"
        if kind := known[facts]:
            order = [driver for driver in data["drivers"][kind["kind"]]["titles"] if driver]
            text = (
                "any" if len(members) == len(kind["ids"]) - 1 else span(members, order, newest=True)
            )
        together.setdefault((each, text, pythons), []).append(facts)
    anchors = Counter[str]()
    found: list[Row] = []
    for (each, text, pythons), members in together.items():
        anchor = nodes.make_id(f"{project['id']}-{system}-{each.builds}")
        anchors[anchor] += 1
        number = f"-{anchors[anchor]}" if anchors[anchor] > 1 else ""
        titles = names(gpu["title"] for gpu in gpus if gpu["systems"][system] in members)
        found.append(Row(anchor + number, titles, text, pythons, each))
    return found


def html(data: Answers, static: str) -> str:
    """Render the form, and the tables of all projects; *static* is the path to the scripts."""
    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True)
    return environment.get_template("selector.html").render(
        static=static,
        data=DATA,
        date=data["record"]["date"],
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
                "group": project["group"],
                "systems": [
                    (system["title"], found)
                    for system in data["systems"]
                    if (found := rows(data, project, system["id"]))
                ],
            }
            for project in data["projects"]
        ],
    )


class Selector(SphinxDirective):
    """The form and the tables."""

    def run(self) -> list[nodes.Node]:
        """Return them as HTML."""
        self.env.metadata[self.env.docname][DATA] = "used"
        static = "../" * self.env.docname.count("/") + "_static/"
        return [
            nodes.raw("", html(answers_of(self.config.selector_answers), static), format="html")
        ]


def write_script(app: Sphinx, error: Exception | None) -> None:
    """Write the answers beside the other files of the site."""
    is_used = any(DATA in each for each in app.env.metadata.values())
    if error is None and is_used and app.builder.format == "html":
        text = script(answers_of(app.config.selector_answers))
        (Path(app.outdir) / "_static" / DATA).write_text(text, "utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.add_config_value("selector_answers", "", "env", types=frozenset({str}))
    app.add_directive("selector", Selector)
    app.connect("build-finished", write_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
