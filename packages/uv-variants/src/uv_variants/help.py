"""What ``uv-variants --help`` says before uv's own help."""

from __future__ import annotations

from pep_variants.options import OPTIONS

from .wishes import OWN_OPTIONS

_OWN = (
    ("serve", "run an index shim, for yourself or for many"),
    ("config", "print a uv.toml, or an index URL, for a running shim"),
    ("status", "say which shim runs, and what it stands before"),
    ("stop", "stop it"),
)


def print_help() -> None:
    """Print our options and commands."""
    print("uv, aware of wheel variants: any uv command, and before it these options:\n")
    rows = [(f"--{each.name} {each.metavar}".strip(), each.help) for each in OPTIONS]
    rows += [(f"--{name} {metavar}", text) for name, metavar, _, text in OWN_OPTIONS]
    width = max(len(left) for left, _ in rows)
    for left, text in rows:
        print(f"  {left:<{width}}  {text}")
    print("\nCommands of its own (each has --help):\n")
    for name, text in _OWN:
        print(f"  {name:<{width}}  {text}")
    print("\nEverything else is uv's:\n", flush=True)
