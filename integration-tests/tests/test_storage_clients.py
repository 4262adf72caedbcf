"""What `variants publish --to` writes, read by pip with the shim, pip as it is, and uv."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from support.environments import ROOT, Environment
from support.field_releases import run
from support.loopback import served_folder
from support.object_storage import object_storage
from support.servers import nginx
from support.uvs import Machine
from support.wheels import Wheel

DOCUMENT = ROOT / "docs" / "how-to" / "publishing-storage.md"


@pytest.fixture(scope="module")
def batches(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two batches of one release: plain and null, then a variant that needs another project."""
    folder = tmp_path_factory.mktemp("batches")
    first, second = folder / "first", folder / "second"
    for path in (first, second):
        path.mkdir()
    for wheel in (
        Wheel("demo", "1.0+local", files={"demo.py": "plain"}),
        Wheel("fast", "2.0"),
    ):
        (first / wheel.filename).write_bytes(wheel.build())
    for path, label, needed in (
        (first, "null", None),
        (second, "cu12", "12.0"),
        (second, "cu13", "13.0"),
    ):
        requires = ("fast",) if needed else ()
        wheel = Wheel("demo", "1.0+local", requires=requires, files={"demo.py": label})
        build = folder / wheel.filename
        build.write_bytes(wheel.build())
        options = [f"--property=nvidia :: cuda_version_lower_bound :: {needed}"] if needed else []
        run("make", build, "--namespace", "nvidia", "--label", label, *options, "-o", path)
    return [first, second]


@pytest.fixture(
    scope="module", params=["directory", "s3", pytest.param("nginx", marks=pytest.mark.nightly)]
)
def index(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, batches: list[Path]
) -> Iterator[str]:
    """Both batches published to each kind of place; the URL of the index."""
    folder = tmp_path_factory.mktemp(str(request.param))
    with ExitStack() as stack:
        environ: dict[str, str] = {}
        to = str(folder / "place")
        if request.param == "s3":
            storage = stack.enter_context(object_storage("bucket"))
            environ, to = storage.environ(), "s3://bucket/wheels/nightly"
            url = f"{storage.url}/bucket/wheels/nightly/"
        elif request.param == "nginx":
            if shutil.which("nginx") is None:
                pytest.skip("nginx is missing")
            url = stack.enter_context(nginx(folder / "place", folder / "nginx"))
        else:
            (folder / "place").mkdir()
            url = stack.enter_context(served_folder(folder / "place"))
        for batch in batches:
            run("publish", batch, "--to", to, **environ)
            if request.param != "nginx":
                run("validate", f"{url}simple/demo/")
        yield f"{url.rstrip('/')}/simple/"


@pytest.mark.one
def test_pip_with_the_shim(patched: Environment, index: str) -> None:
    for driver, expected in (
        ("12.8", ["demo-1.0+local-cu12", "fast-2.0"]),
        ("11.0", ["demo-1.0+local-null"]),
    ):
        machine = {"NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION": driver}
        done = patched.pip("install", "--dry-run", "--index-url", index, "demo", env=machine)
        (line,) = (line for line in done.out.splitlines() if line.startswith("Would install"))
        assert sorted(line.split()[2:]) == sorted(expected), done


@pytest.mark.one
def test_pip_and_uv_as_they_are(
    plain: Environment, machine: Machine, index: str, tmp_path: Path
) -> None:
    uv = machine.with_environ({"UV_PYTHON": sys.executable})
    for name, install in (("pip", plain.pip), ("uv", partial(uv.plain, "pip"))):
        target = tmp_path / name
        done = install("install", "--target", str(target), "--index-url", index, "demo")
        assert done.code == 0, done
        assert re.search(r"demo(-|==)1\.0\+local", done.text), done
        assert (target / "demo.py").read_text() == "plain"


REQUESTS = [
    ("/simple/demo/", "text/html", "/simple/demo/index.html"),
    ("/simple/demo/", "*/*", "/simple/demo/index.html"),
    ("/simple/", "text/html", "/simple/index.html"),
    (
        "/wheels/simple/demo/",
        "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html; q=0.1",
        "/wheels/simple/demo/index.v1_json",
    ),
    ("/simple/demo/index.html", "*/*", "/simple/demo/index.html"),
    ("/files/demo/0/demo.whl", "*/*", "/files/demo/0/demo.whl"),
]


@pytest.mark.one
def test_function_of_cloudfront() -> None:
    """The function in the documents gives the object for each request."""
    node = shutil.which("node") or shutil.which("node", path=str(Path(sys.executable).parent))
    if node is None:
        pytest.skip("node is missing")
    (code,) = re.findall(r"```javascript\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    events = [
        {"request": {"uri": path, "headers": {"accept": {"value": accept}}}}
        for path, accept, _ in REQUESTS
    ]
    script = f"{code}\nfor (const event of {json.dumps(events)}) console.log(handler(event).uri)"
    done = subprocess.run([node, "-e", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [expected for _, _, expected in REQUESTS]
