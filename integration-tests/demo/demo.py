"""`make demo`: the whole way, on real input.

1. The current numpy wheel from PyPI becomes variant wheels, one per CPU level.
2. They are indexed and served over HTTP.
3. A fresh environment gets the shim from its built wheel, and plain ``pip install numpy`` takes
   the build that fits this machine.
4. Unmodified uv does the same, started by ``uv-variants``.
5. An index laid out as in the PyTorch tutorial, and pip on machines with different drivers.
6. A whole index as it was published: 38 projects, recorded in January 2026, with tiny wheels.
7. The catalogue: builds that PyPI has under several names, for a machine with a GPU and without.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from conformance.field.standin import Standin
from support.environments import ROOT, clean_environ
from support.index import index_of, served
from support.loopback import served_folder
from support.wheels import Release

HERE = Path(__file__).resolve().parent
FIXTURES = ROOT / "packages" / "pep-variants" / "tests" / "fixtures"
PIP = "26.3"
LEVELS = {
    "x86_64": ("level", ("v2", "v3", "v4")),
    "aarch64": ("version", ("8a", "8.2a", "9.0a")),
}
# CUDA driver and compute capability of a machine; None has no GPU. The variant it should get.
MACHINES = (
    ("12.9", "7.5", "cu129"),
    ("12.8", "9.0", "cu128"),
    ("12.6", "9.0", "cu126"),
    ("12.5", "9.0", "null"),
    (None, None, "null"),
)

# Known machines, and what they should get of torch 2.9.0 from the published index, with Linux.
KNOWN_MACHINES = (
    ("h100-zen4", "cuda12.8"),
    ("rtx-5090-zen5", "cuda13.0"),
    ("mi300x-rocm6.4", "rocm6.4"),
    ("arc-b580-zen3", "xpu"),
    ("cpu-haswell", "null"),
)

# Projects of PyPI, and what is installed of them with a GPU and without.
EXISTING = (
    ("cupy", "-cuda13", ""),  # without a GPU only its sources, which need CUDA
    ("onnxruntime<1.32", "-cuda13", "onnxruntime-"),
    ("xgboost", "xgboost-", "-null"),
)


def main() -> int:
    """Run the demo; return the exit code."""
    start = time.monotonic()
    work = Path(tempfile.mkdtemp(prefix="variants-demo-"))
    try:
        python = make_environment(work / "env")
        numpy(work, python)
        torch(python)
        published_index(python)
        existing_builds(python)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"\nDone in {time.monotonic() - start:.0f} s.")
    return 0


def heading(text: str) -> None:
    """Print a heading."""
    print(f"\n=== {text}", flush=True)


def run(*command: str, show: str | None = None, env: dict[str, str] | None = None) -> str:
    """Run *command*, print it (as *show*, if given) and what it prints; return that."""
    print(f"$ {show or ' '.join(command)}", flush=True)
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, check=False
    )
    print(done.stdout, end="", flush=True)
    if done.returncode:
        sys.exit(f"the command failed with exit code {done.returncode}")
    return done.stdout


def make_environment(path: Path) -> str:
    """Create an environment with a supported pip and the shim; return its python."""
    heading("A fresh environment, with the shim from its built wheel")
    subprocess.run([sys.executable, "-m", "venv", str(path)], check=True)
    python = str(path / ("Scripts" if os.name == "nt" else "bin") / "python")
    quiet = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    subprocess.run([python, *quiet, f"pip=={PIP}"], check=True)
    run(
        python, "-m", "pip", "install", "--no-index", "--find-links", str(ROOT / "dist"),
        "pep-variants-shim", show="pip install pep-variants-shim", env=clean_environ(),
    )  # fmt: skip
    run(python, "-m", "pip", "--version", show="pip --version", env=clean_environ())
    return python


def numpy(work: Path, python: str) -> None:
    """Publish numpy as variants and install it."""
    heading("The current numpy from PyPI, as variant wheels")
    plain, wheels = work / "plain", work / "wheels"
    subprocess.run(
        [python, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:",
         "--disable-pip-version-check", "--dest", str(plain), "numpy"],
        check=True,
    )  # fmt: skip
    (wheel,) = plain.iterdir()
    namespace = "aarch64" if platform.machine().lower() in ("arm64", "aarch64") else "x86_64"
    feature, values = LEVELS[namespace]
    variants = str(Path(sys.executable).with_name("variants"))
    common = ("make", str(wheel), "--pyproject", str(HERE / "numpy.toml"), "-o", str(wheels))
    properties = {
        "null": (),
        **{f"{namespace}_{v}": (f"{namespace} :: {feature} :: {v}",) for v in values},
    }
    for label, listed in properties.items():
        options = [item for text in listed for item in ("--property", text)]
        shown = " ".join(f"--property '{text}'" for text in listed)
        run(
            variants, *common, "--label", label, *options,
            show=f"variants make {wheel.name} --label {label} {shown}".rstrip(),
        )  # fmt: skip
    heading("Indexed and served over HTTP")
    run(variants, "index", str(wheels), show="variants index wheels")
    with served_folder(wheels) as served_at:
        url = f"{served_at}simple/"
        heading("Plain pip install, on this machine")
        run(
            python, "-m", "pip", "install", "-v", "--index-url", url, "numpy",
            show="pip install -v --index-url … numpy", env=clean_environ(),
        )  # fmt: skip
        heading("The same with uv, unmodified, through an index shim of its own")
        uv = str(Path(sys.executable).with_name("uv-variants"))
        other = work / "uv-env"
        run(
            uv, "venv", "--quiet", "--no-project", "--python", sys.executable, str(other),
            show="uv-variants venv", env=clean_environ(),
        )  # fmt: skip
        run(
            uv, "pip", "install", "--python", str(other), "--index-url", url, "numpy",
            show="uv-variants pip install --index-url … numpy", env=clean_environ(),
        )  # fmt: skip
        run(
            uv, "pip", "check", "--python", str(other),
            show="uv-variants pip check", env=clean_environ(),
        )  # fmt: skip
    code = (
        "import importlib.metadata as m, json, numpy; "
        "d = json.loads(m.distribution('numpy').read_text('variant.json')); "
        "print('numpy', numpy.__version__, 'variant', *d['variants'], '| 1+1 =', numpy.add(1, 1))"
    )
    run(python, "-c", code, show="python -c 'import numpy; …'", env=clean_environ())


def torch(python: str) -> None:
    """Ask pip for torch on machines with different drivers."""
    heading("torch, from an index as in the PyTorch tutorial, on five machines")
    fixture = json.loads((FIXTURES / "pytorch-tutorial-variants.json").read_text())
    wrong = []
    with served(index_of([Release("torch", "2.8.0", fixture)])) as index:
        for driver, capability, expected in MACHINES:
            forced, option = {}, []
            if driver is not None and capability is not None:
                forced = {
                    "NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION": driver,
                    "NV_VARIANT_PROVIDER_FORCE_SM_ARCH": capability,
                }
            else:  # also where this machine has one
                option = ["--variant-platform", str(HERE / "no-gpu.toml")]
            print(
                f"\n# driver {driver}, compute capability {capability}" if driver else "\n# no GPU"
            )
            printed = run(
                python, "-m", "pip", "install", "--dry-run", *option,
                "--index-url", index.url, "torch",
                show="pip install --dry-run --index-url … torch", env=clean_environ(forced),
            )  # fmt: skip
            if f"Would install torch-2.8.0-{expected}" not in printed:
                wrong.append(f"driver {driver}: expected {expected}")
    if wrong:
        sys.exit("; ".join(wrong))


def published_index(python: str) -> None:
    """Ask pip for torch from the index that the field published."""
    heading("torch, from the published index of 38 projects as recorded, for known machines")
    wrong = []
    with served(Standin()) as index:
        for machine, expected in KNOWN_MACHINES:
            print()
            printed = run(
                python, "-m", "pip", "install", "--dry-run", "--no-deps",
                "--variant-platform", machine, "--index-url", index.url, "torch==2.9.0",
                show=f"pip install --variant-platform {machine} --index-url … torch==2.9.0",
                env=clean_environ(),
            )  # fmt: skip
            if sys.platform == "linux" and f"Would install torch-2.9.0-{expected}" not in printed:
                wrong.append(f"{machine}: expected {expected}")
    if wrong:
        sys.exit("; ".join(wrong))


def existing_builds(python: str) -> None:
    """Ask pip for projects of PyPI that have a name for each kind of machine; install one."""
    heading("Builds that PyPI has today under several names, chosen with the catalogue")
    pip = (python, "-m", "pip", "install", "--disable-pip-version-check", "--no-cache-dir")
    catalog = {**os.environ, "VARIANTS_CATALOG": "default"}
    gpu = {
        "NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION": "13.0",
        "NV_VARIANT_PROVIDER_FORCE_SM_ARCH": "9.0",
    }
    none = ("--variant-platform", str(HERE / "no-gpu.toml"))
    wrong = []
    for project, on_gpu, on_cpu in EXISTING:
        for what, more, options, expected in (
            ("driver 13.0, compute capability 9.0", gpu, (), on_gpu),
            ("no GPU", {}, none, on_cpu),
        ):
            if not expected:
                continue
            print(f"\n# {what}")
            printed = run(
                *pip, "--dry-run", "--no-deps", "--ignore-installed", "--progress-bar", "off",
                *options, project,
                show=f"pip install --dry-run --no-deps {project}", env={**catalog, **more},
            )  # fmt: skip
            if expected not in printed.rpartition("Would install")[2]:
                wrong.append(f"{project}, {what}: expected {expected}")
    if wrong:
        sys.exit("; ".join(wrong))
    print("\n# this machine, without its GPU")
    quiet = ("--quiet", "--progress-bar", "off")
    run(*pip, *quiet, *none, "xgboost", show="pip install xgboost", env=catalog)
    run(python, "-m", "pip", "list", show="pip list", env=clean_environ())
    code = "import xgboost; print('xgboost', xgboost.__version__)"
    run(python, "-c", code, show="python -c 'import xgboost; …'", env=clean_environ())


if __name__ == "__main__":
    sys.exit(main())
