"""`variants resolve` and `variants explain` as people and programs use them."""

import dataclasses
import json
import os
import subprocess
import sys

import pytest

from support.catalog_places import family_entries, pytorch
from support.environments import Result, clean_environ
from support.index import Index
from support.json_outputs import check_output
from support.plugins import acme_index
from support.projects import CUDA_12_8, app, app_index
from support.published_builds import standing_in
from support.wheels import Wheel

COMMAND = [sys.executable, "-c", "from variants_cli.main import main; main()"]
PYTHON = f"Python {sys.version_info[0]}.{sys.version_info[1]}"
NO_GPU = "[[provider]]\nnamespace = 'nvidia'\n"
GPU = f"{NO_GPU}[provider.properties]\ncuda_version_lower_bound = ['12.8', '12.7', '12.6']\n"

NEEDS_13 = "needs CUDA driver 13.0 or newer, this one supports up to 12.8"
ON_GPU = f"""\
always     1.0  -
app        1.0  cu128  CUDA driver 12.8 or newer; cu130 {NEEDS_13}
for-128    1.0  -
for-cu128  1.0  -
for-gpu    1.0  -
"""
ON_CPU = """\
always   1.0  -
app      1.0  null  no other variant fits (no NVIDIA driver in {})
for-cpu  1.0  -
"""


@pytest.fixture
def variants(tmp_path):
    def run(*arguments, env=None, **options):
        done = subprocess.run(
            [*COMMAND, *map(str, arguments)],
            capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False,
            env=environ(tmp_path, env), **options,
        )  # fmt: skip
        check_output([str(argument) for argument in arguments], done.stdout)
        return Result(done.returncode, done.stdout, done.stderr)

    return run


def environ(folder, more=None):
    return clean_environ({"VARIANTS_CACHE_DIR": str(folder / "cache"), **CUDA_12_8, **(more or {})})


@pytest.fixture
def index(serve):
    return serve(app_index(metadata_file=True))


@pytest.fixture
def platform(tmp_path):
    def write(name, text):
        path = tmp_path / f"{name}.toml"
        path.write_text(text)
        return path

    return write


class TestResolve:
    def test_names_that_match_nothing(self, variants, index):
        typos = ("--variant", "appp=x", "--variant-exclude", "nvidai")
        done = variants("resolve", "app", "-i", index.url, *typos)
        assert (done.code, done.out) == (0, ON_GPU)
        assert "--variant appp=x: this command has no project appp" in done.err
        assert "--variant-exclude 'nvidai' matches no variant" in done.err
        quiet = variants("resolve", "app", "-i", index.url, env={"VARIANTS_EXCLUDE": "nvidai"})
        assert (quiet.code, quiet.out, quiet.err) == (0, ON_GPU, "")

    def test_another_python_of_this_machine(self, variants, index):
        """What overrides detection counts, as for pip download --python-version."""
        done = variants("resolve", "app", "-i", index.url, "--python-version", "3.9")
        assert (done.code, done.out, done.err) == (0, ON_GPU, "")

    def test_several_machines(self, variants, index, platform):
        gpu, cpu = platform("gpu", GPU), platform("cpu", NO_GPU)
        done = variants("resolve", "app", "-i", index.url, "--target", gpu, "--target", cpu)
        assert (done.code, done.out) == (0, f"gpu\n{ON_GPU}\ncpu\n{ON_CPU.format(cpu)}")

    def test_files_of_requirements_and_constraints(self, variants, index, tmp_path):
        index.add_wheel(Wheel("always", "2.0"))
        (tmp_path / "requirements.txt").write_text(f"-i {index.url}\n-c held.txt\nalways\n")
        (tmp_path / "held.txt").write_text("always<2\n")
        done = variants("resolve", "-r", "requirements.txt")
        assert (done.code, done.out) == (0, "always  1.0\n")
        done = variants("resolve", "always", "-c", "held.txt", env={"PIP_INDEX_URL": index.url})
        assert (done.code, done.out) == (0, "always  1.0\n")
        index.add_wheel(Wheel("always", "3.0rc1"))
        done = variants("resolve", "always", "--pre", "-i", index.url)
        assert (done.code, done.out) == (0, "always  3.0rc1\n")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ([], "no requirements: give a requirement, or a requirements file with -r"),
            (["what is this"], "'what is this' is not a valid requirement"),
            (["app", "--python-version", "three"], "'three' is not a valid python-version"),
            (["app", "--python-platform", "beos"], "platform 'beos' is not known"),
            (
                ["app", "-o", "lock.toml"],
                "lock.toml: the name of a lock file has to be pylock.toml or pylock.NAME.toml",
            ),
            (["app", "--from", "held.txt"], "--from cannot be combined with requirements"),
        ],
    )
    def test_wrong_usage(self, variants, tmp_path, arguments, message):
        (tmp_path / "held.txt").write_text("")
        done = variants("resolve", *arguments)
        assert done.code in (1, 2)
        assert message in done.err
        assert len(done.err.splitlines()) == 1

    def test_why_there_is_no_solution(self, variants, serve):
        tree = app("2.0").metadata
        del tree["variants"]["null"]
        index = serve(Index())
        index.add_release(app("2.0"), metadata=tree)
        index.remove("app", "app-2.0-py3-none-any-null.whl")
        done = variants("resolve", "app", "-i", index.url, env={"VARIANTS_EXCLUDE": "nvidia"})
        assert (done.code, done.out) == (1, "")
        first, *details = done.err.splitlines()
        assert first == "error: no version fits of app"
        assert details[0] == "  you asked for app"
        assert details[1:] == [
            "  None of the variants of app 2.0 fits this machine:",
            "    cu126  excluded by your preference 'nvidia'",
            "    cu128  excluded by your preference 'nvidia'",
            "    cu130  excluded by your preference 'nvidia'; "
            "needs CUDA driver 13.0 or newer, this one supports up to 12.8",
            "  What helps: do not exclude 'nvidia', or describe the target machine with "
            "--variant-platform FILE.",
        ]


class TestLock:
    def test_there_and_back(self, variants, index, tmp_path, platform):
        done = variants("resolve", "app", "-i", index.url, "-o", "pylock.toml")
        assert (done.code, done.out) == (0, ON_GPU)
        first = (tmp_path / "pylock.toml").read_bytes()
        variants("resolve", "app", "-i", index.url, "-o", "pylock.toml", "--no-cache")
        assert (tmp_path / "pylock.toml").read_bytes() == first
        done = variants("resolve", "--from", "pylock.toml", "--download", "wheels")
        # The file has one variant, and tells of no others.
        assert (done.code, done.out) == (0, ON_GPU.replace(f"; cu130 {NEEDS_13}", ""))
        assert {path.name for path in (tmp_path / "wheels").iterdir()} == {
            "always-1.0-py3-none-any.whl", "app-1.0-py3-none-any-cu128.whl",
            "for_128-1.0-py3-none-any.whl", "for_cu128-1.0-py3-none-any.whl",
            "for_gpu-1.0-py3-none-any.whl",
        }  # fmt: skip
        done = variants("resolve", "--from", "pylock.toml", "--target", platform("cpu", NO_GPU))
        assert done.code == 1
        assert "none of its wheels fits cpu: cu128 needs CUDA driver 12.8" in done.err


class TestUnreachableBuilds:
    """C6: a lock file without the builds of a host that is down would be another machine's."""

    @pytest.fixture
    def options(self, tmp_path, serve):
        tables = """
[[variant]]
label = "cuda12"
index = "http://127.0.0.1:9/whl"
properties = ["nvidia :: cuda_version_lower_bound :: 12.0"]
"""
        for name in ("one", "two"):
            path = tmp_path / "catalog" / f"{name}.toml"
            path.parent.mkdir(exist_ok=True)
            head = f'[project]\nname = "{name}"\ndocumentation = "https://docs.example"\n'
            priorities = 'default-priorities.namespace = ["nvidia"]\n'
            path.write_text(f'catalog-version = "1"\n{head}{priorities}{tables}')
        index = serve(Index())
        index.add_wheel(Wheel("one", "1.0"))
        index.add_wheel(Wheel("two", "1.0"))
        return ("one", "two", "-i", index.url, "--variant-catalog", tmp_path / "catalog")

    LINE = "Cannot reach http://127.0.0.1:9: cannot connect "
    MIRROR = "; choosing one, two without its build cuda12 (for a mirror: --variant-catalog-mirror http://127.0.0.1:9=URL)\n"

    def test_locked_only_if_that_is_allowed(self, variants, options, tmp_path):
        """C7: a host is one line, whichever projects lack builds."""
        options = (*options, "-o", "pylock.toml")
        done = variants("resolve", *options)
        assert done.code == 1
        assert "error: pylock.toml is not written, as builds of the catalogue " in done.err
        assert "add --allow-missing-sources to lock without them" in done.err
        assert done.err.count(self.LINE) == 1
        assert done.err.endswith(self.MIRROR)
        assert not (tmp_path / "pylock.toml").exists()
        done = variants("resolve", *options, "--allow-missing-sources")
        assert (done.code, done.out) == (0, "one  1.0\ntwo  1.0\n")
        assert done.err.startswith(f"warning: {self.LINE}")
        assert done.err.endswith(self.MIRROR)
        assert done.err.count("\n") == 1
        assert (tmp_path / "pylock.toml").exists()

    def test_no_variants_are_denied_of_what_cannot_be_read(self, variants, options):
        done = variants("explain", *options[1:])
        assert self.LINE in done.err
        assert "has no variants" not in done.err


class TestExactBuilds:
    """A build of the catalogue that a requirement names with its local version."""

    @pytest.fixture
    def options(self, tmp_path):
        with standing_in(pytorch()) as field:
            family_entries(field.builds, tmp_path / "catalog")
            yield ("-i", field.index.url, "--variant-catalog", tmp_path / "catalog")

    def test_taken(self, variants, options):
        done = variants("resolve", "torch==2.9.0+cu126", "torchvision", *options)
        assert (done.code, done.err) == (0, ""), done
        assert "torch        2.9.0+cu126  cuda12.6" in done.out
        assert "torchvision  0.9.0+cu126  cuda12.6" in done.out
        rows = variants("explain", "torch==2.9.0+cu126", *options).out.splitlines()
        assert rows[1].startswith("cuda12.6  chosen ")
        assert rows[2].endswith("is version 2.9.0+cu128, which the requirement does not admit")

    @pytest.mark.parametrize("operator", ["==", "==="])
    def test_one_that_does_not_fit(self, variants, options, operator):
        wanted = f"torch{operator}2.9.0+cu130"
        done = variants("resolve", wanted, *options)
        assert (done.code, done.out) == (1, ""), done
        assert f"you asked for {wanted}\n" in done.err
        assert "fits this machine (there is cuda13.0 alone to choose from):\n" in done.err
        assert "cuda13.0  needs CUDA driver 13.0 or newer" in done.err
        done = variants("explain", wanted, *options)
        assert (done.code, " chosen " in done.out) == (0, False), done
        assert "null      rejected" in done.out
        assert "is version 2.9.0+cpu, which the requirement does not admit" in done.out

    def test_none(self, variants, options):
        """``===`` admits no local version: what that leaves out is said."""
        left_out = (
            "left out the builds of torch 2.9.0 with a local version, which === does not admit: "
            "torch==2.9.0 takes the one that fits\n"
        )
        done = variants("resolve", "torch===2.9.0", *options)
        assert (done.out, done.err) == ("torch  2.9.0\n", f"warning: {left_out}"), done
        assert variants("explain", "torch===2.9.0", *options).err == f"note: {left_out}"


class TestExplain:
    def test_table(self, variants, index):
        done = variants("explain", "app", "-i", index.url)
        assert (done.code, done.err) == (0, "")
        assert done.out == (
            "app 1.0\n"
            "cu128  chosen      CUDA driver 12.8 or newer\n"
            "cu126  compatible  CUDA driver 12.6 or newer\n"
            "null   compatible  always fits\n"
            "cu130  rejected    needs CUDA driver 13.0 or newer, this one supports up to 12.8\n"
        )

    def test_files_that_are_missing_for_a_platform(self, variants, serve):
        index = serve(Index())
        index.add_release(app(non_variant=True))
        for label in ("cu128", "cu126"):
            index.remove("app", f"app-1.0-py3-none-any-{label}.whl")
        index.add_wheel(Wheel("app", "1.0", "cu126", "cp312-cp312-win_amd64"))
        done = variants("explain", "app", "-i", index.url)
        assert done.out.splitlines()[1:4] == [
            "null    chosen      always fits",
            "(none)  compatible  plain wheel (fallback)",
            f"cu128   rejected    has no wheel for {PYTHON} on manylinux x86_64",
        ]

    def test_json(self, variants, index):
        tree = json.loads(variants("explain", "app", "-i", index.url, "--json").out)
        assert tree["file"] == "app-1.0-py3-none-any-cu128.whl"
        (source,) = tree["sources"]
        assert source["selected"] == "cu128"
        assert [item["label"] for item in source["ranked"]] == ["cu128", "cu126", "null"]
        assert source["files"]["cu130"] == ["app-1.0-py3-none-any-cu130.whl"]

    def test_another_version_and_another_machine(self, variants, serve, platform):
        index = serve(app_index())
        index.add_release(app("2.0"))
        done = variants(
            "explain", "app<2", "-i", index.url, "--target", platform("cpu", NO_GPU),
            "--target", platform("gpu", GPU),
        )  # fmt: skip
        assert done.out.startswith("app 1.0 for cpu\nnull   chosen    always fits\n")
        assert "\n\napp 1.0 for gpu\ncu128  chosen" in done.out

    def test_variants_elsewhere(self, variants, serve):
        """It names what has some: an older version, the catalogue."""
        index = Index()
        index.add_wheel(Wheel("torch", "2.0"))
        index.add_release(dataclasses.replace(app("1.0"), name="torch"))
        serve(index)
        done = variants("explain", "torch", "-i", index.url)
        assert (done.code, done.out) == (0, "torch 2.0: torch-2.0-py3-none-any.whl\n")
        assert done.err.startswith(
            f"note: torch 2.0 has no variants on {index.url}torch/; torch==1.0 there has some; "
            "the catalogue describes builds of it: add --variant-catalog default\n"
        )
        assert variants("explain", "torch", "-i", index.url, "--no-variants").err == ""


class TestAdversity:
    @pytest.mark.skipif(os.name == "nt", reason="there are no such limits")
    def test_a_full_disk(self, variants, index, tmp_path):
        import resource

        def full():
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

        index.metadata_hashes = True  # what has neither hash nor ETag is not cached
        done = variants("resolve", "app", "-i", index.url, preexec_fn=full)
        assert (done.code, done.out) == (0, ON_GPU)
        assert done.err.startswith("note: ")
        assert "the cache cannot be written: File too large; continuing without a cache" in done.err
        done = variants("resolve", "app", "-i", index.url, "-o", "pylock.toml", preexec_fn=full)
        assert (done.code, done.out) == (1, "")
        assert "pylock.toml: File too large" in done.err
        assert not list(tmp_path.glob("*pylock*"))
        done = variants("resolve", "app", "-i", index.url, "-o", "pylock.toml")
        assert (done.code, done.out, done.err) == (0, ON_GPU, "")

    def test_secrets_stay_secret(self, variants, serve, tmp_path):
        index = serve(app_index(credentials="me:s3cr3t"))
        url = index.url.replace("//", "//me:s3cr3t@")
        done = variants("resolve", "app", "-i", url, "-o", "pylock.toml")
        assert (done.code, done.out) == (0, ON_GPU)
        done = variants("resolve", "app", "-i", url.replace("s3cr3t", "s3cr3t-wrong"))
        assert done.code == 1
        assert "access denied" in done.err
        assert "s3cr3t" not in done.text
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert files
        assert not any(b"s3cr3t" in path.read_bytes() for path in files)


@pytest.mark.parametrize("command", ["resolve", "explain"])
def test_an_allowed_plugin_that_fails(variants, serve, command):
    """It ends the command, which names it, or is skipped with a warning if the user wants that."""
    index = serve(acme_index("raise RuntimeError('no luck')"))
    arguments = (command, "app", "-i", index.url, "--variant-allow-provider", "acme-provider")
    problem = "the provider plugin acme-provider==1.5 (acme_provider:Plugin) failed: RuntimeError"
    done = variants(*arguments)
    assert done.code == 1
    assert problem in done.err
    assert "--variant-on-plugin-error skip" in done.err
    assert not done.out
    done = variants(*arguments, "--variant-on-plugin-error", "skip")
    assert done.code == 0
    assert f"Namespace 'acme' is skipped: {problem}" in done.err
    assert "null" in done.out
