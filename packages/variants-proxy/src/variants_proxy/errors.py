"""Every error of the index proxy. Catch `ProxyError` for all of them.

Messages name the URL, without credentials, and the value, and say what to do.
"""

from __future__ import annotations

from pep_variants import VariantError


class ProxyError(Exception):
    """Base of all errors of this package."""


class InvalidKey(ProxyError):
    """A platform key that `encode` does not produce, or that names an unknown platform file."""


class NoKey(ProxyError):
    """A request for the index of all machines whose user name is not a platform key."""


class NothingFetched(ProxyError):
    """Something of an upstream that there is not.

    Attributes:
        status: HTTP status of the proxy's response, 504 for a timeout.
        problem: what is wrong, without the place: the same for all pages of a host that is down.
    """

    def __init__(self, message: str, status: int = 502, problem: str = "") -> None:
        self.status = status
        self.problem = problem or message
        super().__init__(message)


class UpstreamError(NothingFetched):
    """An upstream index that has no such thing, responds with an error, or exceeds a limit."""


class PassingFailure(NothingFetched):
    """A failure that may pass, of an upstream, the network or this machine.

    What goes on without a file that an upstream does not have (`UpstreamError`) must not go on
    without one that cannot be had for now: the client asks again, and ends if the failure lasts.
    """


class UnusableFile(ProxyError):
    """An upstream file that contradicts its index, or cannot be rewritten."""


class InvalidSetting(ProxyError):
    """A setting of the proxy that is not valid."""


class NoSuchFile(ProxyError):
    """A project, file or index that does not exist."""


class ExportError(ProxyError):
    """An export that cannot be made; nothing of it was written."""


ANSWERED = (InvalidKey, NoKey, NoSuchFile, NothingFetched, UnusableFile, VariantError)
"""Errors with an HTTP response."""
