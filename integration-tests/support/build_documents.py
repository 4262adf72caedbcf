"""The documents that this project comes from, row by row, beside the commands that answer them.

`data` returns docs/reference/build-documents.jsonl, whose rows the page shows as tables; what a row
prints is what its command printed then. `python -m support.build_documents` in integration-tests
writes it. The files that the commands read are those of the page.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from variants_cli.main import main

from .documents import File, Page

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "build-documents.md"
DATA = PAGE.with_suffix(".jsonl")
TUTORIAL = PAGE.with_name("torch-2.8.0-variants.json")

TORCH = ("torch-2.8.0-cuda12.8", "torch-2.9.1-cuda12.9", "torch-2.10.0-cuda13.0")
VISION = (
    "torchvision-0.23.0-cuda12.8",
    "torchvision-0.24.0-cuda12.9",
    "torchvision-0.25.0-cuda13.0",
)
ROCM = "torch-2.9.0-rocm"
GPUS_PAGE = "docs/how-to/several-gpus.md"
PUBLISH_PAGE = "docs/tutorials/publish.md"
TORCH_PAGE = "docs/tutorials/torch.md"
UV_PAGE = "docs/how-to/uv.md"

_HAS_EFFECT = re.compile("VARIANTS_|_VARIANT_PROVIDER_|VISIBLE_DEVICES")


@dataclass(frozen=True)
class Row:
    """A row, table, command or decision of a document.

    Attributes:
        words: what the document has there.
        command: what does the same today.
        line: begins the line of the output that is shown; empty for the first one.
        page: a document whose commands it is one of, and which is tested; empty for none.
    """

    words: str
    command: str
    line: str = ""
    page: str = ""


@contextmanager
def _inside(folder: Path, variables: Mapping[str, str]) -> Iterator[None]:
    """Have *folder* as the current one, and of the variables that have an effect only these."""
    before, environ = Path.cwd(), dict(os.environ)
    kept = {name: text for name, text in environ.items() if not _HAS_EFFECT.search(name)}
    os.chdir(folder)
    os.environ.clear()
    os.environ.update({**kept, **variables})
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(environ)


def typed(command: str, folder: Path) -> str:
    """Run a command of this project in *folder*, with variables before it; return its output.

    Raises:
        AssertionError: it failed.
    """
    words = shlex.split(command)
    variables = dict(word.split("=", 1) for word in words if word.partition("=")[0].isupper())
    assert words[len(variables)] == "variants", command
    out, err = io.StringIO(), io.StringIO()
    with _inside(folder, variables), redirect_stdout(out), redirect_stderr(err):
        code: object = 0
        try:
            main(words[len(variables) + 1 :])
        except SystemExit as end:
            code = end.code
    assert not code, f"{command}: {err.getvalue()}"
    return out.getvalue()


def prepare(folder: Path) -> None:
    """Do in *folder* what the page has before the rows: metadata of releases, and other files."""
    (folder / TUTORIAL.name).write_bytes(TUTORIAL.read_bytes())
    for step in Page(PAGE).steps:
        if isinstance(step, File):
            (folder / step.name).write_text(step.text)
        elif " --format metadata " in step.text:
            typed(step.text, folder)


# The rows.


def _post() -> Iterator[Row]:
    gpus = "gfx900 gfx906 gfx908 gfx90a gfx942 gfx1030 gfx1100 gfx1101 gfx1102 gfx1200 gfx1201"
    for gpu in gpus.split():
        for rocm in ("6.3", "6.4", "7.0"):
            words = f"ROCm {rocm}, {gpu}"
            yield Row(words, f"variants rank {ROCM}.json --platform rocm={rocm},gfx={gpu}")
    forced = (
        "AMD_VARIANT_PROVIDER_FORCE_GFX_ARCH=gfx1100 AMD_VARIANT_PROVIDER_FORCE_ROCM_VERSION=6.4.1"
    )
    yield Row("force what is detected", f"{forced} variants detect amd")
    yield Row(
        "force a build where nothing else is chosen",
        f"{forced} variants rank {ROCM}.json",
    )
    yield Row(
        "several GPUs, one of them without a build",
        f"variants rank {ROCM}.json --platform rocm=6.4,gfx=gfx942+gfx1031",
    )
    yield Row("HIP_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES=0 variants detect -v amd", page=GPUS_PAGE)
    yield Row("install, with uv", "uv-variants pip install torch", page=UV_PAGE)
    shown = "uv-variants pip install -v --dry-run torch"
    yield Row("what was detected and chosen, with -v", shown, page=UV_PAGE)


def _tutorial() -> Iterator[Row]:
    yield Row("make an environment", "python3 -m venv env", page=TORCH_PAGE)
    yield Row("and enter it", ". env/bin/activate", page=TORCH_PAGE)
    shim = "python -m pip install --upgrade pip dist/pep_variants_shim-*.whl"
    yield Row("make pip aware of variants", shim, page="README.md")
    yield Row("pip is aware of them", "pip --version", page=TORCH_PAGE)
    yield Row("the programs are there", "variants --version")
    config = "pip config set global.variant-catalog default"
    yield Row("set the index once and for all", config, page=TORCH_PAGE)
    yield Row(
        "what this machine supports (`nvidia-smi`)", "variants detect -v nvidia", page=GPUS_PAGE
    )
    yield Row("what another machine supports", "variants platforms cuda=12.9,sm=7.5")
    dry_run = "pip install --dry-run -v --no-deps torch"
    yield Row("what would be installed, its properties", dry_run, page=TORCH_PAGE)
    yield Row("install", "pip install torch", page=TORCH_PAGE)
    for cuda in ("12.5", "12.6", "12.8", "12.9", "13.0"):
        for sm in ("4.0", "5.0", "7.5", "9.0", "10.0", "12.0"):
            yield Row(
                f"driver for CUDA {cuda}, compute capability {sm}",
                f"NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION={cuda} "
                f"NV_VARIANT_PROVIDER_FORCE_SM_ARCH={sm} variants rank {TUTORIAL.name}",
            )


GPUS = (
    ("DGX Spark", "12.1", "neoverse_v3ae"),
    ("RTX 5090", "12.0", "zen3"),
    ("NVIDIA DRIVE Thor", "11.0", "neoverse_v3ae"),
    ("B300", "10.3", "zen3"),
    ("B100, B200", "10.0", "zen3"),
    ("H100, H200", "9.0", "zen3"),
    ("RTX 4060 Ti to 4090, L4, L40, L40S", "8.9", "zen3"),
    ("RTX 3080 Ti to 3090 Ti, A5000, A40", "8.6", "zen3"),
    ("A100, A30", "8.0", "zen3"),
    ("T4, RTX 2060 to 2080 Ti, Quadro RTX 6000 and 8000", "7.5", "zen3"),
    ("GTX 1070, 1080, 1080 Ti", "6.1", "zen3"),
)
CPUS = (
    ("avx512_bf16, BF16 training", "zen4", " --variant-enable bf16_training"),
    ("avx512_vnni, INT8 inference", "zen4", " --variant-enable int8_inference"),
    ("avx512f", "skylake_avx512", ""),
    ("avx2, no avx512", "haswell", ""),
    ("avx alone", "sandybridge", ""),
    ("sve2 (Grace)", "neoverse_v2", ""),
    ("neither (Graviton2)", "neoverse_n1", ""),
)
RECOMMENDED = (
    ("development, testing; a laptop without GPU", "cpu=haswell", ""),
    ("RTX 3090 workstation, Intel with AVX-512", "cuda=13.0,sm=8.6,cpu=skylake_avx512", ""),
    ("RTX 3090, Intel i9-12900K", "cuda=13.0,sm=8.6,cpu=alderlake", ""),
    ("H100, x86-64", "cuda=13.0,sm=9.0,cpu=zen4", ""),
    (
        "H100, EPYC Zen 4, INT8 inference",
        "cuda=13.0,sm=9.0,cpu=zen4",
        " --variant-enable int8_inference",
    ),
    ("RTX 5090, AVX-512", "cuda=13.0,sm=12.0,cpu=zen5", ""),
    ("RTX 5090, AVX2", "cuda=13.0,sm=12.0,cpu=alderlake", ""),
    ("H100, Graviton3", "cuda=13.0,sm=9.0,cpu=neoverse_v1", ""),
    (
        "inference server, INT8",
        "cuda=13.0,sm=8.6,cpu=cascadelake",
        " --variant-enable int8_inference",
    ),
)


def _labels(name: str) -> list[tuple[str, str]]:
    """Return label and title of the variants of a matrix."""
    found = json.loads(typed(f"variants matrix {name} --format json", ROOT))
    return [(each["label"], each["title"]) for each in found]


BUILDS = (
    f"variants matrix {TORCH[1]} --only cuda12_9_sm90_avx2 --build",
    f"variants matrix {VISION[1]} --only cuda12_9_sm90_avx2 --source torch=../pytorch --build",
)
TESTED = "variants matrix tested.toml --only cpu_avx2 --source torch=../pytorch --build"
OWN_PAGE = "docs/reference/build-documents.md"


def _builds(number: int) -> Iterator[Row]:
    yield Row("build a variant, in a checkout", BUILDS[number], page=OWN_PAGE)
    yield Row("what was built", "ls dist", page=PUBLISH_PAGE)
    yield Row("publish", "variants publish dist --to ../public", page=PUBLISH_PAGE)
    installed = "uv-variants pip install --python uv-env --index-url http://127.0.0.1:8000/simple/ "
    yield Row("users install it", f"{installed}greeting", page=PUBLISH_PAGE)
    yield Row("or with pip", "pip install torch", page=TORCH_PAGE)


def _matrices(names: tuple[str, ...]) -> Iterator[Row]:
    """Yield the rows that the documents of PyTorch and torchvision both have."""
    for name in names:
        yield Row(f"branch {name}: its variants", f"variants matrix {name}")
        for fact in (
            "PyTorch",
            "CUDA",
            "cuDNN",
            "Python",
            "NVIDIA driver",
            "nixpkgs",
            "Build time",
        ):
            if fact == "nixpkgs" and name == VISION[2]:
                continue  # the document has none
            command = f"variants matrix {name} --format document"
            yield Row(f"version matrix, {name}: {fact}", command, f"| {fact} |")
    for name in names:
        for label, title in _labels(name):
            yield Row(f"{name}: {title}", f"variants matrix {name} --only {label}")


def _reference(name: str, gpus: str, cpus: str) -> Iterator[Row]:
    for axis, values, facts in (
        ("gpu", gpus.split(), ("Driver",)),
        ("cpu", cpus.split(), ("Hardware", "Use for")),
    ):
        for value in values:
            for fact in facts:
                command = f"variants matrix {name} --only {axis}={value} --reference"
                yield Row(f"reference of {value}: {fact}", command, f"- {fact}:")


def _torch() -> Iterator[Row]:
    yield from _matrices(TORCH)
    yield from _reference(TORCH[0], "sm61", "")
    yield from _reference(
        TORCH[2],
        "sm75 sm80 sm86 sm89 sm90 sm100 sm103 sm110 sm120 sm121",
        "avx avx2 avx512 avx512bf16 avx512vnni armv8_2 armv9",
    )
    yield from _decisions(TORCH[1], TORCH[2])
    yield from _builds(0)
    label = "cuda13_0_sm90_avx512"
    one = f"variants matrix {TORCH[2]} --only {label}"
    yield Row("key build variables, compiler flags", f"{one} --format shell", "CXXFLAGS=")
    yield Row("jobs of ninja", f"{one} --format shell", "MAX_JOBS=")
    yield Row("BLAS strategy", f"variants matrix {TORCH[2]} --format document", "| BLAS |")
    yield Row(
        "BLAS: Intel MKL (`mkl.toml`)",
        "variants matrix mkl.toml --only cpu_avx512_mkl --format shell",
        "BLAS=",
    )
    yield Row("disk of a build", f"variants matrix {TORCH[2]} --format document", "| Disk |")
    yield Row("memory of a build", f"variants matrix {TORCH[2]} --format document", "| Memory |")
    yield Row(
        "extending the matrix (`more.toml`)",
        "variants matrix more.toml --only gpu=sm87",
    )
    yield Row(
        "unknown architecture: what SM121 needs",
        f"variants matrix {TORCH[2]} --only gpu=sm121 --reference",
        "- Note:",
    )
    yield Row("jobs of a CI service", f"variants matrix {TORCH[2]} --format github")
    yield Row("decision tree", f"variants matrix {TORCH[2]} --format document", "flowchart")


def _decisions(older: str, newer: str) -> Iterator[Row]:
    for card, capability, cpu in GPUS:
        name = older if capability == "6.1" else newer
        facts = f"cuda=13.0,sm={capability},cpu={cpu}"
        yield Row(
            f"which GPU: {card} ({capability})", f"variants rank {name}.json --platform {facts}"
        )
    for seen, cpu, enable in CPUS:
        command = f"variants rank {newer}.json --platform cpu={cpu}{enable}"
        yield Row(f"which CPU: {seen}", command)
    for words, facts, enable in RECOMMENDED:
        command = f"variants rank {newer}.json --platform {facts}{enable}"
        yield Row(f"recommended: {words}", command)


def _vision() -> Iterator[Row]:
    yield from _matrices(VISION)
    yield from _reference(
        VISION[1],
        "sm61 sm75 sm80 sm86 sm89 sm90 sm100 sm103 sm120",
        "avx avx2 avx512 avx512bf16 avx512vnni armv8_2 armv9",
    )
    yield from _reference(VISION[2], "sm110 sm121", "")
    yield from _decisions(VISION[1], VISION[1])
    yield from _builds(1)
    yield Row("quick test, after each build", TESTED, page=OWN_PAGE)


def _quick() -> Iterator[Row]:
    for name, gpus in (
        (VISION[2], "sm121 sm110"),
        (VISION[1], "sm103"),
        (VISION[0], "sm120 sm100 sm90 sm89 sm86 sm80 sm61"),
    ):
        for gpu in gpus.split():
            command = f"variants matrix {name} --only gpu={gpu} --only cpu=avx2"
            yield Row(f"status of {gpu}: available", command)
    yield Row("status: 44 of 44 on main", f"variants matrix {VISION[0]}")
    for seen, cpu, enable in CPUS:
        if "alone" not in seen:
            command = f"variants rank {VISION[0]}.json --platform cpu={cpu}{enable}"
            yield Row(f"see {seen}", command)
    yield Row(
        "pattern types A and B: what is set for SM90",
        f"variants matrix {VISION[0]} --only cuda12_8_sm90_avx512 --format shell",
        "TORCH_CUDA_ARCH_LIST=",
    )
    yield Row(
        "pattern types A and B: what is set for SM120",
        f"variants matrix {VISION[0]} --only cuda12_8_sm120_avx512 --format shell",
        "TORCH_CUDA_ARCH_LIST=",
    )
    yield Row(
        "jobs of ninja and setuptools",
        f"variants matrix {VISION[0]} --only cuda12_8_sm90_avx512 --format shell",
        "MAX_JOBS=",
    )
    yield Row("all six variants of an architecture", f"variants matrix {VISION[0]} --only gpu=sm90")
    yield from _builds(1)
    yield Row("test the build: versions, GPU detection, a figure", TESTED, page=OWN_PAGE)
    yield Row("the matching PyTorch variant is missing", BUILDS[1], page=OWN_PAGE)


def documents() -> dict[str, list[Row]]:
    """Return the rows of each document."""
    return {
        "PyTorch 2.9 wheel variant support expands to ROCm": list(_post()),
        "Wheel variants: PyTorch tutorial": list(_tutorial()),
        "PyTorch custom build environment": list(_torch()),
        "torchvision custom build environment": list(_vision()),
        "torchvision quick start": list(_quick()),
    }


# The data.


def data() -> str:
    """Return the data of the page, a row on each line, with what each command prints here."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        return "".join(
            f"{json.dumps(entry(title, row, folder), ensure_ascii=False)}\n"
            for title, rows in documents().items()
            for row in rows
        )


def entry(title: str, row: Row, folder: Path) -> dict[str, str]:
    """Return a row of the document *title* with the page that it is on, or what it prints."""
    found = {"document": title, "row": row.words, "command": row.command}
    return {**found, "page": row.page} if row.page else {**found, "prints": printed(row, folder)}


def printed(row: Row, folder: Path) -> str:
    """Return what the page shows of the output of *row*."""
    lines = typed(row.command, folder).splitlines()
    line = next(line.strip() for line in lines if line.strip().startswith(row.line))
    text = " ".join(line.split())
    return text if len(text) <= 60 else f"{text[:59]}…"


if __name__ == "__main__":
    DATA.write_text(data(), encoding="utf-8")
