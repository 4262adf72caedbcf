"""The intel provider, over a loader of Level Zero compiled here and fake folders of the kernel."""

import pytest
from summaries import summary

from pep_variants._providers.intel import KNOWN_DEVICES, IntelProvider

PROVIDER = "pep_variants._providers.intel:IntelProvider"
DEVICE = "INTEL_VARIANT_PROVIDER_FORCE_DEVICE_IP"

# What drivers tell of their devices: the values of device_ip, and the IP versions of the facts.
DEVICES = [
    # Devices that intel-variant-provider knows, and all that each supports.
    ("35.11.0", "35.11.0", "35.11.0"),
    ("30.5.4", "30.5.4 30.0.4", "30.5.4"),
    ("20.4.4", "20.4.4 20.1.0", "20.4.4"),
    ("12.71.4", "12.71.4 12.70.4", "12.71.4"),
    ("12.57.0", "12.57.0 12.55.8", "12.57.0"),
    ("12.0.0", "12.0.0", "12.0.0"),
    (";", "", ""),
    ("20.2.0,20.1.0,20.2.0", "20.2.0 20.1.0", "20.2.0 20.1.0 20.2.0"),
    ("20.1.0;12.60.7", "20.1.0 12.60.7", "20.1.0 12.60.7"),
    # Not of Intel, no GPU, without the extension, lost.
    ("nvidia:12.60.7,npu:20.1.0,-,!20.1.0,30.0.4", "30.0.4", "30.0.4"),
    # What else runs on a device that is not in the table is not known.
    ("9.5.0,20.1.1,12.60.7", "12.60.7", "9.5.0 20.1.1 12.60.7"),
    ("1023.255.63", "", "1023.255.63"),
]


@pytest.fixture
def level_zero(build):
    """Return a function that builds the fake loader, some functions missing."""
    return lambda *missing: build("fake_level_zero.c", "libze_loader.so.1", *missing)


@pytest.fixture
def root(tmp_path):
    """The root of a machine with an Intel GPU."""
    node(tmp_path, "renderD128", "0x8086\n")
    return tmp_path


def node(root, name, vendor):
    """Add a GPU to what the kernel tells, vendor None for one of which it does not."""
    device = root / "dev/dri" / name
    device.parent.mkdir(parents=True, exist_ok=True)
    device.touch()
    if vendor is not None:
        file = root / "sys/class/drm" / name / "device/vendor"
        file.parent.mkdir(parents=True)
        file.write_text(vendor)


def case(root, overrides=None, **process):
    variables = {f"FAKE_ZE_{name}": str(text) for name, text in process.items()}
    return {"process": variables, "overrides": overrides or {}, "root": str(root)}


def values(answer):
    """Return the values of the one feature, separated by spaces."""
    features = dict(answer["supported"])
    assert set(features) <= {"device_ip"}
    return " ".join(features.get("device_ip", []))


def test_devices(ask, level_zero, root):
    names = {device.ip: device.names for device in KNOWN_DEVICES}
    assert len(names) == 23
    answers = ask(PROVIDER, [case(root, DRIVERS=text) for text, _, _ in DEVICES], level_zero())
    for (_, expected, facts), answer in zip(DEVICES, answers, strict=True):
        assert values(answer) == expected
        assert answer["facts"] == [
            ["Intel GPU", f"{ip} ({names[ip]})" if ip in names else ip,
             f"libze_loader.so.1, GPU {index}", False]
            for index, ip in enumerate(facts.split())
        ]  # fmt: skip
        assert answer["warnings"] == []


@pytest.mark.parametrize(
    ("missing", "process", "expected"),
    [
        # Loaders and drivers of all ages.
        (("zeInitDrivers",), {"OLD_DRIVERS": "20.1.0"}, "20.1.0"),
        ((), {"INIT_DRIVERS": "0x78000001", "OLD_DRIVERS": "20.1.0"}, "20.1.0"),
        ((), {"DRIVERS": "", "OLD_DRIVERS": "20.1.0"}, "20.1.0"),
        (("zeInit",), {"DRIVERS": "20.1.0"}, "20.1.0"),
        # Wrong answers.
        ((), {"INIT_DRIVERS": "0x78000001", "INIT": "0x78000001", "DRIVERS": "20.1.0"}, ""),
        (("zeInitDrivers", "zeInit"), {"DRIVERS": "20.1.0"}, ""),
        (("zeDeviceGet",), {"DRIVERS": "20.1.0"}, ""),
        (("zeDeviceGetProperties",), {"DRIVERS": "20.1.0"}, ""),
        ((), {"DRIVERS": "20.1.0;12.60.7", "DEVICE_ERROR": "0x78000001"}, "12.60.7"),
        # More claimed than there are, or than there can be.
        ((), {"DRIVERS": "20.1.0", "DRIVER_COUNT": "7"}, "20.1.0"),
        ((), {"DRIVERS": "20.1.0", "DEVICE_COUNT": "0xffffffff"}, ""),
    ],
)
def test_loaders_and_drivers(ask, level_zero, root, missing, process, expected):
    [answer] = ask(PROVIDER, [case(root, **process)], level_zero(*missing))
    assert values(answer) == expected
    assert answer["warnings"] == []


def test_a_loader_that_cannot_be_loaded(ask, root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("broken")
    (folder / "libze_loader.so.1").write_bytes(b"no library\n")
    [answer] = ask(PROVIDER, [case(root)], folder)
    assert (answer["supported"], answer["facts"], answer["warnings"]) == ([], [], [])


@pytest.mark.parametrize(
    ("nodes", "asked"),
    [
        ({}, False),
        ({"renderD128": "0x10de\n", "renderD129": "0x1002\n"}, False),
        ({"card0": "0x8086\n"}, False),  # a display, but nothing to compute with
        ({"renderD128": "0x1002\n", "renderD129": "0x8086\n"}, True),
        ({"renderD128": None}, True),
    ],
)
def test_level_zero_is_asked_only_where_there_may_be_a_gpu(ask, level_zero, tmp_path, nodes, asked):
    for name, vendor in nodes.items():
        node(tmp_path, name, vendor)
    log = tmp_path / "log"
    [answer] = ask(PROVIDER, [case(tmp_path, DRIVERS="20.1.0", LOG=log)], level_zero())
    assert log.exists() == asked
    assert values(answer) == ("20.1.0" if asked else "")


def test_level_zero_is_asked_in_wsl_and_on_windows_but_not_elsewhere(
    ask, level_zero, build, tmp_path
):
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/dxg").touch()
    windows = str(build("fake_level_zero.c", "System32/ze_loader.dll"))
    told = case(tmp_path, DRIVERS="20.1.0")
    wsl, mac, dll, nothing = ask(
        PROVIDER,
        [
            told,
            {**told, "system": "darwin"},
            {**told, "system": "win32", "overrides": {"WINDIR": windows}},
            {**told, "system": "win32", "overrides": {"WINDIR": str(tmp_path)}},
        ],
        level_zero(),
    )
    assert values(wsl) == "20.1.0"
    assert values(mac) == ""
    assert values(dll) == "20.1.0"
    assert dll["facts"][0][2] == "ze_loader.dll, GPU 0"
    assert values(nothing) == ""


# Overrides.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("20.2.0,12.60.7", "20.2.0 20.1.0 12.60.7"),
        (" 12.60.7 ; 20.1.0 \n", "12.60.7 20.1.0"),
    ],
)
def test_a_forced_device_supports_what_a_real_one_would(text, expected):
    provider = IntelProvider({DEVICE: text})
    assert provider.supported() == {"device_ip": tuple(expected.split())}
    assert "(forced)" in summary(provider)


def test_a_forced_device_that_is_not_known_supports_nothing(caplog):
    provider = IntelProvider({DEVICE: "12.99.9"})
    assert provider.supported() == {}
    assert summary(provider) == "Intel GPU 12.99.9 (forced)"
    assert "12.99.9" in caplog.text
    assert DEVICE in caplog.text


def test_level_zero_is_not_asked_when_the_device_is_forced(ask, level_zero, root, tmp_path):
    log = tmp_path / "log"
    told = case(root, {DEVICE: "20.1.0"}, DRIVERS="12.60.7", LOG=log)
    empty = case(root, {DEVICE: " "}, DRIVERS="12.60.7")
    forced, detected = ask(PROVIDER, [told, empty], level_zero())
    assert values(forced) == "20.1.0"
    assert values(detected) == "12.60.7"
    assert not log.exists()
