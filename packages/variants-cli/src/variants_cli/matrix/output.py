"""A matrix as text: for people, for programs, for shells, for CI services and for cibuildwheel."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from pep_variants import Property, VariantError
from pep_variants.internal import answered, asked, group_properties, why_chosen

from ..console import counted
from ..description import write_description
from .backends import INTERPRETER, read_pyproject, variables
from .combination import distinct, metadata_of
from .model import BuildError, Matrix, Variant

Pyproject = Mapping[str, Any]

_COMMAND = '$(python -c \'import sysconfig; print(sysconfig.get_config_var("CFLAGS") or "")\')'
"""Gives the flags of the interpreter in a POSIX shell."""


def table(variants: Sequence[Variant]) -> list[tuple[str, str, str]]:
    """Return label, title and needs of every label of *variants*."""
    return [
        (
            variant.label,
            # Without those of Pythons and platforms.
            "; ".join(v.title for v in variant.values.values() if v.title and not v.is_target),
            needs(variant.settings.properties) or "any machine",
        )
        for variant in distinct(variants)
    ]


def needs(properties: Iterable[Property], optional: Collection[str] = ()) -> str:
    """Return in a few words what machines need for *properties*; several values are alternatives.

    Args:
        properties: of a variant.
        optional: namespaces that users have to enable, of which that is all that is said.
    """
    parts = []
    for namespace, features in group_properties(properties).items():
        for feature, values in features.items():
            texts = dict.fromkeys(answered(namespace, feature, value) for value in values)
            if namespace in optional:
                parts.append(f"{namespace} enabled")
            elif len(texts) > 1:
                parts.append(f"{asked(namespace, feature)} {', '.join(texts)}")
            else:
                parts.append(why_chosen({namespace: {feature: values}}))
    return ", ".join(dict.fromkeys(parts))


def counts(variants: Sequence[Variant]) -> str:
    """Return how many *variants* there are, and how many wheels if those are more, in words."""
    labels = len(distinct(variants))
    wheels = f", {counted(len(variants), 'wheel')}" if len(variants) > labels else ""
    return counted(labels, "variant") + wheels


def metadata(matrix: Matrix, variants: Sequence[Variant]) -> str:
    """Return the ``*-variants.json`` of a release with all *variants*."""
    return write_description(metadata_of(matrix, variants)).decode()


def as_json(_: Matrix, variants: Sequence[Variant]) -> str:
    """Return *variants* as JSON data."""
    return json.dumps([_tree(variant) for variant in variants], indent=2)


def _tree(variant: Variant) -> dict[str, Any]:
    settings = variant.settings
    return {
        "label": variant.label,
        "build": variant.name,
        "python": str(variant.python or ""),
        "platform": str(variant.platform or ""),
        "values": {axis: value.name for axis, value in variant.values.items()},
        "title": variant.title,
        "properties": [str(item) for item in settings.properties],
        "environment": dict(settings.environment),
        "flags": {name: " ".join(words) for name, words in settings.flags.items()},
        "compiler_flags": settings.compiler_flags,
        "config_settings": settings.config_settings,
        "hosts": [str(host) for host in variant.hosts],
        "ci": dict(settings.ci),
    }


# CI services.


def github(matrix: Matrix, variants: Sequence[Variant]) -> str:
    """Return the ``strategy.matrix`` of a GitHub Actions job, on one line."""
    jobs = [
        {
            **{axis: value.name for axis, value in variant.values.items()},
            "variant": variant.label,
            "build": variant.name,
            "environment": environment,
            **variant.settings.ci,
        }
        for variant, environment in _with_environments(matrix, variants)
    ]
    return json.dumps({"include": jobs}, separators=(",", ":"))


def _with_environments(
    matrix: Matrix, variants: Sequence[Variant]
) -> list[tuple[Variant, dict[str, str]]]:
    """Return *variants* with the variables of their jobs.

    Those that need flags of the job's interpreter are left out: the values are constant.
    """
    source = _pyproject(matrix)
    return [
        (
            variant,
            {
                name: text
                for name, text in _environment(variant, source, "linux").items()
                if INTERPRETER not in text
            },
        )
        for variant in variants
    ]


def _pyproject(matrix: Matrix) -> Pyproject:
    try:
        return read_pyproject(matrix.build.source)
    except (BuildError, OSError):  # there may be no source here, only a plan
        return {}


def _environment(variant: Variant, source: Pyproject, system: str) -> dict[str, str]:
    """Return the variables of a build on another machine; `INTERPRETER` is that of its flags."""
    system = variant.platform.system if variant.platform is not None else system
    return variables(variant.settings, source, {}, system=system)


# Shells.


def shell(matrix: Matrix, variants: Sequence[Variant]) -> str:
    """Return commands of a POSIX shell that set the environment of the one variant.

    Raises:
        VariantError: there are several.
    """
    if len(variants) > 1:
        names = f"{variants[0].name}, {variants[1].name}"
        raise VariantError(
            f"a shell has the environment of one variant, these are {len(variants)} ({names}, …): "
            "select one with --only"
        )
    return "\n".join(_exports(variants[0], _pyproject(matrix)))


def _exports(variant: Variant, source: Pyproject) -> list[str]:
    # On two lines, as `export` hides that the command in a value failed.
    pairs = _assignments(variant, source).items()
    lines = [line for name, value in pairs for line in (f"{name}={value}", f"export {name}")]
    return lines or [":"]


def _assignments(variant: Variant, source: Pyproject, *, posix: bool = True) -> dict[str, str]:
    """Return the double-quoted value of each variable, to be assigned in a shell.

    Args:
        variant: what is built.
        source: pyproject.toml of the project that is built.
        posix: whether a POSIX shell reads it. cibuildwheel knows double quotes and ``$NAME`` alone.
    """
    found = {}
    for name, text in _environment(variant, source, sys.platform if posix else "linux").items():
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
# variant, and `variants make --matrix` labels them. One run of it has one environment, so it can
# build a variant for several Pythons and architectures of one system.

_CIBW_SYSTEMS = {"linux": "linux", "darwin": "macos", "win32": "windows"}
_CIBW_ARCHITECTURES = {"win_amd64": "AMD64", "win_arm64": "ARM64", "win32": "x86"}


def cibuildwheel(matrix: Matrix, variants: Sequence[Variant]) -> str:
    """Return commands of a POSIX shell that export the settings of one run as ``CIBW_…``.

    Args:
        matrix: the matrix.
        variants: what it builds: one label, with several Pythons and architectures perhaps.

    Raises:
        VariantError: one run cannot build all of them.
    """
    source = _pyproject(matrix)
    (run, *others) = dict.fromkeys(_common_settings(variant, source) for variant in variants)
    if others:
        raise VariantError(
            f"one run of cibuildwheel builds one variant for one system, with one environment; "
            f"{variants[0].name} and others of these need {len(others) + 1}: select fewer with "
            "--only"
        )
    _, system, environment, config_settings = run
    platforms = list(dict.fromkeys(variant.platform for variant in variants if variant.platform))
    found = {
        "CIBW_PLATFORM": system,
        "CIBW_BUILD": " ".join(dict.fromkeys(map(_identifier, variants))).removeprefix("*"),
        "CIBW_ARCHS": " ".join(
            dict.fromkeys(_CIBW_ARCHITECTURES.get(p.tag, p.machine) for p in platforms)
        ),
        **{
            f"CIBW_{platform.family}_{platform.machine}_IMAGE".upper(): platform.image
            for platform in platforms
        },
        "CIBW_ENVIRONMENT": environment,
        "CIBW_CONFIG_SETTINGS": config_settings,
    }
    lines = [f"export {name}={shlex.quote(text)}" for name, text in found.items() if text]
    return "\n".join(lines or [":"])


def _common_settings(variant: Variant, source: Pyproject) -> tuple[str, str, str, str]:
    """Return what all wheels of a run share: label, system, environment, config settings."""
    target, found = variant.platform, _assignments(variant, source, posix=False)
    if target is not None and target.system == "darwin" and target.version is not None:
        found["MACOSX_DEPLOYMENT_TARGET"] = "{}.{}".format(*target.version)
    settings = variant.settings.config_settings
    return (
        variant.label,
        _CIBW_SYSTEMS[target.system] if target is not None else "",
        " ".join(f"{name}={value}" for name, value in found.items()),
        shlex.join(f"{key}={text}" for key, texts in settings.items() for text in texts),
    )


def _identifier(variant: Variant) -> str:
    """Return the pattern of cibuildwheel's identifiers that *variant* is, ``*`` for all."""
    python = str(variant.python or "*")
    platform = variant.platform.tag if variant.platform is not None else "*"
    if platform.startswith("linux_"):
        platform = f"many{platform}"
    return f"{python}-{platform}" if (python, platform) != ("*", "*") else "*"


TEXTS: Mapping[str, Callable[[Matrix, Sequence[Variant]], str]] = {
    "json": as_json,
    "shell": shell,
    "github": github,
    "cibuildwheel": cibuildwheel,
    "metadata": metadata,
}
"""Functions that make the output of variants of one project, by format."""
