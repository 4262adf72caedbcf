"""``uv-variants generate-shell-completion`` and ``uvx-variants --generate-shell-completion``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def complete_shell(uv: str, arguments: Sequence[str], environ: Mapping[str, str]) -> int | None:
    """Print uv's completion script, made into ours; return uv's exit code.

    Args:
        uv: path of uv.
        arguments: ``generate-shell-completion SHELL …`` or
            ``tool uvx --generate-shell-completion SHELL``.
        environ: environment variables.

    Returns:
        None, and nothing is printed, if no known shell is named: uv says what is wrong.
    """
    import subprocess

    from .scripts import SHELLS
    from .words import own_commands, own_options

    shell = next((text for text in arguments if text in SHELLS), None)
    if shell is None or not {"-h", "--help"}.isdisjoint(arguments):
        return None
    done = subprocess.run([uv, *arguments], env=dict(environ), stdout=subprocess.PIPE, check=False)
    script = done.stdout.decode("utf-8", "replace")
    if done.returncode == 0:
        is_uvx = arguments[0] == "tool"
        program, commands = ("uvx", []) if is_uvx else ("uv", own_commands())
        script = SHELLS[shell](script, program, own_options(), commands)
    print(script, end="")
    return done.returncode
