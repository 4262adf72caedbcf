"""Which build of torch each client takes on which machine, beside what the publishers' facts say.

    cd integration-tests; python -m support.torch_table

prints the table of ``docs/explanation/compared.md``. It runs every client for every machine, on a
stand-in of the indexes, which takes some minutes.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .certificates import certified
from .choices import Chosen, by_pip, by_resolve
from .environments import PIPS, Environments
from .index import Index, served
from .proxied_network import http_proxy
from .published_builds import Field, standing_in
from .torch_field import BOXES, TITLES, Box, Picks, newest, standin, uses_gpu
from .uvs import UVS, Machine, downloaded_uv, uv_variants

HOST = "download.pytorch.org"
PROJECTS = (("torch",), ("torch", "torchvision"), ("vllm",))
PIP_TAGS = {
    "aarch64": "manylinux_2_17_aarch64",
    "windows": "win_amd64",
    "macos": "macosx_11_0_arm64",
}
UV_PLATFORMS = {
    "linux": "x86_64-manylinux_2_28",
    "aarch64": "aarch64-manylinux_2_28",
    "windows": "x86_64-pc-windows-msvc",
    "macos": "aarch64-apple-darwin",
}
INTEL = 'mount --bind {folder} /sys/bus/pci/devices && exec "$@"'
"""Shows a command Intel's graphics card, for ``unshare``."""


@dataclass(frozen=True)
class World:
    """The indexes, and what asks them.

    Attributes:
        field: all there is.
        variables: environment variables that lead uv to PyTorch's host.
        environments: with pip.
        machine: with uv.
    """

    field: Field
    variables: Mapping[str, str]
    environments: Environments
    machine: Machine

    @property
    def options(self) -> list[str]:
        """Options of our clients, but for the machine."""
        return ["--variant-catalog=default", *self.field.options]


@contextmanager
def running(folder: Path, environments: Environments) -> Iterator[World]:
    """Serve the indexes; PyTorch's has its own host name too, with a test certificate.

    Args:
        folder: for what is written.
        environments: of pip and uv.
    """
    tls = certified(folder, HOST)
    home, work = folder / "home", folder / "work"
    for path in (home, work):
        path.mkdir()
    uv = downloaded_uv(UVS[-1], environments.wheelhouse)
    machine = Machine(uv, uv_variants(environments.folder), home, work)
    with standing_in(standin()) as found:
        start = f"/hosts/{HOST}"
        pages = {
            path.removeprefix(start): files
            for path, files in found.builds.files.items()
            if path.startswith(start)
        }
        with (
            served(Index(pages, api="html"), tls.context) as host,
            http_proxy(names={f"{HOST}:443": host.root.partition("://")[2]}) as proxy,
        ):
            variables = {
                "HTTPS_PROXY": proxy.url,
                "NO_PROXY": "127.0.0.1",
                "SSL_CERT_FILE": str(tls.authority),
            }
            yield World(found, variables, environments, machine)


def resolved(world: World, boxes: Sequence[Box], projects: Iterable[str]) -> list[Picks]:
    """Return what ``variants resolve`` takes for *boxes*, which are of one system."""
    system = boxes[0].system
    named = "linux-aarch64" if system == "aarch64" else system
    options = [*world.options, f"--python-platform={named}"]
    options += [f"--platform={box.facts}" for box in boxes]
    trees = by_resolve(world.machine.work, *projects, "-i", world.field.index.url, *options)
    return [
        {each["name"]: each["filename"].split("-")[1] for each in tree["packages"]}
        for tree in trees
    ]


def resolve(world: World, box: Box, projects: Iterable[str]) -> Picks:
    """Return what ``variants resolve`` takes."""
    (picks,) = resolved(world, [box], projects)
    return picks


def pip_with_shim(world: World, box: Box, projects: Iterable[str], *options: str) -> Chosen:
    """Return what pip with the shim takes."""
    options = (*world.options, f"--variant-platform={box.facts}", *options)
    return _pip(world, box, projects, *options, shim=True)


def plain_pip(world: World, box: Box, projects: Iterable[str]) -> Picks:
    """Return what pip takes."""
    return _pip(world, box, projects, shim=False).versions


def _pip(world: World, box: Box, projects: Iterable[str], *options: str, shim: bool) -> Chosen:
    make = world.environments.patched if shim else world.environments.plain
    environment = make("{}.{}".format(*sys.version_info), PIPS[-1])
    if box.system in PIP_TAGS:
        tag = f"--platform={PIP_TAGS[box.system]}"
        options = (tag, "--only-binary=:all:", "--target=new", *options)
    folder, url = world.machine.work, world.field.index.url
    return by_pip(environment, folder, "-i", url, *options, *projects)


def uv_with_variants(world: World, box: Box, projects: Iterable[str]) -> Picks:
    """Return what ``uv-variants pip compile`` takes."""
    options = [*world.options, f"--variant-platform={box.facts}"]
    done = world.machine.run(*options, *_compile(world, box, projects))
    return _pins(done.code, done.out, done.err)


def plain_uv(world: World, box: Box, projects: Iterable[str]) -> Picks:
    """Return what ``uv pip compile --torch-backend=auto`` takes."""
    told = {}
    if box.driver:
        told["UV_CUDA_DRIVER_VERSION"] = f"{box.driver}.65.06"
    elif box.architecture.startswith("gfx"):
        told["UV_AMD_GPU_ARCHITECTURE"] = box.architecture
    machine = world.machine.with_environ({**world.variables, **told})
    arguments = [*_compile(world, box, projects), "--torch-backend=auto"]
    if box.architecture != "Arc":
        done = machine.plain(*arguments)
    else:
        folder = machine.home / "pci"
        (folder / "0000:00:02.0").mkdir(parents=True, exist_ok=True)
        for name, value in (("class", "0x030000"), ("vendor", "0x8086")):
            (folder / "0000:00:02.0" / name).write_text(f"{value}\n")
        shown = ["--user", "--map-root-user", "--mount", "sh", "-c", INTEL.format(folder=folder)]
        done = machine.execute(Path("unshare"), *shown, "sh", str(machine.uv), *arguments)
    return _pins(done.code, done.out, done.err)


def _compile(world: World, box: Box, projects: Iterable[str]) -> list[str]:
    first, *rest = projects
    (world.machine.work / "first.in").write_text(f"{first}; python_version >= '3'\n")
    (world.machine.work / "all.in").write_text("\n".join(["-r first.in", *rest]))
    arguments = ["pip", "compile", "all.in", "--no-annotate", "--no-header"]
    arguments += ["--python", sys.executable, "--python-platform", UV_PLATFORMS[box.system]]
    return [*arguments, "--index-url", world.field.index.url]


def _pins(code: int, out: str, err: str) -> Picks:
    assert code == 0, err
    return dict(re.findall(r"(?m)^([a-z-]+)==(\S+)", out))


Client = Callable[[World, Box, Iterable[str]], Picks]
OURS: dict[str, Client] = {
    "`variants resolve`": resolve,
    "pip with the shim": lambda *asked: pip_with_shim(*asked).versions,
    "`uv-variants`": uv_with_variants,
}
THEIRS: dict[str, Client] = {"uv": plain_uv, "pip": plain_pip}
CLIENTS = {**OURS, **THEIRS}


def verdict(picks: Picks, box: Box, projects: Iterable[str]) -> str:
    """Return ``right``, ``older`` than the newest release that uses the GPU, or ``wrong``."""
    wanted = {name: newest(name, box) for name in projects}
    if None in wanted.values():
        return "right"
    if not uses_gpu(picks, box):
        return "wrong"
    public = {name: picks[name].partition("+")[0] for name in wanted}
    return "right" if public == wanted else "older"


def cell(picks: Picks, box: Box) -> str:
    """Return what the table says of a choice of torch."""
    signs = {"right": "", "older": " (older)", "wrong": " ✗"}
    return f"{picks['torch']}{signs[verdict(picks, box, ('torch',))]}"


def chosen(world: World, projects: Sequence[str]) -> Iterator[tuple[Box, dict[str, Picks]]]:
    """Yield machines, and what each client takes of *projects* there, by its name."""
    known: dict[tuple[str, ...], Picks] = {}
    for box in BOXES:
        if "vllm" in projects and box.system != "linux":
            continue
        # pip knows nothing of the machine, uv nothing of NVIDIA's architectures.
        tells = {"pip": "", "uv": str(box.driver or box.architecture)}
        keys = {name: (name, box.system, tells.get(name, box.facts)) for name in CLIENTS}
        for name, key in keys.items():
            if key not in known:
                known[key] = CLIENTS[name](world, box, projects)
        yield box, {name: known[key] for name, key in keys.items()}


def table(world: World) -> str:
    """Return the tables of the page: machines and drivers with the same cells are in one row."""
    drivers: dict[tuple[str, str, tuple[str, ...]], list[int]] = {}
    lines = ["| machine | this project | uv | pip |", "|---|---|---|---|"]
    counted = [f"| | {' | '.join(CLIENTS)} |", "|---|" + "---|" * len(CLIENTS)]
    for projects in PROJECTS:
        counts = {name: Counter[str]() for name in CLIENTS}
        for box, picks in chosen(world, projects):
            for name, each in picks.items():
                counts[name][verdict(each, box, projects)] += 1
            if projects == ("torch",):
                cells = {name: cell(each, box) for name, each in picks.items()}
                ours = " / ".join(dict.fromkeys(cells[name] for name in OURS))
                row = box.name, box.system, (ours, *(cells[name] for name in THEIRS))
                drivers.setdefault(row, []).append(box.driver)
        cells_of = " | ".join(f"{each['wrong']} + {each['older']}" for each in counts.values())
        number = counts["pip"].total()
        counted.append(f"| {' and '.join(projects)} ({number} machines) | {cells_of} |")
    names: dict[tuple[int, int, str, tuple[str, ...]], list[str]] = {}
    for (name, system, texts), found in drivers.items():
        names.setdefault((found[0], found[-1], system, texts), []).append(name)
    for (first, last, system, texts), same in names.items():
        driver = f", driver {first}" if first else ""
        driver += f" to {last}" if last > first else ""
        lines.append(f"| {' or '.join(same)}{driver}{TITLES[system]} | {' | '.join(texts)} |")
    return "\n".join((*lines, "", *counted))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        wheelhouse = folder / "wheelhouse"
        wheelhouse.mkdir()
        (folder / "world").mkdir()
        with running(folder / "world", Environments(folder / "environments", wheelhouse)) as found:
            print(table(found))
