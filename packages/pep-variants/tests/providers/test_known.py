"""Which provider packages our own implementations stand in for."""

import subprocess
import sys

import pytest

from pep_variants.model.metadata import ProviderInfo
from pep_variants.providers.ascend import AscendProvider
from pep_variants.providers.nvidia import NvidiaProvider
from pep_variants.providers.registry import BUILTIN_NAMESPACES, find_known
from pep_variants.providers.x86_64 import X8664Provider

LINUX = {
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_system": "Linux",
    "python_version": "3.12",
    "sys_platform": "linux",
}
WINDOWS = {**LINUX, "platform_system": "Windows", "sys_platform": "win32", "os_name": "nt"}

NVIDIA = "nvidia-variant-provider"
NVIDIA_API = "nvidia_variant_provider.plugin:NvidiaVariantPlugin"


def package(namespace, *requires, plugin_api=None, environment=LINUX, **rest) -> str | None:
    info = ProviderInfo(requires=requires, plugin_api=plugin_api, **rest)
    known = find_known(namespace, info, lambda: environment)
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


@pytest.mark.parametrize(
    ("specifier", "fits"),
    [
        ("", True),
        ("==0.0.*", True),
        (">0.0.2a1", True),
        ("!=0.0.2", False),
        ("<0.0.2", False),
        ("==0.0.2.post1", False),
    ],
)
def test_the_version_we_stand_for_has_to_fit(specifier, fits):
    expected = NVIDIA if fits else None
    assert package("nvidia", NVIDIA + specifier) == expected
    # Every requirement on the package counts.
    assert package("nvidia", NVIDIA, NVIDIA + specifier) == expected
    assert package("nvidia", NVIDIA + specifier, NVIDIA) == expected


def test_requirements_that_do_not_apply_are_dropped():
    on_linux = f"{NVIDIA}>=0.0.1; sys_platform == 'linux'"
    elsewhere = "another-provider; sys_platform != 'linux'"
    assert package("nvidia", on_linux, elsewhere) == NVIDIA
    assert package("nvidia", elsewhere, on_linux) == NVIDIA
    assert package("nvidia", on_linux, elsewhere, environment=WINDOWS) is None
    # Neither the version nor the URL of a dropped one matters, nor its package.
    assert package("nvidia", NVIDIA, f"{NVIDIA}>=9; os_name == 'nt'") == NVIDIA
    url = f"{NVIDIA} @ https://example.org/p.whl ; os_name == 'nt'"
    assert package("nvidia", NVIDIA, url) == NVIDIA


def test_one_package_of_ours_and_its_endpoint():
    # Others beside it do not run; they do not matter as long as the endpoint is not theirs.
    assert package("nvidia", NVIDIA, "some-helper>=1") == NVIDIA
    assert package("nvidia", "some-helper", NVIDIA) is None
    assert package("nvidia", "some-helper", NVIDIA, plugin_api=NVIDIA_API) == NVIDIA
    assert package("nvidia", NVIDIA, plugin_api="some_helper") is None
    assert package("nvidia", NVIDIA, plugin_api="nvidia_variant_provider.plugin") is None
    assert package("nvidia", NVIDIA, plugin_api="nvidia_variant_provider:Other") is None


@pytest.mark.parametrize(
    "requirement",
    [
        # Something else.
        f"{NVIDIA} @ https://example.org/nvidia_variant_provider-0.0.2-py3-none-any.whl",
        f"{NVIDIA}[cuda]==0.0.2",
        # What cannot be read.
        f"{NVIDIA}; nonsense == 'x'",
        f"{NVIDIA}\n--pre",
        f"{NVIDIA}; {'(' * 100_000}",
    ],
)
def test_requirements_that_we_do_not_stand_in_for(requirement):
    assert package("nvidia", requirement) is None
    assert package("nvidia", NVIDIA, requirement) is None
    assert package("nvidia", requirement, NVIDIA) is None


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


def test_looking_for_accelerators_starts_no_command(tmp_path, command):
    """Without their kernel drivers no tool runs, even where one is installed."""
    log = tmp_path / "log"
    for name in ("rocminfo", "rocm_agent_enumerator", "hipconfig", "nvidia-smi", "lspci"):
        command(tmp_path / name, f"echo {name} >> '{log}'; sleep 30")
    code = (
        "import pathlib, sys\n"
        "from pep_variants.providers.registry import BUILTIN_NAMESPACES as known\n"
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
