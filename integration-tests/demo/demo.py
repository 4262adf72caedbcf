"""`make demo`: the whole way, on real input.

1. The current numpy wheel from PyPI becomes variant wheels, one per CPU level.
2. They are indexed and served over HTTP.
3. A fresh environment gets the shim from its built wheel, and plain ``pip install numpy`` takes
   the build that fits this machine.
4. Unmodified uv does the same, started by ``uv-variants``.
5. A whole index as it was published: 38 projects, recorded in January 2026, with tiny wheels.
6. The catalogue: builds that PyPI has under several names, for a machine with a GPU and without.
"""

from __future__ import annotations

import platform
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from conformance.field.standin import Standin
from support.environments import ROOT, clean_environ
from support.index import served
from support.isolation import outside
from support.loopback import served_folder

HERE = Path(__file__).resolve().parent
SCRIPTS = Path(sys.executable).parent
PIP = "26.3"
LEVELS = {
    "x86_64": ("level", ("v2", "v3", "v4")),
    "aarch64": ("version", ("8a", "8.2a", "9.0a")),
}
# Known machines, and what they should get of torch 2.9.0 from the published index, with Linux.
KNOWN_MACHINES = {
    "h100-zen4": "cuda12.8",
    "rtx-5090-zen5": "cuda13.0",
    "mi300x-rocm6.4": "rocm6.4",
    "arc-b580-zen3": "xpu",
    "cpu-haswell": "null",
}
GPU, NO_GPU = "cuda=13.0,sm=9.0", str(HERE / "no-gpu.toml")
# Projects of PyPI, machines, and what is installed there.
EXISTING = (
    ("cupy", GPU, "-cuda13"),  # without a GPU only its sources, which need CUDA
    ("onnxruntime<1.32", GPU, "-cuda13"),
    ("onnxruntime<1.32", NO_GPU, "onnxruntime-"),
    ("xgboost", GPU, "xgboost-"),
    ("xgboost", NO_GPU, "-null"),
)


def main() -> None:
    """Run the demo."""
    with tempfile.TemporaryDirectory(prefix="variants-demo-") as folder:
        python = make_environment(Path(folder, "env"))
        numpy(Path(folder), python)
        published_index(python)
        existing_builds(python)


def heading(text: str) -> None:
    """Print a heading."""
    print(f"\n=== {text}", flush=True)


def run(*command: str | Path, env: Mapping[str, str] | None = None) -> str:
    """Run *command*, print it with the names of programs and files, and what it prints."""
    words = [word.name if isinstance(word, Path) else word for word in command]
    print(f"$ {shlex.join(words).removeprefix('python -m ')}", flush=True)
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        env=clean_environ() if env is None else env,
    )  # fmt: skip
    print(done.stdout, end="", flush=True)
    if done.returncode:
        sys.exit(f"the command failed with exit code {done.returncode}")
    return done.stdout


def make_environment(path: Path) -> Path:
    """Create an environment with a supported pip and the shim; return its python."""
    heading("A fresh environment, with the shim from its built wheel")
    subprocess.run([sys.executable, "-m", "venv", str(path)], check=True)
    python = path / SCRIPTS.name / "python"
    quiet = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    subprocess.run([python, *quiet, f"pip=={PIP}"], check=True)
    found = ("--no-index", "--find-links", ROOT / "dist", "pep-variants-shim")
    run(python, "-m", "pip", "install", *found)
    return python


def numpy(work: Path, python: Path) -> None:
    """Publish numpy as variants and install it."""
    heading("The current numpy from PyPI, as variant wheels")
    plain, wheels = work / "plain", work / "wheels"
    download = ("-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:")
    subprocess.run([python, *download, "--dest", str(plain), "numpy"], check=True)
    (wheel,) = plain.iterdir()
    namespace = "aarch64" if platform.machine().lower() in ("arm64", "aarch64") else "x86_64"
    feature, values = LEVELS[namespace]
    variants = SCRIPTS / "variants"
    for value in (None, *values):
        label = f"{namespace}_{value}" if value else "null"
        options = ["--property", f"{namespace} :: {feature} :: {value}"] if value else []
        pyproject = ("--pyproject", HERE / "numpy.toml")
        run(variants, "make", wheel, *pyproject, "-o", wheels, "--label", label, *options)
    heading("Indexed and served over HTTP")
    run(variants, "index", wheels)
    with served_folder(wheels) as served_at:
        options = ["--index-url", f"{served_at}simple/", "numpy"]
        heading("Plain pip install, on this machine")
        run(python, "-m", "pip", "install", "-v", *options)
        heading("The same with uv, unmodified, through an index shim of its own")
        uv, other = SCRIPTS / "uv-variants", work / "uv-env"
        run(uv, "venv", "--quiet", "--no-project", "--python", Path(sys.executable), other)
        run(uv, "pip", "install", "--python", other, *options)
    code = (
        "import importlib.metadata as m, json, numpy; "
        "d = json.loads(m.distribution('numpy').read_text('variant.json')); "
        "print('numpy', numpy.__version__, 'variant', *d['variants'], '| 1+1 =', numpy.add(1, 1))"
    )
    run(python, "-c", code)


def published_index(python: Path) -> None:
    """Ask pip for torch from the index that the field published."""
    heading("torch, from the published index of 38 projects as recorded, for known machines")
    with served(Standin()) as index:
        for machine, expected in KNOWN_MACHINES.items():
            options = ("--index-url", index.url, "--variant-platform", machine)
            _check(python, ("torch==2.9.0", *options), f"Would install torch-2.9.0-{expected}")


def existing_builds(python: Path) -> None:
    """Ask pip for projects of PyPI that have a name for each kind of machine; install one."""
    heading("Builds that PyPI has today under several names, chosen with the catalogue")
    quiet = ("--progress-bar", "off", "--variant-catalog", "default")
    for project, machine, expected in EXISTING:
        _check(python, (project, *quiet, "--variant-platform", machine), expected)
    print("\n# this machine, without its GPU")
    options = ("--quiet", *quiet, "--variant-platform", NO_GPU, "xgboost")
    run(python, "-m", "pip", "install", *options, env=outside())
    run(python, "-c", "import xgboost; print('xgboost', xgboost.__version__)")


def _check(python: Path, options: tuple[str, ...], expected: str) -> None:
    """Ask pip what it would install, and stop if that is something else."""
    print()
    pip = ("-m", "pip", "install", "--dry-run", "--no-deps", "--ignore-installed")
    printed = run(python, *pip, *options, env=outside())
    if sys.platform == "linux" and expected not in printed[printed.rfind("Would install") :]:
        sys.exit(f"expected {expected}")


if __name__ == "__main__":
    main()
