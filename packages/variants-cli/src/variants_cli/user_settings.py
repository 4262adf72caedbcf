"""Editing the user's own ``variants.toml``; comments and order stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pep_variants.choose.preferences import configuration_tree
from pep_variants.errors import PreferenceError
from pep_variants.files import read_regular, replacing
from pep_variants.limits import SETTINGS_BYTES
from pep_variants.ownership import make_private
from pep_variants.settings.places import Role, places

if TYPE_CHECKING:
    from pathlib import Path


def set_user_setting(key: str, value: str | None) -> Path:
    """Set *key* in the user's file, or remove it if *value* is None; return the path of the file.

    Raises:
        PreferenceError: the file is not TOML.
        NotPrivate: others can change its directory.
        OSError: it cannot be read or written.
    """
    import tomlkit

    path = next(place.path for place in places() if place.role is Role.USER)
    try:
        data = read_regular(path, SETTINGS_BYTES).data
    except FileNotFoundError:
        data = b""
    configuration_tree(data, str(path))  # what this project reads, tomlkit can edit
    try:
        document = tomlkit.parse(data.decode("utf-8"))
    except ValueError as error:
        raise PreferenceError(f"{path}: cannot be edited: {error}") from None
    if value is None:
        document.pop(key, None)
    else:
        document[key] = value
    text = tomlkit.dumps(document)
    if text.encode() == data:
        return path
    make_private(path.parent)
    # Dotfiles are often symbolic links, which stay.
    with replacing(path.resolve(), mode=0o600) as stream:
        stream.write(text.encode())
    return path
