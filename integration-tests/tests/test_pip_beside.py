"""What else there is in an environment, and the tools that work on one: none gets into the way."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import zipapp
import zipfile

import pytest

from support.environments import clean_environ, uv_command
from support.patched_pip import local_version, patched_pip
from support.projects import CUDA_12_8, DRIVER, ON_GPU, app_index, cuda
from support.tools import TOOLS, add, tool
from support.wheels import Release, Wheel


@pytest.fixture
def index(serve):
    return serve(app_index())


def asks(environment, index, *start, **env):
    """Return the last line that pip prints when it is asked for the project with variants."""
    done = environment.run(
        *(start or ("-m", "pip")), "install", "--dry-run", "--no-deps", "-i", index.url, "app",
        env={**CUDA_12_8, **env},
    )  # fmt: skip
    assert done.code == 0, done
    assert done.err == "", done
    return done.out.splitlines()[-1]


@pytest.fixture
def wheelhouse(environments):
    """Return the wheel of a patched pip, in a folder of its own."""
    return lambda version: patched_pip(environments, version)


CHOSEN = "Would install app-1.0-cu128"


@pytest.mark.one
def test_own_engine_of_another_version(fresh, index):
    """Also its own, which somebody else may want in another version."""
    for name in ("pep-variants", "resolvelib-variants"):
        module = f"{name.replace('-', '_')}/__init__.py"
        wheel = Wheel(name, "99.0", files={module: "raise RuntimeError('not this one')"})
        path = fresh.path / wheel.filename
        path.write_bytes(wheel.build())
        fresh.install(str(path))
    assert asks(fresh, index) == CHOSEN
    assert fresh.pip("uninstall", "-y", "pep-variants").err == ""
    assert asks(fresh, index) == CHOSEN


@pytest.mark.one
def test_pip_comes_and_goes(environments, available, fresh, index):
    """Whichever pip is there is patched, as long as it is a pip that is known."""
    older = environments.pip_wheel("24.0")
    assert fresh.pip("install", "--no-index", str(older)).code == 0
    assert fresh.pip("--version").out.startswith("pip 24.0 ")
    assert asks(fresh, index) == CHOSEN
    assert fresh.pip("uninstall", "-y", "pip").code == 0
    assert "No module named pip" in fresh.pip("list").err
    newer = environments.pip_wheel(available.pip)
    done = fresh.run(str(newer / "pip"), "install", "--no-index", str(newer))
    assert done.code == 0, done
    assert asks(fresh, index) == CHOSEN


# Tools.


@pytest.mark.one
def test_pip_tools(environments, fresh, index, tmp_path):
    """It runs pip in its own process. Hashes are of the variant whose dependencies it lists.

    With another driver that is an error, not another variant without its dependencies.

    ``pip-sync`` removes what is not listed, before it installs anything: the shim has to be.
    """
    add(fresh, TOOLS["pip-tools"])
    shim = environments.shim_wheel
    index.add("pep-variants-shim", shim.name, shim.read_bytes())
    options = ("--quiet", "--force-reinstall", "-i", index.url)
    assert fresh.pip("install", *options, "pep-variants-shim").code == 0
    (tmp_path / "requirements.in").write_text("app\npep-variants-shim\n")
    done = fresh.run(
        "-m", "piptools", "compile", "--quiet", "--strip-extras", "--generate-hashes",
        "-i", index.url, "--output-file", "requirements.txt", "requirements.in",
        env=CUDA_12_8, cwd=tmp_path,
    )  # fmt: skip
    assert (done.code, done.err) == (0, ""), done
    text = (tmp_path / "requirements.txt").read_text()
    assert re.findall(r"(?m)^(\S+)==1\.0", text) == [
        "always", "app", "for-128", "for-cu128", "for-gpu"
    ]  # fmt: skip
    digest = hashlib.sha256(index.files["app"]["app-1.0-py3-none-any-cu128.whl"]).hexdigest()
    hashes = text.partition("app==1.0")[2].partition("# via")[0]
    assert re.findall(r"--hash=(\S+)", hashes) == [f"sha256:{digest}"]
    elsewhere = fresh.pip(
        "install", "--dry-run", "-i", index.url, "-r", str(tmp_path / "requirements.txt"),
        env={**CUDA_12_8, DRIVER: "12.6"},
    )  # fmt: skip
    assert elsewhere.code == 1
    assert "app" in elsewhere.err, elsewhere
    assert "In --require-hashes mode" not in elsewhere.err  # for a dependency without a hash
    done = fresh.run("-m", "piptools", "sync", env=CUDA_12_8, cwd=tmp_path)
    assert f"Successfully installed {ON_GPU}\n" in done.out, done
    assert fresh.pip("show", "pep-variants-shim").code == 0


@pytest.mark.one
@pytest.mark.nightly
def test_pipx(environments, wheelhouse, index, tmp_path):
    """The pip that all its environments share is the patched one, if it finds one.

    It adds the folder with that pip to their paths: the shim beside it would not be started.
    And it reads the requirements of all that is installed, with a `packaging` that knows no
    variant markers.
    """
    patched = wheelhouse("26.3")
    index.add("pip", patched.name, patched.read_bytes())
    script = Wheel("script", "1.0", requires=("tool",), files={
        "script/__init__.py": "import tool\ndef main():\n    print(tool.LABEL)\n",
        "script-1.0.dist-info/entry_points.txt": "[console_scripts]\nscript = script:main\n",
    })  # fmt: skip
    index.add_wheel(script)
    index.add_release(Release("tool", "1.0", cuda("12.6", "12.8")))
    env = {
        **CUDA_12_8,
        "PIPX_HOME": str(tmp_path / "home"),
        "PIPX_BIN_DIR": str(tmp_path / "bin"),
        "PIPX_DEFAULT_BACKEND": "pip",
        "PIP_INDEX_URL": index.url,
    }
    done = tool(environments, "pipx").run("-m", "pipx", "install", "script", env=env)
    assert done.code == 0, done
    done = subprocess.run([tmp_path / "bin" / "script"], capture_output=True, check=True)
    assert done.stdout == b"cu128\n"


@pytest.mark.one
@pytest.mark.nightly
def test_tox(environments, wheelhouse, index, tmp_path):
    """Environments that get their pip from a folder of wheels get the patched one."""
    tox = tool(environments, "tox")
    (tmp_path / "tox.ini").write_text(
        "[tox]\nenv_list = test\n[testenv]\npackage = skip\ndeps = app\n"
        f"set_env =\n  PIP_INDEX_URL = {index.url}\n"
        + "".join(f"  {name} = {value}\n" for name, value in CUDA_12_8.items())
        + "commands = python -c 'import app; print(app.LABEL)'\n"
    )
    env = {
        "VIRTUALENV_EXTRA_SEARCH_DIR": str(wheelhouse("26.3").parent),
        "VIRTUALENV_PIP": local_version("26.3"),
        "VIRTUALENV_NO_DOWNLOAD": "1",
        "VIRTUALENV_OVERRIDE_APP_DATA": str(tmp_path / "data"),
    }
    done = tox.run("-m", "tox", "run", cwd=tmp_path, env=env)
    assert done.code == 0, done
    assert "\ncu128\n" in done.out, done


def uv(environment, *args):
    return subprocess.run(
        [*uv_command(), "pip", *args, "--python", environment.python],
        env=clean_environ(CUDA_12_8), capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.one
def test_uv(environments, plain, index, tmp_path):
    """It installs and removes the shim, and sees what pip has installed."""
    copy = plain.copied(tmp_path / "environment")
    done = uv(copy, "install", "--no-index", str(environments.shim_wheel))
    assert done.returncode == 0, done
    assert asks(copy, index) == CHOSEN
    assert copy.pip("install", "-i", index.url, "app", env=CUDA_12_8).code == 0
    listed = {item["name"]: item["version"] for item in
              json.loads(uv(copy, "list", "--format", "json").stdout)}  # fmt: skip
    assert listed["app"] == "1.0"
    assert listed.keys() >= {"for-gpu", "for-cu128", "always", "pep-variants-shim"}
    done = uv(copy, "install", "-i", index.url, "always")
    assert done.returncode == 0, done
    assert uv(copy, "uninstall", "app").returncode == 0
    assert copy.pip("show", "app").code == 1
    assert uv(copy, "uninstall", "pep-variants-shim").returncode == 0
    assert not list(copy.site_packages.glob("pep_variants*"))
    assert "variants" not in copy.pip("--version").out


# Places.


@pytest.mark.one
def test_zipapp(environments, patched, index, available, tmp_path):
    """A pip in a file, such as ``pip.pyz``, is patched where the shim is installed."""
    folder = tmp_path / "folder"
    with zipfile.ZipFile(environments.pip_wheel(available.pip)) as archive:
        archive.extractall(folder)
    main = "import runpy\nrunpy.run_module('pip', run_name='__main__', alter_sys=True)\n"
    (folder / "__main__.py").write_text(main)
    zipapp.create_archive(folder, tmp_path / "pip.pyz")
    assert asks(patched, index, str(tmp_path / "pip.pyz")) == CHOSEN
