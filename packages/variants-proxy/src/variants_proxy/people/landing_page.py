"""The page for people at the root of a proxy, as HTML: a form, and what it found.

It works without JavaScript. Everything on it that comes from a request or an index is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from variants_catalog.places import Unavailable

from .installer_lines import INSTALLERS, TOKEN, Address
from .landing_style import STYLE

SYSTEMS = {"": "any", "linux": "Linux", "win": "Windows", "macosx": "macOS"}
"""Operating systems of the form, by the first part of `Machine.target`."""

_MOST_ROWS = 100
_MOST_FILES = 30
_MOST_VERSIONS = 12
_LENGTH = 600

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{style}</style></head>
<body>
<h1>Index proxy for wheel variants</h1>
<p>A package index for every installer: of each version it serves the wheel variant (PEP 817,
PEP 825) that fits the machine that asks, as a plain wheel. Choose an installer and a machine to see
the lines to paste, and which variant the machine gets, and why.</p>
{form}
{result}
<h2>The machine in front of you</h2>
<p>This command prints the URL for the machine it runs on; the form accepts it in place of a named
platform:</p>
<pre>{command}</pre>
<h2>Indexes</h2>
<ul>
{indexes}
</ul>
</body>
</html>
"""


@dataclass(frozen=True)
class Asked:
    """What a person filled in.

    Attributes:
        installer: one of `INSTALLERS`.
        project: as typed.
        platform: name of a platform of the proxy, empty for none.
        key: platform key or URL as pasted, in place of *platform*.
        system: one of `SYSTEMS`.
        in_path: the key goes into the path of the index's URL, not its user name.
    """

    installer: str = "pip"
    project: str = ""
    platform: str = ""
    key: str = ""
    system: str = ""
    in_path: bool = False


@dataclass(frozen=True)
class Found:
    """What the machine gets of the project.

    Attributes:
        address: of the index for the machine.
        version: newest version that an installer takes, empty if there is none.
        decision: about this version, as `DecisionReport` has it; None if it has no variants.
        files: plain filename, and label or None, of this version for the machine's system.
        others: version and chosen label of other versions with variants, newest first.
        catalog: what the catalogue says of the project, see `DecisionReport`; empty without.
    """

    address: Address
    version: str
    decision: Mapping[str, Any] | None
    files: Sequence[tuple[str, str | None]] = ()
    others: Sequence[tuple[str, str]] = ()
    catalog: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class View:
    """What the page shows.

    Attributes:
        base: URL of the proxy without path.
        token: whether the proxy wants a token.
        platforms: title by name, in the order of the form.
        indexes: name and URL without credentials.
        asked: what was filled in.
        found: the result, None without a question or for an error.
        problem: why there is no result, empty for none.
    """

    base: str
    token: bool
    platforms: Mapping[str, str]
    indexes: Iterable[tuple[str, str]]
    asked: Asked = field(default_factory=Asked)
    found: Found | None = None
    problem: str = ""


def landing_page(view: View) -> bytes:
    """Return the page."""
    result, title = "", "Index proxy for wheel variants"
    if view.problem:
        result = f'<p role="alert">{_text(view.problem)}</p>'
    elif view.found is not None:
        result = _result(view.asked, view.found)
        title = f"{view.found.address.project}: {title}"
    token = f"VARIANTS_PROXY_TOKEN={TOKEN} " if view.token else ""
    return _PAGE.format(
        title=_text(title),
        style=STYLE,
        form=_form(view),
        result=result,
        command=_text(f"{token}variants-proxy url --keyed --proxy {view.base}"),
        indexes="\n".join(
            f"<li>{_text(name)}: <code>{_text(url)}</code></li>" for name, url in view.indexes
        ),
    ).encode("utf-8", "replace")


def _text(text: str) -> str:
    short = text if len(text) <= _LENGTH else f"{text[: _LENGTH - 1]}…"
    return escape(short)


def _form(view: View) -> str:
    asked = view.asked
    installers = {name: title for name, (title, _) in INSTALLERS.items()}
    platforms = {"": "— choose —"} | {
        name: f"{name} — {title}" if title else name for name, title in view.platforms.items()
    }
    places = (("user", "user name"), ("path", "path"))
    radios = "".join(
        f'<label><input type="radio" name="where" value="{value}"'
        f"{' checked' if asked.in_path == (value == 'path') else ''}>{title}</label>"
        for value, title in places
    )
    return f"""<form action="/" method="get">
<label>Installer{_select("installer", installers, asked.installer)}</label>
<label>Project<input name="project" required maxlength="200" autocapitalize="none"
 spellcheck="false" placeholder="torch" value="{escape(asked.project)}"></label>
<label class="long">Platform{_select("platform", platforms, asked.platform)}</label>
<label>Operating system{_select("system", SYSTEMS, asked.system)}</label>
<label>Key or URL of a machine<input name="key" maxlength="8192" spellcheck="false"
 placeholder="2~…" value="{escape(asked.key)}"><small>in place of a platform</small></label>
<fieldset><legend>Key in the URL as</legend>{radios}</fieldset>
<button>Show</button>
</form>"""


def _select(name: str, options: Mapping[str, str], chosen: str) -> str:
    items = "".join(
        f'<option value="{escape(value)}"{" selected" if value == chosen else ""}>'
        f"{_text(title)}</option>"
        for value, title in options.items()
    )
    return f'<select name="{name}">{items}</select>'


def _result(asked: Asked, found: Found) -> str:
    title, lines_of = INSTALLERS[asked.installer]
    parts = [f'<section id="lines"><h2>Lines for {title}</h2>']
    for lines in lines_of(found.address):
        parts.append(f'<p class="place">{_text(lines.place)}</p>')
        parts.append(f"<pre>{escape(lines.text)}</pre>")  # a key may be longer than other texts
    if found.address.token:
        parts.append(f"<p>Put the token of this proxy in place of {TOKEN}.</p>")
    parts += ["</section>", _choice(found)]
    return "\n".join(parts)


def _choice(found: Found) -> str:
    project, decision = found.address.project, found.decision
    name = f"{project} {found.version}".strip()
    parts = [f'<section id="choice"><h2>What this machine gets: {_text(name)}</h2>']
    if not found.version:
        parts.append("<p>The index has no file of it.</p>")
    elif decision is None:
        parts.append(
            "<p>This version has no variants: every machine gets the files of the index.</p>"
        )
    else:
        parts += _reasons(decision)
        parts += _files(found.files)
    parts += _catalog(found.catalog)
    if found.others:
        parts.append("<h3>Other versions with variants</h3><ul>")
        parts += [
            f"<li>{_text(version)}: {_text(label)}</li>"
            for version, label in found.others[:_MOST_VERSIONS]
        ]
        parts += [*_more(len(found.others) - _MOST_VERSIONS), "</ul>"]
    return "\n".join([*parts, "</section>"])


def _reasons(decision: Mapping[str, Any]) -> list[str]:
    rows = decision["variants"]
    why = f": {_text(decision['why'])}" if decision["why"] else ""
    parts = [f"<p><strong>{_text(chosen_name(decision))}</strong>{why}</p>"]
    for text in (decision["unfit"], *decision["problems"], *decision["notices"]):
        parts += [f"<p>{_text(text)}</p>"] if text else []
    parts.append('<div class="wide"><table><tr><th>Variant<th>Verdict<th>Why</tr>')
    parts += [
        f'<tr class="{_text(row["verdict"])}"><td>{_text(row["label"])}<td>'
        f"{_text(row['verdict'])}<td>{_text(row['why'])}</tr>"
        for row in rows[:_MOST_ROWS]
    ]
    parts.append("</table></div>")
    if len(rows) > _MOST_ROWS:
        parts.append(f"<p>and {len(rows) - _MOST_ROWS} more</p>")
    return parts


def chosen_name(decision: Mapping[str, Any]) -> str:
    """Return what was chosen of a version, in a few words."""
    chosen = [row["label"] for row in decision["variants"] if row["verdict"] == "chosen"]
    if chosen:
        return f"Variant {chosen[0]}"
    return "The wheel without a variant" if decision["files"] else "Nothing fits"


def _catalog(catalog: Mapping[str, Any]) -> list[str]:
    if not catalog:
        return []
    place = catalog["documentation"]
    source = f", as <code>{_text(place)}</code> describes them" if place else ""
    parts = [
        f"<p>The variants are existing builds of the catalogue{source}. A build that its publisher "
        "has under another name is served under the project's: do not require both.</p>"
    ]
    problems = [catalog["problem"], *(str(Unavailable(**item)) for item in catalog["unavailable"])]
    parts += [f"<p>{_text(problem)}</p>" for problem in filter(None, problems)]
    return parts


def _files(files: Sequence[tuple[str, str | None]]) -> list[str]:
    if not files:
        return ["<p>It has no wheel for this operating system.</p>"]
    one = len(files) == 1
    says = "The wheel" if one else "The wheels, of which the installer takes that for its Python"
    items = [
        f"<li><code>{_text(name)}</code>: {_text(label) if label else 'without a variant'}</li>"
        for name, label in files[:_MOST_FILES]
    ]
    return [f"<p>{says}:</p><ul>", *items, *_more(len(files) - _MOST_FILES), "</ul>"]


def _more(number: int) -> list[str]:
    return [f"<li>and {number} more</li>"] if number > 0 else []
