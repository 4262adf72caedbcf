"""Light commands: read as click reads them, without loading it."""

import os
import subprocess
import sys

import click
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from variants_cli import group, light
from variants_cli.light.command_line import light_call

RUN = "import sys; from variants_cli.main import main; main()"
HEAVY = {
    "click", "uuid", "datetime", "gettext", "locale", "tempfile", "platform", "platformdirs",
    "subprocess", "rich", "importlib.metadata", "archspec.cpu", "tomlkit", "httpx", "pynvml",
    "logging", "packaging",
}  # fmt: skip

METADATA = """{
    "$schema": "https://variants-schema.wheelnext.dev/v0.1.1.json",
    "default-priorities": {"namespace": ["x86_64"]},
    "variants": {"null": {}, "v1": {"x86_64": {"level": ["v1"]}}}
}"""

WORDS = """
    there.json missing.json folder unreadable nvidia - -- -v -vo -o -oout -o=out --output
    --output=out --output= --output=folder out --json --json=1 --jso --verbose -h --help
    --metadata --metadata=there.json --metadata=missing --platform --platform=h100-zen4
    --variant-platform=x --variant-prefer a::b --variant-prefer=a --variant-prefer=--json
    --variant-enable=x=y --nonsense = -1 --variant-plugin-sandbox off --variant-allow-provider *? ~
""".split()
WORDS += ["", " ", "\udcff", "--metadata=\0"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.json").write_text("{}")
    (tmp_path / "unreadable").write_text("{}")
    (tmp_path / "unreadable").chmod(0)
    (tmp_path / "folder").mkdir()


@pytest.mark.parametrize("name", light.COMMANDS)
@settings(
    max_examples=1500,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(words=st.lists(st.sampled_from(WORDS), max_size=6))
def test_read_as_click_reads(folder, name, words):
    call = light_call([name, *words])
    if call is None:
        return
    command = group.cli.get_command(click.Context(group.cli), name)
    assert command is not None
    context = command.make_context(name, list(words))
    assert call.keywords == context.params
    assert {key: type(value) for key, value in call.keywords.items()} == {
        key: type(value) for key, value in context.params.items()
    }
    assert command.callback is call.func


@pytest.mark.parametrize(
    "words",
    [
        ["detect"],
        ["detect", "nvidia", "x86_64", "--json"],
        ["detect", "-v", "-o", "out", "--metadata", "there.json"],
        ["detect", "--variant-enable=amd", "--variant-enable", "intel"],
        ["rank", "there.json"],
        ["rank", "--platform", "h100-zen4", "there.json", "--json"],
        ["rank", "there.json", "--variant-prefer=a :: b", "--variant-plugin-sandbox=off"],
    ],
)
def test_plain_lines_are_read(folder, words):
    assert light_call(words) is not None


def test_completion_is_for_click(monkeypatch):
    assert light_call(["detect"]) is not None
    monkeypatch.setenv("_VARIANTS_COMPLETE", "bash_complete")
    assert light_call(["detect"]) is None


def test_windows_expands(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    assert light_call(["detect", "nvidia"]) is not None
    assert light_call(["detect", "nv*"]) is None


def run(*words, code=RUN, **environ):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, words)],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("command", ["detect", "rank"])
def test_what_is_loaded(tmp_path, command):
    path = tmp_path / "pkg-1.0-variants.json"
    path.write_text(METADATA)
    words = [command, path] if command == "rank" else [command]
    code = (
        "import atexit, sys\n"
        f"atexit.register(lambda: print(*sorted({HEAVY} & {{*sys.modules}}), file=sys.stderr))\n"
        + RUN
    )
    first, second = run(*words, code=code), run(*words, code=code)
    assert (second.returncode, second.stdout) == (0, first.stdout)
    assert first.stdout
    if sys.platform == "linux":  # the CPU is kept there, and directories are told
        environ = {"XDG_CONFIG_DIRS": "/nowhere", "HOME": os.environ["HOME"]}
        assert run(*words, code=code, **environ).stderr == "\n"


def test_other_streams_are_click_s(tmp_path):
    path = tmp_path / "pkg-1.0-variants.json"
    path.write_text(METADATA)
    for encoding in ("ascii", "latin-1", "utf-16"):
        plain = run("rank", path, PYTHONIOENCODING="utf-8")
        other = subprocess.run(
            [sys.executable, "-c", RUN, "rank", path],
            env={**os.environ, "PYTHONIOENCODING": encoding},
            capture_output=True,
        )
        assert other.returncode == 0
        # click takes UTF-8 in place of ASCII
        decoded = other.stdout.decode("utf-8" if encoding == "ascii" else encoding)
        assert decoded.splitlines() == plain.stdout.splitlines()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["rank", "missing.json"], 2, "does not exist"),
        (["rank", "broken.json"], 1, "error: broken.json: "),
        (["detect", "acme"], 2, "x86_64 (see variants detect --help)"),
        (["detect", "-o", "no/folder"], 1, "error: no/folder: No such file or directory"),
        (["rank", "there.json", "--variant-plugin-sandbox=nonsense"], 1, "nonsense"),
    ],
)
def test_errors_are_those_of_every_command(folder, words, code, said):
    with open("broken.json", "w") as file:
        file.write("{")
    done = run(*words)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        ("KeyboardInterrupt()", 130, "\nerror: interrupted\n"),
        ("ValueError('odd')", 70, "variants: internal error: ValueError: odd"),
        ("BrokenPipeError(32, 'Broken pipe')", 1, ""),
        ("SystemExit(143)", 143, ""),
    ],
)
def test_other_ends(raised, code, said):
    program = (
        "import pep_variants.settings.loader as loader\n"
        f"def failing(*args, **options): raise {raised}\n"
        f"loader.load_preferences = failing\n{RUN}"
    )
    light_end = run("detect", code=program)
    heavy_end = run("detect", "--verbose", "--verbose", code=program)
    assert light_end.returncode == heavy_end.returncode == code
    assert said in light_end.stderr
    assert light_end.stderr.splitlines()[-1:] == heavy_end.stderr.splitlines()[-1:]


def test_short_help_is_that_of_each_command():
    context = click.Context(group.cli)
    found = {
        name: command.short_help
        for name in group.cli.list_commands(context)
        if (command := group.cli.get_command(context, name)) is not None
    }
    assert found == group.COMMANDS


@pytest.mark.parametrize("words", [["--help"], ["--version"]])
def test_help_loads_no_command(words):
    code = (
        "import atexit, sys\n"
        "atexit.register(lambda: print(*(name for name in sys.modules "
        "if name.startswith('variants_cli.commands')), file=sys.stderr))\n" + RUN
    )
    done = run(*words, code=code)
    assert (done.returncode, done.stderr) == (0, "\n")


def test_completion_names_the_commands():
    done = run(COMP_WORDS="variants de", COMP_CWORD="1", _VARIANTS_COMPLETE="bash_complete")
    assert done.stdout == "plain,detect\n"
    done = run(COMP_WORDS="variants --ve", COMP_CWORD="1", _VARIANTS_COMPLETE="bash_complete")
    assert done.stdout == "plain,--version\n"
