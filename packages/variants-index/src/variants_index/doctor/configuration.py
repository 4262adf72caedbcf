"""The settings in force, and which option, variable or file each is from."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pep_variants import Preferences, VariantError, load_machine
from pep_variants.internal import (
    PreferenceError,
    Settings,
    load_settings,
    names_file,
    places,
    redacted,
)

from ..uv_files import is_on
from .findings import Part, Problem
from .uv_settings import TORCH_BACKEND, uv_part

if TYPE_CHECKING:
    from pep_variants.internal import Place, Sources

    from .drivers import Drivers

_REPLACED = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX",
             "PIP_CONFIG_FILE", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX",
             "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_CONFIG_FILE", TORCH_BACKEND)  # fmt: skip
"""Variables that decide where pip and uv find packages."""
_CONSTRAINTS = {"PIP_CONSTRAINT": "pip", "UV_CONSTRAINT": "uv"}
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "SSL_CLIENT_CERT")

MEANINGS = {
    "no-variants": "variants are switched off",
    "variant": "variants are named, whatever fits",
    "variant-exclude": "variants are excluded",
    "variant-platform": "a platform file replaces detection of this machine",
}
"""What it means that an option is set, by its name."""

_ATTRIBUTES = {
    "use_variants": "no-variants",
    "forced": "variant",
    "exclude": "variant-exclude",
    "platform_file": "variant-platform",
}
"""Names of these options by the attributes of `Preferences` that they set."""


def settings_of(
    options: Mapping[str, Any],
    environ: Mapping[str, str],
    candidates: Sequence[Place] | None = None,
) -> tuple[Settings, list[Problem]]:
    """Return the settings, and problems of the files they are from.

    Settings that cannot be read count as none, and are a problem.

    Args:
        options: values of options by their names.
        environ: environment variables.
        candidates: where files are looked for; None for `places`.
    """
    ignored: list[str] = []
    try:
        settings = load_settings(options, environ, warn=ignored.append, candidates=candidates)
    except PreferenceError as error:
        return Settings(Preferences(), {}), [Problem("configuration", str(error))]
    problems = []
    for text in ignored:
        _, found, command = text.partition("look at it and run ")
        command = command.partition(", or use ")[0] if found else ""
        problems.append(Problem("configuration-ignored", text, command))
    return settings, problems


def configuration_part(
    settings: Settings,
    problems: Iterable[Problem],
    environ: Mapping[str, str],
    sources: Sources,
    *,
    start: Path,
    drivers: Drivers,
    candidates: Sequence[Place] | None = None,
    pip: bool = True,
) -> Part:
    """Return the settings by attribute, the files looked for, and the indexes in use.

    Args:
        settings, problems: as `settings_of` returns them.
        environ: environment variables.
        sources: the indexes.
        start: directory from which uv looks for the project.
        drivers: that detection found.
        candidates: where files of settings are looked for; None for `places`.
        pip: the variables of pip count as well.
    """
    rows: list[tuple[str, str]] = []
    tree: dict[str, Any] = {"settings": {}, "files": [], "indexes": [], "variables": {}}
    uv = uv_part(environ, start, drivers, pip=pip)
    problems = [*problems, *uv.problems]
    for name, origin in sorted(settings.origins.items()):
        value = redacted(_shown(getattr(settings.preferences, name)))
        rows.append((name.replace("_", "-"), f"{value}, from {origin}"))
        tree["settings"][name] = {"value": value, "from": origin}
        if getattr(settings.preferences, name) != getattr(Preferences(), name):
            problems += _explained(_ATTRIBUTES.get(name, ""), value, origin, drivers)
    for option in MEANINGS:
        variable = f"PIP_{option.replace('-', '_').upper()}"
        if means := meaning(option, environ.get(variable, "") if pip else ""):
            text = f"{means}, for pip: {variable}={environ[variable]}"
            problems.append(Problem("setting", text, f"unset {variable}", fails=False))
    for place in places() if candidates is None else candidates:
        exists = place.path.exists()
        where = str(place.path.absolute())
        rows.append(("file", f"{where} ({place.role.value}){'' if exists else ', not there'}"))
        tree["files"].append({"path": where, "role": place.role.value, "exists": exists})
    indexes = [redacted(url) for url in sources.indexes]
    rows.append(("indexes", ", ".join(indexes) or "PyPI" if not sources.no_index else "none"))
    tree["indexes"] = indexes
    for name in (*_REPLACED, *_CONSTRAINTS, *_CERTIFICATES):
        if environ.get(name):
            tree["variables"][name] = redacted(environ[name])
            rows.append((name, redacted(environ[name])))
    problems += _certificates(environ)
    for name, program in _CONSTRAINTS.items():
        problems += constraints(environ.get(name, ""), name, f"unset {name}", program)
    if sources.no_index:
        problems.append(_no_index(sources, "PIP_NO_INDEX" if pip else "--no-index"))
    tree["uv"] = uv.tree
    return Part((*rows, *uv.rows), tuple(problems), tree)


def meaning(option: str, value: str) -> str:
    """Return what *value* of *option* means, empty where it explains nothing."""
    if not value.strip() or (option == "no-variants" and not is_on(value)):
        return ""
    return MEANINGS.get(option, "")


def constraints(value: str, place: str, undo: str, program: str) -> Iterator[Problem]:
    """Yield what files of constraints explain.

    Args:
        value: paths and URLs, with spaces between them.
        place: variable, or key and file, that names them.
        undo: command that takes them away, empty without one.
        program: that reads them.
    """
    for each in value.split():
        if "://" not in each and not Path(each).exists():
            text = f"{each}, which {place} names, does not exist: {program} installs nothing"
            yield Problem("constraint", text, undo)
        else:
            text = f"{place} names {redacted(each)}: {program} takes only versions that it allows"
            yield Problem("constraint", text, undo, fails=False)


def _no_index(sources: Sources, place: str) -> Problem:
    """Return that no index is asked, which is not that a project is on none."""
    links = ", ".join(map(redacted, sources.links))
    what = f"only files on {links} are known" if links else "nothing is known of any project"
    text = f"{place} switches all indexes off: {what}"
    return Problem("no-index", text, f"unset {place}" if place.isupper() else "", fails=False)


def _explained(option: str, value: str, origin: str, drivers: Drivers) -> Iterator[Problem]:
    if option not in MEANINGS:
        return
    undo = f"unset {origin}" if origin.startswith("VARIANTS_") else ""
    remove = "" if undo or origin.startswith("--") else ": remove it there"
    if option == "variant-platform":
        yield _described_machine(value, origin, undo, remove, drivers)
        return
    shown = "" if option == "no-variants" else f": {value}"
    text = f"{MEANINGS[option]}{shown}, from {origin}{remove}"
    yield Problem("setting", text, undo, fails=False)


def _described_machine(
    value: str, origin: str, undo: str, remove: str, drivers: Drivers
) -> Problem:
    """Return what the machine that is described in place of this one explains."""
    try:
        platform = load_machine(value)
    except VariantError as error:
        return Problem("configuration", f"{error}, from {origin}{remove}", undo)
    is_file = names_file(value)
    what = MEANINGS["variant-platform"] if is_file else "a named machine replaces this one"
    text = f"{what}: {value}, from {origin}"
    differing = [
        namespace
        for namespace, features in drivers.features.items()
        if platform.support(namespace).features != features
    ]
    if differing:
        text += f", and differs from this machine in {', '.join(differing)}"
    command = undo
    text += remove
    if is_file and differing and not undo and not origin.startswith("--"):
        text += ", or write the file anew on the machine that it is about"
        command = f"variants detect -o {shlex.quote(value)}"
    return Problem("setting", text, command, fails=False)


def _certificates(environ: Mapping[str, str]) -> Iterator[Problem]:
    for name in _CERTIFICATES:
        value = environ.get(name)
        if value and not Path(value).exists():
            text = f"{name}={value}: no such file: HTTPS fails"
            yield Problem("certificate", text, f"unset {name}")


def _shown(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, Mapping):
        return " ".join(f"{name}={text}" for name, text in value.items())
    if isinstance(value, (tuple, frozenset)):
        return " ".join(map(str, sorted(value) if isinstance(value, frozenset) else value))
    return str(value)
