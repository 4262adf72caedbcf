"""The real cibuildwheel takes the settings that `variants matrix --format cibuildwheel` prints."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from support.environments import ROOT, clean_environ
from support.tools import tool

PROJECT = ROOT / "integration-tests" / "projects" / "dotproduct"
MATRIX = r"""
[variant]
default-priorities.namespace = ["x86_64"]
[axes.cpu.baseline]
label = "null"
[axes.cpu.v3]
properties = ["x86_64 :: level :: v3"]
environment.CFLAGS = ["-mavx2", "-DNAME='x y'"]
flags.cxx = ["-mavx2"]
environment.LEVEL = '3 or $more `b` \ "c"'
config-settings = { setup-args = ["-Da=b c", "-Dd"] }
"""
# Reads the options as cibuildwheel itself does, and prints what a build would get.
READ = """
import json, os, shlex, sys
from cibuildwheel.options import CommandLineArguments, Options
arguments = CommandLineArguments.defaults()
arguments.package_dir = __import__("pathlib").Path(sys.argv[2])
options = Options(sys.argv[1], arguments, env=dict(os.environ), defaults=False)
build = options.build_options(None)
print(json.dumps({
    "environment": build.environment.as_dictionary({"CFLAGS": "-g", "PATH": sys.argv[3]}),
    "config_settings": shlex.split(build.config_settings),
}))
"""


@pytest.fixture
def settings(tmp_path: Path):
    """The settings of a run as environment variables."""

    def settings(*only: str) -> dict[str, str]:
        path = tmp_path / "matrix.toml"
        path.write_text(MATRIX)
        command = [sys.executable, "-c", "from variants_cli.main import main; main()", "matrix"]
        options = [text for which in only for text in ("--only", which)]
        done = subprocess.run(
            [*command, str(path), "--format", "cibuildwheel", *options],
            capture_output=True, text=True, check=True, env=clean_environ(),
        )  # fmt: skip
        lines = [shlex.split(line) for line in done.stdout.splitlines()]
        return dict(setting.split("=", 1) for _, setting in lines)

    return settings


def test_gives_the_build_what_the_matrix_says(environments, settings):
    environ = clean_environ(settings("v3"))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [tool(environments, "cibuildwheel").python, "-c", READ, "linux", str(PROJECT), path],
        env=environ, capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = json.loads(done.stdout)
    own = sysconfig.get_config_var("CFLAGS")
    assert found["environment"]["CXXFLAGS"].split() == [*own.split(), "-mavx2"]
    assert found["environment"]["CFLAGS"] == "-g -mavx2 -DNAME='x y'"
    assert found["environment"]["LEVEL"] == '3 or $more `b` \\ "c"'
    assert found["config_settings"] == ["setup-args=-Da=b c", "setup-args=-Dd"]
