"""Whether an accelerator may be here that detection does not see."""

from __future__ import annotations

from pathlib import Path

import pytest

from pep_variants._providers.surroundings import Surroundings, why_invisible


def _with_gpu(root: Path, vendor: str = "0x10de", kind: str = "0x030000") -> None:
    device = root / "sys/bus/pci/devices/0000:01:00.0"
    device.mkdir(parents=True)
    (device / "vendor").write_text(f"{vendor}\n")
    (device / "class").write_text(f"{kind}\n")


@pytest.mark.parametrize(
    ("namespace", "environ", "files", "gpu", "why"),
    [
        ("nvidia", {}, {}, {}, ""),
        ("nvidia", {}, {}, {"kind": "0x020000"}, ""),
        ("nvidia", {}, {}, {"vendor": "0x1234"}, ""),
        (
            "nvidia",
            {},
            {},
            {"vendor": "0x10de"},
            "there is a GPU at 0000:01:00.0, and no NVIDIA driver",
        ),
        ("amd", {}, {}, {"vendor": "0x1002"}, "no AMD driver answers here"),
        (
            "nvidia",
            {},
            {".dockerenv": ""},
            {"vendor": "0x10de"},
            "answers in this container (Docker)",
        ),
        ("nvidia", {}, {".dockerenv": ""}, {}, "this container (Docker) sees no GPU"),
        ("nvidia", {}, {"run/.containerenv": ""}, {}, "this container (Podman) sees no GPU"),
        ("nvidia", {"KUBERNETES_SERVICE_HOST": "x"}, {}, {}, "(Kubernetes)"),
        (
            "nvidia",
            {},
            {"dev/nvidia0": ""},
            {},
            "dev/nvidia0 is there, and no NVIDIA driver answers here",
        ),
        (
            "nvidia",
            {},
            {"proc/sys/kernel/osrelease": "5.15-microsoft-standard-WSL2"},
            {},
            "this is WSL",
        ),
        ("amd", {"ROCR_VISIBLE_DEVICES": ""}, {}, {}, "ROCR_VISIBLE_DEVICES= hides GPUs"),
        # Of another vendor, or of any.
        ("nvidia", {"ROCR_VISIBLE_DEVICES": ""}, {}, {}, ""),
        ("nvidia", {}, {}, {"vendor": "0x1002"}, ""),
        ("nvidia", {}, {"dev/dri/renderD128": ""}, {}, ""),
        ("amd", {}, {"dev/dri/renderD128": ""}, {}, ""),
        ("x86_64", {}, {"dev/nvidia0": ""}, {}, ""),
    ],
)
def test_why_invisible(tmp_path, namespace, environ, files, gpu, why):
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    if gpu:
        _with_gpu(tmp_path, **gpu)
    found = why_invisible(Surroundings.of(environ, tmp_path), namespace)
    assert why in found
    assert bool(found) == bool(why)


def test_login_node(tmp_path):
    command = tmp_path / "bin/sbatch"
    command.parent.mkdir()
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    environ = {"PATH": str(command.parent)}
    assert (
        why_invisible(Surroundings.of(environ, tmp_path), "nvidia")
        == "this is a login node of Slurm"
    )
    environ["SLURM_JOB_ID"] = "1"
    assert why_invisible(Surroundings.of(environ, tmp_path), "nvidia") == ""
