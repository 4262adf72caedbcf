"""`variants trust`: approves the variants.toml of a project."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pep_variants import limits, safe_files
from pep_variants import preferences as user_preferences
from pep_variants.errors import PreferenceError, VariantError, shortened
from pep_variants.options import OPTIONS
from pep_variants.preferences import Approvals

from .._console import one_line, print_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pep_variants.preferences import Approval, Covered


@click.command()
@click.argument(
    "folder", metavar="[DIR]", type=click.Path(file_okay=False, path_type=Path), required=False
)
@click.option("--yes", is_flag=True, help="Approve without asking.")
@click.option("--revoke", is_flag=True, help="Revoke the approval of DIR.")
@click.option("--list", "listed", is_flag=True, help="List all approvals.")
def trust(folder: Path | None, yes: bool, revoke: bool, listed: bool) -> None:
    """Approve the variants.toml in DIR, by default the working directory.

    Such a file may be part of a checkout, so it can only reorder and narrow the variants of an
    index. After approval it may also allow provider plugins, whose code then runs, and name a
    platform file. The approval is for your user only, and for the current content of these files
    and of plugin wheels that are named by path.
    """
    if listed + revoke + yes > 1:
        raise click.UsageError("--list, --revoke and --yes exclude each other")
    if listed and folder is not None:
        raise click.UsageError("--list takes no DIR")
    approvals = Approvals()
    if listed:
        rows = [(approval.path, _state(approvals, approval)) for approval in approvals]
        if rows:
            print_table(("file", "state"), rows)
        return
    path = (folder or Path()) / user_preferences.FILENAME
    if revoke:
        if not approvals.remove(path):
            raise click.ClickException(f"{path.absolute()} is not approved")
        click.echo(f"Revoked {one_line(str(path.absolute()))}", err=True)
        return
    files, tree = _read(path)
    for file in files:
        _show(file)
    _show_grants(tree)
    if not yes:
        try:
            click.confirm("Approve this content?", abort=True, err=True)
        except click.Abort:
            raise click.ClickException(
                f"{path.absolute()} is not approved (--yes approves without asking)"
            ) from None
    approvals.add(path, user_preferences.approval_digest(files))
    click.echo(f"Approved {one_line(str(path.absolute()))}", err=True)


def _read(path: Path) -> tuple[list[Covered], Mapping[str, Any]]:
    """Return the file and what it names, and its keys.

    Raises:
        PreferenceError: the file cannot be read or is not valid.
    """
    try:
        data = safe_files.read_regular(path, limits.SETTINGS_BYTES).data
    except OSError as error:
        raise PreferenceError(f"{path.absolute()}: cannot be read: {error.strerror}") from None
    source = str(path.absolute())
    tree = user_preferences.configuration_tree(data, source)
    for _ in user_preferences.given_settings(tree, source):  # a malformed value is an error
        pass
    return user_preferences.covered_files(path.absolute(), data, tree), tree


def _show(file: Covered) -> None:
    if file.path.suffix == ".whl":
        digest = hashlib.sha256(file.data).hexdigest()
        click.echo(f"{one_line(str(file.path))}: {len(file.data):,} bytes, SHA-256 {digest}\n")
        return
    click.echo(f"{one_line(str(file.path))}:")
    for line in file.data.decode("utf-8", "backslashreplace").splitlines():
        click.echo(f"    {_escaped(line)}")
    click.echo()


def _show_grants(tree: Mapping[str, Any]) -> None:
    """Print what needs the approval last, where it cannot scroll out of view."""
    lines = []
    for option in OPTIONS:
        value = () if option.narrows or option.personal else tree.get(option.key, ())
        for item in value if isinstance(value, (list, tuple)) else [value]:
            lines.append(f"    {option.key}: {shortened(item, 200)}")
        if option.personal and option.key in tree:
            line = f"{option.key} does not apply: a project does not decide where code comes from"
            click.echo(line, err=True)
    click.echo(
        "With the approval these settings apply:" if lines else "Nothing needs approval.", err=True
    )
    for line in lines:
        click.echo(line, err=True)


def _escaped(line: str) -> str:
    """Return *line* with everything visible that would change what a terminal shows."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in line
    )


def _state(approvals: Approvals, approval: Approval) -> str:
    """Return whether *approval* still holds: ``approved``, ``changed`` or ``missing``."""
    path = Path(approval.path)
    if not os.path.lexists(path):
        return "missing"
    try:
        holds = (
            approvals.find(path) == approval
            and user_preferences.approval_digest(_read(path)[0]) == approval.digest
        )
    except VariantError:
        return "changed"
    return "approved" if holds else "changed"
