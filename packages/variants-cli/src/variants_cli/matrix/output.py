"""A matrix as text: for people, for programs, for shells, for CI services and for cibuildwheel."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from pep_variants.choose.phrases import answered, why_chosen
from pep_variants.errors import VariantError
from pep_variants.model.property import Property

from ..console import counted
from ..description import write_description
from .combination import distinct, metadata_of
from .flags import COMMAND, INTERPRETER, planned_additions, planned_source
from .model import Matrix, Variant

LIMITS = {"github": ("GitHub Actions", 256), "gitlab": ("GitLab", 200)}
"""Service and its maximum number of jobs of a matrix, by format."""
SHOWN = 4
"""Alternatives of a feature that a table shows."""

Pyproject = Mapping[str, Any]


def table(variants: Sequence[Variant], *, complete: bool = False) -> list[tuple[str, str, str]]:
    """Return label, title and needs of every label.

    Args:
        variants: of a matrix.
        complete: list all alternatives, not only the first ones and their number.
    """
    return [
        (
            variant.label,
            # Without those of Pythons and platforms.
            "; ".join(v.title for v in variant.values.values() if v.title and not v.is_target),
            _needs(variant.settings.properties, None if complete else SHOWN) or "any machine",
        )
        for variant in distinct(variants)
    ]


def _needs(properties: Sequence[Property], limit: int | None) -> str:
    """Return what machines need, at most *limit* alternatives of each feature."""
    features: dict[tuple[str, str], list[str]] = {}
    for item in properties:
        features.setdefault((item.namespace, item.feature), []).append(item.value)
    order = list(dict.fromkeys(item.namespace for item in properties))
    parts = []
    for (namespace, feature), values in sorted(
        features.items(), key=lambda f: order.index(f[0][0])
    ):
        others = [answered(namespace, feature, value) for value in values[1:]]
        # Real and virtual architectures have one phrase.
        first = why_chosen({namespace: {feature: tuple(values[:1])}})
        texts = [text for text in dict.fromkeys(others) if not first.endswith(f" {text}")]
        left_out = 0 if limit is None else len(texts) - (limit - 1)
        if left_out > 1:  # the last one takes no more room than its number
            texts = [*texts[:-left_out], f"… ({len(values)} values)"]
        parts.append(", ".join((first, *texts)))
    return ", ".join(parts)


def counts(variants: Iterable[Variant]) -> str:
    """Return how many wheels there are, of how many variants, Pythons and platforms, in words."""
    wheels = list(variants)
    found: dict[str, Collection[object]] = {
        "variant": {variant.label for variant in wheels},
        "Python": {variant.python for variant in wheels} - {None},
        "platform": {variant.platform for variant in wheels} - {None},
    }
    parts = [counted(len(items), noun) for noun, items in found.items() if items]
    if len(parts) == 1:
        return parts[0]
    return f"{counted(len(wheels), 'wheel')}: {', '.join(parts)}"


def metadata(matrix: Matrix, variants: Sequence[Variant]) -> str:
    """Return the ``*-variants.json`` of a release with all *variants*."""
    return write_description(metadata_of(matrix, variants)).decode()


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
        "flags": _joined(settings.flags),
        "compiler_flags": {name: list(words) for name, words in settings.compiler_flags.items()},
        "config_settings": {key: list(values) for key, values in settings.config_settings.items()},
        "hosts": [str(host) for host in variant.hosts],
        "ci": dict(settings.ci),
    }


# CI services.


def github(matrix: Matrix, variants: Sequence[Variant]) -> str:
    """Return the ``strategy.matrix`` of a GitHub Actions job, on one line."""
    source = planned_source(matrix, variants)
    jobs = [
        {
            **{axis: value.name for axis, value in variant.values.items()},
            "variant": variant.label,
            "build": variant.name,
            "environment": _environment(variant, source),
            **variant.settings.ci,
        }
        for variant in variants
    ]
    return json.dumps({"include": jobs}, separators=(",", ":"))


def gitlab(matrix: Matrix, variants: Sequence[Variant]) -> str:
    """Return a hidden GitLab job ``.variants`` to extend, as JSON, which is also YAML."""
    source = planned_source(matrix, variants)
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
    return json.dumps({".variants": {"parallel": {"matrix": jobs}}}, indent=2)


def _environment(variant: Variant, source: Pyproject) -> dict[str, str]:
    """Return the variables of a job, without those that need flags of its interpreter."""
    added = planned_additions(variant, source)
    constant = {name: text for name, text in added.items() if INTERPRETER not in text}
    return {**variant.settings.environment, **_joined(variant.settings.flags), **constant}


def _joined(flags: Mapping[str, Sequence[str]]) -> dict[str, str]:
    return {name: " ".join(words) for name, words in flags.items()}


def _variable(name: str) -> str:
    return re.sub(r"[^A-Z0-9_]", "_", name.upper())


# Shells.


def shell(matrix: Matrix, variants: Sequence[Variant]) -> str:
    """Return commands of a POSIX shell that set the build environment.

    That of the one variant, or else that of the variant whose name is in ``$VARIANT``.
    """
    source = planned_source(matrix, variants)
    return _case(variants, lambda variant: _exports(variant, source))


def _case(variants: Sequence[Variant], lines_of: Callable[[Variant], list[str]]) -> str:
    """Return the lines of the one variant, or else a ``case`` of those of all."""
    if len(variants) == 1:
        return "\n".join(lines_of(variants[0]))
    lines = ['case "${VARIANT:?is to be one of the variants}" in']
    for variant in variants:
        title = f" # {variant.title}" if variant.title else ""
        lines.append(f"{shlex.quote(variant.name)}){title}")
        lines += [*(f"    {line}" for line in lines_of(variant)), "    ;;"]
    lines += ["*)", '    echo "no variant $VARIANT" >&2', "    false", "    ;;", "esac"]
    return "\n".join(lines)


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
    settings = variant.settings
    added = planned_additions(variant, source, sys.platform if posix else "linux")
    found = {}
    for name, text in {**settings.environment, **_joined(settings.flags), **added}.items():
        # Escaping must not reach the reference and the command.
        words = re.sub(r'([\\"$`])', r"\\\1", text.removeprefix(INTERPRETER))
        own = COMMAND if text.startswith(INTERPRETER) else ""
        if name in settings.environment:
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


def cibuildwheel(matrix: Matrix, variants: Sequence[Variant]) -> dict[str, str]:
    """Return the settings of one run as ``CIBW_…`` variables.

    Args:
        matrix: the matrix.
        variants: what it builds: one label, with several Pythons and architectures perhaps.

    Raises:
        VariantError: one run cannot build all of them.
    """
    first, source = variants[0], planned_source(matrix, variants)

    def shared(variant: Variant) -> dict[str, object]:
        """Return what all wheels of a run have in common."""
        system = variant.platform.system if variant.platform is not None else ""
        return {
            "label": variant.label,
            "system": _CIBW_SYSTEMS.get(system, ""),
            "environment": _cibuildwheel_environment(variant, source),
            "config-settings": " ".join(
                shlex.quote(f"{key}={text}")
                for key, texts in variant.settings.config_settings.items()
                for text in texts
            ),
        }

    common = shared(first)
    for variant in variants[1:]:
        for what, value in shared(variant).items():
            if value != common[what]:
                raise VariantError(
                    f"{first.name} and {variant.name} differ in {what}, and one run of "
                    "cibuildwheel has the same for all wheels: select fewer with --only"
                )
    platforms = list(dict.fromkeys(variant.platform for variant in variants if variant.platform))
    pypy = any(variant.python.implementation == "pp" for variant in variants if variant.python)
    found: dict[str, object] = {
        "CIBW_PLATFORM": common["system"],
        "CIBW_BUILD": " ".join(dict.fromkeys(map(_identifier, variants))).removeprefix("*"),
        "CIBW_ARCHS": " ".join(
            dict.fromkeys(_CIBW_ARCHITECTURES.get(p.tag, p.machine) for p in platforms)
        ),
        "CIBW_ENABLE": "pypy pypy-eol" if pypy else "",
    }
    for platform in platforms:
        if platform.system == "linux" and platform.version is not None:
            image = "_".join(map(str, (platform.family, *platform.version)))
            name = f"CIBW_{platform.family}_{platform.machine}_IMAGE".upper()
            found[name] = image.replace("manylinux_2_17", "manylinux2014")
    found["CIBW_ENVIRONMENT"] = common["environment"]
    found["CIBW_CONFIG_SETTINGS"] = common["config-settings"]
    tests = [test for test in matrix.build.tests if test.is_for(first.label)]
    found["CIBW_TEST_REQUIRES"] = " ".join(
        dict.fromkeys(shlex.quote(text) for test in tests for text in test.requires)
    )
    found["CIBW_TEST_COMMAND"] = " && ".join(
        " ".join(_quoted(word.replace("{label}", first.label)) for word in test.words)
        for test in tests
    )
    return {name: str(text) for name, text in found.items() if text}


def as_shell(matrix: Matrix, variants: Sequence[Variant]) -> str:
    """Return commands of a POSIX shell that export the settings.

    Those of one run for all *variants*; or, where one run cannot build them, those of the variant
    whose name is in ``$VARIANT``.
    """

    def exports(some: Sequence[Variant]) -> list[str]:
        found = cibuildwheel(matrix, some)
        return [f"export {name}={shlex.quote(text)}" for name, text in found.items()] or [":"]

    try:
        return "\n".join(exports(variants))
    except VariantError:
        return _case(variants, lambda variant: exports([variant]))


def as_variables(matrix: Matrix, variants: Sequence[Variant]) -> str:
    """Return a line ``NAME=value`` for each setting, as ``$GITHUB_ENV`` takes them.

    Raises:
        VariantError: one run cannot build all *variants*, or a value has a line break.
    """
    found = cibuildwheel(matrix, variants)
    for name, text in found.items():
        if len(text.splitlines()) != 1:
            raise VariantError(
                f"{name} has a line break, which this format cannot have: use --format cibuildwheel"
            )
    return "\n".join(f"{name}={text}" for name, text in found.items())


def _identifier(variant: Variant) -> str:
    """Return the pattern of cibuildwheel's identifiers that *variant* is, ``*`` for all."""
    python = variant.python.tag if variant.python is not None else "*"
    platform = variant.platform.tag if variant.platform is not None else "*"
    if platform.startswith("linux_"):
        platform = f"many{platform}"
    return f"{python}-{platform}" if (python, platform) != ("*", "*") else "*"


def _cibuildwheel_environment(variant: Variant, source: Pyproject) -> str:
    found = _assignments(variant, source, posix=False)
    target = variant.platform
    if target is not None and target.system == "darwin" and target.version is not None:
        found["MACOSX_DEPLOYMENT_TARGET"] = "{}.{}".format(*target.version)
    return " ".join(f"{name}={value}" for name, value in found.items())


def _quoted(word: str) -> str:
    """Return *word* quoted if it has to be; its placeholder alone does not need it."""
    plain = word.replace("{project}", "")
    return word if not plain or shlex.quote(plain) == plain else shlex.quote(word)


TEXTS: Mapping[str, Callable[[Matrix, Sequence[Variant]], str]] = {
    "json": lambda _, variants: json.dumps([tree(variant) for variant in variants], indent=2),
    "shell": shell,
    "github": github,
    "gitlab": gitlab,
    "cibuildwheel": as_shell,
    "cibuildwheel-env": as_variables,
    "metadata": metadata,
}
"""Functions that make the output of variants of one project, by format."""
