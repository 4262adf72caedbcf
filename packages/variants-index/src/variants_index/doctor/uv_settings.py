"""What uv's configuration files say of where packages come from, each with file and line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pep_variants.internal import PYPROJECT_BYTES, read_text, redacted, toml

from ..uv_files import UvTable, configuration_files, is_on, settings_tables, table_of
from .drivers import Drivers
from .findings import Part, Problem
from .index_pins import IndexSetting, backend_title, index_pins, unsuitable

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


def uv_part(environ: Mapping[str, str], start: Path, drivers: Drivers, *, pip: bool = True) -> Part:
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
