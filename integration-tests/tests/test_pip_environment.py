"""The shim as a guest: beside pips, libraries and tools of every kind, and gone again."""

from __future__ import annotations

import hashlib
import re
import subprocess
import zipapp
import zipfile

import pytest

from support.index import index_of
from support.patched_pip import patched_pip
from support.pip_commands import chooses, dry_run, installs
from support.projects import CUDA_12_8, DRIVER, ON_GPU, app_index, cuda
from support.tools import TOOLS, add, tool
from support.wheels import NVIDIA, X86_64, Release, Wheel, metadata

PLAIN = ("always-1.0", "app-1.0")
FINDERS = "sum(type(finder).__module__.startswith('pep_variants') for finder in sys.meta_path)"


@pytest.fixture
def index(serve):
    return serve(app_index(metadata_file=True, plain=True))


@pytest.mark.matrix
def test_install_and_uninstall(environments, available, plain, index, tmp_path):
    """It acts from the next command on; without it everything is as it was."""
    copy = plain.copied(tmp_path / "environment")
    before = copy.files()
    unpatched = dry_run(copy, index, "app")
    installs(unpatched, *PLAIN)
    copy.install(str(environments.shim_wheel))
    chooses(copy, index)
    version = copy.pip("--version").out
    assert re.fullmatch(rf"pip {available.pip} from .* with pep-variants-shim \d\S+\n", version)
    done = copy.pip("uninstall", "-y", "pep-variants-shim")
    assert (done.code, done.err) == (0, ""), done
    assert copy.files() == before
    assert dry_run(copy, index, "app") == unpatched
    assert "pep-variants" not in copy.pip("--version").out


# Interpreters.


@pytest.mark.everywhere
@pytest.mark.hook
def test_start_of_the_interpreter(patched):
    """It is silent, and loads two small modules where the command line has pip in it."""
    code = "import sys; print([n for n in sorted(sys.modules) if 'variants' in n or n == 'pip'])"
    for options in ((), ("-S",), ("-X", "dev", "-W", "error"), ("-OO",)):
        done = patched.run(*options, "-c", code)
        loaded = [] if "-S" in options else ["pep_variants_shim", "pep_variants_shim_start"]
        assert (done.code, done.out, done.err) == (0, f"{loaded}\n", ""), options
    # Python 3.15 calls the function of the .start file after it.
    code = f"import sys, pep_variants_shim_start as s; s.start(); print({FINDERS})  # pip"
    assert patched.run("-c", code).out == "1\n"


@pytest.mark.one
def test_only_programs_with_pip_in_their_command_import_the_shim(changeable):
    shown = "import sys; print('pep_variants_shim' in sys.modules)"
    for name in ("PIP.EXE", "pip-compile", "other"):
        (changeable.path / name).write_text(shown)
    for command, watches in (
        (("-c", shown), False),
        (("-c", f"{shown}  # pip"), True),
        (("PIP.EXE",), True),
        (("pip-compile", "list"), True),
        (("other", "a"), False),
    ):
        # The path of the interpreter has "pip" in it, as that of every test here: that is no sign.
        done = changeable.run(*command)
        assert done.text == f"{watches}\n", command


@pytest.mark.one
def test_isolated_interpreters_have_variants(patched, index):
    """-I and -E are about the user's settings, -S is about everything in the environment."""
    wanted = ("-m", "pip", "install", "--dry-run", "--no-deps", "-i", index.url)
    for option in ("-I", "-E"):
        done = patched.run(option, *wanted, "--variant", "app=null", "app")
        installs(done, "app-1.0-null")
    code = (
        "import runpy, sys; sys.path.append(sys.argv.pop(1)); "
        "runpy.run_module('pip', {}, '__main__')"
    )
    done = patched.run("-S", "-c", code, str(patched.site_packages), "--version")
    assert "pep-variants" not in done.out, done


# Modules.

LIBRARIES = ("packaging", "archspec", "platformdirs", "tomli", "pynvml", "resolvelib")
OURS = ("pep_variants", "resolvelib_variants")


def cpu_index():
    levels = {f"v{n}": {"x86_64": {"level": [f"v{n}"]}} for n in (1, 2, 3, 4)}
    variants = {"null": {}, **levels, "cu": {"nvidia": {"cuda_version_lower_bound": ["12.0"]}}}
    found = metadata(
        variants, namespaces=["nvidia", "x86_64"], providers={"nvidia": NVIDIA, "x86_64": X86_64}
    )
    return index_of([Release("app", "1.0", found)])


def test_other_libraries_do_not_matter(changeable, serve):
    """The environment's own packaging, archspec, … may be anything, even broken."""
    for name in (*LIBRARIES, *OURS):
        (changeable.site_packages / f"{name}.py").write_text("raise RuntimeError('not this one')")
    done = dry_run(changeable, serve(cpu_index()), "app")
    assert re.search(r"Would install app-1\.0-(cu|v\d|null)\n", done.out), done
    assert done.err == ""


def test_nothing_leaks(patched, serve):
    """The bundled modules are not importable by a program that runs pip in its own process."""
    index = serve(cpu_index())
    code = (
        "import sys; from pip._internal.cli.main import main\n"
        f"assert main(['install', '--dry-run', '-q', '-i', {index.url!r}, 'app']) == 0\n"
        f"print([n for n in {(*LIBRARIES, *OURS)!r} if n in sys.modules])"
    )
    done = patched.run("-c", code, env={"NV_VARIANT_PROVIDER_FORCE_SM_ARCH": "9.0"})
    assert (done.out, done.err) == ("[]\n", ""), done


FEW = {"errors", "labels", "limits", "options", "_places", "_directories"}


@pytest.mark.one
def test_only_what_is_needed_is_loaded(patched, index):
    """Without variants the engine is not loaded at all."""
    for wanted, loaded in (("always", False), ("app", True)):
        done = patched.run(
            "-X", "importtime", "-m", "pip", "install", "--dry-run", "-i", index.url, wanted,
            env=CUDA_12_8,
        )  # fmt: skip
        modules = {line.rpartition("|")[2].strip() for line in done.err.splitlines()}
        bundled = {name for name in modules if "_vendor.pep_variants." in name}
        assert (len(bundled) > 10) == loaded
        if not loaded:
            assert {name.rpartition(".")[2] for name in bundled} <= FEW


@pytest.mark.one
def test_programs_that_look_for_candidates_themselves(patched, index):
    """Programs that use parts of pip in their own process see no wheel that they cannot judge."""
    code = (
        "from pip._internal.commands import create_command\n"
        "command = create_command('install')\n"
        f"options, _ = command.parse_args(['-i', {index.url!r}])\n"
        "with command.main_context():\n"
        "    session = command._build_session(options)\n"
        "    finder = command._build_package_finder(options=options, session=session)\n"
        "    print(*finder.find_all_candidates('app'))\n"
    )
    done = patched.run("-c", code)
    assert done.out.startswith("'app' candidate (version 1.0 at "), done
    assert done.out.count("candidate") == 1
    assert "py3-none-any.whl " in done.out


# Tools.


@pytest.mark.one
def test_pip_tools(environments, changeable, serve, tmp_path):
    """It runs pip in its own process. Hashes are of the variant whose dependencies it lists.

    With another driver that is an error, not another variant without its dependencies.

    ``pip-sync`` removes what is not listed, before it installs anything: the shim has to be.
    """
    add(changeable, TOOLS["pip-tools"])
    index = serve(app_index())
    shim = environments.shim_wheel
    index.add("pep-variants-shim", shim.name, shim.read_bytes())
    options = ("--quiet", "--force-reinstall", "-i", index.url)
    assert changeable.pip("install", *options, "pep-variants-shim").code == 0
    (tmp_path / "requirements.in").write_text("app\npep-variants-shim\n")
    done = changeable.run(
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
    elsewhere = dry_run(
        changeable, index, "-r", str(tmp_path / "requirements.txt"), **{DRIVER: "12.6"}
    )
    assert elsewhere.code == 1
    assert "app" in elsewhere.err, elsewhere
    assert "In --require-hashes mode" not in elsewhere.err  # for a dependency without a hash
    done = changeable.run("-m", "piptools", "sync", env=CUDA_12_8, cwd=tmp_path)
    assert f"Successfully installed {ON_GPU}\n" in done.out, done
    assert changeable.pip("show", "pep-variants-shim").code == 0


@pytest.mark.one
@pytest.mark.nightly
def test_pipx(environments, index, tmp_path):
    """The pip that all its environments share is the patched one, if it finds one.

    It adds the folder with that pip to their paths: the shim beside it would not be started.
    And it reads the requirements of all that is installed, with a `packaging` that knows no
    variant markers.
    """
    patched = patched_pip(environments, "26.3")
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
def test_zipapp(environments, patched, index, available, tmp_path):
    """A pip in a file, such as ``pip.pyz``, is patched where the shim is installed."""
    folder = tmp_path / "folder"
    with zipfile.ZipFile(environments.pip_wheel(available.pip)) as archive:
        archive.extractall(folder)
    main = "import runpy\nrunpy.run_module('pip', run_name='__main__', alter_sys=True)\n"
    (folder / "__main__.py").write_text(main)
    zipapp.create_archive(folder, tmp_path / "pip.pyz")
    chooses(patched, index, str(tmp_path / "pip.pyz"))


KILLER = """
import os, runpy, sys
left = 40
def count(event, arguments):
    global left
    if event not in ("open", "os.rename", "os.remove") or "pep_variants" not in str(arguments[0]):
        return
    if event != "open" or "w" in str(arguments[1]):
        left -= 1
        if left == 0:
            os._exit(137)
sys.addaudithook(count)
runpy.run_module("pip", {}, "__main__")
"""


@pytest.mark.one
@pytest.mark.nightly
def test_killed_while_it_is_installed(environments, changeable, index):
    """Whatever is there of it then, Python starts, pip works, and installs it again."""
    command = ("install", "--no-index", "--force-reinstall", str(environments.shim_wheel))
    done = changeable.run("-c", KILLER, *command)
    assert done.code == 137, done
    assert changeable.run("-c", "print('fine')").text == "fine\n"
    done = changeable.pip("list", "--format", "freeze")
    assert (done.code, "Traceback" in done.text) == (0, False), done
    done = changeable.pip(*command)
    assert (done.code, "Traceback" in done.text) == (0, False), done
    assert "app-1.0-cu128" in dry_run(changeable, index, "app").out
