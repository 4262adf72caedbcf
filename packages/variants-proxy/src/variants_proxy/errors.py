"""Every error of the index proxy. Catch `ProxyError` for all of them.

Messages name the URL, without credentials, and the value, and say what to do.
"""

from __future__ import annotations

from dataclasses import dataclass

from pep_variants.errors import PluginFailed, VariantError

__all__ = ["ANSWERED", "InvalidKey", "PassingFailure", "ProxyError", "Refusal"]


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


@dataclass(frozen=True)
class Refusal:
    """Response in place of what was asked for; installers show its text in their output or log.

    Attributes:
        status: of HTTP.
        text: one line or more.
        may_pass: whether the client is to ask again.

    >>> from variants_proxy.errors import InvalidKey, Refusal
    >>> refusal = Refusal.of(InvalidKey("'h200' is no platform file of this proxy"))
    >>> refusal.status, refusal.may_pass
    (404, False)
    """

    status: int
    text: str
    may_pass: bool = False

    @classmethod
    def of(cls, error: Exception) -> Refusal:
        """Return the response for *error*, one of `ANSWERED`."""
        status = 404
        if isinstance(error, NothingFetched):
            status = error.status
        elif isinstance(error, PluginFailed):
            status = 424  # not 5xx, which clients retry in vain
        elif isinstance(error, (UnusableFile, VariantError)):
            status = 409  # a retry does not help
        return cls(status, str(error), isinstance(error, PassingFailure))
