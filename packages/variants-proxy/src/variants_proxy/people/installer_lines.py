"""What a person pastes to have an installer use a proxy, for each installer.

The platform key is the user name of the index's URL, which installers leave out of their lock
files, or a part of its path, for those without credentials for an index.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..index_urls import index_url, keyed_url

TOKEN = "TOKEN"  # noqa: S105 - a placeholder
"""Stands for the token of a proxy, which no page shows."""


@dataclass(frozen=True)
class Address:
    """Where the installers of one machine find the index.

    Attributes:
        base: URL of the proxy, without path and the last slash.
        key: platform key of the machine.
        project: normalized name of a project to install.
        token: whether the proxy wants a token.
        in_path: the key is in the path, not the user name.
    """

    base: str
    key: str
    project: str
    token: bool = False
    in_path: bool = False

    @property
    def url(self) -> str:
        """The URL of the index with everything an installer needs."""
        if not self.in_path:
            return keyed_url(self.base, self.key, TOKEN if self.token else "")
        scheme, _, rest = self.base.partition("://")
        return f"{scheme}://{f'v:{TOKEN}@' if self.token else ''}{rest}{index_url(self.key)}"

    @property
    def bare(self) -> str:
        """The URL of the index without user name and password."""
        return self.base + (index_url(self.key) if self.in_path else "/simple/")

    @property
    def user(self) -> str:
        """The user name, empty if there is none to send."""
        return ("v" if self.token else "") if self.in_path else self.key

    @property
    def password(self) -> str:
        """The password beside `user`; any is right for a proxy without a token."""
        return TOKEN if self.token else "v"


@dataclass(frozen=True)
class Lines:
    """Lines to paste.

    Attributes:
        place: where: a shell, or the name of a file.
        text: the lines.
    """

    place: str
    text: str


def _pip(address: Address) -> list[Lines]:
    return [
        Lines("shell", f"pip install --index-url {address.url} {address.project}"),
        Lines("pip.conf", f"[global]\nindex-url = {address.url}"),
    ]


def _uv(address: Address) -> list[Lines]:
    toml = f'[[tool.uv.index]]\nname = "variants"\nurl = "{address.bare}"\ndefault = true'
    variables = ""
    if address.user:
        variables = (
            f"export UV_INDEX_VARIANTS_USERNAME={address.user}\n"
            f"export UV_INDEX_VARIANTS_PASSWORD={address.password}\n"
        )
    return [
        Lines("shell", f"uv pip install --default-index {address.url} {address.project}"),
        Lines("pyproject.toml", toml),
        Lines("shell, with pyproject.toml", f"{variables}uv add {address.project}"),
    ]


def _poetry(address: Address) -> list[Lines]:
    commands = [f"poetry source add variants {address.bare}"]
    if address.user:
        commands.append(f"poetry config http-basic.variants {address.user} {address.password}")
    return [Lines("shell", "\n".join([*commands, f"poetry add {address.project}"]))]


def _pip_tools(address: Address) -> list[Lines]:
    # As a variable: pip-compile writes its options into the lock file.
    return [
        Lines("requirements.in", address.project),
        Lines(
            "shell",
            f"export PIP_INDEX_URL={address.url}\n"
            "pip-compile --generate-hashes --no-emit-index-url requirements.in\n"
            "pip-sync requirements.txt",
        ),
    ]


def _pdm(address: Address) -> list[Lines]:
    url, variables = address.bare, ""
    if address.user:
        scheme, _, rest = address.bare.partition("://")
        url = f"{scheme}://${{VARIANTS_USER}}:${{VARIANTS_PASSWORD}}@{rest}"
        variables = (
            f"export VARIANTS_USER={address.user}\nexport VARIANTS_PASSWORD={address.password}\n"
        )
    # The name is that of the default source, which it replaces.
    toml = f'[[tool.pdm.source]]\nname = "pypi"\nurl = "{url}"'
    return [
        Lines("pyproject.toml", toml),
        Lines("shell", f"{variables}pdm add {address.project}"),
    ]


INSTALLERS: dict[str, tuple[str, Callable[[Address], list[Lines]]]] = {
    "pip": ("pip", _pip),
    "uv": ("uv", _uv),
    "poetry": ("Poetry", _poetry),
    "pip-tools": ("pip-tools", _pip_tools),
    "pdm": ("PDM", _pdm),
}
"""Name for people, and the lines, of each installer."""
