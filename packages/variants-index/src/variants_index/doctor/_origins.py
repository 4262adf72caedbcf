"""Settings in force and which option, variable or file each is from: of variants, uv and pip."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pep_variants import machines
from pep_variants import preferences as user_preferences
from pep_variants.errors import CatalogError, PreferenceError, VariantError, redacted
from pep_variants.preferences import Preferences, UserSettings
from variants_catalog import catalogs

from ..uv_files import is_on, settings_tables, table_of
from ._findings import Part, Problem
from ._machine import Drivers

if TYPE_CHECKING:
    from pep_variants.preferences import Place, Sources


_BACKEND = re.compile(r"/whl/(?:(?:nightly|test)/)?(cpu|cu[0-9]{2,4}|rocm[0-9.]+|xpu)(?:/|$)")
"""Paths of the indexes of PyTorch and of mirrors of it: one for each backend."""

TORCH_BACKEND = "UV_TORCH_BACKEND"
_URLS = ("index-url", "extra-index-url", "find-links")
_PIP_VARIABLES = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL")
_PIP_CATALOG = "PIP_VARIANT_CATALOG"
_UV_VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL")
_SHOWN = (*_PIP_VARIABLES, "PIP_FIND_LINKS", "PIP_NO_INDEX", "PIP_CONFIG_FILE", *_UV_VARIABLES,
          "UV_FIND_LINKS", "UV_CONFIG_FILE", TORCH_BACKEND)  # fmt: skip
"""Variables that decide where pip and uv find packages."""

_EDIT = "${EDITOR:-vi}"
_OF_GROUP = "index of a group"
"""What an index is that a machine uses only where a group or an extra is taken."""

MEANINGS = {
    "no-variants": "variants are switched off",
    "variant": "variants are named, whatever fits",
    "variant-exclude": "variants are excluded",
    "variant-platform": "detection is overridden by another machine",
}
"""What it means that an option is set, by its name."""

_ATTRIBUTES = {
    "use_variants": "no-variants",
    "forced": "variant",
    "exclude": "variant-exclude",
    "platform_file": "variant-platform",
}
"""Names of these options by the attributes of `Preferences` that they set."""


def index_pins(urls: Iterable[str], place: str, undo: str, drivers: Drivers) -> Iterator[Problem]:
    """Yield what is wrong with the indexes of one backend, and hints where they suit the machine.

    Args:
        urls: of indexes.
        place: variable or file that names them.
        undo: command that takes them back or opens an editor, empty for a line to remove.
        drivers: that detection found.
    """
    for url in urls:
        match = _BACKEND.search(url)
        if match is None:
            continue
        against = unsuitable(match[1], drivers)
        text = (
            f"{place} takes packages from {redacted(url)}, which has builds for one backend only"
            f"{f', while {against}' if against else ''}"
        )
        text += "" if undo and not undo.startswith(_EDIT) else ": remove that index there"
        yield Problem("index-pin", text, undo, fails=bool(against))


def catalog_problems(value: str, place: str, command: str) -> Iterator[Problem]:
    """Yield the problem of a catalogue that cannot be read; one at a URL is not looked at.

    Args:
        value: name or path of the catalogue.
        place: variable or file that names it.
        command: that names the default one there, empty for none.
    """
    if user_preferences.is_catalog_path(value):
        try:
            catalogs.preferred_catalog(
                Preferences(catalog=value, catalog_origin=place), lambda _: b""
            )
        except CatalogError as error:
            told = "" if place in error.source else f", from {place}"
            yield Problem("configuration", f"{error}{told}", command)


def _line(path: Path, *texts: str) -> tuple[str, str]:
    """Return where in a file one of *texts* is, and the command that opens an editor there."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    found = (number for number, line in enumerate(lines, 1) if any(text in line for text in texts))
    number = next(found, None)
    if number is None:
        return str(path), ""
    command = f"{_EDIT} +{number} {shlex.quote(str(path))}" if os.name != "nt" else ""
    return f"{path}, line {number}", command


def _quoted(value: str) -> tuple[str, str]:
    return f'"{value}"', f"'{value}'"


def unsuitable(backend: str, drivers: Drivers) -> str:
    """Return what speaks against builds of *backend*, as ``cu128``; empty for nothing."""
    found = f"this machine has the driver of {' and '.join(drivers.vendors)}"
    if backend == "cpu":
        return found if drivers.vendors else ""
    vendor = {"r": "AMD", "x": "Intel"}.get(backend[0], "NVIDIA")
    if vendor not in drivers.vendors:
        return found if drivers.vendors else f"detection finds no driver of {vendor} here"
    # Drivers for CUDA 12.0 run all builds for CUDA 12.
    if vendor == "NVIDIA" and drivers.cuda and int(backend[2:-1]) > drivers.cuda[0]:
        return f"the driver here supports CUDA {drivers.cuda[0]}.{drivers.cuda[1]} at most"
    return ""


def _uv_settings(environ: Mapping[str, str], start: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield key, value and file of what uv's files say of indexes and backends."""
    tables = settings_tables(
        start,
        environ,
        config_file=environ.get("UV_CONFIG_FILE") or None,
        no_config=is_on(environ.get("UV_NO_CONFIG", "")),
    )
    for table in tables:
        for settings in (table.settings, table_of(table.settings.get("pip"))):
            listed = settings.get("index")
            entries = list(map(table_of, listed)) if isinstance(listed, list) else []
            names = _grouped(table_of(settings.get("sources")))
            found = [(key, settings.get(key)) for key in _URLS]
            for entry in entries:
                of_group = entry.get("explicit") is True and entry.get("name") in names
                found.append((_OF_GROUP if of_group else "index", entry.get("url")))
            for key, value in (*found, ("torch-backend", settings.get("torch-backend"))):
                for each in value if isinstance(value, list) else [value]:
                    if isinstance(each, str):
                        yield key, each, table.path


def _grouped(sources: Mapping[str, Any]) -> set[str]:
    """Return the names of indexes that *sources* take with a group or an extra alone."""
    listed = [each if isinstance(each, list) else [each] for each in sources.values()]
    rows = [table_of(row) for each in listed for row in each]
    plain = {row.get("index") for row in rows if not {"group", "extra"} & row.keys()}
    return {str(row.get("index")) for row in rows} - plain


def uv_settings_part(
    environ: Mapping[str, str], start: Path, drivers: Drivers, *, pip: bool = True
) -> Part:
    """Return what uv's files and the variables about indexes say.

    Args:
        environ: environment variables.
        start: directory from which uv looks for the project.
        drivers: that detection found.
        pip: the variables of pip about indexes count as well.
    """
    rows: list[tuple[str, str]] = []
    problems: list[Problem] = []
    backends = []
    for name in (*(_PIP_VARIABLES if pip else ()), *_UV_VARIABLES):
        problems += index_pins(environ.get(name, "").split(), name, f"unset {name}", drivers)
    if backend := environ.get(TORCH_BACKEND):
        backends.append((backend, f"{TORCH_BACKEND}={backend}", f"unset {TORCH_BACKEND}"))
    for key, value, path in _uv_settings(environ, start):
        rows.append((f"uv's {key}", f"{redacted(value)}, from {path}"))
        place, edit = _line(path, *_quoted(value))
        if key == "torch-backend":
            backends.append((value, f'torch-backend = "{value}" in {place}', edit))
        elif key != _OF_GROUP:
            problems += index_pins([value], place, edit, drivers)
    for backend, setting, undo in backends:
        known = re.fullmatch(r"cpu|xpu|cu[0-9]{2,4}|rocm[0-9.]+", backend)
        against = unsuitable(backend, drivers) if known else ""
        text = (
            f"{setting} makes uv take PyTorch's packages from the index of that backend, builds "
            f"that are not variants{f', while {against}' if against else ''}"
        )
        text += "" if undo.startswith("unset") else ": remove that line"
        problems.append(Problem("torch-backend", text, undo, fails=bool(against)))
    return Part(tuple(rows), tuple(problems))


def settings_of(
    options: Mapping[str, Any],
    environ: Mapping[str, str],
    candidates: Sequence[Place] | None = None,
) -> tuple[UserSettings, list[Problem]]:
    """Return the settings, and problems of the files they are from.

    Settings that cannot be read count as none, and are a problem.

    Args:
        options: values of options by their names.
        environ: environment variables.
        candidates: where files are looked for; None for `places`.
    """
    ignored: list[tuple[str, str]] = []
    try:
        settings = user_preferences.load_settings(
            options,
            environ,
            warn=lambda text: ignored.append((text, "")),
            unapproved=lambda text, command: ignored.append((text, command)),
            candidates=candidates,
        )
    except PreferenceError as error:
        return UserSettings(Preferences(), {}), [Problem("configuration", str(error))]
    problems: list[Problem] = []
    catalog, origin = settings.preferences.catalog, settings.origins.get("catalog", "")
    if catalog is not None:
        command = (
            f"export {origin}={user_preferences.DEFAULT_CATALOG}"
            if origin.startswith("VARIANTS_")
            else ""
        )
        command = command or _line(Path(origin), "catalog =")[1]
        problems += catalog_problems(catalog, origin, command)
    problems += (Problem("configuration-ignored", text, command) for text, command in ignored)
    return settings, problems


def configuration_part(
    settings: UserSettings,
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
    uv = uv_settings_part(environ, start, drivers, pip=pip)
    problems = [*problems, *uv.problems]
    for name, origin in sorted(settings.origins.items()):
        chosen = getattr(settings.preferences, name)
        value = redacted(_shown(chosen))
        rows.append((name.replace("_", "-"), f"{value}, from {origin}"))
        if name in _ATTRIBUTES and chosen != getattr(Preferences(), name):
            problems.append(_explained(_ATTRIBUTES[name], value, origin, drivers))
    if pip and (catalog := environ.get(_PIP_CATALOG)):
        problems += catalog_problems(
            catalog, _PIP_CATALOG, f"export {_PIP_CATALOG}={user_preferences.DEFAULT_CATALOG}"
        )
    for option, means in MEANINGS.items() if pip else ():
        variable = f"PIP_{option.replace('-', '_').upper()}"
        if is_meant(option, environ.get(variable, "")):
            text = f"{means}, for pip: {variable}={environ[variable]}"
            problems.append(Problem("setting", text, f"unset {variable}", fails=False))
    for place in user_preferences.places() if candidates is None else candidates:
        there = "" if place.path.exists() else ", not there"
        rows.append(("file", f"{place.path.absolute()} ({place.role.value}){there}"))
    indexes = ", ".join(map(redacted, sources.indexes)) or "PyPI"
    rows.append(("indexes", "none" if sources.no_index else indexes))
    rows += ((name, redacted(environ[name])) for name in _SHOWN if environ.get(name))
    return Part((*rows, *uv.rows), tuple(problems))


def is_meant(option: str, value: str) -> bool:
    """Return whether *option* is one of `MEANINGS`, and *value* sets it."""
    return option in MEANINGS and bool(value.strip()) and (option != "no-variants" or is_on(value))


def _explained(option: str, value: str, origin: str, drivers: Drivers) -> Problem:
    """Return the hint at a setting that explains a choice."""
    undo = f"unset {origin}" if origin.startswith("VARIANTS_") else ""
    remove = "" if undo or origin.startswith("--") else ": remove it there"
    if remove:
        origin, undo = _line(Path(origin), f"{option.removeprefix('variant-')} =", f"{option} =")
    differing: list[str] = []
    if option == "variant-platform":
        try:
            platform = machines.load_machine(value)
        except VariantError as error:
            return Problem("configuration", f"{error}, from {origin}{remove}", undo)
        differing += (
            namespace
            for namespace, features in drivers.features.items()
            if platform.support(namespace).features != features
        )
    text = MEANINGS[option] + ("" if option == "no-variants" else f": {value}") + f", from {origin}"
    if differing:
        text += f", and differs from this machine in {', '.join(differing)}"
    return Problem("setting", text + remove, undo, fails=False)


def _shown(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, Mapping):
        return " ".join(f"{name}={text}" for name, text in value.items())
    if isinstance(value, (tuple, frozenset)):
        return " ".join(map(str, sorted(value) if isinstance(value, frozenset) else value))
    return str(value)
