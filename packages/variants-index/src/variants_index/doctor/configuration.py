"""The settings in force, and which option, variable or file each is from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pep_variants.choose.preferences import Preferences
from pep_variants.errors import PreferenceError, redacted
from pep_variants.settings.loader import Settings, load_settings
from pep_variants.settings.places import places

from .findings import Part, Problem

if TYPE_CHECKING:
    from pep_variants.sources import Sources

_EXPLAINED = {
    "use_variants": "variants are switched off",
    "forced": "variants are named, whatever fits",
    "exclude": "variants are excluded",
    "platform_file": "a platform file replaces detection of this machine",
}
_TORCH = "UV_TORCH_BACKEND"
_REPLACED = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX",
             "PIP_CONFIG_FILE", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX",
             "UV_EXTRA_INDEX_URL", _TORCH)  # fmt: skip
"""Variables that decide where pip and uv find packages."""


def settings_of(
    options: Mapping[str, Any], environ: Mapping[str, str]
) -> tuple[Settings, list[Problem]]:
    """Return the settings, and problems of the files they are from.

    Settings that cannot be read count as none, and are a problem.
    """
    ignored: list[str] = []
    try:
        settings = load_settings(options, environ, warn=ignored.append)
    except PreferenceError as error:
        return Settings(Preferences(), {}), [Problem("configuration", str(error))]
    problems = []
    for text in ignored:
        _, found, command = text.partition("look at it and run ")
        command = command.partition(", or use ")[0] if found else ""
        problems.append(Problem("configuration-ignored", text, command))
    return settings, problems


def configuration_part(
    settings: Settings, problems: list[Problem], environ: Mapping[str, str], sources: Sources
) -> Part:
    """Return the settings by attribute, the files looked for, and the indexes in use."""
    rows: list[tuple[str, str]] = []
    tree: dict[str, Any] = {"settings": {}, "files": [], "indexes": [], "variables": {}}
    problems = list(problems)
    for name, origin in sorted(settings.origins.items()):
        value = redacted(_shown(getattr(settings.preferences, name)))
        rows.append((name.replace("_", "-"), f"{value}, from {origin}"))
        tree["settings"][name] = {"value": value, "from": origin}
        default = getattr(Preferences(), name)
        if name in _EXPLAINED and getattr(settings.preferences, name) != default:
            text = f"{_EXPLAINED[name]}: {value}, from {origin}"
            problems.append(Problem("setting", text, _undo(origin), fails=False))
    for place in places():
        exists = place.path.exists()
        where = str(place.path.absolute())
        rows.append(("file", f"{where} ({place.role.value}){'' if exists else ', not there'}"))
        tree["files"].append({"path": where, "role": place.role.value, "exists": exists})
    indexes = [redacted(url) for url in sources.indexes]
    rows.append(("indexes", ", ".join(indexes) or "PyPI" if not sources.no_index else "none"))
    tree["indexes"] = indexes
    for name in _REPLACED:
        if environ.get(name):
            tree["variables"][name] = redacted(environ[name])
            rows.append((name, redacted(environ[name])))
    if environ.get(_TORCH):
        text = (
            f"{_TORCH}={environ[_TORCH]} makes uv take PyTorch's packages from the index of that "
            "backend, where builds are not variants"
        )
        problems.append(Problem("torch-backend", text, f"unset {_TORCH}", fails=False))
    return Part(tuple(rows), tuple(problems), tree)


def _undo(origin: str) -> str:
    variable = origin.rpartition(" ")[2]
    return f"unset {variable}" if variable.startswith("VARIANTS_") else ""


def _shown(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, Mapping):
        return " ".join(f"{name}={text}" for name, text in value.items())
    if isinstance(value, (tuple, frozenset)):
        return " ".join(map(str, sorted(value) if isinstance(value, frozenset) else value))
    return str(value)
