"""What the user wants: options, ``VARIANTS_…`` variables and ``variants.toml``, in this order.

Every client has the same options (see `options`); an option that is given replaces the same one
of the environment, which replaces the one of the file. Of the files the first found counts:
working directory, virtual environment, user, system.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from . import toml
from .errors import InvalidLabel, InvalidProperty, PreferenceError, shortened
from .label import check_label
from .options import OPTIONS
from .property import NAME, VALUE, Features, Selector

FILENAME = "variants.toml"
NON_VARIANT_LABEL = ""
"""Forced label that stands for the non-variant wheel (``--variant NAME=``)."""

_HASH = re.compile(r"--hash=[a-z0-9_]+:[0-9a-f]+")


@dataclass(frozen=True)
class Preferences:
    """What the user asked for.

    Attributes:
        use_variants: False ignores variant wheels altogether.
        forced: label by normalized project name, `NON_VARIANT_LABEL` for the non-variant wheel.
        prefer: what to put first, most wanted first.
        exclude: what must not be in a chosen variant.
        platform_file: path of the platform file in place of detection.
        enable: namespaces of optional providers to consult.
        allow_providers: requirements of the plugin packages that may run, with hashes as in
            ``name==1.0 --hash=sha256:…`` where they were given.
        coherent: namespaces in which packages should agree with what is already chosen.
        namespace_priorities, feature_priorities, property_priorities: orders that go before those
            of the metadata, with the names and shapes that variantlib's configuration has.
    """

    use_variants: bool = True
    forced: Mapping[str, str] = field(default_factory=dict)
    prefer: tuple[Selector, ...] = ()
    exclude: tuple[Selector, ...] = ()
    platform_file: str | None = None
    enable: frozenset[str] = frozenset()
    allow_providers: tuple[str, ...] = ()
    coherent: tuple[str, ...] = ()
    namespace_priorities: tuple[str, ...] = ()
    feature_priorities: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    property_priorities: Mapping[str, Features] = field(default_factory=dict)

    def namespace_order(self) -> tuple[str, ...]:
        """Return the namespaces to put first: preferred ones, then the configured priorities."""
        return unique((*(item.namespace for item in self.prefer), *self.namespace_priorities))

    def feature_order(self, namespace: str) -> tuple[str, ...]:
        """Return the features of *namespace* to put first."""
        preferred = (item.feature for item in self.prefer if item.namespace == namespace)
        return unique(
            (*filter(None, preferred), *self.feature_priorities.get(namespace, ())),
        )

    def value_order(self, namespace: str, feature: str) -> tuple[str, ...]:
        """Return the values of *feature* to put first."""
        preferred = (
            item.value
            for item in self.prefer
            if item.namespace == namespace and item.feature == feature
        )
        configured = self.property_priorities.get(namespace, {}).get(feature, ())
        return unique((*filter(None, preferred), *configured))


def unique(items: Iterable[str]) -> tuple[str, ...]:
    """Return *items* in order without repetitions."""
    return tuple(dict.fromkeys(items))


def from_options(values: Mapping[str, Any], base: Preferences | None = None) -> Preferences:
    """Return *base* with every option in *values* replaced.

    Args:
        values: option name (as in `OPTIONS`) to what was given: a bool for the flag, a string,
            or a list or tuple of strings for repeatable ones. None, False and empty lists
            count as not given.

    Raises:
        PreferenceError: a value is malformed; the message names the option and the value.
    """
    base = base or Preferences()
    changes: dict[str, Any] = {}
    for option in OPTIONS:
        value = values.get(option.name)
        if isinstance(value, tuple):
            value = list(value)
        if value is None or value is False or value == []:
            continue
        name, parsed = _parse(option.key, value, f"--{option.name}")
        changes[name] = parsed
    return replace(base, **changes)


def from_environment(environ: Mapping[str, str], base: Preferences | None = None) -> Preferences:
    """Return *base* with what ``VARIANTS_…`` variables say replaced.

    Repeatable options are separated by white space or, but for requirements, commas.

    Raises:
        PreferenceError: a value is malformed; the message names the variable and the value.
    """
    changes: dict[str, Any] = {}
    for option in OPTIONS:
        variable = "VARIANTS_" + option.key.upper().replace("-", "_")
        text = environ.get(variable, "").strip()
        if not text:
            continue
        value: Any = text
        if not option.metavar:
            value = _flag(text, variable)
        name, parsed = _parse(option.key, value, variable)
        changes[name] = parsed
    return replace(base or Preferences(), **changes)


def configuration_paths(
    cwd: Path | None = None, prefix: str | None = None, appname: str = "variants"
) -> tuple[Path, ...]:
    """Return where ``variants.toml`` is looked for, the first one that exists counts."""
    import platformdirs

    return (
        # Relative, because a working directory may have been removed.
        (cwd or Path()) / FILENAME,
        Path(prefix or sys.prefix) / FILENAME,
        platformdirs.user_config_path(appname, appauthor=False, roaming=True) / FILENAME,
        platformdirs.site_config_path(appname, appauthor=False) / FILENAME,
    )


def read_configuration(data: bytes | str, source: str) -> Preferences:
    """Read a ``variants.toml``.

    It has the keys of `OPTIONS` and ``namespace_priorities``, ``feature_priorities`` and
    ``property_priorities``; unknown keys are errors, they are misspelled ones.

    Raises:
        PreferenceError: not TOML, unknown keys or malformed values; the message names the file.
    """
    try:
        tree = toml.loads(data if isinstance(data, str) else data.decode())
    except (ValueError, RecursionError) as error:
        raise PreferenceError(f"{source}: not valid TOML: {error}") from None
    changes: dict[str, Any] = {}
    options = {option.key for option in OPTIONS}
    for key, value in tree.items():
        where = f"{source}: {key}"
        if key == "namespace_priorities":
            changes[key] = _names(value, where, NAME)
        elif key == "feature_priorities":
            changes[key] = _by_name(value, where, lambda v, w: _names(v, w, NAME))
        elif key == "property_priorities":
            changes[key] = _by_name(
                value,
                where,
                lambda v, w: _by_name(v, w, lambda v2, w2: _names(v2, w2, VALUE)),
            )
        elif key in options:
            name, parsed = _parse(key, value, where)
            changes[name] = parsed
        else:
            known = ", ".join(
                sorted(options | {f.name for f in fields(Preferences) if "priorit" in f.name})
            )
            raise PreferenceError(f"{where}: unknown key; there are {known}")
    return replace(Preferences(), **changes)


def load_preferences(
    options: Mapping[str, Any],
    environ: Mapping[str, str],
    paths: Sequence[Path] | None = None,
) -> Preferences:
    """Return the preferences of *options* over those of *environ* over those of a file.

    The file is the first of *paths* that exists. A platform file that it names is relative to it.

    Raises:
        PreferenceError: as the functions for each of them; or the file cannot be read.
    """
    base = Preferences()
    for path in configuration_paths() if paths is None else paths:
        try:
            data = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise PreferenceError(f"{path}: cannot be read: {error.strerror}") from None
        base = read_configuration(data, str(path))
        if base.platform_file is not None:
            base = replace(base, platform_file=str(path.parent / base.platform_file))
        break
    return from_options(options, from_environment(environ, base))


def _parse(key: str, value: Any, where: str) -> tuple[str, Any]:  # noqa: ANN401
    """Return the attribute of `Preferences` that *key* sets, and its value."""
    if key == "no-variants":
        if not isinstance(value, bool):
            raise PreferenceError(f"{where}: expected true or false, found {shortened(value)}")
        return "use_variants", not value
    if key == "platform":
        if not isinstance(value, str) or not value:
            raise PreferenceError(f"{where}: expected a path, found {shortened(value)}")
        return "platform_file", value
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise PreferenceError(f"{where}: expected a list of strings, found {shortened(value)}")
    if key == "variant":
        return "forced", _forced(_split(items), where)
    if key == "allow-provider":
        return "allow_providers", _requirements(items, where)
    selectors = _selectors(items, where)
    if key == "prefer":
        return "prefer", selectors
    if key == "exclude":
        return "exclude", selectors
    for selector in selectors:
        if selector.feature is not None:
            raise PreferenceError(f"{where}: {str(selector)!r} is not a namespace")
    namespaces = tuple(selector.namespace for selector in selectors)
    return ("enable", frozenset(namespaces)) if key == "enable" else ("coherent", namespaces)


def _split(items: Iterable[str]) -> list[str]:
    # pip splits variables and configuration values of repeatable options at white space, also
    # the one around '::', which means nothing: glue it first, then split what is left.
    return re.sub(r"\s*::\s*", "::", " ".join(items)).replace(",", " ").split()


def _selectors(items: Iterable[str], where: str) -> tuple[Selector, ...]:
    try:
        return tuple(map(Selector.parse, _split(items)))
    except InvalidProperty as error:
        raise PreferenceError(f"{where}: {error}") from None


def _requirements(items: Iterable[str], where: str) -> tuple[str, ...]:
    from packaging.requirements import InvalidRequirement, Requirement

    # Split at white space by pip, like everything repeatable, or not split at all: glue what
    # belongs together, then split what is left. Markers would not survive, and make no sense here.
    glued = re.sub(r"\s*([<>=!~]=?=?|[,@\[])\s*|\s+(?=\])", r"\1", " ".join(items))
    entries: list[str] = []
    for item in glued.split():
        if entries and _HASH.fullmatch(item):  # of the one before
            entries[-1] += f" {item}"
            continue
        try:
            requirement = Requirement(item)
        except InvalidRequirement:
            requirement = None
        if requirement is None or requirement.marker is not None:
            raise PreferenceError(
                f"{where}: {shortened(item)} is no requirement such as 'name' or 'name>=1.0'"
            )
        entries.append(item)
    return tuple(entries)


def _forced(items: Iterable[str], where: str) -> dict[str, str]:
    from packaging.utils import InvalidName, canonicalize_name

    forced: dict[str, str] = {}
    for item in items:
        name, equals, label = item.partition("=")
        if not equals or not name or label.startswith("="):
            raise PreferenceError(f"{where}: {shortened(item)}: write NAME=LABEL or NAME=")
        try:
            project = canonicalize_name(name, validate=True)
            forced[project] = check_label(label) if label else NON_VARIANT_LABEL
        except (InvalidName, InvalidLabel) as error:
            raise PreferenceError(f"{where}: {error}") from None
    return forced


def _flag(text: str, where: str) -> bool:
    if text.lower() in ("1", "true", "yes", "on"):
        return True
    if text.lower() in ("0", "false", "no", "off"):
        return False
    raise PreferenceError(f"{where}: expected 1 or 0, found {shortened(text)}")


def _names(value: object, where: str, pattern: re.Pattern[str]) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(
        isinstance(item, str) and pattern.fullmatch(item) for item in value
    ):
        raise PreferenceError(
            f"{where}: expected a list of names matching {pattern.pattern}, "
            f"found {shortened(value)}"
        )
    return tuple(value)


def _by_name(value: object, where: str, parse: Any) -> dict[str, Any]:  # noqa: ANN401
    if not isinstance(value, dict):
        raise PreferenceError(f"{where}: expected a table, found {shortened(value)}")
    for name in value:
        if not NAME.fullmatch(name):
            raise PreferenceError(f"{where}: {shortened(name)} must match {NAME.pattern}")
    return {name: parse(item, f"{where}.{name}") for name, item in value.items()}
