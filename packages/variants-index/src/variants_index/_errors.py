"""Errors of package indexes, their files and targets. Catch `PackageIndexError` for all of them.

Messages name the URL or file, without credentials, and say what to do.
"""

from __future__ import annotations

from pep_variants.errors import redacted


class PackageIndexError(Exception):
    """Base of all errors of this package.

    Attributes:
        problem: what is wrong, without the URL.
        url: where, without credentials, or the name of the index; empty if *problem* names it.
        status: HTTP status of the response that is the error, 0 without one.
        may_pass: it may succeed later, without a change of anything.
    """

    may_pass = False

    def __init__(self, problem: str = "", status: int = 0, *, url: str = "") -> None:
        self.problem = problem
        self.url = redacted(url)
        self.status = status
        super().__init__(f"{self.url}: {problem}" if url else problem)

    def problem_at(self, url: str) -> str:
        """Return what is wrong with *url*, without naming it; the message if it is elsewhere."""
        return self.problem if self.url and self.url == redacted(url) else str(self)


class InvalidPage(PackageIndexError):
    """Not a page of the simple API (PEP 503, PEP 691)."""


class InvalidUrl(PackageIndexError):
    """A URL that cannot be parsed."""


class NotFound(PackageIndexError):
    """Nothing is at a URL (HTTP 404 and 410, a missing file)."""


PROXY_LOGIN = (
    "the proxy wants another user name or password: put them into the proxy's URL in the variable "
    "HTTPS_PROXY or HTTP_PROXY"
)
"""What status 407 means: it is the answer of a proxy, and not of the index."""


class AccessDenied(PackageIndexError):
    """The index denies access (HTTP 401, 403), or a proxy before it (407)."""


class Unreachable(PackageIndexError):
    """No usable response after all retries: no connection, cut off, overloaded."""

    may_pass = True


class TimedOut(Unreachable):
    """A response that is not complete in time."""


class UntrustedServer(PackageIndexError):
    """The certificate of a server is not accepted: no outage, and no retry helps."""


class BadResponse(PackageIndexError):
    """A response that must not be used: too large, a forbidden redirect, a wrong hash."""


class UnusableDistribution(PackageIndexError):
    """A distribution whose core metadata is broken, or only known after a build."""


class TargetError(PackageIndexError):
    """An invalid description of a target."""
