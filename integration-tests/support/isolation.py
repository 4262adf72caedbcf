"""The environment variables of tests: a home of their own, and what may reach registries.

Every process of a test run gets the variables of `isolated`: what a program needs to start, and
places below a temporary folder for everything that is kept in a user's home. Downloads alone (pips,
uvs, build backends, tools) get those of `outside`: the user's registries, proxies and certificates.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

_PROGRAMS = frozenset(
    {
        *("PATH", "PYENV_ROOT", "LANG", "LC_ALL", "LC_CTYPE", "USER", "LOGNAME"),
        *("TMPDIR", "TEMP", "TMP", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "CI"),
        *("SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "OS", "USERNAME"),
        *("PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432"),
        *("LOCK_SEED", "LOCK_WORLDS"),
        *("COMMONPROGRAMFILES", "COMMONPROGRAMFILES(X86)", "NUMBER_OF_PROCESSORS"),
        *("PROCESSOR_ARCHITECTURE", "PROCESSOR_IDENTIFIER", "PYTEST_DEBUG_TEMPROOT"),
    }
)
"""What programs need to start, pytest to work, and tests to know what is asked of them."""

_NETWORK = frozenset(
    {
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"),
        *("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    }
)
"""Proxies and certificates on the way to servers that are not on loopback; lower case as well."""

_HOMES = frozenset(
    {
        *("HOME", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA", "NETRC"),
        *("XDG_CACHE_HOME", "XDG_CONFIG_DIRS", "XDG_CONFIG_HOME", "XDG_DATA_HOME"),
    }
)
"""Where pip, uv and npm find the user's configuration, credentials and caches."""

_REGISTRIES = frozenset(
    {
        *("PIP_CONFIG_FILE", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"),
        *("PIP_NO_INDEX", "PIP_TRUSTED_HOST", "PIP_CERT", "PIP_CLIENT_CERT", "PIP_PROXY"),
        *("PIP_KEYRING_PROVIDER", "PIP_TIMEOUT", "PIP_DEFAULT_TIMEOUT", "PIP_RETRIES"),
        *("PIP_CACHE_DIR", "UV_CONFIG_FILE", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL"),
        *("UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_OFFLINE", "UV_NATIVE_TLS", "UV_SYSTEM_CERTS"),
        *("UV_INSECURE_HOST", "UV_KEYRING_PROVIDER", "UV_HTTP_TIMEOUT", "UV_CACHE_DIR"),
    }
)
"""What says where packages are downloaded from, and how."""

_REGISTRY_PREFIXES = ("UV_INDEX_", "NPM_CONFIG_")

_original: dict[str, str] | None = None


def places(home: Path) -> dict[str, str]:
    """Return the variables that put everything that is kept in a user's home below *home*.

    The system's configuration is there as well, so that none is found.
    """
    return {
        "HOME": str(home),
        "USERPROFILE": str(home),
        "APPDATA": str(home / "AppData" / "Roaming"),
        "LOCALAPPDATA": str(home / "AppData" / "Local"),
        # platformdirs asks Windows itself, unless these are set.
        "WIN_PD_OVERRIDE_APPDATA": str(home / "AppData" / "Roaming"),
        "WIN_PD_OVERRIDE_LOCAL_APPDATA": str(home / "AppData" / "Local"),
        "WIN_PD_OVERRIDE_COMMON_APPDATA": str(home / "ProgramData"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "XDG_CONFIG_DIRS": str(home / "etc"),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / ".local" / "share"),
        "XDG_STATE_HOME": str(home / ".local" / "state"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "PIP_CONFIG_FILE": os.devnull,  # not the machine's either
    }


def isolated(environ: Mapping[str, str], home: Path) -> dict[str, str]:
    """Return the variables of a test, made from those of the user.

    Nothing that a test starts writes bytecode beside the sources: what is started with a limit
    on the size of files, or killed, would leave it cut off, and Python fails to import that.
    """
    kept = {name: value for name, value in environ.items() if _is_kept(name)}
    if "PYENV_ROOT" not in kept and "HOME" in environ:  # its commands on PATH look there
        pyenv = Path(environ["HOME"], ".pyenv")
        kept |= {"PYENV_ROOT": str(pyenv)} if pyenv.is_dir() else {}
    return {**kept, **places(home), "PYTHONDONTWRITEBYTECODE": "1"}


def isolate(home: Path) -> None:
    """Give this process the variables of `isolated`; `outside` keeps those that it had."""
    global _original
    if _original is None:
        _original = dict(os.environ)
    variables = isolated(_original, home)
    os.environ.clear()
    os.environ.update(variables)


def outside() -> dict[str, str]:
    """Return the variables of a download: it uses the user's home, as pip, uv and npm do."""
    original = _variables_of_user()
    if _original is None:  # not in a test
        return original
    own = {name: value for name, value in os.environ.items() if name not in places(Path())}
    homes = {name: value for name, value in original.items() if name in _HOMES}
    return {**own, **homes, **registries()}


def registries() -> dict[str, str]:
    """Return the user's variables that say where packages come from, and the way there.

    For a program that is tested and downloads: the home is still that of the test.
    """
    return {
        name: value
        for name, value in _variables_of_user().items()
        if name in _REGISTRIES
        or name.upper() in _NETWORK
        or name.upper().startswith(_REGISTRY_PREFIXES)
    }


def network() -> dict[str, str]:
    """Return the user's proxies and certificates, for a test that talks to PyPI itself."""
    variables = _variables_of_user()
    return {name: value for name, value in variables.items() if name.upper() in _NETWORK}


def _variables_of_user() -> dict[str, str]:
    return dict(os.environ if _original is None else _original)


def _is_kept(name: str) -> bool:
    name = name.upper() if os.name == "nt" else name
    return name in _PROGRAMS or name.startswith("PYTEST_XDIST_")
