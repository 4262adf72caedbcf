"""Which environment variables the installer and the plugin get to see."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pep_variants import machines
from pep_variants.machines import Vendor

# They steer Python, the installers and this project, for other purposes than this one.
_STEERING = ("PYTHON", "PIP_", "UV_", "VARIANTS_")

# Settings of this user for all runs of the installers that no `Sources` can carry.
_INSTALLER_SETTINGS = frozenset(
    {
        "PIP_CACHE_DIR",
        "PIP_NO_CACHE_DIR",
        "UV_CACHE_DIR",
        "UV_NATIVE_TLS",
        "UV_NO_CACHE",
        "UV_OFFLINE",
        "UV_SYSTEM_CERTS",
    }
)

# Of the shell session; the installers have no use for them.
_SESSION = frozenset(
    {
        "_",
        "__PYVENV_LAUNCHER__",
        "COLUMNS",
        "LINES",
        "OLDPWD",
        "PS1",
        "PWD",
        "SHLVL",
        "VIRTUAL_ENV",
        "VIRTUAL_ENV_PROMPT",
    }
)

_PATTERN = re.compile(r"VARIANT_PROVIDER|VISIBLE_DEVICES$")


def _detection(vendor: Vendor) -> set[str]:
    """Return the variables of a vendor that `_PATTERN` does not cover."""
    return {name for name in (*vendor.variables, *vendor.hidden_by) if not _PATTERN.search(name)}


PLUGIN_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "programs and libraries": (
        "PATH",
        "LD_LIBRARY_PATH",
        "DYLD_LIBRARY_PATH",
        "DYLD_FALLBACK_LIBRARY_PATH",
        "CONDA_PREFIX",
    ),
    "language": ("LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "LC_NUMERIC", "TZ"),
    "Windows": (
        "COMSPEC",
        "NUMBER_OF_PROCESSORS",
        "OS",
        "PATHEXT",
        "PROCESSOR_ARCHITECTURE",
        "PROCESSOR_ARCHITEW6432",
        "PROCESSOR_IDENTIFIER",
        "PROGRAMDATA",
        "PROGRAMFILES",
        "PROGRAMFILES(X86)",
        "PROGRAMW6432",
        "SYSTEMDRIVE",
        "SYSTEMROOT",
        "WINDIR",
    ),
    "WSL": ("WSL_DISTRO_NAME", "WSL_INTEROP"),
    **{
        vendor.title: tuple(sorted(names))
        for vendor in (
            machines.BUILTIN_NAMESPACES[namespace].vendor for namespace in machines.ACCELERATORS
        )
        if (names := _detection(vendor))
    },
    "Neuron": ("NEURON_RT_VISIBLE_CORES",),
}
"""The variables that detection needs, by what they are for. Besides these, plugins see the settings
of providers (``…VARIANT_PROVIDER…``), ``…VISIBLE_DEVICES``, and what the user names."""

_NAMES = frozenset(name for names in PLUGIN_VARIABLES.values() for name in names)
_SECRET_VALUE = re.compile(r"://[^/?#\s]+@")


def plugin_variables(environ: Mapping[str, str], more: Iterable[str] = ()) -> dict[str, str]:
    """Return those of *environ* that a plugin sees: `PLUGIN_VARIABLES`, and *more*.

    Args:
        environ: environment variables of the user.
        more: names that the user hands on deliberately.

    A value with credentials in a URL is withheld, unless the user named the variable.
    """
    named = frozenset(more)
    return {
        name: value
        for name, value in environ.items()
        if name in named
        or (
            (name.upper() in _NAMES or _PATTERN.search(name.upper()))
            and not _SECRET_VALUE.search(value)
        )
    }


def installer_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return those of *environ* that pip and uv see when they install a plugin.

    Everything but what steers Python and themselves; caches, trust stores and offline mode stay.
    Variants are switched off: what installs a provider must not need one.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if name.upper() in _INSTALLER_SETTINGS
        or not (name.upper().startswith(_STEERING) or name.upper() in _SESSION)
    }
    return {**kept, "PIP_NO_VARIANTS": "1", "VARIANTS_NO_VARIANTS": "1"}
