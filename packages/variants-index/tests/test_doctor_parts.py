"""The parts of the doctor that need no environment: uv's files, pins, pip's files, hidden GPUs."""

import sys

import jsonschema
import pytest

from pep_variants.formats.platform_file import write_platform
from pep_variants.model.platform import Platform, Support
from pep_variants.settings.places import Place, Role
from pep_variants.sources import Sources
from variants_index.doctor import report_schema
from variants_index.doctor.findings import CODES, Findings, Part, Problem, lines
from variants_index.doctor.installers import installers_part
from variants_index.doctor.machine import Drivers, machine_part, surroundings_part
from variants_index.doctor.origins import (
    IndexSetting,
    configuration_part,
    index_pins,
    settings_of,
    uv_settings_part,
)

NONE = Drivers()
NVIDIA = Drivers(("NVIDIA",), (12, 4))
AMD = Drivers(("AMD",))
PYTORCH = "https://download.pytorch.org/whl"


@pytest.mark.parametrize(
    ("path", "drivers", "said", "fails"),
    [
        ("/cpu", NONE, "for CPUs only, whatever the machine supports", False),
        ("/cpu", NVIDIA, "for CPUs only, while this machine has the driver of NVIDIA", True),
        ("/cu118", NVIDIA, "for CUDA 11.8 only, whatever", False),
        ("/cu128/", NVIDIA, "for CUDA 12.8 only, whatever", False),
        ("/cu130", NVIDIA, "for CUDA 13.0 only, while the driver here supports CUDA 12.4", True),
        ("/nightly/cu130", NONE, "detection finds no driver of NVIDIA here", True),
        ("/cu128", AMD, "while this machine has the driver of AMD", True),
        ("/rocm6.4", AMD, "for ROCm 6.4 only, whatever", False),
        ("/rocm6.4", NVIDIA, "for ROCm 6.4 only, while this machine has the driver of NV", True),
        ("/xpu", NONE, "for Intel GPUs only, while detection finds no driver of Intel", True),
        ("/variant/", NVIDIA, None, False),
        ("", NVIDIA, None, False),
    ],
)
def test_pins(path, drivers, said, fails):
    found = list(index_pins([IndexSetting(PYTORCH + path, "x.toml")], drivers))
    if said is None:
        assert found == []
        return
    (problem,) = found
    assert said in problem.text
    assert problem.text.startswith("x.toml takes packages from https://download.pytorch.org/whl/")
    assert problem.text.endswith(": remove that index there")
    assert (problem.code, problem.fails, problem.command) == ("index-pin", fails, "")


UV = """\
index-strategy = "first-index"

[[index]]
name = "pytorch"
url = "https://me:secret@download.pytorch.org/whl/cu130"
explicit = true

[pip]
torch-backend = "cpu"
extra-index-url = ["https://a.example/simple", "https://b.example/simple"]
"""


@pytest.fixture
def home(tmp_path):
    (tmp_path / "work").mkdir()
    return {
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_CONFIG_DIRS": str(tmp_path / "etc"),
        "APPDATA": str(tmp_path / "config"),
        "PROGRAMDATA": str(tmp_path / "etc"),
    }


@pytest.mark.parametrize("place", ["work/uv.toml", "config/uv/uv.toml", "etc/uv/uv.toml"])
def test_uv_files(tmp_path, home, place):
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(UV)
    part = uv_settings_part(home, tmp_path / "work", NVIDIA)
    role = {"work": "project", "config": "user", "etc": "system"}[place.partition("/")[0]]
    assert {"path": str(path), "role": role, "exists": True} in part.tree["files"]
    found = {each["key"]: (each["value"], each["line"]) for each in part.tree["settings"]}
    assert found["index"] == ("pytorch: https://****@download.pytorch.org/whl/cu130 (explicit)", 5)
    assert found["index-strategy"] == ("first-index", 1)
    assert found["pip.torch-backend"] == ("cpu", 9)
    assert found["pip.extra-index-url"] == ("https://b.example/simple", 10)
    assert {each["file"] for each in part.tree["settings"]} == {str(path)}
    pin, backend = part.problems
    assert pin.text.startswith(f"{path}, line 5, takes packages from https://****@")
    assert pin.fails
    assert backend.text.startswith(f'torch-backend = "cpu" ({path}, line 9) makes uv take')
    assert "builds for CPUs that are not variants, while this machine has" in backend.text
    assert backend.text.endswith(": remove that line")
    assert "secret" not in f"{part}"
    assert ("uv's file", f"{path} ({role})") in part.rows


def test_the_project_of_uv(tmp_path, home):
    path = tmp_path / "work" / "pyproject.toml"
    path.write_text('[project]\nname = "a"\n[tool.uv]\nindex-url = "https://a.example/whl/cpu"\n')
    part = uv_settings_part(home, tmp_path / "work", NONE)
    (problem,) = part.problems
    assert f"{path}, line 4, takes packages from https://a.example/whl/cpu" in problem.text
    assert uv_settings_part({**home, "UV_NO_CONFIG": "1"}, tmp_path / "work", NONE).problems == ()


@pytest.mark.parametrize(
    ("environ", "code", "said", "command"),
    [
        ({"UV_TORCH_BACKEND": "cpu"}, "torch-backend",
         "UV_TORCH_BACKEND=cpu makes uv take PyTorch's packages from the index of that backend, "
         "builds for CPUs that are not variants, while this machine has the driver of NVIDIA",
         "unset UV_TORCH_BACKEND"),
        ({"UV_TORCH_BACKEND": "auto"}, "torch-backend", "builds that are not variants",
         "unset UV_TORCH_BACKEND"),
        ({"UV_INDEX": f"x={PYTORCH}/cpu"}, "index-pin", "UV_INDEX takes packages from",
         "unset UV_INDEX"),
        ({"PIP_EXTRA_INDEX_URL": f"https://a.example/ {PYTORCH}/cpu"}, "index-pin",
         "PIP_EXTRA_INDEX_URL takes packages from https://download", "unset PIP_EXTRA_INDEX_URL"),
    ],
)  # fmt: skip
def test_variables(tmp_path, home, environ, code, said, command):
    (problem,) = uv_settings_part({**home, **environ}, tmp_path / "work", NVIDIA).problems
    assert (problem.code, problem.command) == (code, command)
    assert said in problem.text
    assert problem.fails == ("auto" not in environ.values())


def test_a_broken_file_of_uv(tmp_path, home):
    (tmp_path / "work" / "uv.toml").write_text("x = = 1")
    (problem,) = uv_settings_part(home, tmp_path / "work", NONE).problems
    assert problem.code == "configuration"
    assert problem.text.startswith(f"{tmp_path / 'work' / 'uv.toml'}: is not valid TOML: ")


def configured(tmp_path, home, environ, text="", drivers=NONE):
    path = tmp_path / "user" / "variants.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    candidates = [Place(path, Role.USER)]
    settings, problems = settings_of({}, environ, candidates)
    return configuration_part(
        settings, problems, {**home, **environ}, Sources(), start=tmp_path / "work",
        drivers=drivers, candidates=candidates,
    )  # fmt: skip


H100 = {"nvidia": {"sm_arch": ("90_real",)}}


@pytest.mark.parametrize(
    ("here", "said", "rewrites"),
    [
        (H100, "", False),
        ({"nvidia": {}}, ", and differs from this machine in nvidia", True),
        ({**H100, "amd": {"gfx_arch": ("gfx942",)}}, "differs from this machine in amd", True),
    ],
)
def test_a_platform_file_that_was_left(tmp_path, home, here, said, rewrites):
    file, settings = tmp_path / "user" / "old machine.toml", tmp_path / "user" / "variants.toml"
    file.parent.mkdir()
    platform = Platform({name: Support(features) for name, features in H100.items()})
    file.write_text(write_platform(platform, "test"))
    drivers = Drivers(features=here)
    text = 'platform = "old machine.toml"\n'
    (problem,) = configured(tmp_path, home, {}, text, drivers).problems
    assert problem.text.startswith(
        f"a platform file replaces detection of this machine: {file}, from {settings}"
    )
    assert said in problem.text
    assert ": remove it there" in problem.text
    assert problem.command == (f"variants detect -o '{file}'" if rewrites else "")
    variable = {"VARIANTS_PLATFORM": str(file)}
    (problem,) = configured(tmp_path, home, variable, text, drivers).problems
    assert problem.command == "unset VARIANTS_PLATFORM"
    file.unlink()
    (problem,) = configured(tmp_path, home, {}, text, drivers).problems
    assert (problem.code, problem.fails) == ("configuration", True)
    assert problem.text.startswith(f"{file}: ")
    assert problem.text.endswith(f", from {settings}: remove it there")


def test_a_named_machine(tmp_path, home):
    (problem,) = configured(tmp_path, home, {"VARIANTS_PLATFORM": "h100-zen4"}).problems
    assert problem.text == "a named machine replaces this one: h100-zen4, from VARIANTS_PLATFORM"
    assert problem.command == "unset VARIANTS_PLATFORM"


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"PIP_NO_VARIANTS": "1"}, "variants are switched off, for pip: PIP_NO_VARIANTS=1"),
        ({"PIP_VARIANT": "a=b"}, "variants are named, whatever fits, for pip: PIP_VARIANT=a=b"),
        ({"PIP_NO_VARIANTS": "false", "PIP_VARIANT": ""}, None),
        ({"SSL_CERT_FILE": "/absent.pem"}, "SSL_CERT_FILE=/absent.pem: no such file: HTTPS fails"),
        ({"PIP_CONSTRAINT": "/absent.txt"},
         "/absent.txt, which PIP_CONSTRAINT names, does not exist: pip installs nothing"),
        ({"PIP_CONSTRAINT": "https://a.example/c.txt"},
         "PIP_CONSTRAINT names https://a.example/c.txt: pip takes only versions that it allows"),
    ],
)  # fmt: skip
def test_variables_of_pip(tmp_path, home, environ, said):
    problems = configured(tmp_path, home, environ).problems
    assert [problem.text for problem in problems] == ([said] if said else [])
    assert all(each.command == f"unset {next(iter(environ))}" for each in problems)


@pytest.mark.parametrize(
    ("links", "said"),
    [
        ((), "nothing is known of any project"),
        (("https://a.example/links/",), "only files on https://a.example/links/ are known"),
    ],
)
def test_no_index(tmp_path, home, links, said):
    """C12: that no index is asked is not that an index has nothing."""
    sources = Sources(find_links=links, no_index=True)
    settings, problems = settings_of({}, {}, [])
    part = configuration_part(
        settings, problems, home, sources, start=tmp_path / "work", drivers=NONE, candidates=[]
    )
    (problem,) = part.problems
    assert problem.text == f"PIP_NO_INDEX switches all indexes off: {said}"
    assert (problem.code, problem.command) == ("no-index", "unset PIP_NO_INDEX")
    assert ("indexes", "none") in part.rows


def test_a_stub_of_the_driver(tmp_path):
    """C12: the CUDA toolkit's library for linking, in front of the driver's."""
    folder = "/usr/local/cuda/lib64/stubs"
    path = tmp_path / folder.lstrip("/") / "libcuda.so.1"
    path.parent.mkdir(parents=True)
    environ = {"LD_LIBRARY_PATH": f"{folder}:/opt/lib"}
    assert not surroundings_part(environ, tmp_path, NONE).problems
    path.write_bytes(b"")
    (problem,) = surroundings_part(environ, tmp_path, NONE).problems
    assert problem.code == "stub-driver"
    assert f"LD_LIBRARY_PATH has {folder}, whose libcuda.so.1 is" in problem.text
    assert problem.command == "export LD_LIBRARY_PATH=/opt/lib"


@pytest.mark.skipif(sys.platform != "linux", reason="a shell script is a program there")
@pytest.mark.parametrize(
    ("scope", "setting", "code", "said", "command"),
    [
        ("user", "global.no-variants: true", "setting",
         "variants are switched off, for pip: global.no-variants in /c/pip.conf",
         "{pip} config --user unset global.no-variants"),
        ("env", "install.no-variants: true", "setting",
         "variants are switched off, for pip: install.no-variants in /c/pip.conf: remove it there",
         ""),
        ("site", "global.variant: gpu=null", "setting", "whatever fits, for pip: gpu=null: glob",
         "{pip} config --site unset global.variant"),
        ("user", f"global.index-url: {PYTORCH}/cpu", "index-pin",
         "global.index-url in /c/pip.conf takes packages from https://download.pytorch.org/whl/cpu",
         "{pip} config --user unset global.index-url"),
        ("user", "global.constraint: https://a.example/c.txt", "constraint",
         "global.constraint in /c/pip.conf names https://a.example/c.txt: pip takes only versions",
         "{pip} config --user unset global.constraint"),
        ("user", "global.no-variants: 0", "", "", ""),
        ("user", "global.timeout: 5", "", "", ""),
        ("user", "global.index-url: https://a.example/ https://b.example/", "pip-configuration",
         "pip takes packages from https://a.example/, https://b.example/, which /c/pip.conf says; "
         "installed variants are compared with PyPI",
         "variants doctor --index-url https://a.example/ --index-url https://b.example/"),
    ],
)  # fmt: skip
def test_the_files_of_pip(tmp_path, scope, setting, code, said, command):
    pip = tmp_path / "pip"
    pip.write_text(
        "#!/bin/sh\nif [ $1 = config ]; then echo 'env_var:\nenv:\nglobal:\nsite:\nuser:\n"
        f"{scope}:\n  /c/pip.conf, exists: True\n    {setting}'\n"
        "else echo 'pip 26.3 from /x/pip (python 3.12) with pep-variants-shim 0.1.0'; fi\n"
    )
    pip.chmod(0o755)
    part = installers_part({"PATH": str(tmp_path)}, tmp_path / "python", (), NONE)
    found = [each for each in part.problems if each.code in (code, "setting", "index-pin")]
    if not code:
        assert found == []
        return
    assert said in found[0].text
    assert found[0].command == command.format(pip=pip)
    assert part.tree["pip"][0]["settings"][0]["scope"] == scope


NODE = "sys/class/kfd/kfd/topology/nodes/{}/properties"


@pytest.fixture
def gpus(tmp_path):
    """Two AMD GPUs."""
    for number, version in ((1, 90402), (2, 110000)):
        path = tmp_path / "root" / NODE.format(number)
        path.parent.mkdir(parents=True)
        path.write_text(f"gfx_target_version {version}\n")
    return tmp_path / "root"


@pytest.mark.skipif(sys.platform != "linux", reason="/sys is Linux's")
@pytest.mark.parametrize(
    ("environ", "said", "command", "fails"),
    [
        ({"ROCR_VISIBLE_DEVICES": "1"},
         "ROCR_VISIBLE_DEVICES=1 hides AMD GPU gfx942, so no variant for it is chosen",
         "unset ROCR_VISIBLE_DEVICES", True),
        ({"ROCR_VISIBLE_DEVICES": ""},
         "hides AMD GPU gfx1100, AMD GPU gfx942, so no variant", "unset ROCR_VISIBLE_DEVICES",
         True),
        ({"ROCR_VISIBLE_DEVICES": "0,1", "HIP_VISIBLE_DEVICES": "0"},
         "ROCR_VISIBLE_DEVICES=0,1 and HIP_VISIBLE_DEVICES=0 hide AMD GPU gfx1100",
         "unset ROCR_VISIBLE_DEVICES HIP_VISIBLE_DEVICES", True),
        ({"HIP_VISIBLE_DEVICES": "0,1"}, "", "", False),
        ({}, "", "", False),
    ],
)  # fmt: skip
def test_hidden_gpus(gpus, environ, said, command, fails):
    part, drivers = machine_part({"PATH": "", **environ}, gpus)
    found = [each for each in part.problems if each.code == "hidden-gpu"]
    assert drivers.vendors == ("AMD",)
    if not said:
        assert found == []
        return
    (problem,) = found
    assert said in problem.text
    assert (problem.command, problem.fails) == (command, fails)


@pytest.mark.parametrize("hidden", ["-1", "0"])
def test_all_gpus_hidden_from_programs(tmp_path, hidden):
    """NVIDIA's management library sees them all the same."""
    forced = {
        "NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION": "12.8",
        "NV_VARIANT_PROVIDER_FORCE_SM_ARCH": "9.0",
    }
    part, _ = machine_part({"PATH": "", "CUDA_VISIBLE_DEVICES": hidden, **forced}, tmp_path)
    found = [each for each in part.problems if each.code == "hidden-gpu"]
    if hidden == "0":
        assert found == []
        return
    (problem,) = found
    assert not problem.fails
    assert "CUDA_VISIBLE_DEVICES=-1 hides every NVIDIA GPU from programs" in problem.text


def test_the_order_of_problems():
    hint = Problem("mig", "a hint", fails=False)
    found = Findings({
        "machine": Part(problems=(hint, Problem("driver", "a problem", "sudo x"))),
        "packages": Part(problems=(Problem("choice", "about a package", fails=False), hint)),
    })  # fmt: skip
    assert list(lines(found)) == [
        "1 problem; 2 hints",
        "problem: a problem",
        "    sudo x",
        "hint: about a package",
        "hint: a hint",
    ]
    assert list(lines(Findings({"machine": Part((("a\x1b", "b\nc"), ("a\x1b", "d")))}))) == [
        "Nothing is wrong", "", "machine", "  a?  b c", "      d"
    ]  # fmt: skip


def test_the_schema():
    schema = report_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert set(schema["$defs"]["problem"]["properties"]["code"]["enum"]) == CODES
