"""Which machine gets which variant of a release, in tables of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path

from pep_variants import VariantError
from pep_variants.internal import shortened

from ..console import one_line
from .combination import distinct, metadata_of
from .coverage import NO_VARIANT, OUTCOMES, Choice, Machine, read_machines, why_unchosen
from .model import Matrix, Value, Variant
from .output import needs

_MOST_NAMES = 4

SCOPE = (
    "What each machine gets, as installers choose, without settings of users. Only variants are "
    "compared: wheel tags, such as those for Python and the operating system, are not."
)


@dataclass(frozen=True)
class Release:
    """A matrix, or a part of one, before the eyes of people.

    Attributes:
        matrix: the file.
        variants: those that are shown, one for each label.
        choices: what each machine gets.
        unchosen: the variants that no machine gets, and why.
        optional: the namespaces that users have to enable.
    """

    matrix: Matrix
    variants: tuple[Variant, ...]
    choices: tuple[Choice, ...]
    unchosen: Mapping[str, str]
    optional: tuple[str, ...]

    @property
    def title(self) -> str:
        """What is released; the name of the file if that does not say."""
        return self.matrix.title or Path(self.matrix.source).stem

    @cached_property
    def axes(self) -> list[str]:
        """The axes that tell the variants apart: with several values, and no Pythons."""
        return [
            axis
            for axis in self.matrix.label
            if not any(value.is_target for value in self.matrix.axes[axis])
            and len({variant.values[axis].name for variant in self.variants}) > 1
        ]

    @cached_property
    def by_outcome(self) -> Mapping[str, Sequence[Choice]]:
        """What machines get by default: by `OUTCOMES`, in the order of the variants."""
        places = {variant.label: place for place, variant in enumerate(self.variants)}
        choices = sorted(self.choices, key=lambda c: places.get(c.label or "", -1))
        found = {name: [c for c in choices if c.outcome == name] for name in OUTCOMES}
        return {name: choices for name, choices in found.items() if choices}

    def used(self, axis: str) -> list[tuple[Value, int]]:
        """Return the values of *axis* that variants have, with the number of variants."""
        names = [v.values[axis].name for v in self.variants if axis in v.values]
        values = self.matrix.axes.get(axis, ())
        return [(value, names.count(value.name)) for value in values if value.name in names]

    def machines_of(self, label: str) -> str:
        """Return the machines that get *label*, a long list cut short."""
        names = [choice.machine.name for choice in self.choices if choice.label == label]
        more = len(names) - _MOST_NAMES
        return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")

    def needs(self, of: Value | Variant) -> str:
        """Return in a few words what machines need; several values are alternatives."""
        return needs(of.settings.properties, self.optional)


def requires_of(value: Value) -> str:
    """Return in which combinations a value of an axis is built."""
    return "; ".join(f"{axis} {condition.text}" for axis, condition in value.requires.items())


def build_of(value: Value) -> str:
    """Return the environment and the flags of a value's builds, in the manner of a shell."""
    settings = value.settings
    words = [f"{name}={text}" for name, text in settings.environment.items()]
    words += [f"{name}+={' '.join(flags)}" for name, flags in settings.flags.items()]
    words += [f"flags.{name}+={' '.join(flags)}" for name, flags in settings.compiler_flags.items()]
    return "; ".join(words)


def examine(
    matrix: Matrix,
    variants: Sequence[Variant],
    machines: Sequence[Machine],
    enabled: Sequence[str] = (),
) -> Release:
    """Return *variants* of *matrix* as *machines* see them.

    Args:
        matrix: the file.
        variants: of it, at least one.
        machines: that variants are chosen for, at least one.
        enabled: optional namespaces that are enabled.

    Raises:
        VariantError: an enabled namespace that is not an optional one of the matrix.
        TableError: a label or property that the matrix itself rules out.
    """
    metadata = metadata_of(matrix, variants)
    providers = metadata.providers
    optional = tuple(n for n in metadata.namespaces if n in providers and providers[n].optional)
    if unknown := [namespace for namespace in enabled if namespace not in optional]:
        raise VariantError(
            f"{shortened(unknown[0])} is not an optional namespace of {matrix.source}; "
            f"there are: {', '.join(optional) or 'none'}"
        )
    choices = tuple(Choice(machine, machine.rank(metadata, enabled)) for machine in machines)
    chosen = {choice.label for choice in choices}
    unchosen = {
        variant.label: why_unchosen(variant.label, choices)
        for variant in variants
        if variant.label not in chosen
    }
    return Release(matrix, distinct(variants), choices, unchosen, optional)


def markdown(
    chosen: Sequence[tuple[Matrix, Sequence[Variant]]],
    wanted: Sequence[str] = (),
    enabled: Sequence[str] = (),
) -> str:
    """Return which machines get which variants, as one document.

    Args:
        chosen: matrices with some of their variants.
        wanted: machines, see `read_machines`.
        enabled: optional namespaces that are enabled.

    Raises:
        VariantError: as `examine`, or a machine is not known.
    """
    # Imported here: most commands show no page.
    from jinja2 import Environment

    machines = read_machines(wanted)
    environment = Environment(trim_blocks=True, lstrip_blocks=True)  # noqa: S701 - not HTML
    environment.filters |= {"text": markdown_text, "code": markdown_code}
    template = (files(__package__) / "release.md").read_text("utf-8")
    return environment.from_string(template).render(
        releases=[examine(*each, machines, enabled) for each in chosen],
        new_values=new_values,
        requires_of=requires_of,
        build_of=build_of,
        NO_VARIANT=NO_VARIANT,
        OUTCOMES=OUTCOMES,
        SCOPE=SCOPE,
    )


def new_values(releases: Sequence[Release]) -> Iterator[tuple[Release, str]]:
    """Yield each release, and the values of its axes that the one before has not.

    Versions are left out, which documents name anyway.
    """
    before = None
    for release in releases:
        used = [value.name for axis in release.matrix.axes for value, _ in release.used(axis)]
        values = [name for name in used if not name[:1].isdigit()]
        yield release, ", ".join(name for name in values if name not in (before or values))
        before = values


# An underscore inside a word is one.
_SPECIAL = re.compile(r"([\\`*\[\]|~$]|(?<![a-zA-Z0-9])_|_(?![a-zA-Z0-9]))")
_FIRST = re.compile(r"^([-+]|\d+[.)](?= ))")
# GitHub makes links of addresses, mentions and numbers of issues.
_ENTITIES = {
    "&": "&amp;", "#": "&#35;", "<": "&lt;", ">": "&gt;", "@": "&#64;", "://": "&#58;//",
    "www.": "www&#46;",
}  # fmt: skip
_LINKS = re.compile("|".join(map(re.escape, _ENTITIES)))


def markdown_text(text: str) -> str:
    """Return *text* so that Markdown shows it as it is, on one line."""
    text = one_line(text)
    escaped = _SPECIAL.sub(r"\\\1", _LINKS.sub(lambda found: _ENTITIES[found[0]], text))
    # At the beginning of a line they would make a list or a heading.
    return _FIRST.sub(r"\\\1", escaped)


def markdown_code(text: str) -> str:
    """Return *text* as code; empty, and with characters that end code, as text."""
    text = one_line(text)
    if not text or text == NO_VARIANT or "`" in text or "|" in text:
        return markdown_text(text)
    return f"`{text}`"
