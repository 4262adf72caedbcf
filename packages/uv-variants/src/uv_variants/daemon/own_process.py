"""A session with a proxy process of its own, until the daemon takes over."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from uv_variants.errors import ProxyFailed
from variants_proxy.listening import LOOPBACK

from .address import USERNAME
from .proxy_messages import settings_message
from .proxy_process import ProxyProcess
from .session import SessionSettings


class OwnProcessSession:
    """See `daemon.session.Session`."""

    def __init__(
        self, environ: Mapping[str, str], settings: SessionSettings, *, at_once: bool
    ) -> None:
        self._process = ProxyProcess(environ, at_once=at_once)
        self._process.configure(
            settings_message(
                settings.indexes,
                settings.cache,
                projects=settings.projects,
                platforms=settings.platforms,
                floating={"here": settings.key} if settings.floating else None,
                insecure_hosts=settings.insecure_hosts,
                keyring=settings.keyring,
                failures=settings.failures,
                requested=settings.requested,
            )
        )
        self.id = USERNAME
        self.port = self._process.port
        self.token = self._process.token

    @property
    def proxy_url(self) -> str:
        """The HTTP proxy for uv."""
        return f"http://{self.id}:{self.token}@{LOOPBACK}:{self.port}"

    @property
    def ca_file(self) -> Path:
        """Certificates that uv has to trust: it intercepts no TLS."""
        import ssl

        paths = ssl.get_default_verify_paths()
        return Path(paths.cafile or paths.openssl_cafile)

    def failure(self) -> ProxyFailed | None:
        """Return why there is no proxy any more."""
        return self._process.failure()

    def refusals(self) -> list[str]:
        """Return the files that uv did not get."""
        return self._process.refusals()

    def noted_projects(self) -> list[str]:
        """Return the projects that there are notices about."""
        return self._process.noted_projects()

    def close(self) -> None:
        """End the process."""
        self._process.stop()
