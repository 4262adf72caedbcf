"""`variants detect`: what this machine supports."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pep_variants.detection import Detector
from pep_variants.platform import write_platform

from ..atomic import replacing
from ..console import print_json, print_table
from .arguments import json_option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pep_variants.platform import Platform, Support
    from pep_variants.property import Features

_SHOWN = 8
"""So many values of a feature are shown to people; JSON has all."""


@click.command(short_help="Show what this machine supports.")
@json_option
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write a platform file, for --variant-platform; one that exists is replaced.",
)
def detect(as_json: bool, output: Path | None) -> None:
    """Show what this machine supports.

    Asks every built-in provider and lists namespaces, features and values, most preferred first.

    Example: variants detect -o platform.toml
    """
    platform = Detector().host()
    if output is not None:
        text = write_platform(platform, f"variants-cli {version('variants-cli')}")
        with replacing(output) as stream:
            stream.write(text.encode())
    if as_json:
        print_json({"namespaces": _tree(platform)})
    else:
        print_table(("namespace", "feature", "supported"), list(_rows(platform)))


def _tree(platform: Platform) -> dict[str, object]:
    return {
        namespace: {
            "features": {feature: list(values) for feature, values in support.features.items()},
            "resolved": list(support.resolved),
            "plugin-api": support.plugin_api,
            "notice": support.notice,
        }
        for namespace, support in platform.namespaces.items()
    }


def _rows(platform: Platform) -> Iterator[tuple[str, str, str]]:
    for namespace, support in platform.namespaces.items():
        shown = namespace
        for feature, values in _described(support):
            yield shown, feature, values
            shown = ""


def _described(support: Support) -> Iterator[tuple[str, str]]:
    if not support.features:
        yield "-", support.notice or "nothing"
        return
    for feature, values in _valued(support.features).items():
        yield feature, _some(values)
    flags = [feature for feature, values in support.features.items() if values == ("on",)]
    # Some namespaces have dozens of features that are just there.
    for start in range(0, len(flags), _SHOWN):
        yield ("on" if start == 0 else ""), " ".join(flags[start : start + _SHOWN])


def _valued(features: Features) -> Features:
    return {feature: values for feature, values in features.items() if values != ("on",)}


def _some(values: tuple[str, ...]) -> str:
    more = len(values) - _SHOWN
    return " ".join(values[:_SHOWN]) + (f" … ({len(values)} values)" if more > 0 else "")
