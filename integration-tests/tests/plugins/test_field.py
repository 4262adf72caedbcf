"""Plugins that are on PyPI, asked as they are."""

import platform
import urllib.request

import pytest

from pep_variants.model.metadata import ProviderInfo
from pep_variants.providers.x86_64 import X8664Provider
from support.isolation import network
from variants_plugins import PluginRunner, Sources

X86_64 = "provider-variant-x86-64==0.0.1.post2"
X86_64_API = "provider_variant_x86_64.plugin:X8664Plugin"
ASCEND = "ascend-variant-provider==0.0.2"
ASCEND_API = "ascend_variant_provider.plugin:AscendVariantPlugin"
# The hash is that of the only file of this version.
ASCEND_HASH = "--hash=sha256:63bfe204bee6a0a92e4ac74e2bfcbf261ac9141bdbb5d0158b090380b045bb1c"


@pytest.fixture(scope="module", autouse=True)
def _pypi():
    try:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in network().items():
                patch.setenv(name, value)
            urllib.request.urlopen("https://pypi.org/simple/ascend-variant-provider/", timeout=20)
    except OSError as error:
        pytest.skip(f"PyPI cannot be reached: {error}")


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("field")


@pytest.fixture
def ask(cache, clean_environ):
    def ask(namespace, allow, provider, **environ):
        runner = PluginRunner(
            [allow],
            Sources(),
            cache_dir=cache,
            environ={**clean_environ, **network(), **environ},
            time_limit=30,
        )
        return runner.ask(namespace, provider, {"sys_platform": "linux"})

    return ask


@pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="another CPU")
def test_x86_64_says_what_ours_says(ask):
    """Feature for feature, in the same order, with the same values.

    With one difference that is meant: archspec has learned to recognize CPUs since that package
    bundled it, so on some machines ours knows the CPU where it only sees the level. Then it has
    more extensions; the others have to be the same.
    """
    provider = ProviderInfo((X86_64.replace("==0.0.1.post2", ">=0.0.1,<1.0.0"),), X86_64_API)
    answer = ask("x86_64", X86_64, provider)
    assert answer.resolved == (X86_64,)
    ours = X8664Provider().supported()
    common = {name: values for name, values in ours.items() if name in answer.features}
    assert list(answer.features.items()) == list(common.items())
    assert ours["level"] == answer.features["level"]


@pytest.mark.nightly
def test_ascend(ask):
    provider = ProviderInfo(("ascend-variant-provider>=0.0.1",), ASCEND_API)
    answer = ask("ascend", f"{ASCEND} {ASCEND_HASH}", provider)
    assert answer.features == {}
    assert answer.resolved == (ASCEND,)
    # It prints this to its standard output.
    assert "failed to detect Ascend environment" in answer.stderr
    overrides = {
        "ASCEND_VARIANT_PROVIDER_FORCE_NPU_TYPE": "910b",
        "ASCEND_VARIANT_PROVIDER_FORCE_CANN_VERSION": "8.2.rc1",
    }
    answer = ask("ascend", ASCEND, provider, **overrides)
    assert answer.features == {"npu_type": ("910b",), "cann_version": ("8.2.rc1",)}
