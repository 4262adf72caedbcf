"""Which provider packages our own implementations stand in for."""

import subprocess
import sys

import pytest

from pep_variants._model.metadata import ProviderInfo
from pep_variants._providers.amd import AmdProvider
from pep_variants._providers.ascend import AscendProvider
from pep_variants._providers.nvidia import NvidiaProvider
from pep_variants._providers.registry import BUILTIN_NAMESPACES, find_known
from pep_variants._providers.x86_64 import X8664Provider
from pep_variants.errors import ProviderError

LINUX = {
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_system": "Linux",
    "python_version": "3.12",
    "sys_platform": "linux",
}
NVIDIA = "nvidia-variant-provider"
NVIDIA_API = "nvidia_variant_provider.plugin:NvidiaVariantPlugin"


def package(namespace, *requires, **rest) -> str | None:
    known = find_known(namespace, ProviderInfo(requires=requires, **rest), lambda: LINUX)
    return None if known is None else known.package


@pytest.mark.parametrize(
    ("namespace", "requirement", "plugin_api", "stands_for", "factory"),
    [
        # As the metadata of torch 2.8 and 2.10, and of the CPU providers' own documentation.
        ("nvidia", f"{NVIDIA}>=0.0.1,<1.0.0", NVIDIA_API, "0.0.2", NvidiaProvider),
        ("nvidia", NVIDIA, "nvidia_variant_provider", "0.0.2", NvidiaProvider),
        (
            "x86_64",
            "provider-variant-x86-64 >=0.0.1,<1",
            "provider_variant_x86_64.plugin:X8664Plugin",
            "0.0.3",
            X8664Provider,
        ),
        (
            "x86_64",
            "x86-64-variant-provider>=0.0.1,<1",
            "x86_64_variant_provider",
            "0.2.1",
            X8664Provider,
        ),
        (
            "ascend",
            "huawei-ascend-variant-provider>=0.0.1,<1.0.0",
            "huawei_ascend_variant_provider.plugin:AscendVariantPlugin",
            "0.0.2",
            AscendProvider,
        ),
        (
            "amd",
            "rocm-bootstrap>=0.3",
            "rocm_bootstrap.variant_provider:AMDVariantPlugin",
            "0.3.0",
            AmdProvider,
        ),
    ],
)
def test_packages_we_stand_in_for(namespace, requirement, plugin_api, stands_for, factory):
    info = ProviderInfo(requires=(requirement,), plugin_api=plugin_api)
    known = find_known(namespace, info, lambda: LINUX)
    assert known is not None
    assert known.namespace == namespace
    assert known.stands_for == stands_for
    assert requirement.startswith(known.package)
    provider = known.factory()
    assert type(provider) is factory
    assert provider.namespace == namespace


HELPER = "some-helper>=1"
ELSEWHERE = "os_name == 'nt'"
URL = "https://example.org/nvidia_variant_provider-0.0.2-py3-none-any.whl"


@pytest.mark.parametrize(
    ("requires", "plugin_api", "is_ours"),
    [
        # The version that we stand for has to fit: every requirement on the package counts.
        ([f"{NVIDIA}==0.0.*"], None, True),
        ([f"{NVIDIA}>0.0.2a1"], None, True),
        ([f"{NVIDIA}!=0.0.2"], None, False),
        ([f"{NVIDIA}==0.0.2.post1"], None, False),
        ([NVIDIA, f"{NVIDIA}<0.0.2"], None, False),
        ([f"{NVIDIA}<0.0.2", NVIDIA], None, False),
        # Requirements that do not apply are dropped: version, URL and package do not matter.
        ([f"{NVIDIA}>=0.0.1; os_name == 'posix'", f"another; {ELSEWHERE}"], None, True),
        ([f"another; {ELSEWHERE}", NVIDIA], None, True),
        ([NVIDIA, f"{NVIDIA}>=9; {ELSEWHERE}"], None, True),
        ([NVIDIA, f"{NVIDIA} @ {URL} ; {ELSEWHERE}"], None, True),
        ([f"{NVIDIA}; {ELSEWHERE}", "another"], None, False),
        # Others beside it do not run; they do not matter as long as the endpoint is not theirs.
        ([NVIDIA, HELPER], None, True),
        ([HELPER, NVIDIA], None, False),
        ([HELPER, NVIDIA], NVIDIA_API, True),
        ([NVIDIA], "some_helper", False),
        ([NVIDIA], "nvidia_variant_provider.plugin", False),
        ([NVIDIA], "nvidia_variant_provider:Other", False),
        # Something else, and what cannot be read.
        *(
            (requires, None, False)
            for other in (
                f"{NVIDIA} @ {URL}",
                f"{NVIDIA}[cuda]==0.0.2",
                f"{NVIDIA}; nonsense == 'x'",
                f"{NVIDIA}\n--pre",
                f"{NVIDIA}; {'(' * 100_000}",
            )
            for requires in ([other], [NVIDIA, other], [other, NVIDIA])
        ),
    ],
)
def test_requirements(requires, plugin_api, is_ours):
    found = package("nvidia", *requires, plugin_api=plugin_api)
    assert found == (NVIDIA if is_ours else None)


NAMESPACES = ["nvidia", "amd", "intel", "ascend", "tpu", "x86_64", "aarch64"]


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_builtin_providers_are_known_by_their_namespace(namespace):
    assert package(namespace, builtin=namespace) == BUILTIN_NAMESPACES[namespace].package
    assert package(namespace, builtin=namespace.upper()) is None
    assert package(namespace, builtin="other") is None
    assert package("other", builtin=namespace) is None
    assert package("other", builtin="other") is None


# What all providers have in common.


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_every_answer_is_known(namespace):
    provider = BUILTIN_NAMESPACES[namespace].factory()
    known = provider.known()
    for feature, values in provider.supported().items():
        assert list(values) == [value for value in known[feature] if value in values]


NV, AMD = "NV_VARIANT_PROVIDER_FORCE", "AMD_VARIANT_PROVIDER_FORCE"
ASCEND, INTEL = "ASCEND_VARIANT_PROVIDER_FORCE", "INTEL_VARIANT_PROVIDER_FORCE"
LONG = "9" * 5000
MALFORMED = {
    # Namespace, variable, a value that would be right: others.
    ("nvidia", f"{NV}_CUDA_DRIVER_VERSION", "12.8"): [
        "x", "12,8", "-12.8", "12.", ".8", "12.8rc1", "12.99999999", "١٢.٨", LONG,
    ],
    ("nvidia", f"{NV}_SM_ARCH", "9.0"): ["90", "9", "9.0a", "9.0.0", LONG],
    ("amd", f"{AMD}_GFX_ARCH", "gfx1100 or gfx90a,gfx942"): [
        "gfx", "gfx9", "GFX1100", "gfx1100:xnack+", "gfx11-generic", ",",
    ],
    ("amd", "ROCM_BOOTSTRAP_FORCE_GFX_ARCH", "gfx1100 or gfx90a,gfx942"): ["gfx11-generic"],
    ("amd", f"{AMD}_ROCM_VERSION", "6.4.1"): ["6", "v6.4", "6.4.1-83", "6.4.1.0", "٦.٤", LONG],
    ("amd", "HSA_OVERRIDE_GFX_VERSION", "10.3.0"): ["10.3"],
    ("intel", f"{INTEL}_DEVICE_IP", "20.1.0"): [
        "20.1", "v20.1.0", "20.01.0", "٢٠.١.٠", "20.1.0,bmg", LONG,
    ],
    ("ascend", f"{ASCEND}_NPU_TYPE", "910b"): ["910B", "910b,310p", f"{LONG}!"],
    ("ascend", f"{ASCEND}_DRIVER_VERSION", "24.1.rc1"): ["910B"],
    ("ascend", f"{ASCEND}_CANN_VERSION", "8.0.rc1"): ["910B"],
    ("tpu", "TPU_VARIANT_PROVIDER_FORCE_PRESENT", "true"): ["maybe"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("namespace", "variable", "way_out", "text"),
    [(*key, text) for key, texts in MALFORMED.items() for text in texts],
)
def test_a_malformed_override_is_an_error_with_a_way_out(
    tmp_path, namespace, variable, way_out, text
):
    gpu = tmp_path / "sys/class/kfd/kfd/topology/nodes/1/properties"  # which HSA's variable is for
    gpu.parent.mkdir(parents=True)
    gpu.write_text("simd_count 304\ngfx_target_version 110000\n")
    provider = BUILTIN_NAMESPACES[namespace].factory({variable: text}, tmp_path, "linux")
    for ask in (provider.supported, provider.facts):
        with pytest.raises(ProviderError) as error:
            ask()
        message = str(error.value)
        assert variable in message
        assert text[:60] in message
        assert message.endswith(f"set it to one like {way_out}, or unset it")
        assert len(message) < 300


def test_looking_for_accelerators_starts_no_command(tmp_path, command):
    """Without their kernel drivers no tool runs, even where one is installed."""
    log = tmp_path / "log"
    for name in ("rocminfo", "rocm_agent_enumerator", "hipconfig", "nvidia-smi", "lspci"):
        command(tmp_path / name, f"echo {name} >> '{log}'; sleep 30")
    code = (
        "import pathlib, sys\n"
        "from pep_variants._providers.registry import BUILTIN_NAMESPACES as known\n"
        "for namespace in ('amd', 'intel'):\n"
        "    root = pathlib.Path(sys.argv[1])\n"
        "    assert known[namespace].factory(root=root).supported() == {}\n"
        "assert known['ascend'].factory().supported() == {}\n"
        "print([name for name in ('archspec', 'pynvml', 'subprocess') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "root")],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
    assert not log.exists()
