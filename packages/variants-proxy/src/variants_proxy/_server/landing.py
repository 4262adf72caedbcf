"""The page for people: a form, the lines to paste, and what a machine gets of a project and why.

The platform key is the user name of the index's URL, which installers leave out of their lock
files.

The page works without JavaScript. ``landing.html`` escapes everything that comes from a request or
an index.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader

from pep_variants import machines
from pep_variants.errors import cut
from variants_catalog.catalogs import plain_lines

from .._clients import Client
from .._index_urls import bare_url, keyed_url
from .._key import encode
from .._service import Service
from .._upstream.upstream_pages import normalized
from ..errors import ANSWERED, NoSuchFile
from .answers import Answer, answer
from .questions import DRIVERS, GPUS, PYTHONS, SYSTEMS, Question, how_to_see

if TYPE_CHECKING:
    from jinja2 import Template


TOKEN = "TOKEN"  # noqa: S105 - a placeholder
"""Stands for the token of a proxy, which no page shows."""


@dataclass(frozen=True)
class Address:
    """Where the installers of one machine find the index.

    Attributes:
        base: URL of the proxy, without path and the last slash.
        key: platform key of the machine.
        project: normalized names of the projects to install, with spaces between them.
        token: whether the proxy wants a token.
    """

    base: str
    key: str
    project: str
    token: bool = False

    @property
    def url(self) -> str:
        """The URL of the index with everything an installer needs."""
        return keyed_url(self.base, self.key, TOKEN if self.token else "")

    @property
    def bare(self) -> str:
        """The URL of the index without user name and password."""
        return f"{self.base}/simple/"

    @property
    def password(self) -> str:
        """The password beside the key; any is right for a proxy without a token."""
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
    return [
        Lines("shell", f"uv pip install --default-index {address.url} {address.project}"),
        Lines("pyproject.toml", toml),
        Lines(
            "shell, with pyproject.toml",
            f"export UV_INDEX_VARIANTS_USERNAME={address.key}\n"
            f"export UV_INDEX_VARIANTS_PASSWORD={address.password}\n"
            f"uv add {address.project}",
        ),
    ]


def _poetry(address: Address) -> list[Lines]:
    return [
        Lines(
            "shell",
            f"poetry source add variants {address.bare}\n"
            f"poetry config http-basic.variants {address.key} {address.password}\n"
            f"poetry add {address.project}",
        )
    ]


def _pip_tools(address: Address) -> list[Lines]:
    # As a variable: pip-compile writes its options into the lock file.
    return [
        Lines("requirements.in", address.project.replace(" ", "\n")),
        Lines(
            "shell",
            f"export PIP_INDEX_URL={address.url}\n"
            "pip-compile --generate-hashes --no-emit-index-url requirements.in\n"
            "pip-sync requirements.txt",
        ),
    ]


def _pdm(address: Address) -> list[Lines]:
    scheme, _, rest = address.bare.partition("://")
    url = f"{scheme}://${{VARIANTS_USER}}:${{VARIANTS_PASSWORD}}@{rest}"
    # The name is that of the default source, which it replaces.
    toml = f'[[tool.pdm.source]]\nname = "pypi"\nurl = "{url}"'
    return [
        Lines("pyproject.toml", toml),
        Lines(
            "shell",
            f"export VARIANTS_USER={address.key}\nexport VARIANTS_PASSWORD={address.password}\n"
            f"pdm add {address.project}",
        ),
    ]


INSTALLERS: dict[str, tuple[str, Callable[[Address], list[Lines]]]] = {
    "pip": ("pip", _pip),
    "uv": ("uv", _uv),
    "poetry": ("Poetry", _poetry),
    "pip-tools": ("pip-tools", _pip_tools),
    "pdm": ("PDM", _pdm),
    "pixi": ("pixi", lambda _: []),
}
"""Name for people, and the lines, of each installer; none of one that was never tried."""


_HERE = Path(__file__).parent
_STYLE = f"\n{(_HERE / 'landing.css').read_text('utf-8')}"
_DIGEST = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

POLICY = (
    f"default-src 'none'; style-src 'sha256-{_DIGEST}'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
"""``Content-Security-Policy``: this style and a form, no script and nothing from elsewhere."""

_LENGTH = 600
_HOST = re.compile(r"[A-Za-z0-9.-]{1,253}(:[0-9]{1,5})?|\[[0-9a-fA-F:.]{2,45}\](:[0-9]{1,5})?")


class Landing:
    """The page for people."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def page(
        self, asked: Question, scheme: str, host: str, *, token: bool
    ) -> tuple[bytes, Exception | None]:
        """Return the page, and the error that it shows.

        Args:
            asked: of the person.
            scheme: by which the client knows this server, ``https`` behind a proxy with TLS.
            host: value of the ``Host`` header.
            token: whether clients have to send the proxy's token.
        """
        base = f"{scheme}://{host if _HOST.fullmatch(host) else 'HOST'}"
        if asked.installer not in INSTALLERS:
            asked = replace(asked, installer="pip")
        found: dict[str, Any] | None = None
        problem: Exception | None = None
        if asked.project:
            try:
                found = await self._found(asked, base, token=token)
            except ANSWERED as error:
                problem = error
        settings = self._service.settings

        def write() -> bytes:
            page = _template().render(
                style=_STYLE,
                installers={name: title for name, (title, _) in INSTALLERS.items()},
                platforms=_platforms(settings.platforms),
                systems=SYSTEMS,
                gpus=GPUS,
                drivers=DRIVERS,
                pythons={each: each or "any" for each in PYTHONS},
                how_to_see=[*how_to_see()],
                indexes=[(item.name, bare_url(item.url)) for item in settings.upstreams],
                base=base,
                token=token,
                asked=asked,
                found=found,
                problem=str(problem or ""),
            )
            return page.encode("utf-8", "replace")

        return await self._service.upstreams.compute(write), problem

    async def _found(self, asked: Question, base: str, *, token: bool) -> dict[str, Any]:
        names = [normalized(name) for name in asked.projects]
        if None in names:
            raise NoSuchFile(f"{asked.project[:80]!r} is not a valid project name")
        projects = [*dict.fromkeys(filter(None, names))]
        described = asked.described()
        machine = described.machine
        if machine.name and not machine.target:
            client = self._service.clients.client(encode(machine))
            machine = replace(machine, target=_target(client, asked.system))
        key = encode(machine)
        answers = [await self._answer(key, name, asked.system) for name in projects]
        sources = [each.source for each in answers]
        lacking = next((each.project for each in answers if each.source is None), "")
        plain = plain_lines([each for each in sources if each is not None])
        address = Address(base, key, " ".join(projects), token)
        return {
            "machine": described.title,
            "warning": described.warning,
            "answers": answers,
            "lines": INSTALLERS[asked.installer][1](address),
            "plain": None if lacking else plain.get(asked.installer) or plain["pip"],
            "plain_by": asked.installer if asked.installer in plain else "pip",
            "lacking": lacking,
        }

    async def _answer(self, key: str, project: str, system: str) -> Answer:
        client = self._service.clients.client(key)
        shown = await self._service.views.view(client, None, project)
        if shown is None:
            raise NoSuchFile(f"no index has the project {project}")
        report = await self._service.report(shown, client.machine.python)
        origin = self._service.upstreams.origin
        machine = replace(client.machine, target=_target(client, system))
        return await self._service.upstreams.compute(
            lambda: answer(shown, report, machine, lambda file: origin(shown.upstream, file).url)
        )


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["short"] = lambda text: cut(str(text), _LENGTH)
    return environment.get_template("landing.html")


def _target(client: Client, system: str) -> str:
    """Return operating system and processor: what the key says, or *system* with a fitting CPU."""
    if client.machine.target or not system or "-" in system:
        return client.machine.target or system
    is_arm = bool(client.machine.platform.support("aarch64").features)
    return f"{system}-{'aarch64' if is_arm else 'x86_64'}"


def _platforms(own: Mapping[str, Path | str]) -> dict[str, str]:
    """Return the platforms of the form: all that the proxy knows, with their titles, by name."""
    known = {machine.name: machine.title for machine in machines.KNOWN_MACHINES}
    titles = known | {
        name: "" if isinstance(given, Path) else known.get(given, given)
        for name, given in own.items()
    }
    return {"": "— choose —"} | {
        name: f"{name} — {title}" if title else name for name, title in sorted(titles.items())
    }
