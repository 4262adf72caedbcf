"""Which provider packages our own implementations stand in for."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pep_variants.model.metadata import ProviderInfo
from pep_variants.providers.amd import AmdProvider
from pep_variants.providers.ascend import AscendProvider
from pep_variants.providers.nvidia import NvidiaProvider
from pep_variants.providers.registry import BUILTIN_NAMESPACES, find_known
from pep_variants.providers.x86_64 import X8664Provider

LINUX = {
    "implementation_name": "cpython",
    "implementation_version": "3.12.1",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_release": "6.1",
    "platform_system": "Linux",
    "platform_version": "1",
    "python_full_version": "3.12.1",
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
        (
            "x86_64",
            "provider-variant-x86-64 >=0.0.1,<1",
            "provider_variant_x86_64.plugin:X8664Plugin",
            "0.0.3",
            X8664Provider,
        ),
        (
            "amd",
            "amd-variant-provider>=0.0.2,<1.0.0",
            "amd_variant_provider.plugin:AMDVariantPlugin",
            "0.0.2",
            AmdProvider,
        ),
        (
            "ascend",
            "ascend-variant-provider>=0.0.1,<1.0.0",
            "ascend_variant_provider.plugin:AscendVariantPlugin",
            "0.0.2",
            AscendProvider,
        ),
        (
            "ascend",
            "huawei-ascend-variant-provider>=0.0.1,<1.0.0",
            "huawei_ascend_variant_provider.plugin:AscendVariantPlugin",
            "0.0.2",
            AscendProvider,
        ),
        ("nvidia", NVIDIA, "nvidia_variant_provider", "0.0.2", NvidiaProvider),
        (
            "x86_64",
            "x86-64-variant-provider>=0.0.1,<1",
            "x86_64_variant_provider",
            "0.2.1",
            X8664Provider,
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
        ("==0.0.2", True),
        ("~=0.0.1", True),
        ("==0.0.*", True),
        (">0.0.2a1", True),
        ("!=0.0.2", False),
        ("<0.0.2", False),
        (">=1", False),
        (">=0.0.1,<0.0.2", False),
        ("==0.0.2.post1", False),
    ],
)
def test_the_version_we_stand_for_has_to_fit(specifier, fits):
    expected = NVIDIA if fits else None
    assert package("nvidia", NVIDIA + specifier) == expected
    # Every requirement on the package counts.
    assert package("nvidia", NVIDIA, NVIDIA + specifier) == expected
    assert package("nvidia", NVIDIA + specifier, NVIDIA) == expected


@pytest.mark.parametrize(
    "name", ["Nvidia_Variant.Provider", "NVIDIA-VARIANT-PROVIDER", "nvidia--variant__provider"]
)
def test_names_are_normalized(name):
    assert package("nvidia", name) == NVIDIA


def test_requirements_that_do_not_apply_are_dropped():
    on_linux = f"{NVIDIA}>=0.0.1; sys_platform == 'linux'"
    elsewhere = "somebodys-provider; sys_platform != 'linux'"
    assert package("nvidia", on_linux, elsewhere) == NVIDIA
    assert package("nvidia", elsewhere, on_linux) == NVIDIA
    assert package("nvidia", on_linux, elsewhere, environment=WINDOWS) is None
    assert package("nvidia", on_linux, environment=WINDOWS) is None
    # Neither the version nor the URL of a dropped one matters, nor its package.
    assert package("nvidia", NVIDIA, f"{NVIDIA}>=9; os_name == 'nt'") == NVIDIA
    url = f"{NVIDIA} @ https://example.org/p.whl ; os_name == 'nt'"
    assert package("nvidia", NVIDIA, url) == NVIDIA
    cpu = "provider-variant-x86-64; platform_machine == 'x86_64'"
    arm = "provider-variant-aarch64; platform_machine == 'aarch64'"
    assert package("x86_64", cpu, arm) == "provider-variant-x86-64"
    assert package("x86_64", cpu, arm, environment={**LINUX, "platform_machine": "arm64"}) is None


def test_one_package_of_ours_and_its_endpoint():
    # Others beside it do not run; they do not matter as long as the endpoint is not theirs.
    assert package("nvidia", NVIDIA, "some-helper>=1") == NVIDIA
    assert package("nvidia", "some-helper", NVIDIA) is None
    assert package("nvidia", "some-helper", NVIDIA, plugin_api=NVIDIA_API) == NVIDIA
    assert package("nvidia", NVIDIA, plugin_api="some_helper") is None
    assert package("nvidia", NVIDIA, plugin_api="nvidia_variant_provider.plugin") is None
    assert package("nvidia", NVIDIA, plugin_api="nvidia_variant_provider:Other") is None
    both = ("x86-64-variant-provider", "provider-variant-x86-64")
    assert package("x86_64", *both, plugin_api="x86_64_variant_provider") is None
    assert package("x86_64", *both, plugin_api="provider_variant_x86_64") is None
    assert package("nvidia", NVIDIA, "provider-variant-x86-64") is None
    assert (
        package("x86_64", "x86-64-variant-provider", plugin_api="provider_variant_x86_64") is None
    )


@pytest.mark.parametrize(
    "requirement",
    [
        f"{NVIDIA} @ https://example.org/nvidia_variant_provider-0.0.2-py3-none-any.whl",
        f"{NVIDIA} @ file:///nvidia_variant_provider-0.0.2-py3-none-any.whl",
        f"{NVIDIA}[cuda]",
        f"{NVIDIA}[cuda]==0.0.2",
        f"{NVIDIA}[a,b]; sys_platform == 'linux'",
    ],
)
def test_urls_and_extras_mean_something_else(requirement):
    assert package("nvidia", requirement) is None
    assert package("nvidia", NVIDIA, requirement) is None
    assert package("nvidia", requirement, NVIDIA) is None


@pytest.mark.parametrize(
    "requirement",
    [
        f"{NVIDIA} 0.0.2",
        f"{NVIDIA}; nonsense == 'x'",
        f"--index-url https://example.org {NVIDIA}",
        f"{NVIDIA}\n--pre",
        f"https://example.org/{NVIDIA}.whl",
        f"{NVIDIA}; {'(' * 100_000}",
    ],
)
def test_what_cannot_be_read_is_not_known(requirement):
    assert package("nvidia", requirement) is None
    assert package("nvidia", NVIDIA, requirement) is None
    assert package("nvidia", requirement, NVIDIA) is None


def test_providers_without_requirements():
    assert package("nvidia") is None
    assert package("nvidia", plugin_api=NVIDIA_API) is None
    assert package("nvidia", build_requires=(NVIDIA,)) is None
    assert package("nvidia", "somebodys-provider") is None


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


FIELD = Path(__file__).parents[4].parent / "shared" / "data" / "field"


@pytest.mark.skipif(not FIELD.is_dir(), reason="the files published in the field are not here")
def test_the_field_names_providers_we_know():
    seen = {}
    for path in sorted(FIELD.glob("*-variants.json")):
        for namespace, raw in json.loads(path.read_text())["providers"].items():
            info = ProviderInfo(tuple(raw["requires"]), raw.get("plugin-api"))
            seen.setdefault(namespace, set()).add(find_known(namespace, info, lambda: LINUX))
    for namespace in ("nvidia", "amd", "intel"):
        assert seen.pop(namespace) == {BUILTIN_NAMESPACES[namespace]}
    assert set(seen) == {"priority"}
