"""The ascend provider, over a fake `npu-smi` and a fake installation of CANN."""

import os

import pytest
from summaries import summary

from pep_variants._model.platform import Fact
from pep_variants._providers.ascend import AscendProvider

NPU_TYPE = "ASCEND_VARIANT_PROVIDER_FORCE_NPU_TYPE"
DRIVER = "ASCEND_VARIANT_PROVIDER_FORCE_DRIVER_VERSION"
CANN = "ASCEND_VARIANT_PROVIDER_FORCE_CANN_VERSION"


def npu_smi(version, *names):
    """Return what `npu-smi info` prints of NPUs with these names."""
    line = "+---------------------------+---------------+-------------------------------------+"
    rows = [
        f"| {index:<5} {name:<19} | OK            | 93.1        37                0    / 0 |\n"
        "| 0                         | 0000:C1:00.0  | 0           0    / 0   3352 / 65536 |\n"
        + line
        for index, name in enumerate(names)
    ]
    return "\n".join(
        [
            line,
            f"| npu-smi {version:<16} Version: {version:<52} |",
            line,
            "| NPU   Name                | Health        | Power(W)    Temp(C)                 |",
            "| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)        |",
            line.replace("-", "="),
            *rows,
            "",
        ]
    )


class Machine:
    """A machine with what its driver says of the NPUs."""

    def __init__(self, root, command):
        self.root = root
        self.environ = {"PATH": f"{root / 'bin'}{os.pathsep}/bin{os.pathsep}/usr/bin"}
        self._command = command

    def driver(self, text):
        script = f"[ \"$*\" = info ] || exit 2\ncat <<'EOF'\n{text}EOF"
        return f"{self._command(self.root / 'bin/npu-smi', script)} info"

    def cann(self, version):
        home = self.root / "ascend-toolkit"
        file = home / f"{os.uname().machine}-linux" / "ascend_toolkit_install.info"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"package_name=Ascend-cann-toolkit\nversion={version}\ninnerversion=V100\n")
        self.environ["ASCEND_TOOLKIT_HOME"] = str(home)
        return str(file)

    def provider(self, **environ):
        return AscendProvider({**self.environ, **environ}, system="linux")


@pytest.fixture
def machine(tmp_path, command):
    return Machine(tmp_path, command)


def test_everything_there_is(machine):
    source = machine.driver(npu_smi("24.1.rc1", "910B3", "910B3"))
    file = machine.cann("8.0.RC1")
    provider = machine.provider()
    assert list(provider.supported().items()) == [
        ("npu_type", ("910b",)),
        ("driver_version", ("24.1.rc1",)),
        ("cann_version", ("8.0.rc1",)),
    ]
    assert provider.facts() == (
        Fact("NPU", "910b", f"{source}, NPU 0"),
        Fact("NPU", "910b", f"{source}, NPU 1"),
        Fact("Ascend driver", "24.1.rc1", source),
        Fact("CANN", "8.0.rc1", file),
    )
    assert summary(provider) == "NPU 910b, Ascend driver 24.1.rc1, CANN 8.0.rc1"


@pytest.mark.parametrize(
    ("names", "driver", "cann", "expected"),
    [
        (["910B3"], "25.2.1", "8.0.0", (["910b"], ["25.2.1"], ["8.0.0"])),
        (["310P3"], "unknown", "8.0.RC1", (["310p"], [], ["8.0.rc1"])),
        (["910B3", "310P3", "910B1"], "24.1.0", "8", (["910b", "310p"], ["24.1.0"], [])),
        (["910B3"], "24.1.0", "", (["910b"], ["24.1.0"], [])),
        (["910B3"], "24.1.0", None, (["910b"], ["24.1.0"], [])),
        # The package takes these for no NPUs; without one, what else is installed does not count.
        (["Ascend910"], "24.1.0", "8.0.0", ([], [], [])),
        ([], "24.1.0", "8.0.0", ([], [], [])),
    ],
)
def test_types_and_versions(machine, names, driver, cann, expected):
    machine.driver(npu_smi(driver, *names))
    if cann is not None:
        machine.cann(cann)
    found = machine.provider().supported()
    keys = ("npu_type", "driver_version", "cann_version")
    assert tuple(list(found.get(key, ())) for key in keys) == expected
    missing = machine.provider(ASCEND_TOOLKIT_HOME=str(machine.root / "missing"))
    assert missing.supported().keys() == found.keys() - {"cann_version"}


@pytest.mark.parametrize(
    "script", ["exit 1", "", "echo 'DrvMngGetConsoleLogLevel failed. (ret=4)'"]
)
def test_a_driver_that_fails_is_none(machine, command, script):
    machine.cann("8.0.0")
    command(machine.root / "bin/npu-smi", script)
    assert machine.provider().supported() == {}
    assert machine.provider().facts() == ()


def test_nothing_is_there_without_the_command_or_linux(machine):
    machine.cann("8.0.0")
    assert machine.provider().supported() == {}
    machine.driver(npu_smi("24.1.0", "910B3"))
    assert AscendProvider(machine.environ, system="win32").supported() == {}
    assert AscendProvider(machine.environ, system="darwin").supported() == {}


# Overrides. Each replaces detection of one fact.


def test_the_other_facts_are_detected(machine, command):
    machine.driver(npu_smi("24.1.0", "910B3"))
    machine.cann("8.0.0")
    assert machine.provider(**{NPU_TYPE: "310p"}).supported() == {
        "npu_type": ("310p",),
        "driver_version": ("24.1.0",),
        "cann_version": ("8.0.0",),
    }
    command(machine.root / "bin/npu-smi", ': > "$0.ran"')
    assert machine.provider(**{NPU_TYPE: "310p", DRIVER: "24.1.0", CANN: "8.0.0"}).facts()
    assert not (machine.root / "bin/npu-smi.ran").exists()


def test_a_driver_that_floods_is_none(machine, command, caplog):
    command(machine.root / "bin/npu-smi", "exec cat /dev/zero")
    assert machine.provider().supported() == {}
    assert "answered more than" in caplog.text
    assert NPU_TYPE in caplog.text
