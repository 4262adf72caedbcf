"""A matrix as text: for people, for programs, for shells, for CI services and for cibuildwheel."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pep_variants import metadata as variant_metadata
from pep_variants import selection as wheel_selection
from pep_variants.errors import VariantError
from pep_variants.metadata import Property

from .._description import write_description
from .backends import INTERPRETER, read_pyproject, variables
from .combination import metadata_of
from .model import BuildError, Matrix, Variant

Pyproject = Mapping[str, Any]

_COMMAND = '$(python -c \'import sysconfig; print(sysconfig.get_config_var("CFLAGS") or "")\')'
"""Gives the flags of the interpreter in a POSIX shell."""


def table(variants: Sequence[Variant]) -> list[tuple[str, str, str]]:
    """Return label, title and needs of *variants*."""
    return [
        (variant.label, variant.title, needs(variant.settings.properties) or "any machine")
        for variant in variants
    ]


def needs(properties: Iterable[Property]) -> str:
    """Return in a few words what *properties* need; several values are alternatives."""
    parts = []
    for namespace, features in variant_metadata.group_properties(properties).items():
        for feature, values in features.items():
            texts = dict.fromkeys(
                wheel_selection.answered(namespace, feature, value) for value in values
            )
            if len(texts) > 1:
                parts.append(f"{wheel_selection.asked(namespace, feature)} {', '.join(texts)}")
            else:
                parts.append(wheel_selection.why_chosen({namespace: {feature: values}}))
    return ", ".join(dict.fromkeys(parts))


def metadata(matrix: Matrix, variants: Sequence[Variant]) -> str:
    """Return the ``*-variants.json`` of a release with all *variants*."""
    return write_description(metadata_of(matrix, variants)).decode()


def as_json(_: Matrix, variants: Sequence[Variant]) -> str:
    """Return *variants* as JSON data."""
    tree = [
        {
            "label": variant.label,
            "values": {axis: value.name for axis, value in variant.values.items()},
            "title": variant.title,
            "properties": [str(item) for item in variant.settings.properties],
            "environment": dict(variant.settings.environment),
            "flags": {name: " ".join(words) for name, words in variant.settings.flags.items()},
            "compiler_flags": variant.settings.compiler_flags,
            "config_settings": variant.settings.config_settings,
            "hosts": [str(host) for host in variant.hosts],
            "ci": dict(variant.settings.ci),
        }
        for variant in variants
    ]
    return json.dumps(tree, indent=2)


# CI services.


def github(matrix: Matrix, variants: Sequence[Variant]) -> str:
    """Return the ``strategy.matrix`` of a GitHub Actions job, on one line.

    Variables that need flags of the job's interpreter are left out: the values are constant.
    """
    source = _pyproject(matrix)
    jobs = []
    for variant in variants:
        found = variables(variant.settings, source, {}, system="linux")
        jobs.append(
            {
                **{axis: value.name for axis, value in variant.values.items()},
                "variant": variant.label,
                "environment": {k: text for k, text in found.items() if INTERPRETER not in text},
                **variant.settings.ci,
            }
        )
    return json.dumps({"include": jobs}, separators=(",", ":"))


def _pyproject(matrix: Matrix) -> Pyproject:
    try:
        return read_pyproject(matrix.build.source)
    except (BuildError, OSError):  # there may be no source here, only a plan
        return {}


# Shells.


def shell(matrix: Matrix, variants: Sequence[Variant]) -> str:
    """Return commands of a POSIX shell that set the environment of the one variant.

    Raises:
        VariantError: there are several.
    """
    variant = _only_one(variants, "a shell")
    # On two lines, as `export` hides that the command in a value failed.
    pairs = _assignments(variant, _pyproject(matrix)).items()
    lines = [line for name, value in pairs for line in (f"{name}={value}", f"export {name}")]
    return "\n".join(lines or [":"])


def _only_one(variants: Sequence[Variant], place: str) -> Variant:
    if len(variants) > 1:
        names = f"{variants[0].label}, {variants[1].label}"
        raise VariantError(
            f"{place} has the environment of one variant, these are {len(variants)} "
            f"({names}, …): select one with --only"
        )
    return variants[0]


def _assignments(variant: Variant, source: Pyproject, *, posix: bool = True) -> dict[str, str]:
    """Return the double-quoted value of each variable, to be assigned in a shell.

    Args:
        variant: what is built.
        source: pyproject.toml of the project that is built.
        posix: whether a POSIX shell reads it. cibuildwheel knows double quotes and ``$NAME`` alone.
    """
    found = {}
    system = sys.platform if posix else "linux"
    for name, text in variables(variant.settings, source, {}, system=system).items():
        # Escaping must not reach the reference and the command.
        words = re.sub(r'([\\"$`])', r"\\\1", text.removeprefix(INTERPRETER))
        own = _COMMAND if text.startswith(INTERPRETER) else ""
        if name in variant.settings.environment:
            reference = ""
        elif not posix:
            reference = f"${name} {own}"
        else:
            reference = f"${{{name}-{own}}}" if own else f"${{{name}:+${name} }}"
        found[name] = f'"{reference}{words}"'
    return found


# cibuildwheel 4 knows nothing of variants: it builds plain wheels with the environment of a
# variant, for the Pythons and platforms of its own settings, and `variants make --matrix` labels
# them.


def cibuildwheel(matrix: Matrix, variants: Sequence[Variant]) -> str:
    """Return commands of a POSIX shell that export the settings of the one variant as ``CIBW_…``.

    Raises:
        VariantError: there are several.
    """
    variant = _only_one(variants, "one run of cibuildwheel")
    assignments = _assignments(variant, _pyproject(matrix), posix=False)
    settings = variant.settings.config_settings
    found = {
        "CIBW_ENVIRONMENT": " ".join(f"{name}={value}" for name, value in assignments.items()),
        "CIBW_CONFIG_SETTINGS": shlex.join(
            f"{key}={text}" for key, texts in settings.items() for text in texts
        ),
    }
    lines = [f"export {name}={shlex.quote(text)}" for name, text in found.items() if text]
    return "\n".join(lines or [":"])


TEXTS: Mapping[str, Callable[[Matrix, Sequence[Variant]], str]] = {
    "json": as_json,
    "shell": shell,
    "github": github,
    "cibuildwheel": cibuildwheel,
    "metadata": metadata,
}
"""Functions that make the output of variants of one project, by format."""
