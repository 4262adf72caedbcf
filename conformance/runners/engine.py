"""The engine, as a library: filenames and documents."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from packaging.utils import InvalidWheelFilename

from pep_variants.errors import (
    InconsistentMetadata,
    MetadataError,
    PlatformFileError,
    PreferenceError,
    ProviderError,
    VariantError,
)
from pep_variants.errors import (
    InvalidWheelFilename as InvalidVariantFilename,
)
from pep_variants.machines import (
    BUILTIN_NAMESPACES,
    Detector,
    DriverProvider,
    Platform,
    Support,
    load_platform,
)
from pep_variants.markers import reduce_requirements
from pep_variants.metadata import merge_all, read_metadata
from pep_variants.preferences import Place as SettingsPlace
from pep_variants.preferences import Role, load_preferences
from pep_variants.selection import File, missing_variant, rank, select
from pep_variants.wheel_files import parse_filename
from support.environments import Environments

from ..case import Case
from ..indexes import files_of
from ..outcome import Outcome
from ..place import Place
from .base import Runner


class Engine(Runner):
    """``pep_variants`` in this process."""

    name = "engine"
    title = "pep-variants, the library"

    def __init__(self, environments: Environments) -> None:
        """Need nothing."""

    def refuses(self, case: Case) -> str:
        """Refuse what takes an index."""
        if case.form in ("index", "lock", "steps"):
            return "needs an index"
        return "needs a target" if "target" in case.tree else ""

    def play(self, case: Case, place: Place) -> Outcome:
        """Parse, or rank and choose."""
        if case.form == "filename":
            return _parsed(case.tree["filename"])
        try:
            return _ranked(case, place)
        except InconsistentMetadata:
            return Outcome(True, "merge")
        except MetadataError:
            return Outcome(True, "document")
        except (PreferenceError, PlatformFileError):
            return Outcome(True, "option")


def _parsed(filename: str) -> Outcome:
    try:
        parsed = parse_filename(filename)
    except (InvalidVariantFilename, InvalidWheelFilename):
        return Outcome(True, "filename")
    parts = {
        "name": str(parsed.name),
        "version": str(parsed.version),
        "build": "".join(map(str, parsed.build)),
        "tags": sorted(map(str, parsed.tags)),
        "label": parsed.label,
    }
    return Outcome(False, filename=parts)


def _ranked(case: Case, place: Place) -> Outcome:
    user = Path(place.variables["XDG_CONFIG_HOME"], "variants", "variants.toml")
    preferences = load_preferences(
        case.tree.get("options", {}),
        {name: value for name, value in place.variables.items() if name.startswith("VARIANTS_")},
        warn=lambda _: None,
        candidates=[SettingsPlace(user, Role.USER)],
    )
    metadata = merge_all(
        [read_metadata(data, f"document {number}") for number, data in enumerate(case.documents, 1)]
    )
    detector = Detector(
        enabled=preferences.enable,
        platform=load_platform(place.platform) if place.platform is not None else None,
        detected=_detected(place) if place.platform is None else None,
    )
    ranking = rank(metadata, detector.platform(metadata), preferences)
    names = [file["wheel"] for file in files_of(case) if "wheel" in file]
    files = [File(name, "index", name) for name in names if name.startswith(f"{case.stem}-")]
    selection = select(
        files,
        metadata=lambda _: metadata,
        platform=detector.platform,
        preferences=preferences,
        project=case.project,
    )
    chosen = selection.chosen
    error = None
    if chosen is None:
        forced = missing_variant(case.project, [(case.version, selection, files)])
        error = "no-such-variant" if forced is not None else "unfit"
    requires = None
    if chosen is not None and chosen.filename.endswith(".whl"):
        try:
            context = selection.context(chosen)
            requires = reduce_requirements(case.tree.get("requires", ()), context)
        except VariantError:
            return Outcome(True, "dependency")
    return Outcome(
        error is not None,
        error,
        order=ranking.labels if preferences.use_variants else None,
        rejected={
            item.label: sorted(
                {f"{reason.namespace} :: {reason.feature}" for reason in item.reasons}
            )
            for item in ranking.rejected
        },
        chosen=None if chosen is None else chosen.label or "",
        has_choice=True,
        requires=requires,
    )


def _detected(place: Place) -> Platform:
    """Return what the drivers of devices say, with the variables of *place*.

    Setting them in this process would reach the other runners.
    """
    found = {}
    for namespace, known in BUILTIN_NAMESPACES.items():
        if issubclass(known.factory, DriverProvider):  # type: ignore[arg-type]
            with suppress(ProviderError):
                found[namespace] = Support(known.factory(place.variables).supported())
    return Platform(found)
