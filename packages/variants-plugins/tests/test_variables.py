"""Which environment variables reach a plugin, and which an installer."""

import pytest

from variants_plugins.variables import PLUGIN_VARIABLES, installer_variables, plugin_variables

KEPT = [
    *(name for names in PLUGIN_VARIABLES.values() for name in names),
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "ASCEND_RT_VISIBLE_DEVICES",
    "NV_VARIANT_PROVIDER_FORCE_SM_ARCH",
    "AMD_VARIANT_PROVIDER_FORCE_GFX_ARCH",
    "ACME_VARIANT_PROVIDER_KEY",
    "Path",
    "SystemRoot",
]
WITHHELD = [
    # Secrets under names that no list of such names has.
    "CI_JOB_JWT",
    "AUTHORIZATION",
    "LICENSE_BLOB",
    "KUBECONFIG",
    "HTTPS_PROXY",
    # What runs code, or says where the user's files are.
    "LD_PRELOAD",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "BASH_ENV",
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    "PIP_INDEX_URL",
    "UV_INDEX_URL",
    "VARIANTS_ALLOW_PROVIDER",
    "VIRTUAL_ENV",
    "GITHUB_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_ACCESS_KEY_ID",
    "OPENAI_API_KEY",
    "NVIDIA_API_KEY",
    "TWINE_PASSWORD",
    "PGPASSWORD",
    "SSH_AUTH_SOCK",
    "DBUS_SESSION_BUS_ADDRESS",
    "PWD",
    "TMPDIR",
]


@pytest.mark.parametrize("name", KEPT)
def test_plugins_see(name):
    assert plugin_variables({name: "value"}) == {name: "value"}


@pytest.mark.parametrize("name", WITHHELD)
def test_plugins_do_not_see(name):
    assert plugin_variables({name: "value"}) == {}
    assert plugin_variables({name: "value"}, [name]) == {name: "value"}


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
