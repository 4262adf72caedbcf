"""Variants in requirements files, and an environment that is made again from ``pip freeze``."""

from __future__ import annotations

import hashlib
import json

import pytest

from support.projects import CUDA_12_8, DRIVER, gpu_index
from support.wheels import SourceDistribution, Wheel

NO_GPU = {DRIVER: "12.0"}
ON_CU126 = "Would install always-1.0 cudalib-12.6 gpu-2.0-cu126\n"


def labels(environment):
    """Return the contents of every variant.json, by the folder that it is in."""
    found = environment.site_packages.glob("*.dist-info/variant.json")
    return {path.parent.name: path.read_text() for path in found}


@pytest.mark.everywhere
def test_an_environment_made_again(fresh, patched, serve, tmp_path):
    """From the lines that pip freeze writes, with a label that would not be chosen."""
    index = serve(gpu_index())
    source = SourceDistribution("edited", "1.0")
    index.add("edited", source.filename, source.build())
    url = ("-i", index.url)
    wanted = ("--variant", "gpu=cu126", "gpu", "app")
    assert fresh.pip("install", *url, *wanted, env=CUDA_12_8).code == 0
    local = tmp_path / Wheel("local", "1.0").filename
    local.write_bytes(Wheel("local", "1.0").build())
    assert fresh.pip("install", "--no-index", str(local)).code == 0
    plain = fresh.pip("freeze").out
    assert "gpu==2.0\n" in plain
    frozen = fresh.pip("freeze", "--variants").out
    assert frozen == plain.replace("gpu==2.0\n", "gpu==2.0 --variant=cu126\n")
    assert f"local @ {local.as_uri()}#sha256=" in frozen
    (tmp_path / "frozen.txt").write_text(frozen)
    again = patched.copied(tmp_path / "again")
    done = again.pip("install", *url, "-r", str(tmp_path / "frozen.txt"), env=CUDA_12_8)
    assert (done.code, done.err) == (0, ""), done
    assert "always-1.0 app-1.0 cudalib-12.6 gpu-2.0-cu126 local-1.0\n" in done.out
    assert again.pip("freeze", "--variants").out == frozen
    assert labels(again) == labels(fresh)
    # Its order and comments, from the file that it was made of.
    (tmp_path / "frozen.txt").write_text("# first\ngpu==1.0 --variant=cu128  # old\nalways\n")
    done = again.pip("freeze", "--variants", "-r", str(tmp_path / "frozen.txt"))
    lines = "# first\ngpu==2.0 --variant=cu126\nalways==1.0\n## The following requirements"
    assert done.out.startswith(lines), done


@pytest.mark.everywhere
def test_lines(patched, serve, tmp_path):
    """With hashes, markers, nested files and constraints; in every command that installs."""
    index = serve(gpu_index())

    def install(text, *options, env=CUDA_12_8, command=("install", "--dry-run")):
        (tmp_path / "requirements.txt").write_text(text)
        file = str(tmp_path / "requirements.txt")
        return patched.pip(*command, "-i", index.url, "-r", file, *options, env=env)

    def hashed(project, *parts):
        files = index.files[project]
        return " ".join(
            f"--hash=sha256:{hashlib.sha256(data).hexdigest()}"
            for name, data in files.items()
            if all(part in name for part in parts)
        )

    (tmp_path / "nested.txt").write_text("gpu==2.0 --variant cu126\n")
    (tmp_path / "constraints.txt").write_text("gpu==2.0 --variant=cu126\nnever --variant=x\n")
    all_hashed = (
        f"gpu==2.0 --variant=cu126 {hashed('gpu', '2.0', 'whl')}\n"
        f"cudalib==12.6 {hashed('cudalib', '12.6')}\nalways==1.0 {hashed('always')}\n"
    )
    for text in (
        "gpu==2.0 --variant=cu126\n",
        "GPU == 2.0 ; python_version >= '3'   --variant=cu126 # that one\n",
        "gpu==2.0 \\\n    --variant=cu126\n",
        "-r nested.txt\n",
        "-c constraints.txt\ngpu\n",
        "gpu --variant=cu126\ngpu==2.0 --variant=cu126\n",
        all_hashed,
    ):
        done = install(text)
        assert ON_CU126 in done.out, (text, done)
    assert ON_CU126 in install("gpu --variant=cu126", "--variant", "gpu=cu126").out
    other = "gpu==2.0\ngpu==2.0 ; python_version < '3' --variant=cu126\n"
    assert "gpu-2.0-cu128\n" in install(other).out
    done = install("gpu --variant=cu126", "--no-deps", "-d", str(tmp_path), command=("download",))
    assert (tmp_path / "gpu-2.0-py3-none-any-cu126.whl").exists(), done
    done = install("gpu --variant=cu128", "--no-deps", "-w", str(tmp_path), command=("wheel",))
    assert (tmp_path / "gpu-2.0-py3-none-any-cu128.whl").exists(), done
    report = str(tmp_path / "report.json")
    assert install("gpu --variant=cu126", "--no-deps", "--report", report).code == 0
    (item,) = json.loads((tmp_path / "report.json").read_text())["install"]
    assert item["variant_label"] == "cu126"


REFUSED = {
    "gpu==2.0 --variant=cu999\n": "line 1 of FILE: gpu 2.0 has no variant 'cu999'",
    "gpu==2.0 --variant=CU128\n": "'CU128' is not a valid variant label",
    "--variant=cu128\n": "line 1 of FILE: --variant=cu128 has no requirement",
    "./gpu-2.0-py3-none-any-cu128.whl --variant=cu128\n": "--variant=cu128 needs a requirement",
    "gpu --variant=cu126\n\ngpu --variant=null\n": (
        "gpu: line 3 of FILE asks for variant null, line 1 of FILE for variant cu126; "
        "leave one of them out"
    ),
}


@pytest.mark.everywhere
def test_mistakes(patched, serve, tmp_path):
    url = ("-i", serve(gpu_index()).url)
    file = tmp_path / "requirements.txt"

    def failure(text, *options, env=CUDA_12_8):
        file.write_text(text)
        done = patched.pip("install", "--dry-run", *url, "-r", str(file), *options, env=env)
        assert done.code == 1, (text, done)
        assert "Traceback" not in done.err
        return done.err.replace(str(file), "FILE")

    for text, message in REFUSED.items():
        assert message in failure(text), text
    error = failure("gpu==2.0 --variant=cu128\n", env=NO_GPU)
    assert "cu128" in error
    assert "needs CUDA driver 12.8" in error
    error = failure("gpu --variant=cu126\n", "--variant", "gpu=null")
    assert (
        "gpu: line 1 of FILE asks for variant cu126, --variant for variant null; "
        "leave one of them out"
    ) in error
    error = failure("gpu --variant=cu126\n", env={**CUDA_12_8, "VARIANTS_VARIANT": "gpu="})
    assert "asks for variant cu126, VARIANTS_VARIANT for the non-variant wheel" in error


@pytest.mark.one
def test_where_lines_mean_nothing(fresh, serve, tmp_path):
    """To --no-variants and pip uninstall; without the shim pip does not know the option."""
    index = serve(gpu_index())
    index.add_wheel(Wheel("gpu", "2.0"))
    file = tmp_path / "requirements.txt"
    file.write_text("gpu==2.0 --variant=cu128\n")
    command = ("-i", index.url, "-r", str(file))
    done = fresh.pip("install", "--no-variants", *command, env=CUDA_12_8)
    assert "Successfully installed gpu-2.0\n" in done.out, done
    done = fresh.pip("install", *command, env=CUDA_12_8)
    assert "gpu 2.0 is installed already, without variant, not as" in done.err
    assert "add --variant-switch to replace it" in done.err
    done = fresh.pip("install", "--variant-switch", *command, env=CUDA_12_8)
    assert "Successfully installed always-1.0 cudalib-12.8 gpu-2.0-cu128\n" in done.out, done
    assert fresh.pip("uninstall", "-y", "-r", str(file)).code == 0
    done = fresh.pip("install", *command, env={"PEP_VARIANTS_SHIM": "0"})
    assert done.code != 0
    assert "no such option: --variant" in done.err
