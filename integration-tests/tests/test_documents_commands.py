"""Pages whose console blocks are run, in order, as their readers type them.

The programs are real. What they would fetch from the network is a stand-in on loopback: tiny wheels
on pages laid out as those of the catalogue's places. Most pages are run nightly.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

import variants_catalog
from conformance.field.standin import Standin
from support.certificates import certified
from support.documents import File, Page, Reader
from support.environments import PIPS, ROOT
from support.gpu_libraries import library
from support.index import Index, served
from support.nvidia_drivers import NVML, build_library, driver_library, driver_variables, nvml
from support.patched_pip import patched_pip
from support.plugins import PLUGIN, acme_index
from support.projects import CUDA_12_8, cuda
from support.proxied_network import http_proxy
from support.published_builds import TORCH, Field, field_of, published, standing_in
from support.servers import free_port
from support.tools import tool
from support.upload_server import Fault, upload_index
from support.wheels import Release, Wheel
from variants_catalog._catalogs import DirectoryCatalog

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64" or shutil.which("curl") is None,
    reason="the machines of the pages have Linux on x86-64, and curl",
)
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
Prepared = Iterator[Mapping[str, str]]
"""Yields what stands for URLs and paths of the page, with everything that it needs in place."""
Prepare = Callable[[Reader], Prepared]
PAGES: list[Any] = []


def page(
    *names: str, use: str = "", failing: Sequence[str] = (), nightly: bool = True
) -> Callable[[Prepare], Prepare]:
    """Register what prepares pages.

    Args:
        names: of the pages.
        use: programs that the reader has, see `Reader`.
        failing: commands that end with an error, or what all those have in them.
        nightly: ``make test`` leaves it out.
    """
    marks = [pytest.mark.nightly] * nightly

    def register(prepare: Prepare) -> Prepare:
        for name in names:
            own = f"{name}-{prepare.__name__}"
            PAGES.append(pytest.param(name, prepare, use, failing, marks=marks, id=own))
        return prepare

    return register


@contextmanager
def with_builds(reader: Reader, field: Field | None = None) -> Iterator[Field]:
    """Have an index and the catalogue's places; by default with torch alone."""
    with standing_in(field or published(torch=TORCH)) as found:
        mirrors = " ".join(found.mirrors)
        reader.environ |= {
            "PIP_INDEX_URL": found.index.url,
            "UV_DEFAULT_INDEX": found.index.url,
            "VARIANTS_CATALOG_MIRROR": mirrors,
            "VARIANTS_PROXY_CATALOG_MIRROR": mirrors,
            "VARIANTS_PROXY_INDEX": f"pypi={found.index.url}",
        }
        yield found


def builds_of(**versions: Sequence[str]) -> Field:
    """Return these versions of projects of the catalogue."""
    catalog = DirectoryCatalog(variants_catalog.projects())
    entries = [entry for name in versions if (entry := catalog.project(name))]
    assert len(entries) == len(versions)
    return field_of(entries, versions)


def put(folder: Path, *wheels: Wheel) -> None:
    """Put *wheels* into *folder*."""
    folder.mkdir(exist_ok=True)
    for wheel in wheels:
        (folder / wheel.filename).write_bytes(wheel.build())


def put_shim(reader: Reader) -> None:
    """Put what ``make wheels`` writes into ``dist``: the wheel of the shim."""
    (reader.work / "dist").symlink_to(reader.environments.shim_wheel.parent)


# Tutorials and first pages.


@page("README.md", nightly=False)
def first_page(reader: Reader) -> Prepared:
    yield from first_page_with(reader, PIPS[-1])


@page("README.md")
def first_page_with_the_pip_of_python(reader: Reader) -> Prepared:
    yield from first_page_with(reader, "23.2.1")  # which ensurepip of Python 3.11 installs


def first_page_with(reader: Reader, pip: str) -> Prepared:
    reader.activate(reader.environments.plain("3.11", pip).copied(reader.home / "env"))
    reader.tool("pip", 'exec python -m pip "$@"')  # as a virtual environment has it
    reader.use_pip()
    put_shim(reader)
    with with_builds(reader, builds_of(torch=("2.14.0", "2.15.0"))):
        reader.environ["VARIANTS_PLATFORM"] = "h100-zen4,cuda=12.4"
        yield {}


@page("docs/tutorials/torch.md", use="python pip", nightly=False)
def tutorial_torch(reader: Reader) -> Prepared:
    put_shim(reader)
    with with_builds(reader):
        reader.environ["VARIANTS_PLATFORM"] = "h100-sapphirerapids"  # whatever this machine has
        yield {}


PROGRAMS = "python pip shim uv variants"
REINSTALLED = ("pip install --force-reinstall", "uv-env --reinstall")


@page("docs/tutorials/publish.md", use=PROGRAMS, failing=REINSTALLED)
def tutorial_publish(reader: Reader) -> Prepared:
    reader.environ["VARIANTS_PLATFORM"] = "cpu-x86-64-v3"
    yield from local_server(reader)


@page("docs/tutorials/provider-plugin.md", use=PROGRAMS, failing=REINSTALLED, nightly=False)
def tutorial_plugin(reader: Reader) -> Prepared:
    yield from local_server(reader)


def local_server(reader: Reader) -> Prepared:
    port = str(free_port())
    reader.environ["PIP_INDEX_URL"] = f"http://127.0.0.1:{port}/simple/"  # has no other pip
    yield {"8000": port}


@page(
    "docs/tutorials/team.md",
    use="python pip uv variants",
    failing=["check --python laptop", "git diff --exit-code --stat"],
)
def tutorial_team(reader: Reader) -> Prepared:
    with with_builds(reader) as field:
        files = f"{field.builds.files_url}/files/hosts/download.pytorch.org"
        yield {"https://download.pytorch.org": files}


@page(
    "docs/explanation/choice.md",
    "docs/explanation/locks.md",
    use="variants",
)
def explanation(reader: Reader) -> Prepared:
    with served(Standin(api="html", ranges=True)) as index:
        yield {"https://variants-index.wheelnext.dev/": index.url}


@page("docs/explanation/trust.md", use="variants")
def trust(reader: Reader) -> Prepared:
    checkout = reader.work / "demo"
    checkout.mkdir()
    with served(acme_index(PLUGIN)) as index:
        reader.environ["PIP_INDEX_URL"] = index.url
        yield {"https://index.example/simple/": index.url, "/src/demo": str(checkout)}


@page("docs/reference/configuration.md", use="variants", failing=["variants doctor"])
@page(
    "docs/reference/platforms.md",
    use="variants",
    failing=["variants platforms h200", "variants platforms cuda=9.0,sm=6.1"],
)
def commands_alone(reader: Reader) -> Prepared:
    yield {}


# Clients.


@contextmanager
def torch_index(reader: Reader) -> Iterator[Index]:
    """Have an H100, a driver for CUDA 12.8, and an index with two versions of torch."""
    library = build_library(reader.home / "driver", NVML, nvml("12.8", "9.0"))
    reader.environ["LD_LIBRARY_PATH"] = str(library.parent)
    index = Index()
    requires = (
        "filelock",
        "nvidia-cublas-cu12==12.8.4.1; variant_label == 'cu128'",
        "nvidia-cublas-cu12==12.6.4.1; variant_label == 'cu126'",
    )
    for version in ("2.8.0", "2.9.0"):
        index.add_release(Release("torch", version, cuda("12.6", "12.8", "13.0"), requires))
    for version in ("12.6.4.1", "12.8.4.1"):
        index.add_wheel(Wheel("nvidia-cublas-cu12", version))
    index.add_wheel(Wheel("filelock", "3.20.0"))
    with served(index):
        reader.environ |= {"PIP_INDEX_URL": index.url, "UV_DEFAULT_INDEX": index.url}
        yield index


@page("docs/how-to/pip.md", failing=["pip install --variant torch=cu126 torch"])
def pip(reader: Reader) -> Prepared:
    reader.with_pip(shim=True)
    with torch_index(reader):
        yield {}


@page("pip-patch/README.md")
def first_page_of_pip(reader: Reader) -> Prepared:
    """With an index that has the shim, as PyPI will."""
    reader.with_pip(shim=False)
    wheel = reader.environments.shim_wheel
    with torch_index(reader) as index:
        index.add("pep-variants-shim", wheel.name, wheel.read_bytes())
        yield {}


@page("docs/explanation/pip-shim.md")
def pip_shim(reader: Reader) -> Prepared:
    """What ``make patched-pip`` builds, installed, run, and given to virtualenv."""
    reader.with_pip(shim=False)
    (reader.work / "dist").mkdir()
    shutil.copy(patched_pip(reader.environments, PIPS[-1]), reader.work / "dist")
    python = tool(reader.environments, "virtualenv").python
    reader.tool("virtualenv", f'exec {python} -m virtualenv "$@"')
    with torch_index(reader):
        yield {}


UV_FAILS = ("uv-variants --variant torch=cu130 pip install torch", "uv sync --frozen --reinstall")


@page("docs/how-to/uv.md", use="python pip uv variants", failing=UV_FAILS)
def uv(reader: Reader) -> Prepared:
    with torch_index(reader):
        yield {}


@page("packages/uv-variants/README.md", use="python pip uv variants", failing=UV_FAILS)
def first_page_of_uv(reader: Reader) -> Prepared:
    environment = [sys.executable, "-m", "venv", "--without-pip", reader.work / ".venv"]
    subprocess.run(environment, check=True)
    with torch_index(reader):
        yield {}


def with_shim(reader: Reader) -> None:
    """Activate an environment with the shim."""
    reader.activate(reader.environments.patched(PYTHON, PIPS[-1]).copied(reader.home / "env"))


@page(
    "docs/how-to/air-gap.md",
    use="uv variants",
    failing=[
        "(cd carry && sha256sum --check SHA256SUMS)",
        "python -m pip install --no-index --find-links carry/wheels torch torchvision",
    ],
)
def air_gap(reader: Reader) -> Prepared:
    with_shim(reader)
    with with_builds(reader):
        yield {}


def with_errors(name: str) -> list[str]:
    """Return the commands of a page that print an error."""
    commands = Page(ROOT / name).commands
    return [each.text for each in commands if any("error: " in line for line in each.lines)]


@page(
    "docs/how-to/company-proxy.md",
    use="uv variants",
    failing=with_errors("docs/how-to/company-proxy.md"),
)
def company_proxy(reader: Reader) -> Prepared:
    with_shim(reader)
    certificates = certified(reader.home / "certificates", "packages.example")
    found = published(torch=TORCH)
    # The company's own server: everything at one host, for those who have a password.
    files = {**found.index.files, **found.builds.files}
    repository = replace(found.index, files=files, credentials="me:secret")
    with served(repository, certificates.context) as server:
        port = server.url.split(":")[2].split("/")[0]
        names = {"packages.example:443": f"127.0.0.1:{port}"}
        with http_proxy("me:pass", names=names) as proxy:
            reader.environ["VARIANTS_PLATFORM"] = "h100-zen4"
            yield {
                "proxy.example:8080": proxy.place.rpartition("@")[2],
                "/etc/ssl/company.pem": str(certificates.authority),
                "packages.example/pytorch": "packages.example/hosts/download.pytorch.org",
            }


@page("docs/how-to/proxy.md", "docs/how-to/proxy-operating.md", use="uv variants")
def operator(reader: Reader) -> Prepared:
    """The proxy is at a free port, and ends with the page."""
    reader.activate(reader.environments.plain(PYTHON, PIPS[-1]).copied(reader.home / "env"))
    port = str(free_port())
    program = (reader.programs / "variants-proxy").resolve()
    (reader.programs / "variants-proxy").unlink()
    running = reader.home / "proxy.pid"
    started = f'[ "$1" = serve ] && echo $$ > {running}\nexec {program} "$@"'
    reader.tool("variants-proxy", started)
    with with_builds(reader):
        reader.environ["VARIANTS_PROXY_PORT"] = port
        reader.environ["VARIANTS_PROXY_URL"] = f"http://127.0.0.1:{port}"
        try:
            yield {"127.0.0.1:4825": f"127.0.0.1:{port}"}
        finally:
            if running.exists():
                with suppress(ProcessLookupError):
                    os.kill(int(running.read_text()), signal.SIGTERM)


# Containers, CI, clusters.


@page("docs/how-to/login-node.md", use="python pip variants")
def login_node(reader: Reader) -> Prepared:
    (reader.home / "dist").symlink_to(reader.environments.shim_wheel.parent)
    library = driver_library(reader.environments)
    nodes = {
        "h100": driver_variables(library, "12.8", "9.0"),
        "a100": driver_variables(library, "12.4", "8.0"),
    }
    cases = "\n".join(
        f"--partition={name}) export {' '.join(map(shlex.quote, map('='.join, found.items())))};;"
        for name, found in nodes.items()
    )
    # Without --gpus a job has no devices, and the driver finds none.
    reader.tool(
        "srun",
        f'export SLURM_JOB_ID=4711\ncase "$1" in\n{cases}\nesac\nshift\n'
        'case "$1" in --gpus=*) shift;; *) export FAKE_NVML_DEVICES=;; esac\nexec "$@"',
    )
    reader.tool("sbatch", "exit 1")
    with with_builds(reader):
        yield {}


def put_wheels(reader: Reader) -> None:
    """Put what ``make wheels`` writes into ``dist``; the programs are those of the reader."""
    dist = reader.work / "dist"
    path = reader.variables["PATH"]
    for name, program in (
        ("variants-cli", "variants"),
        ("uv-variants", "uv-variants"),
        ("uv", "uv"),
    ):
        found = shutil.which(program, path=path)
        start = f"import os, sys\n\n\ndef main():\n    os.execv({found!r}, sys.argv)\n"
        points = f"[console_scripts]\n{program} = start_{program.replace('-', '_')}:main\n"
        files = {
            f"start_{program.replace('-', '_')}.py": start,
            f"{name.replace('-', '_')}-1.0.dist-info/entry_points.txt": points,
        }
        put(dist, Wheel(name, "1.0", files=files))
    shim = reader.environments.shim_wheel
    (dist / shim.name).symlink_to(shim)


@page("docs/how-to/docker.md", use="python pip uv variants")
def docker(reader: Reader) -> Prepared:
    put_wheels(reader)
    state = reader.home / "docker"
    state.mkdir()
    driver = driver_variables(driver_library(reader.environments), "12.8", "9.0")
    (state / "gpus.json").write_text(json.dumps({"NVIDIA_VISIBLE_DEVICES": "all", **driver}))
    program = ROOT / "integration-tests/support/containers.py"
    reader.tool("docker", f'exec {sys.executable} {program} {state} "$@"')
    with with_builds(reader):
        yield {place: f"{state}/rootfs{place}" for place in ("/app", "/opt", "/wheels")}


@page(
    "docs/how-to/ci.md",
    use="python pip variants",
    failing=["variants resolve --python-version 3.14 --from pylock.toml"],
)
def ci(reader: Reader) -> Prepared:
    put_wheels(reader)
    with with_builds(reader):
        yield {"3.13": PYTHON}
        files = [step for step in Page(ROOT / "docs/how-to/ci.md").steps if isinstance(step, File)]
        files = [file for file in files if "yml" in file.name]
        assert len(files) == 2
        for file in files:
            run_workflow(reader, file)


def run_workflow(reader: Reader, file: File) -> None:
    """Run the scripts of a file for GitHub Actions or GitLab CI."""
    tree: Any = yaml.safe_load(file.text)
    if "jobs" in tree:
        (job,) = tree["jobs"].values()
        variables, scripts = tree["env"], [step["run"] for step in job["steps"] if "run" in step]
    else:
        (job,) = (value for name, value in tree.items() if name not in ("variables", "default"))
        variables, scripts = tree["variables"], job["script"]
    runner = reader.environments.patched(PYTHON, PIPS[-1]).copied(reader.home / file.name)
    environ = {
        **reader.variables,
        "CI_PROJECT_DIR": str(reader.work),
        "PATH": f"{Path(runner.python).parent}{os.pathsep}{reader.variables['PATH']}",
    }
    environ |= {name: os.path.expandvars(value) for name, value in variables.items()}
    for script in scripts:
        done = subprocess.run(
            ["bash", "-ec", script], cwd=reader.work, env=environ,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr


# Publishers.

XGBOOST = Wheel(
    "xgboost", "3.4.1", tag="py3-none-manylinux_2_28_x86_64",
    files={
        "xgboost/lib/libxgboost.so": library(
            cuda=["75", "80", "90", "100", "120"], ptx=["120"], version="9.3"
        )
    },
)  # fmt: skip
NUMPY = Wheel("numpy", "2.4.6", tag="cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64")


@page("docs/how-to/make-wheels.md", use="variants")
def make_wheels(reader: Reader) -> Prepared:
    reader.activate(reader.environments.plain("3.12", PIPS[-1]))
    requires = ("nvidia-cublas-cu12==12.6.4.1",)
    for name in ("cupy-cuda12x", "cupy-rocm-5-0", "cupy-cpu"):
        put(reader.work, Wheel(name, "14.0", requires=requires))
    index = Index()
    index.add_wheel(replace(NUMPY, files={"numpy/_core.so": library()}))
    index.add_wheel(XGBOOST)
    with served(index):
        reader.environ["PIP_INDEX_URL"] = index.url
        yield {}


def make(reader: Reader, wheel: Wheel, folder: str, namespaces: str, **properties: str) -> None:
    """Make variants of *wheel*: a property for each label, and none for the null variant."""
    plain = reader.home / "plain"
    put(plain, wheel)
    own = " ".join(f"--namespace {name}" for name in namespaces.split())
    for label, item in properties.items():
        needs = f"--property '{item}'" if item else ""
        reader.type_in(f"variants make {plain / wheel.filename} -o {folder} --label {label} "
                       f"{own} {needs}")  # fmt: skip


@page("docs/how-to/index-directory.md", use="variants python")
def index_directory(reader: Reader) -> Prepared:
    make(reader, NUMPY, "dist", "x86_64", x86_64_v3="x86_64 :: level :: v3", null="")
    yield {"8000": str(free_port())}


@page("docs/how-to/other-machines.md", use="variants")
def other_machines(reader: Reader) -> Prepared:
    index = Index()
    index.add_wheel(Wheel("app", "1.0"))
    requires = ("always", "for-gpu; 'nvidia' in variant_namespaces")
    release = Release("app", "2.0", cuda("12.6", "12.8", "13.0"), requires=requires)
    index.add_release(release)
    for name in ("always", "for-gpu"):
        index.add_wheel(Wheel(name, "1.0"))
    name = release.metadata_filename
    (reader.work / name).write_bytes(index.files["app"][name])
    reader.environ |= CUDA_12_8
    with served(index):
        yield {"https://index.example/simple/": index.url}


@page("docs/how-to/catalogue.md", use="variants")
def catalogue(reader: Reader) -> Prepared:
    reader.with_pip(shim=True)
    reader.environ |= CUDA_12_8
    jax, cupy, torch = ("0.10.2",), ("13.6.0", "14.2.0"), ("2.9.0", "2.13.0")
    with with_builds(reader, builds_of(torch=torch, cupy=cupy, jax=jax)) as field:
        yield {"https://pypi.org/simple/": field.index.url}


@page("packages/variants-cli/README.md", use="variants")
@page("docs/reference/commands/variants.md", use="variants")
@page("docs/reference/commands/variants-proxy.md", use="variants")
def first_page_of_variants(reader: Reader) -> Prepared:
    with with_builds(reader, builds_of(torch=("2.10.0", "2.14.0"))):
        yield {}


@page("docs/reference/commands/uv-variants.md", use="uv variants")
def reference_of_uv(reader: Reader) -> Prepared:
    reader.activate(reader.environments.plain(PYTHON, PIPS[-1]).copied(reader.home / "env"))
    reader.environ |= {"VIRTUAL_ENV": str(reader.home / "env"), "VARIANTS_PLATFORM": "h100-zen4"}
    with with_builds(reader):
        yield {}


URL, OTHER = "https://index.example/legacy/", "https://other.example/legacy/"
PUBLISHING = [
    f"variants publish dist --repository-url {URL}",
    f"variants publish dist-v2 --repository-url {OTHER}",
]


@page("docs/how-to/publishing.md", use="variants", failing=PUBLISHING)
def upload_api(reader: Reader) -> Prepared:
    x86, arm = (
        Wheel("fastmath", "2.1.0", tag=f"cp312-cp312-manylinux_2_28_{cpu}")
        for cpu in ("x86_64", "aarch64")
    )
    levels = {level: f"x86_64 :: level :: {level}" for level in ("v2", "v3", "v4")}
    both = "x86_64 aarch64"
    make(reader, x86, "dist", both, null="", x86_64_v3=levels["v3"], x86_64_v4=levels["v4"])
    make(reader, x86, "dist-v2", both, x86_64_v2=levels["v2"])
    make(reader, arm, "dist-arm", both, arm8="aarch64 :: version :: 8.2a")
    with upload_index() as index, upload_index() as other:
        reader.type_in(f"variants publish dist --repository-url {other.url}")
        other.replaces = "$^"
        index.faults[re.escape("-null.whl")] = [Fault(507, reason="Insufficient Storage")]
        yield {URL: index.url, OTHER: other.url}


@page("docs/how-to/publishing-storage.md", use="variants")
def storage(reader: Reader) -> Prepared:
    both = "x86_64 aarch64"
    make(reader, Wheel("demo", "1.0"), "dist", both, null="", v3="x86_64 :: level :: v3")
    make(reader, Wheel("demo", "1.0"), "dist2", both, v4="x86_64 :: level :: v4")
    yield {}


@page("docs/how-to/publishing-credentials.md")
def attestations(reader: Reader) -> Prepared:
    """What signs and downloads is not here: programs that leave the files that those leave."""
    reader.tool("gh", "echo '{\"verificationMaterial\": {}}' > sha256:0123.jsonl")
    reader.tool("sigstore", 'while [ "$1" != --bundle ]; do shift; done; echo "{}" > "$2"')
    reader.tool("pypi-attestations", 'cp "$4" "$3"')
    (reader.work / "dist").mkdir()
    yield {}
    assert (reader.work / "dist/FILE.whl.slsa.attestation").exists()


@pytest.mark.parametrize(("name", "prepare", "use", "failing"), PAGES)
def test_commands(
    reader: Reader, name: str, prepare: Prepare, use: str, failing: Sequence[str]
) -> None:
    for program in use.split():
        getattr(reader, f"use_{program}")()
    followed = Page(ROOT / name)
    texts = [command.text for command in followed.commands]
    parts = [each for each in failing if each not in texts]
    fails = [text for text in texts if any(part in text for part in parts)]
    with contextmanager(prepare)(reader) as replaced:
        once = [each for each in failing if each in texts]
        reader.follow(followed, replaced=replaced, failing=[*once, *fails])
