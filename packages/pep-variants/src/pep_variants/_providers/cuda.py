"""Troubles that keep CUDA programs from a GPU that the driver's management library shows.

Detection does not depend on it: the machine is the same, whatever a shell hides. The doctor asks.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from ctypes import byref, c_int
from pathlib import Path

from .._model.platform import Fact
from .base import COMMAND_SECONDS, Trouble, command_folders, find_command, load, numbers
from .process import run

_LIBRARY = "libcuda.so.1"
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_CONTAINER = "NVIDIA_DRIVER_CAPABILITIES"
_PATHS = "LD_LIBRARY_PATH"
_DRIVER = "CUDA driver"


def find_troubles(
    environ: Mapping[str, str], root: Path, facts: Sequence[Fact], container: str
) -> Iterator[Trouble]:
    """Yield what is wrong between a driver that answers and the programs of this machine.

    Args:
        environ: environment variables.
        root: of the file system.
        facts: what detection found of the namespace.
        container: its kind, empty outside.
    """
    detected = [fact for fact in facts if not fact.forced]
    drivers = [fact.value for fact in detected if fact.what == _DRIVER]
    gpus = len(detected) - len(drivers)
    if gpus and _VISIBLE in environ:
        yield from _visible(environ, gpus)
    if drivers:
        yield from _missing(environ, root, container, has_gpus=len(facts) > len(drivers))
        yield from _old(environ, root, drivers[0])


def _visible(environ: Mapping[str, str], gpus: int) -> Iterator[Trouble]:
    """Yield a trouble if `CUDA_VISIBLE_DEVICES` names GPUs that are not here.

    The first entry that names none ends the list, and one that is named twice empties it.
    """
    value = environ[_VISIBLE].strip()
    entries = [entry.strip() for entry in value.split(",")]
    there, kind, cut = [str(number) for number in range(gpus)], "GPU", False
    if value.startswith(("GPU-", "MIG-")):
        there, kind, cut = _identities(environ), f"{value[:3]} device", True
    elif not entries[0].isdigit():
        return  # nothing, or a word for it: all are hidden, which may be meant
    if not there:
        return
    seen: list[str] = []
    for entry in entries:
        # UUIDs may be cut short. Of a slice in the older words only the GPU can be found.
        of_gpu = re.match("MIG-(GPU-[^/]+)/", entry)
        name = of_gpu[1] if of_gpu else entry
        matching = [own for own in there if own == name or (cut and own.startswith(name))]
        if len(matching) != 1:
            text = f"{_VISIBLE}={value} names {entry or 'nothing'}, which is no {kind} here"
            break
        matching = [entry] if of_gpu else matching
        if matching[0] in seen:
            seen, text = [], f"{_VISIBLE}={value} names {entry} twice"
            break
        seen += matching
    else:
        return
    shown = f"programs see {len(seen)} of {len(there)}" if seen else "programs see no GPU"
    yield Trouble("hidden-gpu", f"{text}, so {shown}", f"unset {_VISIBLE}", fails=not seen)


def _identities(environ: Mapping[str, str]) -> list[str]:
    """Return the UUIDs of GPUs and of their slices, nothing if they cannot be found out."""
    path = find_command("nvidia-smi", command_folders(environ))
    if path is None:
        return []
    try:
        outcome = run([path, "-L"], environ=environ, cwd=path.parent, time_limit=COMMAND_SECONDS)
    except OSError:
        return []
    return re.findall(r"UUID: ([^)\s]+)", outcome.output.decode(errors="replace"))


def _missing(
    environ: Mapping[str, str], root: Path, container: str, *, has_gpus: bool
) -> Iterator[Trouble]:
    """Yield a trouble if CUDA's library is kept out of a container, or tells nothing of a GPU."""
    command = f"docker run --gpus all --env {_CONTAINER}=compute,utility …"
    given = environ.get(_CONTAINER, "")
    slices = any(root.glob("proc/driver/nvidia/capabilities/gpu*/mig/gi*"))
    if given and not {"all", "compute"}.intersection(given.split(",")):
        text = f"{_CONTAINER}={given} keeps {_LIBRARY} out of this container"
        yield Trouble("driver-library", f"{text}, so programs see no GPU. Start it with", command)
    elif not has_gpus and (slices or any(root.glob("dev/nvidia[0-9]*"))):
        text = (
            f"there is {'a MIG slice' if slices else 'a GPU'}, and neither NVIDIA's management "
            f"library nor {_LIBRARY} tells its compute capability, so no build with GPU code is "
            "chosen: "
        )
        if container:
            text += "start this container with both"
        else:
            text += "install the whole driver"
            version = _kernel_version(root).partition(".")[0]
            has_apt = find_command("apt-get", command_folders(environ)) is not None
            package = f"sudo apt-get install libnvidia-compute-{version}"
            command = package if version and has_apt else ""
        yield Trouble("driver-library", text, command)


def _old(environ: Mapping[str, str], root: Path, driver: str) -> Iterator[Trouble]:
    """Yield a trouble if programs find a `libcuda` that is older than the driver.

    A newer one is of a compatibility package, which is meant.
    """
    folders = [Path(path) for path in environ.get(_PATHS, "").split(":") if path]
    # Programs of an active conda environment look there first.
    prefix = environ.get("CONDA_PREFIX")
    places = [*([Path(prefix, "lib")] if prefix else []), *folders]
    path = next((folder / _LIBRARY for folder in places if (folder / _LIBRARY).exists()), None)
    library = load([_LIBRARY if path is None else os.fspath(path)])
    if library is None:
        return
    path = path or _loaded()
    if path is None:
        return
    number, ask = c_int(), getattr(library, "cuDriverGetVersion", None)
    answers = ask is not None and ask(byref(number)) == 0
    version = f"{number.value // 1000}.{number.value % 1000 // 10}" if answers else ""
    kernel = _kernel_version(root)
    match = re.search(r"\.so\.([0-9]+(?:\.[0-9]+)+)$", os.path.realpath(path))
    is_old = not version or numbers(version) < numbers(driver)
    if not is_old and match and kernel:
        is_old = numbers(match[1]) < numbers(kernel)
    if not is_old:
        return
    what = f"of CUDA {version}" if version else "a stub without a driver"
    own = f"the driver is {kernel}" if kernel else f"the driver supports CUDA {driver}"
    text = f"programs load {path}, {what}, while {own}: it is found before the driver's own"
    yield Trouble("driver-library", text, _without(path, folders))


def _without(path: Path, folders: Sequence[Path]) -> str:
    """Return the command after which the library at *path* is not found."""
    if path.parent in folders:
        left = [os.fspath(folder) for folder in folders if folder != path.parent]
        return f"export {_PATHS}={shlex.quote(':'.join(left))}" if left else f"unset {_PATHS}"
    move = shlex.join(["mv", os.fspath(path), f"{path}.unused"])
    return move if os.access(path.parent, os.W_OK) else f"sudo {move} && sudo ldconfig"


def _loaded() -> Path | None:
    """Return where the library is that this process has loaded."""
    try:
        match = re.search(r"(/\S*/libcuda\.so\S*)$", Path("/proc/self/maps").read_text(), re.M)
    except OSError:
        return None
    return Path(match[1]) if match else None


def _kernel_version(root: Path) -> str:
    """Return the version of the driver that the kernel runs, such as ``550.54.14``."""
    try:
        text = (root / "proc/driver/nvidia/version").read_text(errors="replace")
    except OSError:
        return ""
    match = re.search(r"Kernel Module(?: for \S+)? +([0-9]+(?:\.[0-9]+)+)", text)
    return match[1] if match else ""
