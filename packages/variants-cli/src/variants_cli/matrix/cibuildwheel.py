"""The settings of cibuildwheel for variants of a matrix, as ``CIBW_…`` variables.

cibuildwheel 4 knows nothing of variants: it builds plain wheels with the environment of a variant,
and `variants make --matrix` labels them. One run of it has one environment, so it can build
a variant for several Pythons and architectures of one system.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

from pep_variants.errors import VariantError

from .checked_commands import filled
from .model import Build, Variant
from .planned_flags import COMMAND, INTERPRETER, planned_additions, planned_source
from .repairing import PLACEHOLDERS
from .source_project import SourceProject
from .wheel_targets import Platform

_SYSTEMS = {"linux": "linux", "darwin": "macos", "win32": "windows"}
_ARCHITECTURES = {"win_amd64": "AMD64", "win_arm64": "ARM64", "win32": "x86"}
_GLIBC_2014 = (2, 17)


def cibuildwheel(build: Build, variants: Sequence[Variant]) -> dict[str, str]:
    """Return the settings of one run.

    Args:
        build: the ``[build]`` table.
        variants: what it builds: one label, with several Pythons and architectures perhaps.

    Raises:
        VariantError: one run cannot build all of them.
    """
    first, source = variants[0], planned_source(build, variants)
    environment = _environment(first, source)
    config_settings = _config_settings(first, source)
    for variant in variants[1:]:
        for what, differs in (
            ("label", variant.label != first.label),
            ("system", _system(variant) != _system(first)),
            ("environment", _environment(variant, source) != environment),
            ("config-settings", _config_settings(variant, source) != config_settings),
        ):
            if differs:
                raise VariantError(
                    f"{first.name} and {variant.name} differ in {what}, and one run of "
                    "cibuildwheel has the same for all wheels: select fewer with --only"
                )
    platforms = list(dict.fromkeys(variant.platform for variant in variants if variant.platform))
    tags = list(dict.fromkeys(variant.python.tag for variant in variants if variant.python))
    found = {
        "CIBW_PLATFORM": _SYSTEMS[platforms[0].system] if platforms else "",
        "CIBW_BUILD": " ".join(dict.fromkeys(map(_identifier, variants))).removeprefix("*"),
        "CIBW_ARCHS": " ".join(dict.fromkeys(map(_architecture, platforms))),
        "CIBW_ENABLE": "pypy pypy-eol" if any(tag.startswith("pp") for tag in tags) else "",
        **_images(platforms),
        "CIBW_ENVIRONMENT": environment,
        "CIBW_CONFIG_SETTINGS": config_settings,
    }
    for system, words in build.repair.items():
        name = f"CIBW_REPAIR_WHEEL_COMMAND_{_SYSTEMS[system].upper()}"
        found[name] = " ".join(_quoted(word) for word in words)
    tests = [test for test in build.tests if test.is_for(first.label)]
    found["CIBW_TEST_REQUIRES"] = " ".join(
        dict.fromkeys(shlex.quote(text) for test in tests for text in test.requires)
    )
    found["CIBW_TEST_COMMAND"] = " && ".join(
        " ".join(_quoted(word) for word in filled(test.words, {"label": first.label}))
        for test in tests
    )
    return {name: text for name, text in found.items() if text}


def as_shell(build: Build, variants: Sequence[Variant]) -> str:
    """Return commands of a POSIX shell that export the settings.

    Those of one run for all *variants*; or, where one run cannot build them, those of the variant
    whose name is in ``$VARIANT``.
    """
    try:
        return "\n".join(_exports(cibuildwheel(build, variants)))
    except VariantError:
        pass
    lines = ['case "${VARIANT:?is to be one of the variants}" in']
    for variant in variants:
        lines.append(f"{shlex.quote(variant.name)})")
        lines += (f"    {line}" for line in _exports(cibuildwheel(build, [variant])))
        lines.append("    ;;")
    lines += ["*)", '    echo "no variant $VARIANT" >&2', "    false", "    ;;", "esac"]
    return "\n".join(lines)


def as_variables(build: Build, variants: Sequence[Variant]) -> str:
    """Return a line ``NAME=value`` for each setting, as ``$GITHUB_ENV`` takes them.

    Raises:
        VariantError: one run cannot build all *variants*, or a value has a line break.
    """
    found = cibuildwheel(build, variants)
    for name, text in found.items():
        if len(text.splitlines()) != 1:
            raise VariantError(
                f"{name} has a line break, which this format cannot have: use --format cibuildwheel"
            )
    return "\n".join(f"{name}={text}" for name, text in found.items())


def _exports(found: dict[str, str]) -> list[str]:
    return [f"export {name}={shlex.quote(text)}" for name, text in found.items()] or [":"]


def _system(variant: Variant) -> str:
    return variant.platform.system if variant.platform is not None else ""


def _identifier(variant: Variant) -> str:
    """Return the pattern of cibuildwheel's identifiers that *variant* is, ``*`` for all."""
    python = variant.python.tag if variant.python is not None else "*"
    platform = variant.platform.tag if variant.platform is not None else "*"
    if platform.startswith("linux_"):
        platform = f"many{platform}"
    return f"{python}-{platform}" if (python, platform) != ("*", "*") else "*"


def _architecture(platform: Platform) -> str:
    return _ARCHITECTURES.get(platform.tag, platform.machine)


def _images(platforms: Iterable[Platform]) -> dict[str, str]:
    """Return the container images of platforms with a version of the C library."""
    found = {}
    for platform in platforms:
        if platform.system == "linux" and platform.version is not None:
            major, minor = platform.version
            name = f"CIBW_{platform.family}_{platform.machine}_IMAGE".upper()
            is_2014 = platform.family == "manylinux" and platform.version == _GLIBC_2014
            found[name] = "manylinux2014" if is_2014 else f"{platform.family}_{major}_{minor}"
    return found


def _environment(variant: Variant, source: SourceProject) -> str:
    """Return the environment as assignments of bash, which cibuildwheel evaluates."""
    settings = variant.settings
    own = {
        **settings.environment,
        **{name: " ".join(words) for name, words in settings.flags.items()},
    }
    added = planned_additions(variant, source)
    texts = []
    for name, text in {**own, **added.environment}.items():
        # In pieces: escaping must not reach the reference and the command.
        before, marked, words = text.rpartition(INTERPRETER)
        before, words = (f"{_escaped(before)}{COMMAND}" if marked else ""), _escaped(words)
        reference = "" if name in settings.environment else f"${name} "
        texts.append(f'{name}="{reference}{before}{words}"')
    target = variant.platform
    if target is not None and target.system == "darwin" and target.version is not None:
        texts.append("MACOSX_DEPLOYMENT_TARGET={}.{}".format(*target.version))
    return " ".join(texts)


def _escaped(text: str) -> str:
    """Return *text* for between double quotes, the only ones that cibuildwheel reads correctly."""
    return re.sub(r'([\\"$`])', r"\\\1", text)


def _config_settings(variant: Variant, source: SourceProject) -> str:
    found = {
        **variant.settings.config_settings,
        **planned_additions(variant, source).config_settings,
    }
    return " ".join(shlex.quote(f"{key}={text}") for key, texts in found.items() for text in texts)


def _quoted(word: str) -> str:
    """Return *word* quoted if it has to be; its placeholders alone do not need it."""
    plain = word
    for placeholder in (*PLACEHOLDERS, "{project}"):
        plain = plain.replace(placeholder, "")
    return word if not plain or shlex.quote(plain) == plain else shlex.quote(word)
