"""What the indexes have for this machine, asked without uv and without a background process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from pep_variants.errors import redacted
from variants_proxy.errors import ANSWERED, ProxyError
from variants_proxy.metrics import Metrics
from variants_proxy.service import Service
from variants_proxy.settings import Limits, Settings
from variants_proxy.single_flight import gather_limited
from variants_proxy.upstream_options import bare_url

from ..proxy_client import VersionChoice, read_choices

if TYPE_CHECKING:
    from pathlib import Path

    from ..platform_key import PlatformKey
    from ..used_indexes import UsedIndexes

_LIMITS = Limits(read_seconds=5.0, page_seconds=10.0, file_seconds=20.0)
_AT_ONCE = 8


@dataclass(frozen=True)
class IndexAnswers:
    """The answers of the indexes.

    Attributes:
        choices: by project and version; projects without variants are missing.
        problems: why an index could not be asked, by its name.
        sources: URL of the index, without credentials, by project.
    """

    choices: Mapping[str, Mapping[str, VersionChoice]]
    problems: Mapping[str, str]
    sources: Mapping[str, str] = field(default_factory=dict)


def ask_indexes(
    projects: Iterable[str],
    used: UsedIndexes,
    machine: PlatformKey,
    cache: Path,
    environ: Mapping[str, str],
) -> IndexAnswers:
    """Ask the indexes for *projects*, each the first index that has it, as uv does.

    An index that fails is not asked again.

    Args:
        projects: normalized names.
        used: the indexes.
        machine: that variants are to fit.
        cache: directory of the proxy's cache.
        environ: environment variables.

    Raises:
        InvalidSetting: the URL of an index is not valid.
    """
    settings = Settings(
        tuple(index.upstream() for index in used.indexes.values()),
        cache,
        dict(machine.platforms),
        limits=_LIMITS,
        keyring=environ.get("UV_KEYRING_PROVIDER") == "subprocess",
        environ=environ,
    )
    return asyncio.run(_asked(sorted(projects), settings, used, machine.key))


async def _asked(
    projects: list[str], settings: Settings, used: UsedIndexes, key: str
) -> IndexAnswers:
    service = Service(settings, Metrics())
    choices: dict[str, dict[str, VersionChoice]] = {}
    problems: dict[str, str] = {}
    sources: dict[str, str] = {}

    async def ask(project: str) -> None:
        client = service.clients.client(key)
        for name, index in used.indexes.items():
            if index.explicit and project not in used.projects.get(name, ()):
                continue
            if name in problems:
                return  # not the next one either: the project may be on this one
            try:
                shown = await service.views.view(client, service.upstream(name), project)
                if shown is None:
                    continue
                tree = await service.report.decisions(shown)
            except (ProxyError, *ANSWERED) as error:
                problems.setdefault(name, redacted(" ".join(str(error).split())))
                return
            if versions := read_choices(tree):
                choices[project] = versions
                sources[project] = redacted(bare_url(index.url))
            return

    try:
        await gather_limited([partial(ask, project) for project in projects], _AT_ONCE)
    finally:
        service.upstreams.close()
    return IndexAnswers(choices, problems, sources)
