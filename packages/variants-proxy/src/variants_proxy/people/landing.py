"""Answers the form for people: which lines to paste, and what a machine gets of a project."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

from packaging.version import Version

from pep_variants.detect.known_machines import KNOWN_MACHINES
from pep_variants.formats.platform_file import platform_title
from variants_index.platforms import is_for_platform

from ..choice.choice import normalized
from ..choice.remarks import version_in
from ..choice.views import Client, ProjectView
from ..client.key import Machine, encode
from ..errors import ANSWERED, InvalidKey, NoSuchFile
from ..service import Service
from ..upstream.upstream_options import bare_url
from .installer_lines import INSTALLERS, Address
from .landing_page import SYSTEMS, Asked, Found, View, chosen_name, landing_page

_HOST = re.compile(r"[A-Za-z0-9.-]{1,253}(:[0-9]{1,5})?|\[[0-9a-fA-F:.]{2,45}\](:[0-9]{1,5})?")
_KEY_IN_URL = re.compile(r"https?://(?:([^/:@]+)(?::[^/@]*)?@[^/]*/.*|[^/]*/p/([^/]+)/.*)")


def read_question(query: Mapping[str, str]) -> Asked:
    """Return what the query of a request says; what the form does not have is left out."""
    installer = query.get("installer", "")
    system = query.get("system", "")
    return Asked(
        installer if installer in INSTALLERS else "pip",
        query.get("project", "").strip()[:201],
        query.get("platform", "")[:100],
        query.get("key", "").strip()[:8192],
        system if system in SYSTEMS else "",
        in_path=query.get("where") == "path",
    )


class Landing:
    """The page for people."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def page(
        self, asked: Asked, scheme: str, host: str, *, token: bool
    ) -> tuple[bytes, Exception | None]:
        """Return the page, and the error that it shows.

        Args:
            asked: of the person.
            scheme: by which the client knows this server, ``https`` behind a proxy with TLS.
            host: value of the ``Host`` header.
            token: whether clients have to send the proxy's token.
        """
        settings = self._service.settings
        base = f"{scheme}://{host if _HOST.fullmatch(host) else 'HOST'}"
        found: Found | None = None
        problem: Exception | None = None
        if asked.project:
            try:
                found = await self._found(asked, base, token=token)
            except ANSWERED as error:
                problem = error
        view = View(
            base,
            token,
            await self._service.upstreams.compute(lambda: _titles(settings.platforms)),
            [(item.name, bare_url(item.url)) for item in settings.upstreams],
            asked,
            found,
            str(problem or ""),
        )
        return landing_page(view), problem

    async def _found(self, asked: Asked, base: str, *, token: bool) -> Found:
        project = normalized(asked.project)
        if project is None:
            raise NoSuchFile(f"{asked.project[:80]!r} is not a valid project name")
        key = self._key(asked)
        client = self._service.clients.client(key)
        shown = await self._service.views.view(client, None, project)
        if shown is None:
            raise NoSuchFile(f"no index has the project {project}")
        report = await self._service.report.decisions(shown)
        return await self._service.upstreams.compute(
            lambda: _described(
                Address(base, key, project, token, asked.in_path),
                shown,
                report,
                _target(client, asked.system),
            )
        )

    def _key(self, asked: Asked) -> str:
        """Return the platform key for *asked*.

        Raises:
            InvalidKey: neither a platform nor a valid key was given.
        """
        if asked.key:
            found = _KEY_IN_URL.fullmatch(asked.key)
            return unquote(found[1] or found[2]) if found else asked.key
        if not asked.platform:
            raise InvalidKey(
                "choose a platform, or paste what 'variants-proxy url' prints on the machine"
            )
        target = _target(self._service.clients.client(asked.platform), asked.system)
        return encode(Machine(name=asked.platform, target=target))


def _target(client: Client, system: str) -> str:
    """Return operating system and processor: what the key says, or *system* with a fitting CPU."""
    if client.machine.target or not system:
        return client.machine.target
    is_arm = bool(client.machine.platform.support("aarch64").features)
    return f"{system}-{'aarch64' if is_arm else 'x86_64'}"


def _described(
    address: Address, shown: ProjectView, report: dict[str, object], target: str
) -> Found:
    versions = report["versions"]
    assert isinstance(versions, list)
    names = (
        [file.filename for file in shown.found.page.files]
        if shown.choice is None
        else [offer.filename for offer in shown.choice.offers]
    )
    there = {version for name in names if (version := version_in(name)) is not None}
    newest = max(there, key=lambda version: (not version.is_prerelease, version), default=None)
    decisions = {Version(str(item["version"])): item for item in versions}
    if newest is not None and newest not in decisions:
        newest = Version(newest.public)  # builds of the catalogue have a local version
    decision = decisions.get(newest) if newest is not None else None
    files = decision["files"] if decision is not None else {}
    own: dict[str, str] = decision["published"] if decision is not None else {}
    return Found(
        address,
        "" if newest is None else str(newest),
        decision,
        sorted(
            (own.get(name, name), label) for name, label in files.items() if _is_for(name, target)
        ),
        [
            (str(version), chosen_name(item))
            for version, item in decisions.items()
            if version != newest
        ],
        catalog if isinstance(catalog := report["catalog"], dict) else {},
    )


def _is_for(filename: str, target: str) -> bool:
    return is_for_platform(filename.removesuffix(".whl").rpartition("-")[2], target)


def _titles(platforms: Mapping[str, Path | str]) -> dict[str, str]:
    """Return the titles of all platforms that the proxy knows, by name."""
    known = {machine.name: machine.title for machine in KNOWN_MACHINES}
    own = {
        name: _title(given) if isinstance(given, Path) else known.get(given, given)
        for name, given in platforms.items()
    }
    return dict(sorted({**known, **own}.items()))


@lru_cache(maxsize=1024)
def _title(path: Path) -> str:
    try:
        return platform_title(path)
    except OSError:
        return ""
