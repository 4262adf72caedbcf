"""Which environment variables the installer and the plugin get to see."""

from __future__ import annotations

import re
from collections.abc import Mapping

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

# Of the shell and the terminal; they differ from call to call and say nothing of the machine.
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
        "SSH_CLIENT",
        "SSH_CONNECTION",
        "SSH_TTY",
        "TERM_SESSION_ID",
        "VIRTUAL_ENV",
        "VIRTUAL_ENV_PROMPT",
        "WINDOWID",
    }
)
_TEMPORARY = frozenset({"TEMP", "TMP", "TMPDIR"})
"""Plugins get a directory of their own for temporary files, see `runner`."""

_OVERRIDE = re.compile(r"VARIANT_PROVIDER|VISIBLE_DEVICES")
_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|COOKIE|NETRC|CONNECTION_?STRING|SESSION"
    r"|(API|ACCESS|PRIVATE)_?KEY|(^|_)(AUTH|DSN|KEYS?|PASS|PAT|PWD|SIGNATURE)(_|$)"
)
_SECRET_VALUE = re.compile(r"://[^/?#\s]+@")


def plugin_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return those of *environ* that a plugin sees.

    Everything but: what steers Python (``PYTHON…``), pip, uv and this project; what belongs to
    the shell session; names that look like credentials, and values with credentials in a URL.
    Overrides of providers (``…VARIANT_PROVIDER…``, ``…VISIBLE_DEVICES``) stay whatever they look
    like, and so do the paths to drivers and tools: PATH, LD_LIBRARY_PATH, ``CUDA_…``, ``ROCM_…``,
    ``HIP_…``, ``NV…``. This is hygiene, not a wall: the plugin runs with the user's rights.
    """
    return {
        name: value
        for name, value in environ.items()
        if not _SECRET_VALUE.search(value)
        and (_OVERRIDE.search(name.upper()) or not _withheld(name.upper()))
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


def _withheld(name: str) -> bool:
    return (
        name.startswith(_STEERING)
        or name in _SESSION
        or name in _TEMPORARY
        or bool(_SECRET_NAME.search(name))
    )
