"""Settings in force and which option, variable or file each is from: of variants, uv and pip."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pep_variants import Preferences, VariantError, load_machine
from pep_variants.internal import (
    PYPROJECT_BYTES,
    PreferenceError,
    Settings,
    load_settings,
    names_file,
    places,
    read_text,
    redacted,
    toml,
)

from ..uv_files import UvTable, configuration_files, is_on, settings_tables, table_of
from .findings import Part, Problem
from .machine import Drivers

if TYPE_CHECKING:
    from pep_variants.internal import Place, Sources

    from .machine import Drivers


_BACKEND = re.compile(r"/whl/(?:(?:nightly|test)/)?(cpu|cu[0-9]{2,4}|rocm[0-9.]+|xpu)(?:/|$)")
"""Paths of the indexes of PyTorch and of mirrors of it: one for each backend."""


class IndexSetting(NamedTuple):
    """A place that names an index.

    Attributes:
        url: of the index.
        place: variable, or file and line.
        undo: command that takes it back, empty for a line to remove.
    """

    url: str
    place: str
    undo: str = ""


def index_pins(settings: Iterable[IndexSetting], drivers: Drivers) -> Iterator[Problem]:
    """Yield what is wrong with the indexes of one backend, and hints where they suit the machine.

    Args:
        settings: every place that names an index.
        drivers: that detection found.
    """
    for setting in settings:
        match = _BACKEND.search(setting.url)
        if match is None:
            continue
        against = unsuitable(match[1], drivers)
        text = (
            f"{setting.place} takes packages from {redacted(setting.url)}, which has builds "
            f"{backend_title(match[1])} only"
        )
        text += f", while {against}" if against else ", whatever the machine supports"
        if not setting.undo:
            text += ": remove that index there"
        yield Problem("index-pin", text, setting.undo, fails=bool(against))


def backend_title(backend: str) -> str:
    """Return *backend*, as ``cu128``, as in ``for CUDA 12.8``."""
    if backend == "cpu":
        return "for CPUs"
    if backend == "xpu":
        return "for Intel GPUs"
    if backend.startswith("rocm"):
        return f"for ROCm {backend[4:]}"
    return f"for CUDA {_cuda(backend)[0]}.{_cuda(backend)[1]}"


def unsuitable(backend: str, drivers: Drivers) -> str:
    """Return what speaks against builds of *backend* on this machine, empty for nothing."""
    found = f"this machine has the driver of {' and '.join(drivers.vendors)}"
    if backend == "cpu":
        return found if drivers.vendors else ""
    vendor = {"r": "AMD", "x": "Intel"}.get(backend[0], "NVIDIA")
    if vendor not in drivers.vendors:
        return found if drivers.vendors else f"detection finds no driver of {vendor} here"
    # Drivers for CUDA 12.0 run all builds for CUDA 12.
    if vendor == "NVIDIA" and drivers.cuda and _cuda(backend)[0] > drivers.cuda[0]:
        return f"the driver here supports CUDA {drivers.cuda[0]}.{drivers.cuda[1]} at most"
    return ""


def _cuda(backend: str) -> tuple[int, int]:
    """Return the version in ``cu128``, ``cu92``."""
    digits = backend[2:]
    return int(digits[:-1]), int(digits[-1])


TORCH_BACKEND = "UV_TORCH_BACKEND"
_URLS = ("index-url", "extra-index-url", "find-links")
_OTHERS = ("no-index", "index-strategy", "torch-backend")
_INDEX_VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL")
_PIP_VARIABLES = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL")


class UvSetting(NamedTuple):
    """One setting of a file.

    Attributes:
        key: as in the file, ``pip.torch-backend`` of the table ``pip``.
        value: in words.
        url: of an index, empty for other settings.
        path: of the file.
        line: its line there, None where it is not found.
    """

    key: str
    value: str
    url: str
    path: Path
    line: int | None

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.path}, line {self.line}," if self.line else str(self.path)


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
    files = configuration_files(start, environ)
    settings = list(_settings(environ, start))
    rows = [("uv's file", f"{each.path} ({each.role})") for each in files if each.path.exists()]
    rows += (
        (f"uv's {each.key}", f"{redacted(each.value)}, from {each.place.rstrip(',')}")
        for each in settings
    )
    problems = [
        *(problem for each in files for problem in _unreadable(each.path)),
        *index_pins(_index_settings(settings, environ, pip=pip), drivers),
        *_torch_backends(settings, environ, drivers),
    ]
    tree = {
        "files": [
            {"path": str(each.path), "role": each.role, "exists": each.path.exists()}
            for each in files
        ],
        "settings": [
            {
                "key": each.key,
                "value": redacted(each.value),
                "file": str(each.path),
                "line": each.line,
            }
            for each in settings
        ],
    }
    return Part(tuple(rows), tuple(problems), tree)


def _settings(environ: Mapping[str, str], start: Path) -> Iterator[UvSetting]:
    tables = settings_tables(
        start,
        environ,
        config_file=environ.get("UV_CONFIG_FILE") or None,
        no_config=is_on(environ.get("UV_NO_CONFIG", "")),
    )
    for table in tables:
        for prefix, settings in (
            ("", table.settings),
            ("pip.", table_of(table.settings.get("pip"))),
        ):
            yield from _of_level(table, prefix, settings)


def _of_level(table: UvTable, prefix: str, settings: Mapping[str, Any]) -> Iterator[UvSetting]:
    def found(key: str, value: str, url: str = "") -> UvSetting:
        line = _line(table.path, url) if url else _line(table.path, rf"{key}\s*=", pattern=True)
        return UvSetting(prefix + key, value, url, table.path, line)

    listed = settings.get("index")
    for entry in listed if isinstance(listed, list) else []:
        url = table_of(entry).get("url")
        if isinstance(url, str):
            name = f"{entry['name']}: " if isinstance(entry.get("name"), str) else ""
            kind = " (explicit)" if entry.get("explicit") is True else ""
            yield found("index", f"{name}{url}{kind}", url)
    for key in _URLS:
        value = settings.get(key)
        for url in value if isinstance(value, list) else [value]:
            if isinstance(url, str):
                yield found(key, url, url)
    for key in _OTHERS:
        if key in settings:
            yield found(key, str(settings[key]).lower())


def _line(path: Path, text: str, *, pattern: bool = False) -> int | None:
    """Return the number of the first line with *text*, None without one."""
    wanted = re.compile(rf"\s*[\"']?{text}" if pattern else re.escape(text))
    match = wanted.match if pattern else wanted.search
    try:
        lines = read_text(path, PYPROJECT_BYTES).splitlines()
    except (OSError, ValueError):
        return None
    return next((number for number, line in enumerate(lines, 1) if match(line)), None)


def _unreadable(path: Path) -> Iterator[Problem]:
    try:
        toml.loads(read_text(path, PYPROJECT_BYTES))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        yield Problem("configuration", f"{path}: {error.strerror or error}")
    except (ValueError, RecursionError) as error:
        text = " ".join(str(error).split())
        yield Problem("configuration", f"{path}: is not valid TOML: {text}")


def _index_settings(
    settings: list[UvSetting], environ: Mapping[str, str], *, pip: bool
) -> Iterator[IndexSetting]:
    for name in (*(_PIP_VARIABLES if pip else ()), *_INDEX_VARIABLES):
        for url in environ.get(name, "").split():
            yield IndexSetting(url, name, f"unset {name}")
    for each in settings:
        if each.url:
            yield IndexSetting(each.url, each.place)


def _torch_backends(
    settings: list[UvSetting], environ: Mapping[str, str], drivers: Drivers
) -> Iterator[Problem]:
    """Yield hints and problems of the backend that uv takes PyTorch's packages for."""
    found = [
        (each.value, f'torch-backend = "{each.value}" ({each.place.rstrip(",")})', "")
        for each in settings
        if each.key.endswith("torch-backend")
    ]
    if backend := environ.get(TORCH_BACKEND):
        found.insert(0, (backend, f"{TORCH_BACKEND}={backend}", f"unset {TORCH_BACKEND}"))
    for backend, setting, command in found:
        known = re.fullmatch(r"cpu|xpu|cu[0-9]{2,4}|rocm[0-9.]+", backend)
        against = unsuitable(backend, drivers) if known else ""
        text = (
            f"{setting} makes uv take PyTorch's packages from the index of that backend, "
            + (f"builds {backend_title(backend)}" if known else "builds")
            + " that are not variants"
        )
        text += f", while {against}" if against else ""
        if not command:
            text += ": remove that line"
        yield Problem("torch-backend", text, command, fails=bool(against))


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
    uv = uv_settings_part(environ, start, drivers, pip=pip)
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
