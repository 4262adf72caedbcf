import re
import shlex
from dataclasses import replace

import pytest

from pep_variants._choose.explanation import notices
from pep_variants._choose.preferences import Preferences
from pep_variants._choose.ranking import rank
from pep_variants._detect.detector import Detector
from pep_variants._formats.reader import metadata_from_tree
from pep_variants._model.generation import V0_0_3, V0_1_1, V0_2_0
from pep_variants._model.metadata import Metadata, ProviderInfo
from pep_variants._model.platform import Platform, Support
from pep_variants._providers import registry

LINUX = {"platform_system": "Linux", "os_name": "posix", "python_version": "3.12"}
NVIDIA = {
    "requires": ["nvidia-variant-provider>=0.0.1,<1.0.0"],
    "plugin-api": "nvidia_variant_provider.plugin:NvidiaVariantPlugin",
}
NEEDS_CUDA = {"cuda": {"nvidia": {"cuda_version_lower_bound": ["12.8"], "sm_arch": ["90_real"]}}}


def read(schema, namespace, raw, values=("1", "2", "10")):
    tree = {
        "$schema": schema.schema,
        "default-priorities": {"namespace": [namespace]},
        "variants": {f"v{value}": {namespace: {"f": [value]}} for value in values},
    }
    if raw is not None:
        tree["providers"] = {namespace: raw}
    return metadata_from_tree(tree, "x.json")


def support(metadata, environment=LINUX, **keys):
    detector = Detector(environment=environment, **keys)
    (namespace,) = metadata.namespaces
    return detector.platform(metadata).support(namespace)


@pytest.fixture
def forced(monkeypatch):
    def force(driver, capability):
        monkeypatch.setenv("NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION", driver)
        monkeypatch.setenv("NV_VARIANT_PROVIDER_FORCE_SM_ARCH", capability)

    return force


# Providers that are built in.


def test_override_that_makes_no_sense(forced):
    forced("twelve", "9.0")
    found = support(read(V0_2_0, "nvidia", NVIDIA))
    assert found.features == {}
    assert "NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION" in found.notice
    assert "'twelve'" in found.notice
    assert not found.untrusted


def test_an_unknown_builtin_provider():
    found = support(read(V0_2_0, "acme", {"builtin": "ac\nme"}))
    assert found.notice == r"the built-in provider 'ac\nme' is not known to this release"
    assert not found.untrusted


def test_host(forced):
    forced("12.8", "9.0")
    found = Detector().host()
    assert {"aarch64", "nvidia", "x86_64"} <= set(found.namespaces)
    assert list(found.namespaces) == sorted(found.namespaces)
    assert found.support("nvidia").features["sm_arch"] == ("90_real", "90_virtual")


def test_fault_of_a_provider_costs_its_namespace(monkeypatch):
    def supported(self):
        raise RuntimeError("driver library is gone\x1b")

    monkeypatch.setattr(registry.BUILTIN_NAMESPACES["nvidia"].factory, "supported", supported)
    found = support(read(V0_1_1, "nvidia", None))
    assert found.features == {}
    assert found.notice == r"detection failed: 'driver library is gone\x1b'"


# Plugins that are not known.


@pytest.mark.parametrize(
    ("requires", "shown"),
    [
        (["acme-provider>=1,<2"], "acme-provider<2,>=1"),
        (["acme[x]>=1; python_version >= '3.8'"], "acme[x]>=1"),
        (["other; python_version < '3.8'", "acme; os_name == 'posix'", "more"], "acme"),
        (["acme @ https://host/a;b.whl ; os_name == 'posix'"], "acme@ https://host/a;b.whl"),
        # Of a known package, but not one that we could stand in for.
        (["nvidia-variant-provider[x]"], "nvidia-variant-provider[x]"),
    ],
)
def test_unknown_plugin(requires, shown):
    metadata = read(V0_2_0, "acme", {"requires": requires})
    found = support(metadata)
    assert found.features == {}
    assert found.untrusted.replace(" @ ", "@ ") == shown
    assert "is neither built in nor allowed to run" in found.notice
    assert "or describe the namespace in a platform file (--variant-platform)" in found.notice
    ((text, _),) = notices(rank(metadata, Detector(environment=LINUX).platform(metadata)))
    assert text == f"Namespace 'acme' is skipped: {found.notice}"
    option = re.search(r"--variant-allow-provider ('[^']*'|\S+), or", found.notice)
    # Copied into a shell, the option is what it seems to be.
    assert shlex.split(option[1]) == [found.untrusted]


@pytest.mark.parametrize(
    "requires",
    [
        ["--index-url=https://evil"],
        ["acme; variant_label == 'x'"],
        ["acme; " + "(" * 1900],
    ],
)
def test_hostile_requirements_are_not_offered(requires):
    found = support(read(V0_2_0, "acme", {"requires": requires}))
    assert found.features == {}
    assert found.untrusted == ""
    assert found.notice.startswith("its provider is not a valid requirement: [")
    assert "--variant-allow-provider" not in found.notice
    assert len(found.notice) < 300


# Where the environment and the user decide.


@pytest.mark.parametrize(
    ("marker", "holds"),
    [
        ("platform_system == 'Darwin' or python_version >= '3.12'", True),
        # What cannot be evaluated does not hold.
        ("(" * 1900, False),
        ("os_name == 'posix'\x1b[31m", False),
    ],
)
def test_enable_if(marker, holds):
    raw = {"install-time": False, "enable-if": marker}
    found = support(read(V0_0_3, "acme", raw))
    assert bool(found.features) is holds
    if not holds:
        assert found.notice.startswith("its provider is only for environments with ")
        assert found.notice.isprintable()
        assert len(found.notice) < 300


# A platform file in place of detection.

MACHINE = Platform({"nvidia": Support({"sm_arch": ("90_real",)}), "acme": Support()}, "m.toml")


def test_nothing_runs_with_a_platform_file(monkeypatch):
    def fail(*args):
        raise AssertionError("a provider was asked")

    for provider in registry.BUILTIN_NAMESPACES.values():
        monkeypatch.setattr(type(provider.factory()), "supported", fail)
    metadata = read(V0_2_0, "nvidia", NVIDIA)
    assert support(metadata, platform=MACHINE).features
    assert not support(metadata, platform=Platform()).features


# What built-in providers found out elsewhere.


@pytest.mark.parametrize(
    ("raw", "is_supported"),
    [
        (NVIDIA, True),
        (None, True),  # the format leaves the choice to us
        ({**NVIDIA, "requires": ["nvidia-variant-provider>=9"]}, False),
        ({**NVIDIA, "plugin-api": "nvidia_variant_provider.other:Plugin"}, False),
    ],
)
def test_what_was_detected_counts_where_ours_stand_in(raw, is_supported):
    schema = V0_1_1 if raw is None else V0_0_3
    detected = Platform({"nvidia": Support({"f": ("2", "1")})})
    metadata = read(schema, "nvidia", raw)
    for platform in (None, Platform()):
        found = support(metadata, detected=detected, platform=platform)
        assert found.features == (detected.support("nvidia").features if is_supported else {})
        assert bool(found.untrusted) is not is_supported
    stated = Platform({"nvidia": Support({"f": ("10",)})})
    assert support(metadata, detected=detected, platform=stated) == stated.support("nvidia")


def test_detector_of_preferences(tmp_path):
    def no_runner():
        raise AssertionError("no plugin is allowed, or detection is replaced")

    file = tmp_path / "platform.toml"
    file.write_text('[[provider]]\nnamespace = "acme"\nproperties = {speed = ["fast"]}\n')
    metadata = Metadata(("acme",), providers={"acme": ProviderInfo(("acme-provider",))})
    allowed = Preferences(allow_providers=("acme-provider",))
    support = Detector.of(Preferences(), runner=no_runner).platform(metadata).support("acme")
    assert support.untrusted == "acme-provider"
    described = Detector.of(replace(allowed, platform_file=str(file)), runner=no_runner, here=False)
    assert described.platform(metadata).support("acme").features == {"speed": ("fast",)}
    elsewhere = Detector.of(allowed, runner=no_runner, here=False).platform(metadata)
    assert not elsewhere.described
    assert "--variant-platform" in elsewhere.support("acme").notice
