"""A plugin that is on PyPI, asked as it is."""

import platform
import urllib.request

import pytest

from pep_variants._model.metadata import ProviderInfo
from pep_variants._providers.x86_64 import X8664Provider
from pep_variants.preferences import Sources
from support.isolation import network
from variants_plugins.runner import PluginRunner

X86_64 = "provider-variant-x86-64==0.0.1.post2"
X86_64_API = "provider_variant_x86_64.plugin:X8664Plugin"


@pytest.fixture(scope="module", autouse=True)
def _pypi():
    try:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in network().items():
                patch.setenv(name, value)
            urllib.request.urlopen("https://pypi.org/simple/provider-variant-x86-64/", timeout=20)
    except OSError as error:
        pytest.skip(f"PyPI cannot be reached: {error}")


@pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="another CPU")
def test_x86_64_says_what_ours_says(clean_environ, tmp_path):
    """Feature for feature, in the same order, with the same values.

    With one difference that is meant: archspec has learned to recognize CPUs since that package
    bundled it, so on some machines ours knows the CPU where it only sees the level. Then it has
    more extensions; the others have to be the same.
    """
    provider = ProviderInfo((X86_64.replace("==0.0.1.post2", ">=0.0.1,<1.0.0"),), X86_64_API)
    environ = {**clean_environ, **network()}
    runner = PluginRunner([X86_64], Sources(), cache_dir=tmp_path, environ=environ, time_limit=30)
    answer = runner.ask("x86_64", provider, {"sys_platform": "linux"})
    assert answer.resolved == (X86_64,)
    ours = X8664Provider().supported()
    common = {name: values for name, values in ours.items() if name in answer.features}
    assert list(answer.features.items()) == list(common.items())
    assert ours["level"] == answer.features["level"]
