"""The wheels that a lock file lists (PEP 751), by name and label.

Imports little: installers use it for every lock file, also for those without variants.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..labels import filename_of_url, split_label

KEY = "variants-json"
"""The table of a package that has the metadata of its variants (PEP 825)."""

TOOL = "pep-variants"
"""Name of our tables ``[tool.pep-variants]`` and ``[packages.tool.pep-variants]``.

The dependencies may depend on the chosen variants, but markers of lock files must not use variants
(PEP 825). So the original requirements are kept in these tables, to leave out packages that the
chosen variants do not need. Other installers install these as well.
"""

GROUPS = "groups"
"""In ``[tool.pep-variants]``: what is in the dependency groups that are for kinds of machines."""

Table = Mapping[str, Any]
"""A table of a lock file, as parsed from TOML."""


def filename_of(wheel: object) -> str:
    """Return the filename of a wheel's table; empty if it has none.

    It is ``name``, else the last component of ``path`` or, percent-decoded, of ``url``: as
    `packaging.pylock.PackageWheel.filename`.

    >>> from pep_variants.lock_entries import filename_of
    >>> filename_of({"url": "https://host.example/tool-1.0-py3-none-any-cu128.whl#sha256=00"})
    'tool-1.0-py3-none-any-cu128.whl'
    """
    if not isinstance(wheel, Mapping):
        return ""
    for key in ("name", "path", "url"):
        value = wheel.get(key)
        if not isinstance(value, str) or not value:
            continue
        if key == "name":
            return value
        if key == "path":
            return value.rpartition("/" if "/" in value else "\\")[2]
        try:
            return filename_of_url(value)
        except ValueError:  # no valid URL
            return ""
    return ""


def labels_of(package: object) -> Iterator[str | None]:
    """Yield the label of each wheel of a package's table, None for non-variant wheels.

    >>> from pep_variants.lock_entries import labels_of
    >>> names = ["tool-1.0-py3-none-any-cu128.whl", "tool-1.0-py3-none-any.whl"]
    >>> list(labels_of({"name": "tool", "wheels": [{"name": name} for name in names]}))
    ['cu128', None]
    """
    wheels = package.get("wheels") if isinstance(package, Mapping) else None
    for wheel in wheels if isinstance(wheels, list) else ():
        yield split_label(filename_of(wheel))[1]


def lists_variants(tree: object) -> bool:
    """Return whether a lock file, as parsed from TOML, lists variant wheels.

    >>> from pep_variants.lock_entries import lists_variants
    >>> wheel = {"name": "tool-1.0-py3-none-any-cu128.whl"}
    >>> lists_variants({"packages": [{"name": "tool", "wheels": [wheel]}]})
    True
    """
    packages = tree.get("packages") if isinstance(tree, Mapping) else None
    return isinstance(packages, list) and any(any(labels_of(item)) for item in packages)


def own_table(table: object) -> Mapping[str, Any]:
    """Return our table of a lock file or package, empty without one."""
    tools = table.get("tool") if isinstance(table, Mapping) else None
    own = tools.get(TOOL) if isinstance(tools, Mapping) else None
    return own if isinstance(own, Mapping) else {}


def has_groups(tree: object) -> bool:
    """Return whether a lock file, as parsed from TOML, has groups that are for kinds of machines.

    >>> from pep_variants.lock_entries import has_groups
    >>> has_groups({"tool": {"pep-variants": {"groups": {"cuda13-0": {}}}}})
    True
    """
    return bool(own_table(tree).get(GROUPS))


def without_labels(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return a lock file with the names of its variant wheels without labels."""
    packages = tree.get("packages")
    if not isinstance(packages, list):
        return dict(tree)
    return {**tree, "packages": [unlabelled(item) for item in packages]}


def unlabelled(package: Any) -> Any:  # noqa: ANN401
    """Return a package's table with the names of its variant wheels without labels."""
    if not any(labels_of(package)):
        return package
    return {
        **{key: value for key, value in package.items() if key != KEY},
        "wheels": [plainly_named(wheel) for wheel in package["wheels"]],
    }


def plainly_named(wheel: Any) -> Any:  # noqa: ANN401
    """Return a wheel's table with its filename without the label as ``name``."""
    plain, label = split_label(filename_of(wheel))
    return wheel if label is None else {**wheel, "name": plain}
