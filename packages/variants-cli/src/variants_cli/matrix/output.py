"""A matrix as text: for people, for programs, for shells and for CI services."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pep_variants.choose.phrases import answered, why_chosen
from pep_variants.model.property import Property

from ..description import write_description
from .combination import distinct, metadata_of
from .model import Matrix, Variant
from .parts import Part
from .planned_flags import COMMAND, INTERPRETER, planned_additions
from .source_project import SourceProject

GITHUB_JOBS = 256
"""Maximum number of jobs of a matrix on GitHub Actions."""
SHOWN = 4
"""Alternatives of a feature that a table shows."""
GITLAB_JOBS = 200
"""Maximum number of jobs of a matrix on GitLab."""


def table(variants: Sequence[Variant], *, complete: bool = False) -> list[tuple[str, str, str]]:
    """Return label, title and needs of every label.

    Args:
        variants: of a matrix.
        complete: list all alternatives, not only the first ones and their number.
    """
    return [
        (
            variant.label,
            _title(variant),
            _needs(variant.settings.properties, None if complete else SHOWN) or "any machine",
        )
        for variant in distinct(variants)
    ]


def _needs(properties: Sequence[Property], limit: int | None) -> str:
    """Return what machines need, at most *limit* alternatives of each feature."""
    parts = []
    for namespace, features in _grouped(properties).items():
        for feature, values in features.items():
            others = [answered(namespace, feature, value) for value in values[1:]]
            # Real and virtual architectures have one phrase.
            first = why_chosen({namespace: {feature: values[:1]}})
            texts = [text for text in dict.fromkeys(others) if not first.endswith(f" {text}")]
            left_out = 0 if limit is None else len(texts) - (limit - 1)
            if left_out > 1:  # the last one takes no more room than its number
                texts = [*texts[:-left_out], f"… ({len(values)} values)"]
            parts.append(", ".join((first, *texts)))
    return ", ".join(parts)


def _title(variant: Variant) -> str:
    """Return the titles of its values, without those of Pythons and platforms."""
    titles = (value.title for value in variant.values.values() if not value.is_target)
    return "; ".join(filter(None, titles))


def tree(variant: Variant) -> dict[str, Any]:
    """Return *variant* as JSON data."""
    settings = variant.settings
    return {
        "label": variant.label,
        "build": variant.name,
        "python": variant.python.tag if variant.python is not None else "",
        "platform": str(variant.platform) if variant.platform is not None else "",
        "values": {axis: value.name for axis, value in variant.values.items()},
        "title": variant.title,
        "properties": [str(item) for item in settings.properties],
        "environment": dict(settings.environment),
        "flags": {name: " ".join(words) for name, words in settings.flags.items()},
        "compiler_flags": {name: list(words) for name, words in settings.compiler_flags.items()},
        "config_settings": {key: list(values) for key, values in settings.config_settings.items()},
        "hosts": [str(host) for host in variant.hosts],
        "ci": dict(settings.ci),
    }


def metadata(matrix: Matrix, variants: Sequence[Variant]) -> str:
    """Return the ``*-variants.json`` of a release with all *variants*."""
    return write_description(metadata_of(matrix, variants), None).decode()


def github(variants: Sequence[Variant], source: SourceProject) -> str:
    """Return the ``strategy.matrix`` of a GitHub Actions job, on one line."""
    return json.dumps({"include": github_jobs(variants, source)}, separators=(",", ":"))


def github_jobs(variants: Sequence[Variant], source: SourceProject) -> list[dict[str, Any]]:
    """Return the variables of each job.

    Args:
        variants: one for each job.
        source: the project that they build.
    """
    return [
        {
            **{axis: value.name for axis, value in variant.values.items()},
            "variant": variant.label,
            "build": variant.name,
            "environment": _environment(variant, source),
            **variant.settings.ci,
        }
        for variant in variants
    ]


def gitlab(variants: Sequence[Variant], source: SourceProject) -> str:
    """Return a hidden GitLab job ``.variants`` to extend, as JSON, which is also YAML."""
    return json.dumps({".variants": gitlab_job(variants, source)}, indent=2)


def github_parts(parts: Sequence[Part], _: SourceProject) -> str:
    """Return the ``strategy.matrix`` of a job that calls another workflow for each of *parts*."""
    jobs = [
        {"group": part.name, "jobs": len(part.variants), "options": shlex.join(part.options)}
        for part in parts
    ]
    return json.dumps({"include": jobs}, separators=(",", ":"))


def gitlab_parts(parts: Sequence[Part], source: SourceProject) -> str:
    """Return a hidden GitLab job for each of *parts*, as JSON."""
    jobs = {f".variants {part.name}".strip(): gitlab_job(part.variants, source) for part in parts}
    return json.dumps(jobs, indent=2)


def gitlab_job(variants: Sequence[Variant], source: SourceProject) -> dict[str, Any]:
    """Return what a job for *variants* of the project *source* has."""
    jobs = [
        {
            "VARIANT": variant.label,
            "VARIANT_BUILD": variant.name,
            **{f"VARIANT_{_variable(axis)}": v.name for axis, v in variant.values.items()},
            **_environment(variant, source),
            **{_variable(key): text for key, text in variant.settings.ci.items()},
        }
        for variant in variants
    ]
    return {"parallel": {"matrix": jobs}}


def shell(variants: Sequence[Variant], source: SourceProject) -> str:
    """Return commands of a POSIX shell that set the build environment.

    That of the one variant, or else that of the variant whose name is in ``$VARIANT``.
    """
    if len(variants) == 1:
        return "\n".join(_exports(variants[0], source))
    lines = ['case "${VARIANT:?is to be one of the variants}" in']
    for variant in variants:
        lines.append(
            f"{shlex.quote(variant.name)})" + (f" # {variant.title}" * bool(variant.title))
        )
        lines += (f"    {line}" for line in _exports(variant, source))
        lines.append("    ;;")
    lines += ["*)", '    echo "no variant $VARIANT" >&2', "    false", "    ;;", "esac"]
    return "\n".join(lines)


TEXTS: Mapping[str, Callable[[Sequence[Variant], SourceProject], str]] = {
    "json": lambda variants, _: json.dumps([tree(variant) for variant in variants], indent=2),
    "shell": shell,
    "github": github,
    "gitlab": gitlab,
}
"""Functions that make the output of variants of a project, by format."""

PARTS: Mapping[str, Callable[[Sequence[Part], SourceProject], str]] = {
    "github": github_parts,
    "gitlab": gitlab_parts,
}
"""Functions that make the output in parts, by format."""

LIMITS = {"github": ("GitHub Actions", GITHUB_JOBS), "gitlab": ("GitLab", GITLAB_JOBS)}
"""Service and its maximum number of jobs of a matrix, by format."""


def _exports(variant: Variant, source: SourceProject) -> list[str]:
    settings = variant.settings
    added = planned_additions(variant, source, sys.platform).environment
    lines = []
    for name, text in {**settings.environment, **_flags(variant), **added}.items():
        if name in settings.environment:
            lines.append(f"export {name}={shlex.quote(text)}")
        elif text.startswith(INTERPRETER):
            lines.append(f'[ -n "${{{name}+set}}" ] || {name}={COMMAND}')
            lines.append(f'export {name}="${name}"{shlex.quote(text[len(INTERPRETER) :])}')
        else:
            lines.append(f'export {name}="${{{name}:+${name} }}"{shlex.quote(text)}')
    return lines or [":"]


def _environment(variant: Variant, source: SourceProject) -> dict[str, str]:
    """Return the variables of a job, without those that need flags of its interpreter."""
    added = planned_additions(variant, source).environment
    constant = {name: text for name, text in added.items() if INTERPRETER not in text}
    return {**variant.settings.environment, **_flags(variant), **constant}


def _flags(variant: Variant) -> dict[str, str]:
    return {name: " ".join(words) for name, words in variant.settings.flags.items()}


def _variable(name: str) -> str:
    return re.sub(r"[^A-Z0-9_]", "_", name.upper())


def _grouped(properties: Sequence[Property]) -> dict[str, dict[str, tuple[str, ...]]]:
    grouped: dict[str, dict[str, tuple[str, ...]]] = {}
    for item in properties:
        features = grouped.setdefault(item.namespace, {})
        features[item.feature] = (*features.get(item.feature, ()), item.value)
    return grouped
