"""Scripts that are made into ours; `test_uv_completion` has uv's real ones, in real shells."""

import os
import subprocess
import sys

import pytest

from uv_variants.completion.scripts import SHELLS
from uv_variants.completion.words import Word, own_commands, own_options
from uv_variants.own_options import OWN_COMMANDS

PARTS = {
    "bash": '_uv() {\n        uv)\n            opts="--help"\n            case "${prev}" in\n'
    "            esac\n}\n    complete -F _uv -o default uv\n",
    "zsh": "#compdef uv\n_uv() {\n    _arguments \"${_arguments_options[@]}\" : \\\n'-h[x]'\n}\n"
    "_uv_commands() {\n    local commands; commands=(\n'run:x' \\\n)\n}\n    compdef _uv uv\n",
    "fish": "function __fish_uv_global_optspecs\n\tstring join \\n h/help\nend\n"
    'complete -c uv -n "__fish_uv_needs_command" -l help\n',
    "powershell": "-CommandName 'uv'\n        'uv' {\n            x\n        }\n",
    "elvish": "arg-completer[uv]\n        &'uv'= {\n            x\n        }\n",
    "nushell": 'module completions {\n  export extern uv [\n  ]\n  export extern "uv x" [\n  ]\n\n'
    "}\n\nexport use completions *\n",
}
QUOTED = Word("--own", "It's [a]: \\ word", "VALUE", ("one", "two"), repeatable=True)


@pytest.mark.parametrize("shell", SHELLS)
def test_our_words_are_in_their_place(shell):
    found = SHELLS[shell](PARTS[shell], "uv", [QUOTED], [Word("doctor", "examine")])
    assert "--own" in found or "-l own" in found
    assert "doctor" in found
    assert "uv-variants" in found


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("zsh", "'*--own=[It'\\''s \\[a\\]\\: \\ word]:VALUE:(one two)' \\"),
        ("fish", "-l own -d 'It\\'s [a]: \\\\ word' -r -f -a 'one two'"),
        ("powershell", "'It''s [a]: \\ word'"),
        ("elvish", "'It''s [a]: \\ word'"),
    ],
)
def test_quoting(shell, line):
    assert line in SHELLS[shell](PARTS[shell], "uv", [QUOTED], [])


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_that_is_not_known_stays(shell):
    found = SHELLS[shell]("something new\n", "uv", [QUOTED], [])
    assert found.startswith("something new\n")


def test_the_words():
    names = {word.text for word in own_options()}
    assert {"--variant", "--no-variants", "--variant-lock"} <= names
    assert [word.text for word in own_commands()] == list(OWN_COMMANDS)
    assert not any(word.help.endswith(".") for word in own_options())


@pytest.mark.skipif(os.name == "nt", reason="a shell script is no program there")
@pytest.mark.parametrize(
    ("entry", "given", "ours"),
    [
        ("main", "generate-shell-completion elvish", True),
        ("main", "generate-shell-completion perl", False),
        ("main", "generate-shell-completion elvish --help", False),
        ("main_uvx", "--generate-shell-completion elvish", True),
    ],
)
def test_the_commands(tmp_path, entry, given, ours):
    uv = tmp_path / "uv"
    uv.write_text('#!/bin/sh\necho "arg-completer[uv] arg-completer[uvx] $*"\n')
    uv.chmod(0o755)
    code = f"from uv_variants.main import {entry}; {entry}()"
    done = subprocess.run(
        [sys.executable, "-c", code, *given.split()],
        env={**os.environ, "VARIANTS_UV": str(uv)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert ("-variants]" in done.stdout) == ours, done.stdout
