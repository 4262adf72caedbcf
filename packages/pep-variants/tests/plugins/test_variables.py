"""Which environment variables reach a plugin, and which an installer."""

import pytest

from pep_variants.plugins.variables import installer_variables, plugin_variables

KEPT = [
    "PATH",
    "HOME",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "CUDA_HOME",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "NV_VARIANT_PROVIDER_FORCE_SM_ARCH",
    "AMD_VARIANT_PROVIDER_FORCE_GFX_ARCH",
    "ACME_VARIANT_PROVIDER_KEY",
    "ROCM_PATH",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "HSA_OVERRIDE_GFX_VERSION",
    "ONEAPI_ROOT",
    "ZE_AFFINITY_MASK",
    "ASCEND_TOOLKIT_HOME",
    "CONDA_PREFIX",
    "SYSTEMROOT",
    "LANG",
    "KEYBOARD",
]
WITHHELD = [
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PIP_INDEX_URL",
    "UV_INDEX_URL",
    "VARIANTS_ALLOW_PROVIDER",
    "VIRTUAL_ENV",
    "GITHUB_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_ACCESS_KEY_ID",
    "AWS_SESSION_TOKEN",
    "OPENAI_API_KEY",
    "TWINE_PASSWORD",
    "PGPASSWORD",
    "MYSQL_PWD",
    "NETRC",
    "SSH_AUTH_SOCK",
    "SENTRY_DSN",
    "npm_config__auth",
    "PWD",
    "SHLVL",
    "TMPDIR",
]


@pytest.mark.parametrize("name", KEPT)
def test_plugins_see(name):
    assert plugin_variables({name: "value"}) == {name: "value"}


@pytest.mark.parametrize("name", WITHHELD)
def test_plugins_do_not_see(name):
    assert plugin_variables({name: "value"}) == {}


def test_values_with_credentials_are_withheld_under_any_name():
    assert plugin_variables({"DATABASE_URL": "postgres://me:pw@db.example/x"}) == {}
    assert plugin_variables({"ACME_VARIANT_PROVIDER_X": "https://me:pw@a.example"}) == {}
    assert plugin_variables({"HTTPS_PROXY": "http://proxy.example:3128"}) != {}


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
