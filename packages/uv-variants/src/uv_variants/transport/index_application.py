"""The application that answers for the indexes of one session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .outbound import Outbound
from .route import Application, Origin, Receive, Scope, Send, origin


@dataclass(frozen=True)
class AnsweredIndex:
    """An index whose project pages the service answers.

    Attributes:
        name: of the index in URLs of the service (`UserIndex.proxy_name`).
        url: of the index as the user configured it.
        projects: normalized names of the only projects that it answers, for an explicit index;
            None for all.
        links: whether it is a find-links page.
    """

    name: str
    url: str = field(repr=False)
    projects: frozenset[str] | None = None
    links: bool = False


class IndexApplication:
    """ASGI application: project pages and variants from the service, all else from upstream."""

    def __init__(
        self,
        indexes: Sequence[AnsweredIndex],
        client: str,
        service: Callable[[str, str], Application],
        outbound: Outbound,
    ) -> None:
        """Set up.

        Args:
            indexes: of the session.
            client: name of the session's client in URLs of the service (``/p/<client>/…``).
            service: from the name of an index and the ``Authorization`` that the client sent for
                it (empty without one) to the application of `variants_proxy` that uses just that
                towards the index.
            outbound: the way to the upstreams.
        """
        self._indexes = tuple(indexes)
        self._client = client
        self._service = service
        self._outbound = outbound

    @property
    def hosts(self) -> frozenset[Origin]:
        """The origins of the indexes."""
        return frozenset(found for each in self._indexes if (found := origin(each.url)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        raise NotImplementedError
