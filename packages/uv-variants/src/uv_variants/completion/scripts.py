"""uv's completion scripts, made into ours, one function per shell.

Every script that uv writes has the same parts, in uv 0.5 and now. Where one should be missing, our
words are, and the rest works.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from .words import Word

Completed = Callable[[str, str, Sequence[Word], Sequence[Word]], str]
"""Takes uv's script, the name of uv's program, our options and our commands."""


def bash(script: str, program: str, options: Sequence[Word], commands: Sequence[Word]) -> str:
    """Return the script for bash."""
    ours = f"{program}-variants"
    text = re.sub(rf"(?m)^_{program}\(\)", f"_{_function(program)}()", script)
    text = re.sub(
        rf"(?m)^(\s*complete -F )_{program}( .*) {program}$",
        rf"\g<1>_{_function(program)}\2 {ours}",
        text,
    )
    words = " ".join(word.text for word in (*options, *commands))
    text = _after(text, rf'(?m)^        {program}\)\n            opts="', f"{words} ")
    cases = "".join(
        f"                {word.text})\n                    {_bash_values(word)}\n"
        "                    return 0\n                    ;;\n"
        for word in options
        if word.metavar
    )
    start = (
        rf'(?ms)^        {program}\)\n            opts=".*?^            case "\$\{{prev\}}" in\n'
    )
    return _after(text, start, cases)


def _bash_values(word: Word) -> str:
    kinds = ["-f"] if word.is_file else []
    if word.values or not kinds:
        kinds.append(f'-W "{" ".join(word.values)}"')
    return f'COMPREPLY=($(compgen {" ".join(kinds)} -- "${{cur}}"))'


def zsh(script: str, program: str, options: Sequence[Word], commands: Sequence[Word]) -> str:
    """Return the script for zsh."""
    ours, function = f"{program}-variants", f"_{_function(program)}"
    text = re.sub(rf"(?<![\w-])_{program}(?![A-Za-z0-9])", function, script)
    text = re.sub(rf"(?m)^#compdef {program}$", f"#compdef {ours}", text)
    text = re.sub(rf"(?m)^(\s*compdef {function}) {program}$", rf"\1 {ours}", text)
    lines = "".join(f"{_zsh_option(word)} \\\n" for word in options)
    text = _after(text, r'(?m)^    _arguments "\$\{_arguments_options\[@\]\}" : \\\n', lines)
    listed = "".join(f"{_zsh(f'{_colons(word.text)}:{word.help}')} \\\n" for word in commands)
    start = rf"(?m)^{function}_commands\(\) \{{\n    local commands; commands=\(\n"
    return _after(text, start, listed)


def _zsh_option(word: Word) -> str:
    help_text = re.sub(r"([\[\]:])", r"\\\1", word.help)
    many = "*" if word.repeatable else ""
    if not word.metavar:
        return _zsh(f"{many}{word.text}[{help_text}]")
    values = " ".join(word.values)
    action = f"({values})" if values else " "
    if word.is_file:
        action = f"{{compadd -- {values}; _files}}" if values else "_files"
    return _zsh(f"{many}{word.text}=[{help_text}]:{word.metavar}:{action}")


def _colons(text: str) -> str:
    return text.replace(":", "\\:")


def _zsh(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def fish(script: str, program: str, options: Sequence[Word], commands: Sequence[Word]) -> str:
    """Return the script for fish."""
    ours = f"{program}-variants"
    text = script.replace(f"__fish_{program}_", f"__fish_{_function(program)}_")
    text = re.sub(rf"(?m)^complete -c {program} ", f"complete -c {ours} ", text)
    specs = " ".join(
        f"{word.name}={'+' if word.repeatable else ''}" if word.metavar else word.name
        for word in options
    )
    text = _after(text, r"(?m)^\tstring join \\n ", f"{specs} ")
    needed = f'-n "__fish_{_function(program)}_needs_command" '
    condition = needed if needed in text else ""
    lines = [f"complete -c {ours} {condition}{_fish_option(word)}" for word in options]
    lines += [
        f"complete -c {ours} {condition}-f -a {_fish(word.text)} -d {_fish(word.help)}"
        for word in commands
    ]
    return text.rstrip("\n") + "\n" + "".join(f"{line}\n" for line in lines)


def _fish_option(word: Word) -> str:
    text = f"-l {word.name} -d {_fish(word.help)}"
    if not word.metavar:
        return text
    values = f" -a {_fish(' '.join(word.values))}" if word.values else ""
    return f"{text} -r {'-F' if word.is_file else '-f'}{values}"


def _fish(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def powershell(script: str, program: str, options: Sequence[Word], commands: Sequence[Word]) -> str:
    """Return the script for PowerShell."""
    text = script.replace(f"-CommandName '{program}'", f"-CommandName '{program}-variants'")
    kinds = [(word, "ParameterName") for word in options]
    kinds += [(word, "ParameterValue") for word in commands]
    lines = "".join(
        f"            [CompletionResult]::new('{word.text}', '{word.text}', "
        f"[CompletionResultType]::{kind}, {_doubled(word.help)})\n"
        for word, kind in kinds
    )
    return _after(text, rf"(?m)^        '{program}' \{{\n", lines)


def elvish(script: str, program: str, options: Sequence[Word], commands: Sequence[Word]) -> str:
    """Return the script for Elvish."""
    text = script.replace(f"arg-completer[{program}]", f"arg-completer[{program}-variants]")
    lines = "".join(
        f"            cand {word.text} {_doubled(word.help)}\n" for word in (*options, *commands)
    )
    return _after(text, rf"(?m)^        &'{program}'= \{{\n", lines)


def _doubled(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def nushell(script: str, program: str, options: Sequence[Word], commands: Sequence[Word]) -> str:
    """Return the script for Nushell."""
    ours = f"{program}-variants"
    text = re.sub(rf"(?m)^(  export extern )({program})( \[)$", rf"\g<1>{ours}\3", script)
    text = re.sub(rf'(?m)^(  export extern "){program} ', rf"\g<1>{ours} ", text)
    lines = "".join(f"    {_nushell_option(word)} # {word.help}\n" for word in options)
    text = _after(text, rf"(?m)^  export extern {ours} \[\n", lines)
    externs = "".join(
        f'  # {word.help}\n  export extern "{ours} {word.text}" [\n    ...arguments: string\n'
        "  ]\n\n"
        for word in commands
    )
    return re.sub(r"(?m)^\}\n\nexport use", lambda match: externs + match[0], text, count=1)


def _nushell_option(word: Word) -> str:
    if not word.metavar:
        return word.text
    return f"{word.text}: {'path' if word.is_file else 'string'}"


SHELLS: dict[str, Completed] = {
    "bash": bash,
    "zsh": zsh,
    "fish": fish,
    "powershell": powershell,
    "elvish": elvish,
    "nushell": nushell,
}


def _function(program: str) -> str:
    """Return our program's name in the names of functions."""
    return f"{program}_variants"


def _after(text: str, start: str, added: str) -> str:
    """Return *text* with *added* after the first place that matches *start*."""
    return re.sub(start, lambda match: match[0] + added, text, count=1)
