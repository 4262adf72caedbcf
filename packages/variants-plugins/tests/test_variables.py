"""Which environment variables and devices reach a plugin, and which variables an installer."""

from fnmatch import fnmatchcase

import pytest

from pep_variants._providers.registry import ACCELERATORS, find_vendor
from variants_plugins._sandbox import DEVICES
from variants_plugins._variables import installer_variables, plugin_variables

KEPT = [
    "CUDA_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "ASCEND_RT_VISIBLE_DEVICES",
    "LD_LIBRARY_PATH",
    "NV_VARIANT_PROVIDER_FORCE_SM_ARCH",
    "ACME_VARIANT_PROVIDER_KEY",
    "Path",
    "SystemRoot",
]
WITHHELD = [
    # Secrets, under names that no list of such names has.
    "CI_JOB_JWT",
    "LICENSE_BLOB",
    "HTTPS_PROXY",
    "NVIDIA_API_KEY",
    "SSH_AUTH_SOCK",
    # What runs code, or says where the user's files are.
    "LD_PRELOAD",
    "PYTHONPATH",
    "BASH_ENV",
    "HOME",
    "XDG_CONFIG_HOME",
    "UV_INDEX_URL",
    "VARIANTS_ALLOW_PROVIDER",
    "TMPDIR",
]


def test_what_plugins_see():
    given = dict.fromkeys([*KEPT, *WITHHELD], "value")
    assert plugin_variables(given) == dict.fromkeys(KEPT, "value")
    assert plugin_variables(given, WITHHELD) == given


def test_values_with_credentials_are_withheld():
    secret = {"ACME_VARIANT_PROVIDER_X": "https://me:pw@a.example"}
    assert plugin_variables(secret) == {}
    assert plugin_variables(secret, ["ACME_VARIANT_PROVIDER_X"]) == secret


def test_installers():
    off = {"PIP_NO_VARIANTS": "1", "VARIANTS_NO_VARIANTS": "1"}
    assert installer_variables({}) == off
    kept = {
        "PATH": "/bin",
        "HOME": "/home/me",
        "HTTPS_PROXY": "http://me:pw@proxy.example",
        "SSL_CERT_FILE": "/ca.pem",
        "TMPDIR": "/scratch",
        "UV_CACHE_DIR": "/cache",
        "PIP_CACHE_DIR": "/cache",
        "UV_OFFLINE": "1",
    }
    dropped = {
        "PYTHONPATH": "/x",
        "PIP_TARGET": "/x",
        "PIP_REQUIRE_VIRTUALENV": "1",
        "PIP_VARIANT_PLATFORM": "/x",
        "UV_PREVIEW_FEATURES": "wheel-variants",
        "UV_INDEX_URL": "https://a.example",
        "VIRTUAL_ENV": "/x",
        "VARIANTS_PLATFORM": "/x",
    }
    assert installer_variables({**kept, **dropped}) == {**kept, **off}


@pytest.mark.parametrize("namespace", ACCELERATORS)
def test_device_files(namespace):
    """The sandbox lets plugins open those of every vendor with a built-in provider."""
    vendor = find_vendor(namespace)
    assert vendor is not None
    for name in vendor.nodes:
        path = f"/dev/{name.replace('*', '0').replace('[0-9]', '0')}"
        assert any(
            fnmatchcase(path, pattern) or path.startswith(f"{pattern}/") for pattern in DEVICES
        )
