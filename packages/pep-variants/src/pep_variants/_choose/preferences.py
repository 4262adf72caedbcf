"""Preferences of the user: options, ``VARIANTS_…`` variables and entries of ``variants.toml``.

Every client has the same options (see `options`). `settings.loader` finds and merges them; this
module defines what each entry means, and which names in options match nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from .._formats.tree import PropertyTree
from .._model.property import NAME, Features, Selector
from ..errors import InvalidLabel, InvalidProperty, PreferenceError, printable, redacted, shortened
from ..labels import check_label
from ..limits import SETTINGS_VALUES
from ..options import OPTIONS

if TYPE_CHECKING:
    from .._model.metadata import Metadata


PRIORITIES = ("namespace_priorities", "feature_priorities", "property_priorities")
"""Keys of ``variants.toml`` that variantlib's configuration has, too; they only reorder."""

NON_VARIANT_LABEL = ""
"""Forced label that stands for the non-variant wheel (``--variant NAME=``)."""

ABORT = "abort"
SKIP = "skip"
"""Values of ``--variant-on-plugin-error``."""

SANDBOX_AUTO = "auto"
SANDBOX_OFF = "off"
"""Values of ``--variant-plugin-sandbox``."""

DEFAULT_CATALOG = "default"
"""Value of ``--variant-catalog`` for the catalogue of the distribution ``variants-catalog``."""

ALL_PROJECTS = ":all:"
NO_PROJECTS = ":none:"
"""Values of ``--variant-before-version`` besides names of projects, as of pip's ``--no-binary``."""

_NO_CATALOG = "none"
NATIVE = "native"
"""The machine at hand, in place of what less important settings name."""

_CHOICES = {
    "on-plugin-error": ("on_plugin_error", (ABORT, SKIP)),
    "plugin-sandbox": ("plugin_sandbox", (SANDBOX_AUTO, SANDBOX_OFF)),
}
_FLAGS = {
    **dict.fromkeys(("1", "true", "t", "yes", "y", "on"), True),
    **dict.fromkeys(("0", "false", "f", "no", "n", "off"), False),
}
"""The words that pip knows."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_URL = re.compile(r"https?://[^\s/?#]+(/[^\s?#]*)?")
_HASH = re.compile(r"--hash=[a-z0-9_]+:[0-9a-f]+")


@dataclass(frozen=True)
class Preferences:
    """The preferences of the user.

    Attributes:
        use_variants: False ignores variant wheels altogether.
        forced: label by normalized project name, `NON_VARIANT_LABEL` for the non-variant wheel.
        prefer: what to put first, most wanted first.
        exclude: what must not be in a chosen variant.
        before_version: normalized names of the projects of which the newest version with a build
            for the accelerator goes first, `ALL_PROJECTS` or `NO_PROJECTS`; see `puts_first`.
        platform_file: machine in place of detection: path of a platform file, name or facts, see
            `detect.machines`.
        enable: namespaces of optional providers to consult.
        allow_providers: requirements of the plugin packages that may run, with hashes as in
            ``name==1.0 --hash=sha256:…`` where they were given.
        on_plugin_error: what the failure of an allowed plugin does: `ABORT` ends the command,
            `SKIP` leaves the namespace unsupported with a warning.
        plugin_variables: names of environment variables that plugins see besides the usual ones.
        plugin_sandbox: `SANDBOX_AUTO` or `SANDBOX_OFF`.
        coherent: namespaces in which packages should agree with what is already chosen.
        catalog: catalogue of existing builds: `DEFAULT_CATALOG`, a path or a URL; None for none.
        catalog_origin: the option, variable or file that names the catalogue.
        catalog_mirrors: beginnings of the catalogue's URLs, and what replaces them.
        allow_missing_sources: go on without what cannot be had for now.
        switch: reinstall, with its dependencies, what another variant now fits better.
        namespace_priorities, feature_priorities, property_priorities: orders that go before those
            of the metadata, with the names and shapes that variantlib's configuration has.
    """

    use_variants: bool = True
    forced: Mapping[str, str] = field(default_factory=dict)
    prefer: tuple[Selector, ...] = ()
    exclude: tuple[Selector, ...] = ()
    before_version: frozenset[str] = frozenset()
    platform_file: str | None = None
    enable: frozenset[str] = frozenset()
    allow_providers: tuple[str, ...] = ()
    on_plugin_error: str = ABORT
    plugin_variables: tuple[str, ...] = ()
    plugin_sandbox: str = SANDBOX_AUTO
    coherent: tuple[str, ...] = ()
    catalog: str | None = None
    catalog_origin: str = field(default="--variant-catalog", compare=False)
    catalog_mirrors: Mapping[str, str] = field(default_factory=dict)
    allow_missing_sources: bool = False
    switch: bool = False
    namespace_priorities: tuple[str, ...] = ()
    feature_priorities: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    property_priorities: Mapping[str, Features] = field(default_factory=dict)

    def puts_first(self, project: str, *, by_default: bool = False) -> bool:
        """Return whether the newest version with a build for the accelerator goes first.

        Args:
            project: normalized name.
            by_default: whether it does where the user says nothing of the project.
        """
        named = not self.before_version.isdisjoint((project, ALL_PROJECTS))
        wanted = named or (by_default and NO_PROJECTS not in self.before_version)
        return wanted and self.use_variants and project not in self.forced

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


class Given(NamedTuple):
    """One attribute of `Preferences` that something sets.

    Attributes:
        attribute: its name.
        value: what it is set to.
        origin: the option, variable or file that sets it.
    """

    attribute: str
    value: Any
    origin: str


def preferences_from_options(
    values: Mapping[str, Any], base: Preferences | None = None
) -> Preferences:
    """Return *base* with every option in *values* replaced, see `given_options`.

    >>> from pep_variants.preferences import preferences_from_options
    >>> preferences = preferences_from_options({"variant": ["torch=cu128"], "no-variants": False})
    >>> dict(preferences.forced)
    {'torch': 'cu128'}
    """
    return _replaced(base, given_options(values))


def given_options(values: Mapping[str, Any]) -> Iterator[Given]:
    """Yield the settings of options.

    Args:
        values: option name (as in `OPTIONS`) to what was given: a bool for the flag (or 1 or 0,
            which pip makes of variables and settings), a string, or a list or tuple of strings
            for repeatable ones. None, False and empty lists count as not given.

    Raises:
        PreferenceError: a value is malformed; the message names the option and the value.
    """
    for option in OPTIONS:
        value = values.get(option.name)
        if isinstance(value, tuple):
            value = list(value)
        if not option.metavar and value in (0, 1):
            value = bool(value)
        if value is None or value is False or value == []:
            continue
        yield _parse(_Reader(), option.key, value, f"--{option.name}", f"--{option.name}")


def given_variables(environ: Mapping[str, str]) -> Iterator[Given]:
    """Yield the settings of ``VARIANTS_…`` variables.

    Repeatable options are separated by white space or, but for requirements, commas.

    Raises:
        PreferenceError: a value is malformed; the message names the variable and the value.
    """
    for option in OPTIONS:
        variable = "VARIANTS_" + option.key.upper().replace("-", "_")
        text = environ.get(variable, "").strip()
        if not text:
            continue
        value: str | bool = text
        if not option.metavar:
            if text.lower() not in _FLAGS:
                raise PreferenceError(f"{variable}: expected 1 or 0, found {shortened(text)}")
            value = _FLAGS[text.lower()]
        yield _parse(_Reader(), option.key, value, variable, variable)


def _replaced(base: Preferences | None, given: Iterable[Given]) -> Preferences:
    settings = list(given)
    origin = next((item.origin for item in settings if item.attribute == "catalog"), None)
    changed = replace(base or Preferences(), **{item.attribute: item.value for item in settings})
    return changed if origin is None else replace(changed, catalog_origin=origin)


class _Reader(PropertyTree):
    """Reads settings and options; errors name the file, and the key, option or variable."""

    most = SETTINGS_VALUES

    def __init__(self, source: str = "") -> None:
        def fail(path: str, problem: str) -> PreferenceError:
            return PreferenceError(printable(": ".join(filter(None, (source, path, problem)))))

        super().__init__(fail, "table")


def read_configuration(data: bytes | str, source: str) -> Preferences:
    r"""Read a ``variants.toml`` that counts as a whole.

    Raises:
        PreferenceError: as `configuration_tree` and `given_settings`.

    >>> from pep_variants.preferences import read_configuration
    >>> read_configuration('enable = ["intel"]\nbefore-version = ["torch"]', "variants.toml").enable
    frozenset({'intel'})
    """
    return _replaced(None, given_settings(configuration_tree(data, source), source))


def configuration_tree(data: bytes | str, source: str) -> dict[str, Any]:
    """Return the top level of a ``variants.toml``, the values as they are.

    It has the keys of `OPTIONS` and `PRIORITIES`; unknown keys are errors, they are misspelled
    ones.

    Raises:
        PreferenceError: not TOML, or unknown keys; the message names the file.
    """
    reader = _Reader(source)
    tree = reader.load_toml(data)
    reader.check_keys(tree, "", sorted((*(option.key for option in OPTIONS), *PRIORITIES)))
    return tree


def given_settings(tree: Mapping[str, Any], source: str) -> Iterator[Given]:
    """Yield the settings of the entries of a ``variants.toml``.

    Args:
        tree: of `configuration_tree`, or a part of it.
        source: the file.

    Raises:
        PreferenceError: malformed values; the message names the file, the key and the value.
    """
    reader, origin = _Reader(source), printable(source)
    for key, value in tree.items():
        if key == "namespace_priorities":
            yield Given(key, reader.names(value, key, NAME), origin)
        elif key == "feature_priorities":
            yield Given(key, reader.features(value, key, NAME), origin)
        elif key == "property_priorities":
            yield Given(key, reader.properties(value, key), origin)
        else:
            yield _parse(reader, key, value, key, origin)


def _parse(  # noqa: C901
    reader: _Reader,
    key: str,
    value: Any,  # noqa: ANN401
    path: str,
    origin: str,
) -> Given:
    """Return the setting of *value* of the option or entry *key*; *path* is for messages."""
    if key in ("no-variants", "switch", "allow-missing-sources"):
        given = reader.boolean({path: value}, path, "", False)
        if key == "no-variants":
            return Given("use_variants", not given, origin)
        return Given(key.replace("-", "_"), given, origin)
    if key == "platform":
        if not isinstance(value, str) or not value:
            raise reader.expected("a platform file or a machine", value, path)
        return Given("platform_file", None if value == NATIVE else value, origin)
    if key == "catalog":
        if not isinstance(value, str) or not value or not value.isprintable():
            expected = f"{DEFAULT_CATALOG!r}, {_NO_CATALOG!r}, a path or a URL"
            raise reader.expected(expected, value, path)
        return Given("catalog", None if value == _NO_CATALOG else value, origin)
    if key in _CHOICES:
        name, choices = _CHOICES[key]
        if value not in choices:
            raise reader.expected(" or ".join(map(repr, choices)), value, path)
        return Given(name, value, origin)
    items = reader.string_list([value] if isinstance(value, str) else value, path)
    words = _split(items)
    reader.check_count(words, path, SETTINGS_VALUES, "entries")
    try:
        if key == "variant":
            return Given("forced", _forced(words), origin)
        if key == "before-version":
            return Given("before_version", _projects(words), origin)
        if key == "catalog-mirror":
            return Given("catalog_mirrors", _mirrors(words), origin)
        if key == "allow-provider":
            return Given("allow_providers", _requirements(items), origin)
        if key == "plugin-variable":
            return Given("plugin_variables", _variables(words), origin)
        selectors = tuple(map(Selector.parse, words))
    except (InvalidProperty, InvalidLabel, ValueError) as error:
        raise reader.error(path, str(error)) from None
    if key in ("prefer", "exclude"):
        return Given(key, selectors, origin)
    for selector in selectors:
        if selector.feature is not None:
            raise reader.error(path, f"{shortened(str(selector))} is not a namespace")
    namespaces = tuple(selector.namespace for selector in selectors)
    return Given(key, frozenset(namespaces) if key == "enable" else namespaces, origin)


def is_catalog_path(text: str) -> bool:
    """Return whether *text*, a value of ``--variant-catalog``, is a path.

    >>> from pep_variants.preferences import is_catalog_path
    >>> is_catalog_path("default"), is_catalog_path("builds/catalog.toml")
    (False, True)
    """
    return text != DEFAULT_CATALOG and "://" not in text


def _mirrors(items: Iterable[str]) -> dict[str, str]:
    mirrors = {}
    for item in items:
        start, equals, end = item.partition("=")
        if not equals or not _URL.fullmatch(start) or not _URL.fullmatch(end):
            raise ValueError(f"{shortened(redacted(item))}: write FROM=TO, two URLs of http")
        mirrors[start] = end
    return mirrors


def _split(items: Iterable[str]) -> list[str]:
    # pip splits variables and configuration values of repeatable options at white space, also
    # the one around '::', which means nothing: glue it first, then split what is left.
    return re.sub(" ?:: ?", "::", _single_spaced(items)).replace(",", " ").split()


def _single_spaced(items: Iterable[str]) -> str:
    # Patterns that begin with any white space take quadratic time for long runs of it.
    return " ".join(" ".join(items).split())


def _requirements(items: Iterable[str]) -> tuple[str, ...]:
    from packaging.requirements import InvalidRequirement, Requirement

    # Split at white space by pip, like everything repeatable, or not split at all: glue what
    # belongs together, then split what is left. Markers would not survive, and have no use here.
    glued = re.sub(r" ?([<>=!~]=?=?|[,@\[]) ?| (?=\])", r"\1", _single_spaced(items))
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
            raise ValueError(
                f"{shortened(item)} is not a requirement such as 'name' or 'name>=1.0'"
            )
        entries.append(item)
    return tuple(entries)


def _variables(items: Iterable[str]) -> tuple[str, ...]:
    names = unique(items)
    for name in names:
        if not _VARIABLE.fullmatch(name):
            raise ValueError(f"{shortened(name)} is not the name of an environment variable")
    return names


def _forced(items: Iterable[str]) -> dict[str, str]:
    from packaging.utils import canonicalize_name

    forced: dict[str, str] = {}
    for item in items:
        name, equals, label = item.partition("=")
        if not equals or not name or label.startswith("="):
            raise ValueError(f"{shortened(item)}: write NAME=LABEL or NAME=")
        project = canonicalize_name(name, validate=True)
        forced[project] = check_label(label) if label else NON_VARIANT_LABEL
    return forced


def _projects(items: Iterable[str]) -> frozenset[str]:
    """Return the names in *items*: each of the two words resets those before it."""
    from packaging.utils import InvalidName, canonicalize_name

    names: set[str] = set()
    for item in items:
        if item in (ALL_PROJECTS, NO_PROJECTS):
            names = {item}
            continue
        try:
            names.add(canonicalize_name(item, validate=True))
        except InvalidName:
            raise ValueError(
                f"{shortened(item)} is not the name of a project, "
                f"{ALL_PROJECTS!r} or {NO_PROJECTS!r}"
            ) from None
    return frozenset(names)


def unmatched(
    preferences: Preferences,
    arguments: Sequence[str],
    projects: Collection[str],
    seen: Iterable[Metadata],
) -> tuple[str, ...]:
    """Return a sentence for each name in an option that matches nothing: it is likely misspelled.

    Settings and variables apply to all commands, so they need not match anything in one of them.

    Args:
        preferences: merged from all settings.
        arguments: the command line; options that are not on it are left out.
        projects: normalized names of the projects of the command.
        seen: metadata that was looked at. Without any, nothing can be said of properties.
    """

    def given(option: str) -> bool:
        return any(text == option or text.startswith(f"{option}=") for text in arguments)

    sentences: list[str] = []
    if given("--variant"):
        sentences += (
            f"--variant {project}={label}: this command has no project {project}"
            for project, label in preferences.forced.items()
            if project not in projects
        )
    options = {
        "--variant-prefer": preferences.prefer,
        "--variant-exclude": preferences.exclude,
        "--variant-enable": tuple(map(Selector, sorted(preferences.enable))),
    }
    wanted = {option: names for option, names in options.items() if names and given(option)}
    metadata = list(seen) if wanted else []
    if not metadata:
        return tuple(sentences)
    namespaces = sorted({namespace for item in metadata for namespace in item.namespaces})
    for option, names in wanted.items():
        for name in names:
            matches = (name.feature is None and name.namespace in namespaces) or any(
                name.matches(properties)
                for item in metadata
                for properties in item.variants.values()
            )
            if not matches:
                sentences.append(
                    f"{option} '{name}' matches no variant of this command; its variants have the "
                    f"namespaces {', '.join(namespaces)}"
                )
    return tuple(sentences)
