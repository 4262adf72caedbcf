"""What pictures say, in words."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pep_variants.choose.phrases import answered, asked, why_chosen
from pep_variants.model.property import Property

from ..console import counted, printable
from ..matrix.model import Condition, Value
from .coverage import FITS, IDLE, NOTHING, NULL, OTHER, Coverage

OUTCOMES = {
    NOTHING: "no variant",
    IDLE: "accelerator left idle",
    OTHER: "nothing for its accelerator",
    NULL: "null variant",
    FITS: "fits",
}
"""What a machine gets, in a few words."""

HEADINGS = {
    NOTHING: "Machines that get no variant",
    IDLE: "Machines whose accelerator is left idle",
    OTHER: "Machines with accelerators that this release is not for",
    NULL: "Machines that get only the null variant",
    FITS: "Machines with a variant for what they have",
}
"""Headings of the machines with each outcome."""

NO_VARIANT = "no variant"

SCOPE = (
    "What each machine gets, as installers choose, without settings of users. Only variants are "
    "compared: wheel tags, such as those for Python and the operating system, are not."
)


def clean(text: str) -> str:
    """Return *text* on one line without control characters; it may be from an untrusted file."""
    return printable(" ".join(text.split()))


def needs_text(properties: Sequence[Property], optional: Collection[str] = ()) -> str:
    """Return in a few words what machines need for *properties*.

    Args:
        properties: those of one feature are alternatives.
        optional: namespaces that users have to enable.
    """
    grouped: dict[tuple[str, str], list[str]] = {}
    for item in properties:
        grouped.setdefault((item.namespace, item.feature), []).append(item.value)
    parts = []
    for (namespace, feature), values in grouped.items():
        if namespace in optional:
            parts.append(f"{namespace} enabled")
            continue
        phrases = dict.fromkeys(why_chosen({namespace: {feature: (v,)}}) for v in values)
        first, *others = phrases
        if others:
            texts = dict.fromkeys(answered(namespace, feature, value) for value in values)
            first = f"{asked(namespace, feature)} {', '.join(texts)}"
        parts.append(first)
    return ", ".join(dict.fromkeys(parts))


def condition_text(condition: Condition) -> str:
    """Return a condition on an axis in words."""
    if condition.versions is not None:
        return ", ".join(sorted(map(str, condition.versions)))
    return " or ".join(condition.names)


def requires_text(value: Value) -> str:
    """Return in which combinations a value of an axis is built."""
    return "; ".join(
        f"{axis} {condition_text(condition)}" for axis, condition in value.requires.items()
    )


def build_text(value: Value) -> str:
    """Return the environment and the flags of a value's builds, in the manner of a shell."""
    settings = value.settings
    words = [f"{name}={text}" for name, text in settings.environment.items()]
    words += [f"{name}+={' '.join(flags)}" for name, flags in settings.flags.items()]
    words += [f"flags.{name}+={' '.join(flags)}" for name, flags in settings.compiler_flags.items()]
    return "; ".join(words)


def workload_text(added: str) -> str:
    """Return the name of a workload."""
    return f"with {added} enabled" if added else "by default"


def summary(coverage: Coverage, never: int) -> str:
    """Return the result of a coverage in one sentence, the gaps included.

    Args:
        coverage: without optional namespaces.
        never: number of variants that no machine gets.
    """
    machines = len(coverage.choices)
    parts = [
        f"{counted(len(found), 'machine')} {words}"
        for outcomes, words in (
            ((FITS,), "with a variant for what they have"),
            ((NULL,), "with the null variant"),
            ((OTHER,), "with accelerators that the release is not for"),
            ((IDLE,), "with an accelerator left idle"),
            ((NOTHING,), "without any variant"),
        )
        if (found := coverage.with_outcome(*outcomes))
    ]
    variants = counted(len(coverage.metadata.variants), "variant")
    unused = "Each variant is for one of them."
    if never:
        verb = "is" if never == 1 else "are"
        unused = f"{counted(never, 'variant')} {verb} for none of these machines."
    return f"{variants}, {counted(machines, 'machine')}: {'; '.join(parts)}. {unused}"
