"""Which options of uv take a value, for every command of uv 0.5 to 0.13.

uv's command line cannot be parsed without it: ``uv run --with x y`` runs ``y``. A test compares the
tables with ``--help`` of every command of every tested uv, and with uv's parser.
"""

from __future__ import annotations

_VALUES = """
allow-insecure-host annotation-style author-from bounds branch build-backend build-constraints
bump cache-dir check-url color config-file config-setting config-setting-package
config-settings-package constraints custom-compile-command default-index depth description
directory env-file exclude exclude-newer exclude-newer-package excludes extra extra-index-url
find-links fork-strategy format from graalpy-mirror group ignore ignore-until-fixed index
index-strategy index-url install-dir keyring-provider link-mode marker mirror name
no-binary-package no-build-isolation-package no-build-package no-editable-package no-emit-package
no-extra no-group no-install-package no-sources-package only-binary only-group optional out-dir
output-file output-format output-version overrides package password path prefix prerelease
prerelease-package project prompt prune publish-url pyodide-mirror pypy-mirror python
python-downloads-json-url python-platform python-preference python-version refresh-package
reinstall-package requirements resolution rev script service-format service-url tag target token
torch-backend trusted-publishing ty-version upgrade-group upgrade-package username vcs with
with-editable with-executables-from with-requirements
"""

_HIDDEN = """
batch build-constraint cert client-cert config config-settings constraint max-recursion-depth
max-rounds only-emit-package only-install-package override pip-args preview-feature
preview-features python-executable python-fetch requirement resolver trusted-host unsafe-package
"""
HIDDEN = frozenset(_HIDDEN.split())
"""Options with a value, and aliases of such options, that are not in any help text."""

TAKES_VALUE = frozenset(_VALUES.split()) | HIDDEN
"""Long names, without dashes, of options that take a value, with the exceptions below."""

_Commands = tuple[tuple[str, ...], ...]

_VALUE_ONLY_IN: dict[str, _Commands] = {
    "editable": (("pip", "install"),),
    "no-binary": (("pip", "compile"), ("pip", "install"), ("pip", "sync")),
    "version": (("format",),),
}
"""Options that are flags in all commands except these."""

_FLAG_IN: dict[str, _Commands] = {"package": (("init",),), "script": (("init",), ("run",))}
"""Options that take a value in all commands except these."""

_SHORT = {
    "C": "config-setting",
    "P": "upgrade-package",
    "b": "build-constraints",
    "c": "constraints",
    "d": "depth",
    "e": "editable",
    "f": "find-links",
    "i": "index-url",
    "m": "marker",
    "o": "output-file",
    "p": "python",
    "r": "requirements",
    "t": "target",
    "u": "username",
    "w": "with",
}
_SHORT_FLAG_IN: dict[str, _Commands] = {
    "c": (("venv",),),
    "f": (("pip", "show"), ("python", "install")),
    "m": (("run",),),
    "r": (("python", "install"), ("python", "upgrade")),
}

_SAME = {
    "build-constraint": "build-constraints",
    "constraint": "constraints",
    "override": "overrides",
    "requirement": "requirements",
    "trusted-host": "allow-insecure-host",
}


def long_name(name: str) -> str:
    """Return the name under which an option is known that has several; names without dashes."""
    return _SAME.get(name, name)


def takes_value(name: str, command: tuple[str, ...]) -> bool:
    """Return whether the option ``--name`` takes a value in *command*."""
    if name in _VALUE_ONLY_IN:
        return command in _VALUE_ONLY_IN[name]
    return name in TAKES_VALUE and command not in _FLAG_IN.get(name, ())


def short_option(letter: str, command: tuple[str, ...]) -> str | None:
    """Return the long name of ``-letter`` if it takes a value in *command*, None for a flag."""
    if command in _SHORT_FLAG_IN.get(letter, ()):
        return None
    name = _SHORT.get(letter)
    return name if name is not None and takes_value(name, command) else None
