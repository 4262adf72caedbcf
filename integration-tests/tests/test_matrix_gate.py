"""The performance gate on a real project: msgpack's source distribution, built by setuptools."""

from __future__ import annotations

import json
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from support.environments import clean_environ
from support.isolation import outside, registries

SDIST = "msgpack==1.1.2"
BENCHMARK = """
import time
import msgpack

rows = [{"id": n, "name": f"row {n}", "values": [n / 3, n * 7, None, True]} for n in range(5000)]

def once():
    start = time.process_time()
    msgpack.unpackb(msgpack.packb(rows))
    return time.process_time() - start

print(min(once() for _ in range(30)))
"""
MATRIX = """
[variant]
default-priorities.namespace = ["x86_64"]

[axes.cpu.null]

[axes.cpu.v3]
properties = ["x86_64 :: level :: v3"]
flags = ["-march=x86-64-v3"]

[axes.cpu.unoptimized]
properties = ["x86_64 :: level :: v2"]
environment.CFLAGS = ["-march=x86-64-v2"]

[build]
test = "python -c 'import msgpack._cmsgpack'"
benchmark = { command = "python {project}/../bench.py", rounds = 7 }
"""


def has_avx2() -> bool:
    """Return whether the kernel says so."""
    path = Path("/proc/cpuinfo")
    return path.exists() and " avx2 " in path.read_text()


pytestmark = [
    pytest.mark.skipif(
        platform.system() != "Linux" or platform.machine() != "x86_64",
        reason="the builds are for Linux on x86-64",
    ),
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler here"),
    pytest.mark.skipif(
        not Path(sysconfig.get_path("include"), "Python.h").exists(),
        reason="Python's headers are not here",
    ),
    pytest.mark.skipif(
        "-O" not in (sysconfig.get_config_var("CFLAGS") or ""),
        reason="this Python was not compiled with optimization",
    ),
    pytest.mark.skipif(not has_avx2(), reason="this CPU has no AVX2"),
]


def test_msgpack(tmp_path, capsys):
    """What lost -O3 is refused with both figures; what has it and the flags is no slower."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--no-binary",
        ":all:",
    ]
    subprocess.run([*command, "-d", str(tmp_path), SDIST], check=True, env=outside())
    (sdist,) = tmp_path.glob("*.tar.gz")
    shutil.unpack_archive(sdist, tmp_path)
    (tmp_path / "bench.py").write_text(BENCHMARK)
    matrix = tmp_path / "matrix.toml"
    matrix.write_text(MATRIX)
    (project,) = tmp_path.glob("msgpack-*/")
    done = subprocess.run(
        [
            *(sys.executable, "-c", "from variants_cli.main import main; main()", "matrix"),
            *(str(matrix), "--build", "--no-index", "-j", "2", "--source", str(project)),
            *("-o", str(tmp_path / "dist")),
        ],
        env=clean_environ(registries()),
        capture_output=True,
        text=True,
        check=False,
    )
    with capsys.disabled():
        print("\n" + "\n".join(line for line in done.stderr.splitlines() if " to " in line))
    assert done.returncode == 1, done.stderr
    assert "unoptimized: CFLAGS takes the place of what this Python compiles with" in done.stderr
    assert re.search(
        r"error: unoptimized: refused, as it is slower than null: \S+ against \S+, [12]\.\d+ times "
        r"as long \([12]\.\d+ to \S+\)",
        done.stderr,
    )
    found = json.loads((tmp_path / "dist-build" / "checks.json").read_text())
    assert found["unoptimized"]["benchmark"]["verdict"] == "slower"
    # As fast or faster; where a busy machine makes it look slower, it is refused, and said so.
    verdict = found["v3"]["benchmark"]["verdict"]
    assert found["v3"]["benchmark"]["ratio"] < found["unoptimized"]["benchmark"]["ratio"]
    built = sorted(path.stem.rpartition("-")[2] for path in (tmp_path / "dist").glob("*.whl"))
    assert built == (["null"] if verdict == "slower" else ["null", "v3"])
