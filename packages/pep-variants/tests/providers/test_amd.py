"""The amd provider, over fake folders of the kernel and of ROCm, and fake commands."""

import logging
import os
import sys

import pytest
from summaries import summary

from pep_variants._model.platform import Fact
from pep_variants._providers.amd import AmdProvider
from support.waiting import wait_until

ARCHITECTURE = "AMD_VARIANT_PROVIDER_FORCE_GFX_ARCH"
VERSION = "AMD_VARIANT_PROVIDER_FORCE_ROCM_VERSION"


class Machine:
    """A machine whose kernel has the GPUs and CPUs that it is told of."""

    def __init__(self, root, command):
        self.root = root
        self._command = command
        self._nodes = 0
        self.environ = {"PATH": os.pathsep.join([str(root / "usr/bin"), "/bin", "/usr/bin"])}

    def write(self, path, text=""):
        """Write a file, of a driver for example; return its path."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="latin-1")
        return str(file)

    def node(self, **properties):
        """Add a node to what the kernel tells of processors; return the path of its file."""
        path = f"sys/class/kfd/kfd/topology/nodes/{self._nodes}/properties"
        self._nodes += 1
        return self.write(path, "".join(f"{name} {text}\n" for name, text in properties.items()))

    def cpu(self):
        return self.node(cpu_cores_count=64, simd_count=0, gfx_target_version=0, unique_id=0)

    def gpu(self, version, unique_id=0):
        return self.node(simd_count=304, gfx_target_version=version, unique_id=unique_id)

    def rocm(self, text="6.4.1-83\n", path="opt/rocm/.info/version"):
        """Install ROCm; return the path of the file that tells its version."""
        return self.write(path, text)

    def command(self, path, script):
        return str(self._command(self.root / path, script))

    def provider(self, system="linux", time_limit=10.0, **environ):
        return AmdProvider({**self.environ, **environ}, self.root, system, time_limit)

    def gfx(self, **environ):
        return self.provider(**environ).supported().get("gfx_arch", ())


@pytest.fixture
def machine(tmp_path, command):
    return Machine(tmp_path, command)


# GPUs as the kernel tells them.


@pytest.mark.parametrize(
    ("name", "version"), [("gfx803", 80003), ("gfx90a", 90010), ("gfx1036", 100306)]
)
def test_every_gpu(machine, name, version):
    machine.cpu()
    gpu = machine.gpu(version)
    file = machine.rocm()
    provider = machine.provider()
    assert list(provider.supported().items()) == [
        ("gfx_arch", (name,)),
        ("rocm_version", ("6.4",)),
    ]
    assert provider.facts() == (Fact("AMD GPU", name, gpu), Fact("ROCm", "6.4.1", file))
    assert summary(provider) == f"AMD GPU {name}, ROCm 6.4.1"


def test_several_gpus_are_ordered_as_text_whatever_the_kernel_says(machine):
    machine.cpu()
    paths = [machine.gpu(version) for version in (120001, 90010, 90008, 90010)]
    for _ in range(10):  # so that node 10 comes after node 9 and not after node 1
        machine.cpu()
    paths.append(machine.gpu(100306))
    provider = machine.provider()
    assert provider.supported()["gfx_arch"] == ("gfx1036", "gfx1201", "gfx908", "gfx90a")
    assert [fact.source for fact in provider.facts()] == [paths[each] for each in (4, 0, 2, 1, 3)]
    assert summary(provider) == "AMD GPU gfx1036, gfx1201, gfx908 and gfx90a"
    assert machine.gfx(HIP_VISIBLE_DEVICES="4") == ("gfx1036",)


# What limits the GPUs. The semantics are those of ROCr (amd_filter_device.cpp) and HIP
# (rocdevice.cpp), the first applied first.

UNIQUE = (0xBABABABABABABABA, 0xBABABABABABAABBA, 0x0123456789ABCDEF, 0)


@pytest.fixture
def four(machine):
    """A machine with gfx900, gfx906, gfx908 and gfx90a, the last without a UUID."""
    machine.cpu()
    for version, unique_id in zip((90000, 90006, 90008, 90010), UNIQUE, strict=True):
        machine.gpu(version, unique_id)
    return machine


def numbers(architectures):
    order = ("gfx900", "gfx906", "gfx908", "gfx90a")
    return "".join(str(order.index(name)) for name in architectures)


@pytest.mark.parametrize(
    ("text", "rocr", "hip"),
    [
        ("0", "0", "0"),
        ("2,0", "02", "02"),
        ("", "", "0123"),  # HIP takes it for one that is not set
        ("-1", "", ""),
        ("99999999999999999999", "", ""),
        ("x", "", ""),
        ("1,x,2", "1", "1"),
        ("1,,2", "1", "1"),
        # They differ in white space and in what they do about a GPU listed twice.
        (" 1 , 2 ", "12", ""),
        ("1, 2", "12", "1"),
        ("1,1,2", "1", "12"),
        # UUIDs, which may be cut short as long as one GPU is meant.
        ("GPU-0123456789abcdef", "2", "2"),
        ("GPU-0123", "2", "2"),
        ("gpu-0123456789ABCDEF", "2", "2"),
        ("GPU-baba", "", ""),
        ("GPU-", "", ""),
        ("GPU-4b2c1a9f-8d3e-6f7a-b5c9-2e4d8a1f6c3b", "", ""),  # another vendor's
    ],
)
def test_variables_limit_the_gpus(four, text, rocr, hip):
    assert numbers(four.gfx(ROCR_VISIBLE_DEVICES=text)) == rocr
    assert numbers(four.gfx(HIP_VISIBLE_DEVICES=text)) == hip
    assert numbers(four.gfx(CUDA_VISIBLE_DEVICES=text)) == hip


def test_hip_numbers_what_rocr_leaves_in_its_order(four):
    assert numbers(four.gfx(ROCR_VISIBLE_DEVICES="3,1", HIP_VISIBLE_DEVICES="0")) == "3"
    assert numbers(four.gfx(ROCR_VISIBLE_DEVICES="3,1", HIP_VISIBLE_DEVICES="1")) == "1"
    assert numbers(four.gfx(ROCR_VISIBLE_DEVICES="3,1", HIP_VISIBLE_DEVICES="2")) == ""
    assert numbers(four.gfx(ROCR_VISIBLE_DEVICES="3,1", CUDA_VISIBLE_DEVICES="1")) == "1"
    assert numbers(four.gfx(ROCR_VISIBLE_DEVICES="", HIP_VISIBLE_DEVICES="0")) == ""


def test_hidden_gpus_are_facts(machine):
    paths = [machine.gpu(version) for version in (110000, 100306, 90402)]
    provider = machine.provider(ROCR_VISIBLE_DEVICES="0,2", HIP_VISIBLE_DEVICES="1")
    assert provider.facts() == (
        Fact("AMD GPU", "gfx942", paths[2]),
        Fact("hidden AMD GPU", "gfx1036", f"{paths[1]}, hidden by ROCR_VISIBLE_DEVICES"),
        Fact("hidden AMD GPU", "gfx1100", f"{paths[0]}, hidden by HIP_VISIBLE_DEVICES"),
    )
    assert summary(provider) == "AMD GPU gfx942, hidden AMD GPU gfx1036 and gfx1100"


def test_the_architecture_that_the_runtime_is_told_counts(machine):
    machine.gpu(100301)
    provider = machine.provider(HSA_OVERRIDE_GFX_VERSION="10.3.0")
    assert provider.facts()[0] == Fact("AMD GPU", "gfx1030", "HSA_OVERRIDE_GFX_VERSION", True)
    assert provider.supported() == {"gfx_arch": ("gfx1030",)}
    assert machine.gfx(HSA_OVERRIDE_GFX_VERSION="9.0.10") == ("gfx90a",)
    assert machine.gfx(HSA_OVERRIDE_GFX_VERSION="") == ("gfx1031",)


# Commands, where the kernel has a driver that does not tell.

ROCMINFO = """\
ROCk module is loaded
HSA System Attributes
Runtime Version:         1.14
*******
Agent 1
*******
  Name:                    AMD EPYC 7763 64-Core Processor
  Uuid:                    CPU-XX
  Device Type:             CPU
*******
Agent 2
*******
  Name:                    gfx90a
  Uuid:                    GPU-0123456789abcdef
  Device Type:             GPU
  ISA Info:
    ISA 1
      Name:                    amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-
*******
Agent 3
*******
  Name:                    gfx1100
  Uuid:                    GPU-XX
  Device Type:             GPU
*** Done ***
"""


def printing(text):
    return f"cat <<'EOF'\n{text}EOF"


@pytest.mark.parametrize("device", ["dev/kfd", "dev/dxg"])
@pytest.mark.parametrize(
    "folder", ["usr/bin", "opt/rocm/bin", "opt/rocm/core/bin", "elsewhere/bin"]
)
def test_commands_are_asked_where_the_kernel_does_not_tell(machine, device, folder):
    machine.write(device)
    path = machine.command(f"{folder}/rocminfo", printing(ROCMINFO))
    environ = {"ROCM_PATH": str(machine.root / "elsewhere")} if folder == "elsewhere/bin" else {}
    provider = machine.provider(**environ)
    assert provider.supported() == {"gfx_arch": ("gfx1100", "gfx90a")}
    assert provider.facts() == (
        Fact("AMD GPU", "gfx1100", f"{path}, agent 3"),
        Fact("AMD GPU", "gfx90a", f"{path}, agent 2"),
    )
    assert machine.gfx(**environ, HIP_VISIBLE_DEVICES="1") == ("gfx1100",)
    assert machine.gfx(**environ, ROCR_VISIBLE_DEVICES="GPU-0123") == ("gfx90a",)


def test_kernels_before_gpus_had_versions(machine):
    machine.cpu()
    machine.node(cpu_cores_count=0, simd_count=256)
    machine.command("opt/rocm/bin/rocminfo", printing(ROCMINFO))
    assert machine.gfx() == ("gfx1100", "gfx90a")


def test_limits_are_applied_once(machine):
    machine.write("dev/kfd")
    script = f"env | grep VISIBLE_DEVICES && exit 1\n{printing(ROCMINFO)}"
    machine.command("opt/rocm/bin/rocminfo", script)
    both = {"ROCR_VISIBLE_DEVICES": "1,0", "HIP_VISIBLE_DEVICES": "1"}
    assert machine.gfx(**both, HSA_ANYTHING="1") == ("gfx90a",)


@pytest.mark.parametrize("rocminfo", [None, "echo 'ROCk module is NOT loaded'; exit 255"])
def test_a_rocminfo_that_fails_tells_of_no_gpu(machine, caplog, rocminfo):
    machine.write("dev/kfd")
    if rocminfo:
        machine.command("opt/rocm/bin/rocminfo", rocminfo)
    assert machine.provider().facts() == ()
    said = ["fails with status 255: ROCk module is NOT loaded" in text for text in warnings(caplog)]
    assert said == [True] * bool(rocminfo)


def test_a_command_that_hangs_is_killed_with_what_it_started(machine, caplog):
    machine.write("dev/kfd")
    child = machine.root / "child"
    machine.command("usr/bin/rocminfo", f"sleep 600 &\necho $! > '{child}'\nwait")
    assert machine.provider(time_limit=0.5).supported() == {}
    [record] = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert "rocminfo did not end within 0.5 s" in record.getMessage()
    assert ARCHITECTURE in record.getMessage()
    assert wait_until(lambda: not alive(int(child.read_text())), 60)


def alive(number):
    """Whether a process is there and no zombie."""
    try:
        with open(f"/proc/{number}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_commands_of_the_working_directory_do_not_run(machine, monkeypatch):
    machine.write("dev/kfd")
    machine.command("rocminfo", printing(ROCMINFO))
    machine.command("bin/rocminfo", printing(ROCMINFO))
    monkeypatch.chdir(machine.root)
    machine.environ["PATH"] = os.pathsep.join(["", ".", "bin", "/bin"])
    assert machine.gfx() == ()


# Where the version of ROCm is found.


@pytest.mark.parametrize("path", ["opt/rocm/.info/version", "opt/rocm/core/.info/version"])
def test_files_that_tell_the_version(machine, path):
    file = machine.rocm("7.14.0-83\n", path)
    assert machine.provider().facts() == (Fact("ROCm", "7.14.0", file),)
    assert machine.provider().supported() == {"rocm_version": ("7.14",)}
    other = machine.rocm("6.4.2", "opt/rocm-6.4.2/.info/version")
    set_to = machine.provider(ROCM_PATH=str(machine.root / "opt/rocm-6.4.2"))
    assert set_to.facts() == (Fact("ROCm", "6.4.2", other),)
    assert machine.provider(ROCM_PATH=str(machine.root / "none")).supported() == {}
    assert machine.provider(ROCM_PATH="").supported() == {"rocm_version": ("7.14",)}


@pytest.mark.parametrize("folder", ["opt/rocm/lib", "usr/lib64", "usr/lib/x86_64-linux-gnu"])
def test_the_runtime_alone_tells_the_version(machine, folder):
    machine.write(f"{folder}/libamdhip64.so.6.4.60401")
    link = machine.root / folder / "libamdhip64.so.6"
    link.symlink_to("libamdhip64.so.6.4.60401")
    assert machine.provider().facts() == (Fact("ROCm", "6.4.60401", str(link)),)
    assert machine.provider().supported() == {"rocm_version": ("6.4",)}


@pytest.mark.parametrize("text", ["", "unknown", "6", "v6.4", "\0\xff"])
def test_a_file_without_a_version_is_passed_over(machine, text):
    machine.rocm(text)
    assert machine.provider().supported() == {}
    machine.rocm("6.4.1", "opt/rocm/core/.info/version")
    assert machine.provider().supported() == {"rocm_version": ("6.4",)}


def test_gpus_without_rocm(machine, caplog):
    machine.gpu(90402)
    caplog.set_level(logging.INFO)
    provider = machine.provider()
    assert provider.supported() == {"gfx_arch": ("gfx942",)}
    [record] = caplog.records  # a laptop without ROCm is no reason to warn
    assert record.levelno == logging.INFO
    assert VERSION in record.getMessage()


# Windows: the HIP SDK tells.

HIP_INFO = """\
device#                           0
Name:                             AMD Radeon RX 7900 XTX
gcnArchName:                      gfx1100
peers:
device#                           1
Name:                             AMD Radeon(TM) Graphics
gcnArchName:                      gfx1036:sramecc-:xnack-
"""


def test_the_hip_sdk_on_windows(machine):
    sdk = machine.root / "AMD/ROCm/6.4"
    path = machine.command("AMD/ROCm/6.4/bin/hipInfo.exe", printing(HIP_INFO))
    machine.environ = {"PATH": "/bin", "HIP_PATH": str(sdk)}
    machine.rocm()  # where it is on Linux
    provider = machine.provider("win32")
    assert list(provider.supported().items()) == [
        ("gfx_arch", ("gfx1036", "gfx1100")),
        ("rocm_version", ("6.4",)),
    ]
    assert provider.facts() == (
        Fact("AMD GPU", "gfx1036", f"{path}, device 1"),
        Fact("AMD GPU", "gfx1100", f"{path}, device 0"),
        Fact("ROCm", "6.4", str(sdk)),
    )
    assert machine.gfx(system="win32", HIP_VISIBLE_DEVICES="0") == ("gfx1100",)
    assert len(machine.gfx(system="win32", ROCR_VISIBLE_DEVICES="0")) == 2  # is not for Windows


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX", "PATH", ""])
def test_hip_info_of_an_environment(machine, monkeypatch, variable):
    """The wheels of ROCm put it into the scripts of their environment."""
    path = machine.command("env/Scripts/hipInfo.exe", printing(HIP_INFO))
    prefix = str(machine.root / "env")
    machine.environ = {"PATH": "/bin"}
    if variable:
        machine.environ[variable] = f"{prefix}/Scripts:/bin" if variable == "PATH" else prefix
    else:
        monkeypatch.setattr(sys, "prefix", prefix)
    facts = machine.provider("win32").facts()
    assert [fact.source for fact in facts] == [f"{path}, device 1", f"{path}, device 0"]


@pytest.mark.parametrize("script", ["echo 'no device' >&2; exit 100", "kill -SEGV $$", "exit 5"])
def test_a_hip_info_that_crashes_is_said(machine, caplog, script):
    path = machine.command("AMD/bin/hipInfo.exe", script)
    machine.environ = {"PATH": "/bin", "HIP_PATH": str(machine.root / "AMD")}
    assert machine.provider("win32").supported() == {}
    [warning] = warnings(caplog)
    assert warning.startswith(f"AMD GPUs cannot be detected: {path} fails with status ")
    assert ("no device" in warning) == ("no device" in script)
    assert ARCHITECTURE in warning


# WSL: the runtime looks for GPUs only where it is told to.


@pytest.mark.parametrize(
    "script", ["echo 'hsa api call failure' >&2; exit 8", "echo 'ROCk module is loaded'"]
)
def test_wsl_needs_a_variable(machine, caplog, script):
    machine.write("dev/dxg")
    asked = f'[ "$HSA_ENABLE_DXG_DETECTION" = 1 ] || {{ {script}; exit; }}\n{printing(ROCMINFO)}'
    path = machine.command("opt/rocm/bin/rocminfo", asked)
    assert machine.gfx() == ()
    [warning] = warnings(caplog)
    assert path in warning
    assert "with HSA_ENABLE_DXG_DETECTION=1: set it" in warning
    caplog.clear()
    assert machine.gfx(HSA_ENABLE_DXG_DETECTION="1") == ("gfx1100", "gfx90a")
    assert warnings(caplog) == []


def test_wsl_without_rocm_is_no_reason_to_warn(machine, caplog):
    machine.write("dev/dxg")
    assert machine.gfx() == ()
    assert warnings(caplog) == []


def warnings(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


# Overrides. Each replaces detection of one fact.


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("gfx90a,gfx942", ("gfx90a", "gfx942")),
        (" gfx942 ,; gfx90a,\n", ("gfx942", "gfx90a")),
        ("gfx942,gfx942", ("gfx942",)),
    ],
)
def test_forced_values_replace_what_is_detected(machine, text, values):
    machine.gpu(100300)
    machine.rocm("6.3.0")
    provider = machine.provider(**{ARCHITECTURE: text, VERSION: " 7.0.1 "}, HIP_VISIBLE_DEVICES="")
    assert provider.supported() == {"gfx_arch": values, "rocm_version": ("7.0",)}
    assert provider.facts() == (
        *(Fact("AMD GPU", value, ARCHITECTURE, True) for value in values),
        Fact("ROCm", "7.0.1", VERSION, True),
    )


BOOTSTRAP, DISABLED = "ROCM_BOOTSTRAP_FORCE_GFX_ARCH", "ROCM_BOOTSTRAP_DISABLE_DETECTION"


@pytest.mark.parametrize(
    ("environ", "values"),
    [
        ({BOOTSTRAP: "gfx942,gfx942,gfx1100"}, ("gfx942", "gfx1100")),
        ({BOOTSTRAP: "gfx942", ARCHITECTURE: "gfx1251"}, ("gfx1251",)),
        ({BOOTSTRAP: ""}, ("gfx90a",)),
        ({DISABLED: "1"}, ()),
        ({DISABLED: "0"}, ("gfx90a",)),
        ({DISABLED: "1", BOOTSTRAP: "gfx942"}, ()),
        ({DISABLED: "1", ARCHITECTURE: "gfx942"}, ("gfx942",)),
    ],
)
def test_the_variables_of_rocm_bootstrap(machine, environ, values):
    machine.gpu(90010)
    assert machine.gfx(**environ) == values


def test_a_fact_names_the_variable_of_rocm_bootstrap(machine):
    assert machine.provider(**{BOOTSTRAP: "gfx942"}).facts() == (
        Fact("AMD GPU", "gfx942", BOOTSTRAP, True),
    )
