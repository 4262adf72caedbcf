"""Completion scripts, sourced by real shells: uv's words, and ours."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.uvs import Machine

SHELLS = ("bash", "zsh", "fish", "powershell", "elvish", "nushell")
_BASH = """
source "$1"
COMP_WORDS=("${@:3}"); COMP_CWORD=$(($# - 3))
"$2" "$3" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}" 2>/dev/null
printf '%s\\n' "${COMPREPLY[@]}"
"""
_ZSH = r"""
zmodload zsh/zpty
zpty shell zsh -f -i
setup="PS1='READY> '; autoload -Uz compinit; compinit -u -D; source $1"
zpty -w shell "$setup; zstyle ':completion:*' verbose no; bindkey '^I' list-choices; echo begin"
zpty -r -m shell REPLY $'*begin\r\n*READY> *'
zpty -w -n shell "$2"$'\t'
zpty -w -n shell $'\C-U'"echo e""nd"$'\r'
zpty -r -m shell REPLY $'*end\r*'
print -r -- "$REPLY"
zpty -d shell
"""


def scripts(machine: Machine, shell: str) -> tuple[Path, Path]:
    """Write the scripts of both programs; return their paths."""
    found = []
    uvx = machine.program.with_name(machine.program.name.replace("uv-", "uvx-"))
    for program, words in (
        (machine.program, ["generate-shell-completion", shell]),
        (uvx, ["--generate-shell-completion", shell]),
    ):
        done = machine.execute(program, *words)
        assert (done.code, done.err) == (0, ""), done
        path = machine.work / f"{program.stem}.{shell}"
        path.write_text(done.out, encoding="utf-8")
        found.append(path)
    return found[0], found[1]


def shell(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"there is no {name} here")
    return found


def words(text: str) -> list[str]:
    return text.split("\n")[:-1]


@pytest.mark.matrix
def test_bash(every_machine: Machine) -> None:
    program = shell("bash")
    uv, uvx = scripts(every_machine, "bash")

    def completed(script: Path, *line: str) -> list[str]:
        function = "_" + line[0].replace("-", "_")
        command = [program, "-c", _BASH, "bash", str(script), function, *line]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return words(done.stdout)

    assert completed(uv, "uv-variants", "--variant-l") == ["--variant-lock"]
    assert completed(uv, "uv-variants", "doc") == ["doctor"]
    assert completed(uv, "uv-variants", "--variant-lock", "") == ["pinned", "floating"]
    assert completed(uv, "uv-variants", "--variant", "a=b", "sy") == ["sync"]
    assert completed(uv, "uv-variants", "sync", "--froz") == ["--frozen"]
    assert completed(uv, "uv-variants", "sync", "--variant-l") == [""]
    assert completed(uvx, "uvx-variants", "--variant-l") == ["--variant-lock"]
    assert completed(uvx, "uvx-variants", "--variant-lock", "f") == ["floating"]
    assert completed(uvx, "uvx-variants", "--fr") == ["--from"]


@pytest.mark.matrix
def test_fish(every_machine: Machine) -> None:
    program = shell("fish")
    files = scripts(every_machine, "fish")

    def completed(line: str) -> list[str]:
        sources = "; ".join(f"source {path}" for path in files)
        command = [program, "--no-config", "-c", f"{sources}; complete -C '{line}'"]
        environ = every_machine.variables
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environ)
        return [word.partition("\t")[0] for word in words(done.stdout)]

    assert completed("uv-variants --variant-l") == ["--variant-lock"]
    assert completed("uv-variants doc") == ["doctor"]
    assert completed("uv-variants --variant-lock=p") == ["--variant-lock=pinned"]
    assert completed("uv-variants --variant a=b sync --froz") == ["--frozen"]
    assert completed("uvx-variants --variant-lock f") == ["floating"]
    assert completed("uvx-variants --fro") == ["--from"]


@pytest.mark.matrix
def test_zsh(every_machine: Machine) -> None:
    program = shell("zsh")
    uv, uvx = scripts(every_machine, "zsh")

    def completed(script: Path, line: str) -> str:
        """Return what is listed, with the terminal's sequences."""
        command = [program, "-f", "-c", _ZSH, "zsh", str(script), line]
        environ = {**every_machine.variables, "TERM": "xterm"}
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, env=environ, timeout=60
        )
        _, _, listed = done.stdout.partition(f"{line}\n")
        return listed or done.stdout

    assert re.search(r"--variant-lock\b", completed(uv, "uv-variants --variant-l"))
    assert "doctor" in completed(uv, "uv-variants doc").replace("uv-variants doc\r", "")
    assert re.search(r"floating +pinned", completed(uv, "uv-variants --variant-lock "))
    assert "--frozen" in completed(uv, "uv-variants --variant a=b sync --froz")
    assert re.search(r"--variant-lock\b", completed(uvx, "uvx-variants --variant-l"))


@pytest.mark.matrix
@pytest.mark.parametrize("name", SHELLS)
def test_our_words_and_no_other_change(every_machine: Machine, name: str) -> None:
    """In every shell: what is not our word is uv's line, but for the name of the program."""
    uv, uvx = scripts(every_machine, name)
    for path, program, plain in (
        (uv, "uv", every_machine.plain("generate-shell-completion", name)),
        (uvx, "uvx", every_machine.plain("tool", "uvx", "--generate-shell-completion", name)),
    ):
        ours = path.read_text(encoding="utf-8")
        assert "variant-platform" in ours
        assert ("doctor" in ours) == (program == "uv")
        assert f"{program}-variants" in ours
        back = ours.replace(f"{program}-variants", program).replace(f"{program}_variants", program)
        lost = set(plain.out.splitlines()) - set(back.splitlines())
        # Our options stand in front of uv's on the lines that list them all.
        assert len(lost) <= 1, lost


def test_what_is_no_shell(machine: Machine) -> None:
    done = machine.run("generate-shell-completion", "perl")
    assert done.code == 2
    assert "bash" in done.err
    done = machine.run("generate-shell-completion", "--help")
    assert done.code == 0
    assert "nushell" in done.out
